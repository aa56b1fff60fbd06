"""Bounds under a causal mask: every published vector, relations on random shapes, and refusals."""

import json
import random
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from archfit.spec.errors import InvalidValue
from archfit.theory import quantity
from archfit.theory.arithmetic import multiset
from archfit.theory.bounds import bounds_report, lower_bounds, upper_bounds
from archfit.theory.catalogue import as_json_value
from archfit.theory.causal_bounds import PrefixNetwork, is_reachable, prefix_monomials
from archfit.theory.reals import digits, log3
from archfit.theory.shape import Shape
from archfit.theory.witness_formula import causal_chain_lower_bound, chain_layers, most_chains

VECTORS = json.loads((Path(__file__).parent / "causal_vectors.json").read_text())


def test_there_are_as_many_vectors_as_the_specification_has() -> None:
    measured = [vector for vector in VECTORS if "measured_rank" in vector]
    assert (len(VECTORS), len(measured)) == (271, 183)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector(vector: dict[str, Any]) -> None:
    value = as_json_value(quantity(vector["quantity"], **vector["inputs"]).value)
    expected, measured = vector["expected"], vector.get("measured_rank")
    if isinstance(expected, float):
        assert abs(float(str(value)) - expected) <= 1e-6 * expected
        return
    assert value == expected
    if measured is not None and vector["quantity"].startswith("ub_"):
        assert measured <= expected
    elif measured is not None:
        assert measured == expected


def _grown(depth: int) -> set[tuple[int, ...]]:
    """K_(l+1) = (K_l + e_l) and (K_l + K_l + K_l), as sets."""
    found = {(0,) * depth}
    for layer in range(depth):
        one = {tuple(x + (at == layer) for at, x in enumerate(k)) for k in found}
        three = {tuple(map(sum, zip(*ks, strict=True))) for ks in product(found, repeat=3)}
        found = one | three
    return found


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_reachable_degrees_are_those_that_grow_layer_by_layer(depth: int) -> None:
    grown = _grown(depth)
    tried = product(*(range(3 ** (depth - 1 - layer) + 2) for layer in range(depth)))
    assert {k for k in tried if is_reachable(k)} == grown


def test_monomials_of_a_prefix_are_counted_one_by_one() -> None:
    stats = (3, 2, 4)
    counts = [0] * 14
    for k in _grown(3):
        weight = sum(3**layer * degree for layer, degree in enumerate(k))
        ways = 1
        for m, degree in zip(stats, k, strict=True):
            ways *= multiset(m, degree)
        counts[weight] += ways
    assert prefix_monomials(stats) == counts


