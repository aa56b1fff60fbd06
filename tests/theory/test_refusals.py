"""Refusals by name: each that is raised has its sentences, and each sentence its use."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Template

import pytest

from archfit.spec.errors import InvalidValue, refusal, refuse_if, sentences

SRC = Path(__file__).parents[2] / "src" / "archfit"


def _raised() -> Iterator[tuple[str, set[str], set[str]]]:
    """The name of each refusal in the code, what it is given, and by mappings of its function."""
    rooms = ("spec", "theory", "exact", "audit", "report", "cli")
    files = (path for room in rooms for path in (SRC / room).rglob("*.py"))
    functions = (
        node
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    )
    for function in functions:
        nodes = list(ast.walk(function))
        keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys]
        mapped = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                place = {"refusal": 0, "refuse_if": 1}.get(node.func.id, -1)
                if place >= 0 and isinstance(name := node.args[place], ast.Constant):
                    given = {word.arg for word in node.keywords}
                    words = {word for word in given if word is not None}
                    yield str(name.value), words, mapped if None in given else set()


def test_every_refusal_has_sentences_and_every_sentence_is_used() -> None:
    by_reader = {"not-a-word", "not-a-flag"}  # names that a reader is made with
    assert {name for name, *_ in _raised()} | by_reader == set(sentences())
    assert len(list(_raised())) > 70


@pytest.mark.parametrize(("name", "given", "mapped"), list(_raised()))
def test_what_is_given_fills_the_sentences(name: str, given: set[str], mapped: set[str]) -> None:
    row = sentences()[name]
    assert set(row) in ({"says"}, {"field", "rule", "way_out"})
    places = {place for text in row.values() for place in Template(text).get_identifiers()}
    assert given <= places <= given | mapped


def test_a_value_is_refused_by_its_name_and_only_if_it_is_bad() -> None:
    refuse_if(False, "rank-over-width", 9, width=8)
    with pytest.raises(InvalidValue, match=r"^rank=9 is above width=8; vectors of that width have"):
        refuse_if(True, "rank-over-width", 9, width=8)
    assert "layer 1 of the plan has 2 pairs" in str(
        refusal("layer-of-other-heads", number=1, pairs=2, heads=3)
    )
