"""The disproof: weights checked by running the network, and the formulas they exceed."""

from math import prod

import numpy as np
import pytest

from archfit.theory import quantity
from archfit.theory.bounds import bounds_report
from archfit.theory.counterexample import disputed_bounds, refute_for_shape, refute_formula
from archfit.theory.shape import Shape
from archfit.theory.witness_formula import (
    Plan,
    example_plan,
    final_exponents,
    grow_plan,
    monomial_witness,
)
from tests_network import PRIME, Weights, random_matrix, run, separation_rank


def _weights_of(plan: Plan, depth: int, width: int) -> Weights:
    """W^O = e_h, W^V = e_p^T, W^K = e_q^T, W^Q = e_h^T; the last layer repeats."""
    unit = np.eye(width, dtype=int).astype(object)
    layers = [*plan, *([plan[-1]] * (depth - len(plan)))]
    return [
        [
            (unit[q : q + 1], unit[h : h + 1], unit[p : p + 1], unit[:, h : h + 1])
            for h, (p, q) in enumerate(layer)
        ]
        for layer in layers
    ]


@pytest.mark.parametrize(("depth", "width"), [(3, 2), (2, 3), (4, 4), (6, 4)])
def test_the_network_computes_the_promised_monomial(depth: int, width: int) -> None:
    plan, entry = grow_plan(depth, width, seed=3)
    exponents = final_exponents(depth, width, width, plan, entry)
    x = random_matrix(np.random.default_rng(0), width, 5)
    s = x @ x.T % PRIME
    pairs = [(a, b) for a in range(width) for b in range(a, width)]
    monomial = prod(pow(int(s[a, b]), e, PRIME) for (a, b), e in zip(pairs, exponents, strict=True))
    y = run(_weights_of(plan, depth, width), x)
    assert [int(v) for v in y[entry]] == [int(v) * monomial % PRIME for v in x[entry]]


@pytest.mark.parametrize(
    ("depth", "width", "plan"),
    [
        (2, 3, (((0, 1), (1, 2), (0, 2)), ((1, 2), (0, 0), (1, 1)))),
        (2, 2, (((0, 0), (0, 1)), ((0, 1), (1, 1)))),
        pytest.param(
            *(3, 2, (((0, 0), (0, 1)), ((1, 1), (0, 0)), ((0, 1), (0, 1)))),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_witness_has_the_separation_rank_it_promises(
    depth: int, width: int, plan: Plan
) -> None:
    promised = int(monomial_witness(depth, width, width, plan, 0))
    weights = _weights_of(plan, depth, width)
    measured = separation_rank(weights, width, width, width, samples=promised + 3)
    assert measured == promised


@pytest.mark.parametrize("depth", [4, 7, 18, 19, 40])
def test_the_example_has_its_closed_form(depth: int) -> None:
    n = 3 ** (depth - 3)
    closed = (n + 1) // 2 * (n + 1) ** 4 * (2 * n + 1) ** 3 * (3 * n + 1)
    assert int(monomial_witness(depth, 4, 4, example_plan())) == closed


def test_the_example_passes_the_formula_between_depth_18_and_19() -> None:
    def exceeds(depth: int) -> bool:
        witness = quantity("monomial_witness", L=depth, d_x=4, H=4, plan="example").value
        return bool(witness > quantity("ub_thm2", L=depth, d_x=4).value)  # type: ignore[operator]  # both exact

    assert not exceeds(18)
    assert exceeds(19)


def test_repeating_the_last_layer_has_the_closed_form_of_single_steps() -> None:
    plan, entry = grow_plan(30, 5, seed=1)
    written_out = (*plan, *((plan[-1],) * (30 - len(plan))))
    assert final_exponents(30, 5, 5, plan, entry) == final_exponents(30, 5, 5, written_out, entry)


@pytest.mark.parametrize(("width", "depth"), [(4, 12), (5, 9), (6, 8), (8, 8), (10, 8)])
def test_the_deep_formula_is_refuted_where_a_search_once_did(width: int, depth: int) -> None:
    verdict = refute_formula("ub_thm2", {"L": depth, "d_x": width})
    assert verdict.refuted
    inputs = {"L": depth, "d_x": width, "H": width, "plan": verdict.plan, "entry": verdict.entry}
    witness = quantity("monomial_witness", **inputs).value
    assert witness > quantity("ub_thm2", L=depth, d_x=width).value  # type: ignore[operator]  # both exact


@pytest.mark.parametrize(("rank", "depth"), [(5, 16), (6, 12), (8, 10)])
def test_the_vocabulary_formula_is_refuted_for_continuous_inputs(rank: int, depth: int) -> None:
    assert refute_formula("ub_vocab_statement", {"L": depth, "r": rank, "r_e": 0}).refuted


def test_a_refutation_stands_at_a_depth_of_a_million() -> None:
    assert refute_formula("ub_thm2", {"L": 10**6, "d_x": 5}).refuted


def test_a_formula_out_of_reach_is_not_searched_for() -> None:
    verdict = refute_formula("ub_thm2", {"L": 3, "d_x": 50})
    assert not verdict.refuted
    assert "no monomial witness" in verdict.reason


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 4, 12, 60])
def test_up_to_width_three_the_deep_formula_holds(depth: int, width: int) -> None:
    report = bounds_report(Shape(depth=depth, width=width, heads=width))
    verdict = refute_for_shape(report)
    assert not verdict.refuted
    assert "it holds here" in verdict.reason


def test_a_small_vocabulary_keeps_the_formula_true() -> None:
    report = bounds_report(Shape(depth=12, width=8, heads=8, vocab=8))
    assert "ub_stat_vocab is below it" in refute_for_shape(report).reason


def test_too_few_positions_for_the_witness_are_named() -> None:
    report = bounds_report(Shape(depth=8, width=6, heads=6, positions=11))
    assert "needs 12 positions" in refute_for_shape(report).reason


def test_a_proved_bound_is_not_put_to_the_test() -> None:
    assert "ub_thm1" not in disputed_bounds()
    with pytest.raises(ValueError, match="ub_thm1 is no disputed bound; --counterexample takes"):
        refute_formula("ub_thm1", {"L": 2, "d_x": 4, "H": 2})


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ([], "the plan has 0 layers"),
        ([[[0, 0], [0, 0]]] * 3, "the plan has 3 layers and the network 2"),
        ([[[0, 0]]], "layer 0 of the plan has 1 pairs; give one for each of 2 heads"),
        ([[[0, 2], [0, 0]]], r"pair \(0, 2\) in layer 0"),
        ([[[1, 0], [0, 0]]], "put the smaller first"),
        ([[[0, 0, 0], [0, 0]]], "has another shape"),
        ([[[0, "a"], [0, 0]]], "no whole number"),
        ("exmple", "or the word example"),
        (7, "or the word example"),
    ],
)
def test_a_plan_that_describes_no_weights_is_refused(plan: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        quantity("monomial_witness", L=2, d_x=2, H=2, plan=plan)