def _random_shape(chance: random.Random) -> Shape:
    """Of up to five layers, where all sums are exact, or of any depth."""
    width = chance.choice((chance.randint(1, 9), chance.randint(1, 300), chance.randint(2, 20000)))
    positions = chance.choice((None, chance.randint(2, 64)))
    partition = chance.choice(("prefix", "prefix", "interleaved")) if positions else "prefix"
    deepest = 3 if partition == "interleaved" else chance.choice((4, 4, 4, 24))
    return Shape(
        depth=chance.randint(1, deepest),
        width=width if deepest > 3 else min(width, 300),
        heads=chance.randint(1, min(width, 300)),
        head_dim=chance.choice((None, chance.randint(1, 2 * width))),
        positions=positions,
        vocab=chance.choice((None, None, chance.randint(2, 60000))),
        rank=chance.choice((None, chance.randint(1, 2 * width))),
        position_rank=chance.choice((0, 0, chance.randint(1, 20))),
        residual=chance.random() < 0.3,
        causal=True,
        partition=partition,
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2, 3))])
def test_every_lower_bound_is_below_every_upper_bound_under_a_mask(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        shape = _random_shape(chance)
        lowest = min(bound.log3 for bound in upper_bounds(shape))
        for bound in lower_bounds(shape, 1):
            assert bound.log3 <= lowest, (shape, bound.id)


def _sizes(chance: random.Random, deepest: int) -> dict[str, Any]:
    return {
        "L": chance.randint(1, deepest),
        "d": (d := chance.randint(1, 8)),
        "H": chance.randint(1, 6),
        "da": chance.randint(1, 8),
        "r": chance.choice((None, chance.randint(1, d))),
        "residual": chance.random() < 0.4,
    }


def _bound(name: str, **inputs: Any) -> int:
    value = quantity(name, **inputs).value
    assert isinstance(value, int)
    return value


@pytest.mark.parametrize(
    ("seed", "cases"), [(0, 150), (1, 150), pytest.param(2, 1700, marks=pytest.mark.slow)]
)
def test_what_can_only_lower_a_bound_does(seed: int, cases: int) -> None:
    """Lengths, fewer dimensions; and the logarithm is that of a relaxation."""
    chance = random.Random(seed)
    for _ in range(cases):
        sizes = _sizes(chance, 4)
        bound = _bound("ub_causal_prefix", **sizes)
        n_A, n_B = chance.randint(1, 12), chance.randint(1, 12)
        short = _bound("ub_causal_prefix", **sizes, n_A=n_A, n_B=n_B)
        assert short <= bound
        assert short <= _bound("ub_causal_prefix", **sizes, n_A=n_A + 1, n_B=n_B + 1)
        assert _bound("ub_causal_prefix", **sizes | {"r": 1}) <= bound
        log = quantity("ub_causal_prefix_log3", **sizes).value
        assert isinstance(log, Decimal)
        assert digits(lambda bound=bound: log3(bound)) <= log  # type: ignore[misc]  # a ball
        residual = _bound("ub_causal_prefix", **sizes | {"residual": True})
        assert bound <= residual
        segments = [["A", n_A], ["B", n_B]]
        assert short <= _bound("ub_causal_segments", **sizes, segments=segments)
        more = [["A", n_A], ["B", 1], ["A", 1], ["B", n_B]]
        longer = [["A", n_A], ["B", 2], ["A", 1], ["B", n_B]]
        if sizes["L"] < 4:
            few, many = (_bound("ub_causal_segments", **sizes, segments=s) for s in (more, longer))
            assert few <= many


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 9))
def test_two_thousand_more_shapes_keep_lower_below_upper_under_a_mask(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(400):
        shape = _random_shape(chance)
        lowest = min(bound.log3 for bound in upper_bounds(shape))
        for bound in lower_bounds(shape, 1):
            assert bound.log3 <= lowest, (shape, bound.id)


@pytest.mark.parametrize("seed", range(2))
def test_up_to_two_layers_a_prefix_never_exceeds_the_unmasked_bound(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        sizes = _sizes(chance, 2) | {"r": None, "residual": False}
        assert _bound("ub_causal_prefix", **sizes) <= _bound("ub_stat", L=sizes["L"], d=sizes["d"])


def test_deeper_a_mask_raises_the_bound_and_growth_is_quadratic_in_depth() -> None:
    assert _bound("ub_causal_prefix", L=3, d=2, H=1) == 768 > _bound("ub_stat", L=3, d=2) == 232
    masked, unmasked = (
        [float(str(quantity(name, L=L, d=2, **more).value)) for L in (50, 100, 200)]
        for name, more in (("ub_causal_prefix_log3", {"H": 1}), ("ub_stat_simple_log3", {}))
    )
    assert 4 < masked[2] / masked[1] < masked[1] / masked[0] < 4.3
    assert 1.9 < unmasked[2] / unmasked[1] < 2.1


def test_segments_of_a_shape() -> None:
    def segments(partition: str, positions: int | None) -> object:
        sizes: Any = {"depth": 2, "width": 4, "heads": 1}
        return Shape(**sizes, positions=positions, causal=True, partition=partition).segments

    assert segments("prefix", None) == (("A", None), ("B", None))
    assert segments("first-half", 5) == (("A", 2), ("B", 3))
    assert segments("interleaved", 3) == (("A", 1), ("B", 1), ("A", 1))
    assert segments("B:2,A,B:1", None) == (("B", 2), ("A", None), ("B", 1))


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"partition": "interleaved"}, r"has a segment a position; give positions of 2 to 4096"),
        ({"partition": "interleaved", "positions": 5000}, "give positions of 2 to 4096"),
        ({"partition": "A:3,A"}, "does not alternate between A and B; give sides in turn"),
        ({"partition": "A:0,B"}, "does not alternate"),
        ({"partition": "A:3,B:2", "positions": 6}, "does not have positions=6 positions"),
        ({"partition": "interleaved", "causal": False, "positions": 4}, "add causal, or leave"),
        ({"depth": 201}, "use depth <= 200"),
    ],
)
def test_what_is_no_partition_is_refused(sizes: dict[str, Any], sentence: str) -> None:
    shape = {"depth": 2, "width": 4, "heads": 1, "causal": True} | sizes
    with pytest.raises(InvalidValue, match=sentence):
        bounds_report(Shape(**shape))


