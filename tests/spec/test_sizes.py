"""Sizes as people type them."""

import pytest

from archfit.spec.sizes import parse_size, written_size


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (60, "60"), (999, "999"), (1000, "1k"), (12_500, "12.5k"), (12_345, "12.345k"),
        (1_234_567, "1234567"), (10**7, "10M"), (1_500_000_000, "1.5B"), (10**18, "1e18"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_short_as_it_can_be_read_again(number: int, text: str) -> None:
    assert written_size(number) == text
    assert parse_size(text) == number
