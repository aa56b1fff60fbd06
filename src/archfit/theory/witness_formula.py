"""Ranks that explicit weights reach: one monomial in the second moments, and chains under a mask.

A monomial disproves theorem 2. Take d_a = 1. In layer l, head h uses W^O = e_h, W^V = e_p^T,
W^K = e_q^T, W^Q = e_h^T with (p, q) = plan[l][h]. Then F_l is diagonal,
F_l = diag(g_0, ..., g_(H-1)), and

    g_h <- g_h g_p g_q S_pq,   so that   y_h = x_{i,h} prod_{a<=b} S_ab^E_ab,  sum E = C(L).

With n_P, n_Q >= d_x the entries of S_P are algebraically independent, and expanding each
(S_P + S_Q)_ab^E_ab gives separation rank prod (E_ab + 1), exactly. Being reached at one point,
it is a lower bound for almost all weights.

In a chain every layer multiplies a summary of the prefix of its own into one output: 3^(order L^2)
at fixed width; docs/theory.md has the proof, and `archfit witness` the weights of both.
"""

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, count

from archfit.spec.errors import refusal, refuse_if
from archfit.theory.arithmetic import EXACT_DIGITS, Product, TooManyDigitsError, power
from archfit.theory.causal_bounds import Divided
from archfit.theory.inputs import catalogued, certified, check_heads_fit, factored
from archfit.theory.reals import Ball, flint, ln, log3_from_ln

Pair = tuple[int, int]
Layer = Sequence[Pair]  # one pair (p, q) for each head
Plan = Sequence[Layer]  # one layer after the other; the last is repeated up to the depth

_MOST_SINGLE_LAYERS = 5000
_GROWN_LAYERS = 24  # then the best entry repeats itself, which triples every exponent
_PAIRS_TRIED = 12  # for each head and layer; trying all of them finds less, being less random


@catalogued("lb_causal_chain")
def causal_chain_lower_bound(depth: int, chains: int = 1) -> int:
    """Almost all weights reach this between a prefix and the rest: 3^(order L^2) at fixed width.

        ( prod_{j=0..L'-2} (2^j + 1) )^g,   L' = L - ceil(log3 g),   for g chains

    It needs d_x, H >= 4g + 1, r >= 2g + 1, n_A >= L' - 1 and n_B >= L'.
    """
    layers = chain_layers(depth, chains)
    if chains * layers**2 * math.log10(2) / 2 > EXACT_DIGITS:
        raise TooManyDigitsError(f"the chain of depth {depth}")
    return power(math.prod(2**j + 1 for j in range(layers - 1)), chains)


