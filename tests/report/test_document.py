"""What fills sentences, tables and JSON: formats, what is not known, objects within objects."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from archfit.report.document import Section, Table, Template, json_of, said, written


@dataclass(frozen=True)
class Thing:
    """Anything that is told of."""

    size: float | None
    parts: tuple["Thing", ...] = ()


ONE = Thing(125_000.0, (Thing(1.25), Thing(None)))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("{0.size:size}", "125k"),
        ("{0.size:3 digits} of {0.size:count token}", "125k of 125,000.0 tokens"),
        ("{0.parts[0].size:.1%}", "125.0 %"),
        ("{0.parts[1].size:.1f|?}", "?"),
        ("{0.parts[0].size:.1f|!} to {0.parts[1].size:.1f|!}", ""),
        ("{0.size:short}, {0.parts:number}, {0.size:gigabytes}", "125k, 2, 0.00"),
        ("{known:yes}, {names:list}; {names:and}", "no, a, b; a and b"),
    ],
)
def test_places_are_filled_as_their_formats_say(form: str, text: str) -> None:
    assert Template().filled(form, ONE, known=False, names=("a", "b")) == text


def test_objects_of_json_hold_rounded_counted_and_named_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys: dict[str, Any] = {
        "thing": {
            "size": "size:0",
            "more": {"number": "parts:#", "is_empty": "extra:?"},
            "parts": "parts as part",
            "first": "first as part",
            "real": "whole:real",
            "none": "extra as part",
        },
        "part": {"size": "size:1"},
    }
    monkeypatch.setattr("archfit.report.document.written", lambda _: keys)
    assert json_of("thing", ONE, extra=None, whole=3, first=replace(ONE, size=None)) == {
        "size": 125_000,
        "more": {"number": 2, "is_empty": True},
        "parts": [{"size": 1.2}, {"size": None}],
        "first": {"size": None},
        "real": 3.0,
        "none": None,
    }
    assert isinstance(json_of("thing", ONE, extra=None, whole=3, first=ONE)["real"], float)


def test_a_section_of_empty_tables_says_nothing() -> None:
    empty = Table(title="", columns=("a",), rows=())
    assert Section.of_page("atlas-worth", empty) == Section()
    assert Section.of_page("atlas-worth", replace(empty, rows=(("1",),))).sentences
    assert Section.of_page("how-scored").sentences


def test_a_sentence_that_is_empty_is_left_out() -> None:
    assert Section.of("", "Said.", "", title="Question").sentences == ("Said.",)


def test_every_sentence_is_a_text_under_its_document() -> None:
    assert said("papers.few", 3) == "3 items"
    assert all(
        isinstance(text, str) for part in written("sentences").values() for text in part.values()
    )
