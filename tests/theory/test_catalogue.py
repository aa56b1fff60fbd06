"""Quantities by name: their status, their inputs, and what is said of wrong ones."""

import json
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from archfit.report.theory_document import quantity_document
from archfit.theory import quantity
from archfit.theory.arithmetic import multiset_log3
from archfit.theory.catalogue import ENTRIES, as_json_value
from archfit.theory.continuous_bounds import every_depth_upper_bound
from archfit.theory.inputs import LETTERS
from archfit.theory.reals import digits
from archfit.theory.statistics_bounds import statistics_upper_bound

DEEP: dict[str, object] = {"L_deep": 3, "d_deep": 9, "H": 1}
NOTATION = Path(__file__).parents[2] / "docs" / "notation.md"


def test_every_quantity_says_its_meaning_source_and_status() -> None:
    assert len(ENTRIES) == 68
    for entry in ENTRIES.values():
        assert entry.meaning.endswith((".", ":"))
        assert len(entry.row["source"]) > 10
        assert re.fullmatch(r"(proved|derived|disputed)($|, | \(.+\)$| with ).*", entry.status_line)


def test_deep_upper_bounds_are_always_called_disputed() -> None:
    deep = {name for name in ENTRIES if re.match("ub_.*thm[24]", name)}
    assert len(deep) == 6
    gap = "disputed (its proof has a gap)"
    assert {ENTRIES[name].status_line for name in deep} == {gap}


def test_every_letter_is_explained_in_the_notation() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", NOTATION.read_text(), re.MULTILINE)
    assert {word: letter for letter, word in rows if word in LETTERS} == LETTERS


def test_the_document_has_the_keys_of_the_contract() -> None:
    document: Any = quantity_document(quantity("ub_thm1", L=3, d_x=12, H=4), None).data
    assert document["quantity"] == "ub_thm1"
    assert document["inputs"] == {"L": 3, "d_x": 12, "H": 4}
    assert document["value"] == 4503599627370496
    assert document["status"] == "proved"
    assert "unmasked" in str(document["network"])


def test_a_quantity_is_the_same_where_python_drops_docstrings() -> None:
    command = ["-OO", "-m", "archfit", "theory", "ub_thm1", "L=2", "d_x=6", "H=3", "--json"]
    done = subprocess.run([sys.executable, *command], check=True, capture_output=True)
    plain = quantity_document(quantity("ub_thm1", L=2, d_x=6, H=3), None)
    assert json.loads(done.stdout) == plain.data


def test_large_integers_fractions_and_reals_are_strings() -> None:
    assert as_json_value(quantity("ub_thm1", L=4, d_x=12, H=4).value) == str(16**40)
    assert as_json_value(quantity("ub_residual_thm4", L=1, d_x=3).value) == "1000/3"
    real = as_json_value(quantity("depth_threshold", d_x=1000).value)
    assert isinstance(real, str)
    assert len(real.replace(".", "")) >= 15


def test_half_a_million_digits_are_written_out() -> None:
    value = as_json_value(quantity("C", L=10**6).value)
    assert isinstance(value, str)
    assert (len(value), value[:6], value[-4:]) == (477121, "898855", "0000")


def test_the_second_corollary_is_disputed_only_with_the_papers_bound() -> None:
    inputs = {"d_deep": 81, "H": 3, "L_deep": 12}
    assert quantity("corollary2_beta", **inputs, upper="stat").status == "derived"
    assert quantity("corollary2_beta", **inputs, upper="paper").status == "disputed"


@pytest.mark.parametrize(
    ("printed", "shallow"), [("2e+17", 2), ("2e+05", 3)], ids=["against-2", "against-3"]
)
def test_the_papers_example_of_corollary_1_is_relax_a(printed: str, shallow: int) -> None:
    inputs = {"L_deep": 6, "d_deep": 1000, "H": 16, "L_shallow": shallow, "lower": "relaxA"}
    value = quantity("required_width", **inputs).value
    assert isinstance(value, Decimal)
    assert f"{float(value):.0e}" == printed


@pytest.mark.parametrize(("power", "printed"), [(7, 5), (8, 6), (9, 7), (10, 8), (11, 9)])
def test_minimal_depths_are_those_of_table_1(power: int, printed: int) -> None:
    value = quantity("min_depth", size=10**power).value
    assert isinstance(value, dict)
    assert value["min_depth"] == printed


@pytest.mark.parametrize(("d", "lam", "c", "largest"), [(1, 1, 1, 1), (3, 3, 41, 6), (4, 3, 18, 4)])
def test_smallest_spheres_of_lemma_8(d: int, lam: int, c: int, largest: int) -> None:
    from archfit.theory.vocabulary_bounds import smallest_full_rank_sphere

    points = smallest_full_rank_sphere(d, lam)
    assert {sum(x * x for x in point) for point in points} == {c}
    assert max(map(max, points)) == largest


