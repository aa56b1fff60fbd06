"""Every witness at the sizes for which the construction was once checked by hand."""

from dataclasses import asdict, replace
from math import comb
from typing import Any

import numpy as np
import pytest

import tests_network
from archfit.exact import witness as witness_module
from archfit.exact.prime_field import WITNESS_PRIME, root_of_minus_one
from archfit.exact.witness import Witness, WitnessCheck, check_witness, inner_product_power
from archfit.exact.witness_kinds import WitnessRequest, build_witness
from archfit.exact.witness_network import (
    HeadWeights,
    NetworkShape,
    base_network,
    filler,
    templates,
    unit_vectors,
)
from archfit.theory import quantity
from archfit.theory.counterexample import refute_formula
from archfit.theory.witness_formula import Plan, example_plan, grow_plan

ANOTHER_PRIME = 1_073_741_789  # the largest p = 1 mod 4 below 2^30


def _shape(depth: int, width: int, heads: int, positions: int = 4) -> NetworkShape:
    return NetworkShape(depth=depth, width=width, heads=heads, positions=positions)


def _forms(n: int, depth: int) -> int:
    """Monomials of degree 3^(L-2) in n variables."""
    degree = 3 ** (depth - 2)
    return comb(n + degree - 1, degree)


def _request(kind: str, shape: NetworkShape, **more: Any) -> WitnessRequest:
    return WitnessRequest(kind=kind, **asdict(shape), **more)


def _held(asked: WitnessRequest, rank: int, *, prime: int = WITNESS_PRIME) -> WitnessCheck:
    """Every entry, at every coordinate and position, is the promised one; so are the ranks."""
    check = check_witness(build_witness(asked, prime=prime))
    assert check.extent == "all"
    assert (check.entries_checked, check.entries_wrong) == (check.size[0] * check.size[1], 0)
    assert check.measured_rank == check.witness.bound == rank
    assert check.verified
    return check