@certified("lb_causal_chain_log3")
def causal_chain_lower_bound_log3(depth: int, chains: int = 1) -> Ball:
    """Logarithm base 3 of the rank that chains reach."""
    last = chain_layers(depth, chains) - 1
    kept = min(last, flint.ctx.prec)
    factors = ((flint.arb(2) ** -j).log1p() for j in range(kept))
    total = sum(factors, ln(2) * (last * (last - 1) // 2))
    if kept < last:  # the rest is below sum 2^-j
        total += flint.arb(0, 1) * flint.arb(2) ** (1 - kept)
    return log3_from_ln(total * chains)


def chain_layers(depth: int, chains: int) -> int:
    """L' = L - ceil(log3 g): what the layers that multiply the chains leave to each."""
    joining = next(layers for layers in count() if 3**layers >= chains)
    is_shallow, least = depth - joining < 2, joining + 2
    refuse_if(is_shallow, "too-shallow-for-chains", depth, chains=chains, least=least)
    return depth - joining


def most_chains(net: Divided) -> int:
    """The number of chains with the largest bound that fits a network; 0 if none does."""
    room = min((min(net.width, net.heads) - 1) // 4, (net.rank - 1) // 2)
    n_A, n_B = (net.depth if n is None else n for _, n in net.segments)
    best, found = 0.0, 0
    # As many joining layers leave the same L', where the bound grows with g: the largest is tried.
    for g in {min(room, 3**joining) for joining in range(net.depth - 1)}:
        layers = chain_layers(net.depth, g)
        log = g * sum(math.log(2**j + 1) for j in range(layers - 1))
        if n_A >= layers - 1 and n_B >= layers and log > best:
            best, found = log, g
    return found


def example_plan() -> Plan:
    """The hand-made plan for d_x = H = 4: its witness passes the papers' formula at L = 19.

    With n = 3^(L-3) its value is ((n+1)/2) (n+1)^4 (2n+1)^3 (3n+1).
    """
    return (
        ((1, 1), (2, 2), (3, 3), (0, 1)),
        ((0, 3), (1, 3), (2, 3), (0, 3)),
        ((1, 2),) * 4,
        ((0, 0),) * 4,
    )


@factored("monomial_witness")
def monomial_witness(depth: int, width: int, heads: int, plan: Plan, entry: int = 0) -> Product:
    """The separation rank that these explicit weights have, prod (E_ab + 1).

    A plan with fewer layers than the depth repeats its last one.
    """
    exponents = final_exponents(depth, width, heads, plan, entry)
    return Product(powers=[(exponent + 1, 1) for exponent in exponents])


def final_exponents(depth: int, width: int, heads: int, plan: Plan, entry: int) -> list[int]:
    """E_ab of output entry `entry`, for all pairs a <= b of the H active coordinates.

    E^h <- E^h + E^p + E^q + 1_pq in every layer. A last layer that maps the entry to itself
    twice triples its exponents, so its repetitions have a closed form.
    """
    check_plan(depth, width, heads, plan, entry)
    index = {pair: at for at, pair in enumerate(combinations_with_replacement(range(heads), 2))}
    state = [[0] * len(index) for _ in range(heads)]
    for layer in plan[:depth]:
        state = _next_layer(state, layer, index)
    repeats = depth - len(plan)
    if repeats <= 0:
        return state[entry]
    if plan[-1][entry] == (entry, entry):
        tripled = 3**repeats
        own = index[entry, entry]
        return [e * tripled + (at == own) * (tripled // 2) for at, e in enumerate(state[entry])]
    for _ in range(repeats):
        state = _next_layer(state, plan[-1], index)
    return state[entry]


def _next_layer(state: list[list[int]], layer: Layer, index: dict[Pair, int]) -> list[list[int]]:
    """The exponents of every head after one more layer; `index` numbers the pairs."""
    grown = []
    for own, (p, q) in zip(state, layer, strict=True):
        added = [a + b + c for a, b, c in zip(own, state[p], state[q], strict=True)]
        added[index[p, q]] += 1
        grown.append(added)
    return grown


def check_plan(depth: int, width: int, heads: int, plan: Plan, entry: int) -> None:
    """Refuse a plan that does not describe weights of this network."""
    check_heads_fit(heads, width=width)
    refuse_if(not 0 <= entry < heads, "no-such-head", entry, last=heads - 1, heads=heads)
    if not plan or len(plan) > depth:
        raise refusal("plan-of-other-depth", layers=len(plan), depth=depth)
    if depth - len(plan) > _MOST_SINGLE_LAYERS and plan[-1][entry] != (entry, entry):
        raise refusal("plan-repeats", depth, most=_MOST_SINGLE_LAYERS, entry=entry)
    for number, layer in enumerate(plan):
        if len(layer) != heads:
            raise refusal("layer-of-other-heads", number=number, pairs=len(layer), heads=heads)
        for p, q in layer:
            is_pair = 0 <= p <= q < heads
            refuse_if(not is_pair, "pair-out-of-range", p=p, q=q, number=number, heads=heads)


@lru_cache(maxsize=1024)  # a chart over depth asks for the same ones at every width
def grow_plan(depth: int, heads: int, *, seed: int) -> tuple[Plan, int]:
    """A plan whose exponents are spread evenly, and its best entry.

    In each layer every head takes, of a few random pairs, the one with the largest
    sum log(E + 1). After some layers the best entry repeats itself up to the depth.
    """
    if depth > _GROWN_LAYERS + 1:  # deeper networks than are grown all have the last plan
        return grow_plan(_GROWN_LAYERS + 1, heads, seed=seed)
    chance = random.Random(seed)
    pairs = list(combinations_with_replacement(range(heads), 2))
    index = {pair: at for at, pair in enumerate(pairs)}
    state = [[0] * len(pairs) for _ in range(heads)]
    plan: list[Layer] = []
    for _ in range(min(depth, _GROWN_LAYERS)):
        candidates = [
            tuple(chance.choice(pairs) for _ in range(heads)) for _ in range(_PAIRS_TRIED)
        ]
        grown = [_next_layer(state, layer, index) for layer in candidates]
        scores = [[_evenness(exponents) for exponents in option] for option in grown]
        chosen = [
            max(range(_PAIRS_TRIED), key=[row[head] for row in scores].__getitem__)
            for head in range(heads)
        ]
        plan.append(tuple(candidates[c][head] for head, c in enumerate(chosen)))
        state = [grown[c][head] for head, c in enumerate(chosen)]
    entry = max(range(heads), key=lambda head: _evenness(state[head]))
    if depth > len(plan):
        plan.append(((entry, entry),) * heads)
    return tuple(plan), entry


def _evenness(exponents: list[int]) -> float:
    return sum(map(math.log1p, exponents))