def test_whole_floats_and_sizes_are_taken() -> None:
    assert quantity("params_12", L=2.0, d_x=1e3).value == 24_000_000


@pytest.mark.parametrize(
    ("name", "inputs", "sentence"),
    [
        ("ub_thm", {}, "'ub_thm' is no quantity; did you mean ub_thm"),
        ("ub_thm1", {"L": 2, "d_x": 4}, "ub_thm1 needs H; it takes L, d_x, H"),
        ("ub_thm1", {"L": 2, "d_x": 4, "H": 1, "z": 1}, "ub_thm1 has no input 'z'"),
        ("ub_thm1", {"depth": 2}, "has no input 'depth' .depth is written L.; it takes"),
        ("C", {"L": 0}, r"L=0 is not in 1..1000000; the nearest is 1"),
        ("C", {"L": -4}, "L=-4 is not in"),
        ("C", {"L": 2.5}, "L=2.5 is not a whole number"),
        ("C", {"L": True}, "L=True is not a whole number"),
        ("C", {"L": "many"}, "L='many' is not a whole number"),
        ("C", {"L": 10**6 + 1}, "L=1000001 is not in"),
        ("depth_threshold", {"d_x": 10**9 + 1}, "the nearest is 1000000000"),
        ("lb", {"L": 3, "d_x": 4, "H": 5}, "H=5 exceeds d_x=4.*use at most 4 heads"),
        ("lb", {"L": 1, "d_x": 4, "H": 1}, "L=1 is too shallow .* use L >= 2"),
        ("lb_log3", {"L": 2, "d_x": 4, "H": 4}, "use d_x >= 6"),
        ("lb_relaxB_log3", {"L": 2, "d_x": 4, "H": 2}, "use d_x >= 6"),
        ("ub_thm1", {"L": 40, "d_x": 4, "H": 1}, "more than 1,000,000 digits"),
        ("ub_stat_pos", {"L": 2, "r": 2, "r_e": 0}, "no positional embedding"),
        ("ub_stat_vocab", {"L": 2, "V": 3, "r": 4}, "has no more rank"),
        ("ub_stat_N", {"L": 12, "d_x": 9, "n_P": 5, "n_Q": 5}, "use ub_stat"),
        ("lb_vocab", {"L": 2, "d_x": 8, "H": 4, "r": 4}, "r=4 is not in 5..8"),
        (
            "required_width",
            {"L_deep": 3, "d_deep": 9, "H": 1, "L_shallow": 2, "lower": "x"},
            "one of",
        ),
        ("corollary2_beta", {"L_deep": 2, "d_deep": 99, "H": 1, "upper": "stat"}, ">= 6"),
        ("lemma8_smallest_c", {"d": 9, "lambda": 9}, "use a smaller dimension or degree"),
        ("min_depth", {"size": 5}, "the nearest is 108"),
        ("multiset_log3", {"n": 0, "k": 3}, "use n >= 1"),
        ("required_width", DEEP | {"L_shallow": 2, "lower": [1]}, "is not a word"),
        ("corollary2_beta", {"L_deep": 9, "d_deep": 9, "H": 1, "upper": {}}, "is not a word"),
        ("monomial_witness", {"L": 2, "d_x": 2, "H": 2, "plan": 3.0}, "or the word example"),
        ("lemma7_N", {"L": 10**6, "H": 1, "r": 10}, "use L <= 6"),
        ("C", {"L": -(10**300)}, "L=a number below -10.40 is not in"),
    ],
)
def test_wrong_inputs_get_one_sentence(name: str, inputs: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        quantity(name, **inputs)
    assert "\n" not in str(caught.value)


def test_inputs_are_echoed_as_the_integers_they_mean() -> None:
    assert as_json_value(quantity("params_12", L=2.0, d_x=Decimal("1e3")).inputs) == {
        "L": 2,
        "d_x": 1000,
    }


def test_a_required_width_of_exactly_zero_is_zero() -> None:
    inputs = {"L_deep": 2, "d_deep": 6, "H": 2, "L_shallow": 1}
    for lower in ("exact", "relaxA", "closed"):
        assert quantity("required_width", **inputs, lower=lower).value == 0
    # multiset(2, 3) = 4, (1 + 3/3)^3 = 8 and (12/6)^3 = 8 heads
    for lower, width, heads in (("exact", 8, 4), ("relaxA", 16, 8), ("closed", 20, 8)):
        inputs = {"L_deep": 3, "d_deep": width, "H": heads, "L_shallow": 1}
        assert quantity("required_width", **inputs, lower=lower).value == 0


def test_a_tiny_required_width_keeps_its_digits() -> None:
    inputs = {"L_deep": 10**6, "d_deep": 10**9, "H": 1, "L_shallow": 999_999}
    value = quantity("required_width", **inputs, lower="exact").value
    assert isinstance(value, Decimal)
    assert value.adjusted() < -400_000


@pytest.mark.parametrize("value", [0, 1, 2, 7, 8, 9, 26, 27, 28, 10**30])
@pytest.mark.parametrize("degree", [1, 2, 3, 13, 121])
def test_roots_from_above_are_the_least(value: int, degree: int) -> None:
    from archfit.theory.thresholds import _root_above

    root = _root_above(value, degree)
    assert root**degree >= value
    assert root == 0 or (root - 1) ** degree < value


def test_a_free_head_dim_enters_the_bound_for_every_depth() -> None:
    assert quantity("ub_thm1", L=2, d_x=9, H=3, d_a=5).value == (3 * 6) ** 4


def test_the_second_corollary_needs_two_layers_at_least() -> None:
    value = quantity("corollary2_beta", L_deep=9, d_deep=2, H=1, upper="stat").value
    assert isinstance(value, dict)
    assert value["L_shallow"] >= 2
    assert value["d_shallow"] == 2 * 3 ** value["beta2"]


def test_thresholds_are_the_logarithms_they_are_named_for() -> None:
    assert quantity("depth_threshold", d_x=81).value == 4
    assert (
        quantity("depth_threshold_corrected", d_x=81).value
        == quantity("multiset_log3", n=2, k=2 * 81**2 - 1).value
    )


def test_a_long_sequence_over_r_tokens_loses_one_dimension_and_the_heads() -> None:
    assert quantity("lb_vocab_long", L=3, H=2, r=9).value == quantity("multiset", n=3, k=3).value
    assert quantity("lb_vocab_long", L=3, H=2, r=10).value == quantity("multiset", n=3, k=3).value


def test_powers_up_to_degree_81_are_searched_for() -> None:
    assert quantity("lemma7_N", L=6, H=1, r=4).value == 2  # one coordinate: the point 1
    with pytest.raises(ValueError, match=r"L=7 needs powers .* use L <= 6"):
        quantity("lemma7_N", L=7, H=1, r=4)


def test_more_monomials_than_a_search_takes_are_counted_in_the_refusal() -> None:
    with pytest.raises(ValueError, match="has 253 monomials, over the 250"):
        quantity("lemma8_smallest_c", **{"d": 3, "lambda": 21})


@pytest.mark.parametrize(("size", "depth"), [(108, 1), (10**18, 16)])
def test_the_minimal_depth_solves_its_equation_at_both_ends(size: int, depth: int) -> None:
    value = quantity("min_depth", size=size).value
    assert isinstance(value, dict)
    assert value["min_depth"] == depth == int(value["L_real"])
    assert abs(12 * value["L_real"] * value["d_x"] ** 2 / size - 1) < Decimal("1e-17")


def test_parameters_are_counted_with_free_and_with_shared_heads() -> None:
    assert quantity("params_12", L=3, d_x=10).value == 3600
    assert quantity("params_analysed", L=3, d_x=10, H=5).value == 1200
    assert quantity("params_analysed", L=3, d_x=10, H=5, d_a=7).value == 4 * 3 * 5 * 7 * 10
    with pytest.raises(ValueError, match="H=11 exceeds d_x=10"):
        quantity("params_analysed", L=3, d_x=10, H=11)


def test_numbers_up_to_two_to_the_53_are_numbers_in_json() -> None:
    assert as_json_value(2**53) == 2**53
    assert as_json_value(-(2**53)) == -(2**53)
    assert as_json_value(2**53 + 1) == "9007199254740993"
    assert as_json_value([Fraction(4, 2), Fraction(1, 3), "word"]) == [2, "1/3", "word"]
    assert as_json_value(10**4001) == "1" + "0" * 4001


@pytest.mark.parametrize("depth", [2, 4])
def test_the_corollary_speaks_above_the_threshold_only(depth: int) -> None:
    with pytest.raises(ValueError, match="use L_deep >= 5"):
        quantity("corollary2_beta", L_deep=depth, d_deep=81, H=1, upper="stat")


def test_the_shallow_network_of_the_corollary_is_the_least() -> None:
    """beta2 less by one has a lower bound that does not pass the deep one's upper bound."""
    value = quantity("corollary2_beta", L_deep=9, d_deep=27, H=3, upper="stat").value
    assert isinstance(value, dict)
    beta, depth = int(value["beta2"]), int(value["L_shallow"])
    assert depth == 3 + beta
    deep = min(
        digits(every_depth_upper_bound(9, 27, 3).log3), digits(statistics_upper_bound(9, 27).log3)
    )

    def lower(beta: int) -> Decimal:
        return digits(lambda: multiset_log3((3**beta * 27 - 3) // 2, 3 ** (3 + beta - 2)))

    assert lower(beta - 1) <= deep < lower(beta)
