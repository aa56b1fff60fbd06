"""A refusal carries its parts, can be said with other names, and fits on a line."""

import pickle

import pytest

from archfit.spec.errors import (
    MOST,
    InvalidValue,
    brief,
    check_at_least,
    check_choice,
    check_real,
    check_text,
    one_line,
)

REFUSAL = InvalidValue("width", 7, "is not a multiple of {heads}=2", "use {width}=8")


def test_it_reads_field_value_rule_and_way_out() -> None:
    assert str(REFUSAL) == "width=7 is not a multiple of heads=2; use width=8"
    assert REFUSAL.fields == ("width", "heads")
    assert isinstance(REFUSAL, ValueError)


def test_fields_are_renamed_by_structure_and_not_by_text() -> None:
    letters = {"width": "d_x", "heads": "H", "use": "never"}
    assert str(REFUSAL.named(letters)) == "d_x=7 is not a multiple of H=2; use d_x=8"
    assert str(REFUSAL) == "width=7 is not a multiple of heads=2; use width=8"  # unchanged


def test_it_survives_the_way_from_a_worker() -> None:
    for refusal in (REFUSAL, REFUSAL.named({"width": "--width"})):
        assert str(pickle.loads(pickle.dumps(refusal))) == str(refusal)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\nb\x1b[2J", r"'a\nb\x1b[2J'"),
        ("x" * 100, f"'{'x' * 57}...'"),
        ("x" * 60, f"'{'x' * 60}'"),
        ({"a": 1}, "an object of 1 keys"),
        ([1, 2], "a list of 2"),
        ((), "a list of 0"),
        (10**40, str(10**40)),
        (10**40 + 1, "a number above 10^40"),
        (-(10**41), "a number below -10^40"),
        (1.5, "1.5"),
        (None, "None"),
    ],
)
def test_any_value_is_said_briefly_and_without_steering_a_terminal(
    value: object, said: str
) -> None:
    assert brief(value) == said


def test_a_long_line_keeps_its_start_and_its_way_out() -> None:
    assert one_line("a\n b") == "a b"
    assert one_line("x" * 500) == "x" * 500
    cut = one_line("start " + "x" * 900 + " end")
    assert len(cut) == 503
    assert cut.startswith("start ")
    assert " … " in cut
    assert cut.endswith(" end")


def test_sizes_are_whole_and_between_the_least_and_a_million_millions() -> None:
    check_at_least(2, depth=2, width=MOST)
    for value, rule in (
        (1, "depth=1 is below 2; use 2 or more"),
        (True, "depth=True is not a whole number; use 2 or more"),
        (2.0, "depth=2.0 is not a whole number; use 2 or more"),
        (MOST + 1, "depth=1000000000001 is over 10^12, more than any network; use 10^12 or less"),
    ):
        with pytest.raises(InvalidValue) as refused:
            check_at_least(2, depth=value)  # type: ignore[arg-type]
        assert str(refused.value) == rule


def test_reals_are_told_the_nearest_end() -> None:
    check_real(0.5, 2, rate=0.5)
    check_real(0.5, 2, rate=2)
    for value, nearest in ((0.4, "0.5"), (2.5, "2"), (float("nan"), "0.5")):
        with pytest.raises(InvalidValue, match=rf"is not in 0\.5\.\.2; the nearest is {nearest}$"):
            check_real(0.5, 2, rate=value)
    with pytest.raises(InvalidValue, match=r"rate=True is not a number; use 0\.5 to 2"):
        check_real(0.5, 2, rate=True)


def test_words_are_one_of_the_choices_and_have_no_control_characters() -> None:
    check_choice(("a", "b"), kind="a")
    with pytest.raises(InvalidValue, match=r"kind='c' is unknown; use one of a, b"):
        check_choice(("a", "b"), kind="c")
    check_text(name="Grüße")
    for text in ("a\tb", "a\x00b", "\ud800"):
        with pytest.raises(InvalidValue, match="control character or is not UTF-8"):
            check_text(name=text)
