"""Refusals of the theory: each that is raised has its sentences, and each sentence its use."""

import ast
from pathlib import Path
from string import Template

import pytest

from archfit.spec.errors import InvalidValue
from archfit.theory.refusal import refusal, refuse_if, sentences

SRC = Path(__file__).parents[2] / "src" / "archfit"


def _raised() -> list[tuple[str, set[str] | None]]:
    """The name of each refusal in the code, and what it is given; None where that is a mapping."""
    found = []
    for file in (path for room in ("theory", "exact") for path in (SRC / room).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            place = {"refusal": 0, "refuse_if": 1}.get(node.func.id, -1) if is_call else -1  # type: ignore[attr-defined]  # of a call
            if place < 0 or not isinstance(name := node.args[place], ast.Constant):  # type: ignore[attr-defined]  # the same
                continue
            given = {word.arg for word in node.keywords}  # type: ignore[attr-defined]  # the same
            found.append((str(name.value), None if None in given else given))
    return found


def test_every_refusal_has_sentences_and_every_sentence_is_used() -> None:
    assert {name for name, _ in _raised()} == set(sentences())
    assert len(_raised()) > 70


@pytest.mark.parametrize(("name", "given"), _raised())
def test_what_is_given_fills_the_sentences(name: str, given: set[str] | None) -> None:
    row = sentences()[name]
    assert set(row) in ({"says"}, {"field", "rule", "way_out"})
    places = {place for text in row.values() for place in Template(text).get_identifiers()}
    assert given is None or given == places


def test_a_value_is_refused_by_its_name_and_only_if_it_is_bad() -> None:
    refuse_if(False, "rank-over-width", 9, width=8)
    with pytest.raises(InvalidValue, match=r"^rank=9 is above width=8; vectors of that width have"):
        refuse_if(True, "rank-over-width", 9, width=8)
    assert "layer 1 of the plan has 2 pairs" in str(
        refusal("layer-of-other-heads", number=1, pairs=2, heads=3)
    )