@pytest.mark.parametrize(
    ("depth", "width", "heads", "positions"),
    [
        (2, 3, 1, 4),
        (2, 6, 2, 4),
        (2, 9, 3, 6),
        (2, 5, 1, 2),
        (2, 10, 2, 8),
        (3, 3, 1, 4),
        (3, 6, 2, 4),
        (3, 5, 1, 6),
        (3, 9, 3, 4),
        (3, 10, 2, 4),
        (3, 15, 3, 6),
        (4, 3, 1, 4),
        (4, 6, 2, 4),
        (4, 5, 1, 2),
        pytest.param(4, 10, 2, 4, marks=pytest.mark.slow),
        (4, 9, 3, 6),
        (5, 6, 2, 4),
    ],
)
def test_the_base_witness_reaches_the_papers_bound(
    depth: int, width: int, heads: int, positions: int
) -> None:
    asked = _request("base", _shape(depth, width, heads, positions))
    _held(asked, _forms((width - heads) // 2, depth))


@pytest.mark.parametrize(
    ("depth", "width", "heads"),
    [(2, 4, 2), (2, 4, 1), (3, 4, 2), (3, 4, 1), (3, 6, 3), (4, 4, 2), (4, 6, 3), (3, 9, 3)],
)
def test_the_simplified_witness_reaches_the_stronger_bound(
    depth: int, width: int, heads: int
) -> None:
    _held(_request("simplified", _shape(depth, width, heads)), _forms(width - heads, depth))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("depth", "width", "heads", "positions", "rank"),
    [
        (2, 2, 1, 2, 3),
        (2, 6, 2, 6, 6),
        (3, 2, 1, 4, 7),
        (3, 4, 2, 4, 16),
        (3, 6, 3, 2, 30),
        (3, 6, 2, 8, 50),
        (4, 2, 1, 4, 19),
        (4, 3, 1, 4, 100),
    ],
)
def test_the_sphere_reaches_its_bound_with_a_mask_and_without(
    depth: int, width: int, heads: int, positions: int, rank: int, causal: bool
) -> None:
    assert quantity("lb_sphere", L=depth, d=width, H=heads).value == rank
    shape = _shape(depth, width, heads, positions)
    _held(_request("sphere", shape, causal=causal), rank)


@pytest.mark.parametrize(
    ("depth", "width", "heads", "chains", "rank"),
    [
        (2, 5, 5, 1, 2),
        (3, 10, 5, 1, 6),
        (4, 5, 5, 1, 30),
        pytest.param(5, 5, 5, 1, 270, marks=pytest.mark.slow),
        (3, 9, 9, 2, 4),
        (4, 9, 9, 2, 36),
        pytest.param(4, 13, 13, 3, 216, marks=pytest.mark.slow),
        (4, 17, 17, 4, 16),  # two layers multiply the four
    ],
)
def test_chains_reach_their_bound_under_a_mask(
    depth: int, width: int, heads: int, chains: int, rank: int
) -> None:
    assert quantity("lb_causal_chain", L=depth, chains=chains).value == rank
    needed = depth - {1: 0, 2: 1, 3: 1, 4: 2}[chains]
    shape = _shape(depth, width, heads, 2 * needed)
    _held(_request("causal-chain", shape, chains=chains), rank)


def test_a_chain_without_its_mask_does_not_pass() -> None:
    witness = build_witness(_request("causal-chain", _shape(3, 5, 5, 6)))
    assert not check_witness(replace(witness, causal=False)).verified


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize(("width", "rank", "heads"), [(6, 4, 2), (6, 6, 2), (9, 9, 3), (10, 6, 2)])
@pytest.mark.parametrize("patch", [1, 2, 5])
def test_a_convolution_of_rank_r_reaches_its_bound(
    depth: int, width: int, rank: int, heads: int, patch: int
) -> None:
    asked = _request(
        "convolution",
        _shape(depth, width, heads),
        rank=rank,
        patch=patch,
        channels=-(-rank // patch),
    )
    check = _held(asked, _forms((rank - heads) // 2, depth))
    assert check.measured_embedding_rank == rank


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize(("width", "rank", "heads"), [(6, 4, 2), (6, 6, 2), (9, 9, 3), (10, 6, 2)])
def test_a_large_vocabulary_reaches_its_bound_with_rank_to_spare(
    depth: int, width: int, rank: int, heads: int
) -> None:
    """The constants of all heads are equal rows of the table, so its rank is r - H + 1."""
    forms = _forms((rank - heads) // 2, depth)
    shape = _shape(depth, width, heads)
    asked = _request("vocabulary", shape, rank=rank, vocab=2 * forms + 4)
    check = _held(asked, forms)
    assert check.measured_embedding_rank == rank - heads + 1


@pytest.mark.parametrize(
    ("depth", "width", "heads", "d", "positions"),
    [
        (2, 6, 2, 1, 2),
        (2, 6, 2, 2, 4),
        (2, 10, 2, 3, 6),
        (3, 6, 2, 2, 20),
        (3, 10, 2, 2, 24),
        (3, 9, 3, 2, 20),
        pytest.param(4, 6, 2, 2, 260, marks=pytest.mark.slow),
    ],
)
def test_a_long_sequence_over_few_tokens_reaches_its_bound(
    depth: int, width: int, heads: int, d: int, positions: int
) -> None:
    asked = _request(
        "vocabulary-long",
        _shape(depth, width, heads, positions),
        rank=2 * d + 1 + heads,
        vocab=2 * d + 1,
    )
    assert _held(asked, _forms(d, depth)).measured_embedding_rank == 2 * d + 1


@pytest.mark.parametrize(
    ("width", "depth", "seed", "rank"),
    [
        (2, 3, 1, 150),
        (3, 2, 1, 16),
        (4, 2, 0, 16),
        pytest.param(3, 3, 6, 768, marks=pytest.mark.slow),
    ],
)
def test_a_monomial_has_the_rank_of_its_exponents(
    width: int, depth: int, seed: int, rank: int
) -> None:
    plan, entry = grow_plan(depth, width, seed=seed)
    shape = _shape(depth, width, width, 2 * width)
    _held(_request("monomial", shape, plan=plan, entry=entry), rank)


def test_a_monomial_works_in_the_first_coordinates_of_wider_heads() -> None:
    plan = (((0, 0), (0, 1)), ((1, 1), (0, 0)), ((0, 1), (0, 1)))
    promised = quantity("monomial_witness", L=3, d_x=6, H=2, plan=plan).value
    assert isinstance(promised, int)
    _held(_request("monomial", _shape(3, 6, 2), plan=plan, entry=0), promised)


def _refuting(width: int, depth: int) -> tuple[Plan, int]:
    verdict = refute_formula("ub_thm2", {"L": depth, "d_x": width})
    return verdict.plan, verdict.entry


@pytest.mark.parametrize(
    ("width", "depth"),
    [(4, 12), (5, 9), (6, 8), *(pytest.param(d, 8, marks=pytest.mark.slow) for d in (8, 10))],
)
def test_the_weights_that_refute_theorem_2_compute_their_monomial(width: int, depth: int) -> None:
    plan, entry = _refuting(width, depth)
    shape = _shape(depth, width, width, 2 * width)
    check = check_witness(build_witness(_request("monomial", shape, plan=plan, entry=entry)))
    assert (check.entries_checked, check.entries_wrong, check.extent) == (900, 0, "all")
    assert check.verified
    assert check.measured_rank is None  # over 10^30
    formula = quantity("ub_thm2", L=depth, d_x=width).value
    assert check.witness.bound > formula  # type: ignore[operator]  # both exact


@pytest.mark.parametrize("depth", [4, 18, 19])
def test_the_hand_made_example_computes_its_monomial(depth: int) -> None:
    asked = _request("monomial", _shape(depth, 4, 4, 8), plan=example_plan(), entry=0)
    check = check_witness(build_witness(asked))
    assert (check.entries_wrong, check.verified) == (0, True)


@pytest.mark.parametrize(
    "asked",
    [_request("base", _shape(3, 6, 2)), _request("simplified", _shape(3, 6, 2))],
    ids=["base", "simplified"],
)
def test_another_prime_finds_the_same_rank(asked: WitnessRequest) -> None:
    _held(asked, check_witness(build_witness(asked)).witness.bound, prime=ANOTHER_PRIME)


SMALL: list[WitnessRequest] = [
    _request("base", _shape(3, 9, 3)),
    _request("simplified", _shape(3, 6, 2)),
    _request("convolution", _shape(3, 9, 3), rank=7, patch=3, channels=3),
    _request("vocabulary", _shape(3, 10, 2), rank=6, vocab=9),
    _request("vocabulary-long", _shape(3, 6, 2, 20), rank=7, vocab=6),
    _request("monomial", _shape(3, 6, 3, 6), plan=grow_plan(3, 3, seed=0)[0], entry=1),
    _request("sphere", _shape(3, 6, 2)),
    _request("sphere", _shape(3, 6, 2), causal=True),
    _request("causal-chain", _shape(4, 9, 9, 6), chains=2),
]


@pytest.mark.parametrize("asked", SMALL, ids=lambda asked: asked.kind)
def test_the_outputs_are_those_of_the_plain_network_in_python_integers(
    asked: WitnessRequest,
) -> None:
    """The oracle shares no code: lists of lists, whole numbers of any size."""
    witness = build_witness(asked)
    a, b = 3, 1
    x = np.concatenate([witness.inside[a], witness.outside[b]], axis=1)
    weights = [
        [
            (
                h.keys.astype(object),
                h.queries.astype(object),
                h.values.astype(object),
                h.output.astype(object),
            )
            for h in layer
        ]
        for layer in witness.network
    ]
    expected = tests_network.run(weights, x.astype(object), causal=witness.causal)
    promised = witness.promise.outputs(np.array([[a, b]]), x[None])[0]
    if promised.ndim == 0:  # of one coordinate at one position
        expected = expected[witness.entry, witness.output]
    assert promised.tolist() == np.asarray(expected).tolist()
    assert np.any(expected != 0)


def _complex(residue: int, positions: int) -> complex:
    """The number that a weight of the base witness stands for."""
    J = root_of_minus_one(WITNESS_PRIME)
    numbers = {0: 0, 1: 1, -1: -1, J: 1j, -J: -1j, pow(positions, -1, WITNESS_PRIME): 1 / positions}
    return {key % WITNESS_PRIME: complex(number) for key, number in numbers.items()}[residue]


@pytest.mark.parametrize(("depth", "width", "heads"), [(2, 6, 2), (3, 6, 2), (3, 10, 2), (4, 9, 3)])
def test_as_complex_numbers_the_base_weights_give_the_formula(
    depth: int, width: int, heads: int
) -> None:
    """J really is the imaginary unit: y = Const <v_a, v_b>^(3^(L-2)), and Const is real."""
    N, hd, power = 4, (width // heads - 1) // 2, 3 ** (depth - 2)
    shape = _shape(depth, width, heads, N)
    v_a, v_b = ((3, 4, 0, 0), (0, -5, 0, 0)) if heads * hd > 1 else ((1,), (1,))
    n = heads * hd
    row = templates(shape, np.array([v_a[:n]]), shape.places(0, hd)).T
    column = templates(shape, np.array([v_b[:n]]), shape.places(hd, 2 * hd)).T
    y = np.concatenate([row, filler(shape), column, filler(shape)], axis=1).astype(complex)
    for layer in base_network(shape, WITNESS_PRIME):
        y = sum((_complex_head(head, y) for head in layer), start=np.zeros_like(y))
    constant = 1j * N ** ((3 ** (depth - 1) - 1) // 2) * hd ** (power - 1) * 2j**power
    assert constant.imag == 0
    inner = sum(p * q for p, q in zip(v_a, v_b, strict=True))
    np.testing.assert_allclose(y, np.full(y.shape, constant * inner**power), rtol=1e-12)


def _complex_head(head: HeadWeights, y: np.ndarray) -> np.ndarray:
    k, q, v, o = (
        np.array([[_complex(entry, y.shape[1]) for entry in row] for row in weights])
        for weights in (head.keys, head.queries, head.values, head.output)
    )
    return np.asarray(o @ v @ y @ y.T @ k.T @ q @ y)


def _with_last_outputs(witness: Witness, *outputs: np.ndarray) -> Witness:
    """The witness with another W^O for each head of its last layer."""
    *layers, last = witness.network
    heads = tuple(replace(head, output=o) for head, o in zip(last, outputs, strict=True))
    return replace(witness, network=(*layers, heads))


def test_the_printed_last_layer_does_not_pass() -> None:
    """It writes each head into its own block, so that no coordinate holds the sum over both."""
    witness = build_witness(_request("base", _shape(3, 6, 2)))
    printed = [np.eye(6, 3, -3 * h, dtype=int) for h in range(2)]
    check = check_witness(_with_last_outputs(witness, *printed))
    assert check.entries_wrong == check.entries_checked == 16
    assert not check.verified


def test_vectors_of_unequal_norm_break_the_promise() -> None:
    witness = build_witness(_request("simplified", _shape(2, 4, 2)))
    longer = witness.inside.copy()
    longer[0, 0, 0] += 1
    check = check_witness(replace(witness, inside=longer))
    assert check.entries_wrong > 0
    assert not check.verified


def test_a_rank_below_the_promised_one_does_not_pass() -> None:
    """Two equal samples: every entry is right and the rank is not."""
    witness = build_witness(_request("simplified", _shape(3, 4, 2)))
    twice = [0, 0, *range(2, len(witness.inside))]
    vectors = unit_vectors(witness.shape, 2, WITNESS_PRIME)[twice]
    check = check_witness(
        replace(
            witness,
            inside=witness.inside[twice],
            outside=witness.outside[twice],
            promise=inner_product_power(witness.shape, vectors, WITNESS_PRIME, has_halves=False),
        )
    )
    assert (check.entries_wrong, check.measured_rank) == (0, 3)
    assert not check.verified


def test_an_embedding_of_another_rank_does_not_pass() -> None:
    asked = _request("vocabulary", _shape(2, 6, 2), rank=6, vocab=5)
    check = check_witness(replace(build_witness(asked), expected_embedding_rank=4))
    assert (check.entries_wrong, check.measured_rank) == (0, 2)
    assert not check.verified


def test_a_rank_above_the_promised_one_would_show() -> None:
    """A monomial is measured on more samples than its rank."""
    plan, entry = grow_plan(3, 2, seed=1)
    witness = build_witness(_request("monomial", _shape(3, 2, 2), plan=plan, entry=entry))
    other, at = grow_plan(2, 2, seed=1)
    smaller = build_witness(_request("monomial", _shape(2, 2, 2), plan=other, entry=at))
    mixed = replace(witness, bound=smaller.bound)
    check = check_witness(mixed)
    assert check.measured_rank == 150 > smaller.bound
    assert not check.verified


def test_too_many_entries_are_sampled_and_the_result_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    witness = build_witness(_request("simplified", _shape(3, 6, 3)))
    monkeypatch.setattr(
        witness_module, "MOST_MULTIPLICATIONS", 30 * witness.shape.multiplications + 1
    )
    check = check_witness(witness)
    assert (check.entries_checked, check.extent, check.size) == (30, "sample", (10, 10))
    assert (check.measured_rank, check.verified) == (10, True)
    wrong = _with_last_outputs(witness, *[np.zeros((6, 2), int)] * 3)
    assert check_witness(wrong).entries_wrong == 30


@pytest.mark.parametrize(("heads", "samples"), [(2, 150 + 6), (3, 30)])
def test_a_monomial_is_measured_on_six_samples_more_where_that_is_not_too_long(
    heads: int, samples: int
) -> None:
    """Rank 150 of two heads takes 156^2 runs; of three heads at depth 4 it is over 2,000."""
    plan, entry = grow_plan(3 if heads == 2 else 4, heads, seed=1)
    shape = _shape(3 if heads == 2 else 4, heads, heads, 2 * heads)
    witness = build_witness(_request("monomial", shape, plan=plan, entry=entry))
    assert (witness.bound > 2000) == (heads == 3)
    assert len(witness.inside) == samples


def test_entries_are_checked_a_few_at_a_time_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    witness = build_witness(_request("simplified", _shape(3, 6, 2)))
    whole = check_witness(witness)
    monkeypatch.setattr(witness_module, "_AT_ONCE", 100)  # 4 of 400 pairs
    assert check_witness(witness) == whole
    assert (whole.entries_checked, whole.measured_rank) == (400, 20)


@pytest.mark.parametrize(("most", "samples"), [(156, 156), (155, 30)])
def test_as_many_rows_as_are_built_are_measured_and_one_more_is_not(
    most: int, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.exact.witness_kinds.MOST_ROWS", most)
    plan, entry = grow_plan(3, 2, seed=1)
    witness = build_witness(_request("monomial", _shape(3, 2, 2), plan=plan, entry=entry))
    assert (witness.bound, len(witness.outside)) == (150, samples)