@pytest.mark.parametrize(
    ("name", "inputs", "sentence"),
    [
        ("reachable", {"k": "1,x"}, "k='1,x' is no list of whole numbers; .*k=3,1,0"),
        ("reachable", {"k": [1, -1]}, "is no list of whole numbers"),
        ("prefix_monomials", {"stats": [1] * 9}, "use ub_causal_prefix_log3"),
        ("ub_causal_prefix", {"L": 8, "d": 2, "H": 1}, "use ub_causal_prefix_log3"),
        ("ub_causal_segments", {"L": 2, "d": 2, "H": 1, "segments": "A"}, "segments=A:3,B"),
        ("ub_causal_segments", {"L": 2, "d": 2, "H": 1, "segments": 3}, "has another shape"),
        ("ub_causal_segments", {"L": 2, "d": 2, "H": 1, "segments": [[["A"], 1]] * 2}, "alternate"),
        ("ub_causal_prefix", {"L": 2, "d": 2, "H": 1, "residual": 1}, "is not true or false"),
        ("ub_causal_prefix", {"L": 2, "d": 2, "H": 3}, "H=3 exceeds d_x=2"),
        ("lb_causal_chain", {"L": 2, "chains": 2}, "use L >= 3"),
        ("lb_sphere", {"L": 3, "d": 2, "H": 2}, "leave no free coordinate"),
        ("isotropic_deficit", {"d": 13}, "use d_x <= 12"),
    ],
)
def test_a_refusal_says_the_way_out(name: str, inputs: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        quantity(name, **inputs)


def test_lists_and_segments_may_come_as_words() -> None:
    assert quantity("reachable", k="1,1,1").value is True
    assert quantity("reachable", k=1).value is True
    wanted = quantity("ub_causal_segments", L=2, d=3, H=1, segments=[["A", 3], ["B", None]])
    assert quantity("ub_causal_segments", L=2, d=3, H=1, segments="A:3,B").value == wanted.value
    assert as_json_value(wanted.inputs["segments"]) == [["A", 3], ["B", None]]


@pytest.mark.parametrize(("depth", "width", "best"), [(4, 9, 36), (6, 21, 24_300_000)])
def test_bounds_reports_more_than_one_chain_where_they_reach_more(
    depth: int, width: int, best: int
) -> None:
    report = bounds_report(Shape(depth=depth, width=width, heads=width, causal=True))
    assert (report.lower.id, report.lower.exact) == ("lb_causal_chain", best)


def test_the_best_chains_of_random_networks_are_those_of_a_search_over_all() -> None:
    """The search has every number of chains that `lb_causal_chain` allows, and exact values."""
    chance = random.Random(3)
    for _ in range(300):
        depth, width, heads = (chance.randint(2, top) for top in (12, 130, 130))
        rank, n_A, n_B = (chance.randint(1, top) for top in (min(width, 60), 14, 14))
        net = PrefixNetwork(
            depth=depth,
            width=width,
            heads=min(heads, width),
            embedding_rank=rank,
            prefix=n_A,
            continuation=n_B,
        )
        best = 0
        for g in range(1, width):
            is_roomy = min(net.heads, width) >= 4 * g + 1 and rank >= 2 * g + 1
            if is_roomy and 3 ** (depth - 2) >= g:
                layers = chain_layers(depth, g)
                if n_A >= layers - 1 and n_B >= layers:
                    best = max(best, causal_chain_lower_bound(depth, g))
        chains = most_chains(net)
        assert best == (causal_chain_lower_bound(depth, chains) if chains else 0), net
