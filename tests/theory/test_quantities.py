"""Sizes at the ends of their ranges, and refusals that are said in the caller's letters."""

import pytest

from archfit.spec.errors import InvalidValue
from archfit.theory.catalogue import ENTRIES, Entry
from archfit.theory.inputs import INPUTS, catalogued, check_heads_fit, check_sizes

ENDS = {
    **dict.fromkeys(("depth", "deep_depth", "shallow_depth"), (1, 10**6)),
    **dict.fromkeys(("width", "deep_width", "heads", "head_dim", "embedding_rank"), (1, 10**9)),
    **dict.fromkeys(("vocab", "inside", "outside", "prefix", "continuation"), (1, 10**12)),
    "chains": (1, 10**6),
    "position_rank": (0, 10**9),
    "entry": (0, 10**9),
    "positions": (2, 10**12),
    "dimension": (1, 12),
    "degree": (1, 81),
    "size": (108, 10**18),
}


def test_every_size_has_its_ends() -> None:
    assert {word for word, given in INPUTS.items() if given.range} == set(ENDS)


@pytest.mark.parametrize(("word", "ends"), ENDS.items())
def test_both_ends_are_taken_and_the_next_are_not(word: str, ends: tuple[int, int]) -> None:
    least, most = ends
    check_sizes(**{word: least})
    check_sizes(**{word: most})
    for outside, nearest in ((least - 1, least), (most + 1, most)):
        with pytest.raises(InvalidValue, match=f"^{word}={outside} .*; the nearest is {nearest}$"):
            check_sizes(**{word: outside})


@pytest.mark.parametrize("value", [True, 2.0, "3", None])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match=r"is not a whole number; give one from 1 to 1000000$"):
        check_sizes(depth=value)  # type: ignore[arg-type]  # what a caller without types may pass


def test_as_many_heads_as_coordinates_fit_and_one_more_does_not() -> None:
    check_heads_fit(4, width=4)
    with pytest.raises(InvalidValue, match="heads=5 exceeds deep_width=4") as caught:
        check_heads_fit(5, deep_width=4)
    assert str(caught.value.named({"heads": "H", "deep_width": "d_deep"})).startswith(
        "H=5 exceeds d_deep=4"
    )


def test_one_decorated_function_and_a_row_of_the_table_are_a_whole_entry() -> None:
    @catalogued("lb_relaxA_log3")
    def half(width: int, heads: int = 1) -> int:
        """Half of it.

        floor(d_x / 2)
        """
        return width // 2 * heads

    ((name, read),) = half.readers.items()  # type: ignore[attr-defined]  # what the decorator attaches
    entry = Entry(name=name, function=half, read=read)
    assert entry.value(width=7) == 3
    assert entry.status_line == "proved, for L >= 2 and a balanced partition"
    assert (entry.status, entry.row) == ("proved", ENTRIES["lb_relaxA_log3"].row)
    assert (entry.meaning, entry.takes) == ("Half of it.", ("d_x", "[H]"))
    assert entry.words == {"d_x": "width", "H": "heads"}
    assert entry.letters == {"d_x": True, "H": False}
    half.__doc__ = None
    assert entry.meaning == ""
