"""Every published test vector, through the same door that users have."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from archfit.report.theory_document import quantity_document
from archfit.theory import quantity

VECTORS = json.loads((Path(__file__).parent / "theory_vectors.json").read_text())
THEORY = [vector for vector in VECTORS if vector["quantity"] != "sep_rank"]  # measured: exact room


def _agrees(value: object, expected: object) -> bool:
    """Reals (strings with a point) to 1e-11 relative; all else to the letter."""
    if isinstance(expected, dict):
        assert isinstance(value, dict)
        return value.keys() == expected.keys() and all(
            _agrees(value[key], expected[key]) for key in expected
        )
    if isinstance(expected, str) and "." in expected:
        return abs(Decimal(str(value)) - Decimal(expected)) <= Decimal("1e-11") * abs(
            Decimal(expected)
        )
    return value == expected


def test_there_are_as_many_vectors_as_the_specification_has() -> None:
    assert (len(VECTORS), len(THEORY)) == (116, 86)


@pytest.mark.parametrize(
    "vector", THEORY, ids=lambda vector: f"{vector['id']}-{vector['quantity']}"
)
def test_vector(vector: dict[str, object]) -> None:
    inputs = vector["inputs"]
    assert isinstance(inputs, dict)
    document: Any = quantity_document(quantity(str(vector["quantity"]), **inputs), None).data
    assert _agrees(document["value"], vector["expected"])
