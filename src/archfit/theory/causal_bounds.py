"""Bounds under a causal mask, where position i attends to the positions j <= i.

The positions up to the output fall into segments that alternate between the sides A and B. Later
ones see the first only through T_l = sum_j y^{l,j} (y^{l,j})^T over it, one matrix a layer: every
layer keeps its own summary of the prefix. Of the positions after it, what counts are iterated sums
over words of even monomials, which factor over segments. docs/theory.md has the proofs.

A series has, at place w, how many functions of half degree w a side can contribute. Without
residual connections place w of one side meets place C - w of the other, and the ranks of the parts
add up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal, TypeAlias

from archfit.spec.errors import refuse_if
from archfit.spec.search import bisect_rising, first_whole
from archfit.theory.arithmetic import interaction_count, multiset, power, symmetric_entries
from archfit.theory.inputs import catalogued, certified, check_heads_fit
from archfit.theory.reals import Ball, flint, ln, ln_multiset, log3_from_ln

Series = list[int]
Segment = tuple[Literal["A", "B"], int | None]  # a side, and positions of it; None: any number

_MOST_PRODUCTS = 10**6  # of long integers: a second
_DEEPEST = 200  # seconds


@dataclass(frozen=True, kw_only=True)
class MaskedNetwork:
    """A causal network, and what it reads: vectors, or tokens."""

    depth: int
    width: int
    heads: int
    head_dim: int | None = None  # None: width / heads
    embedding_rank: int | None = None  # None: as large as width and vocabulary allow
    residual: bool = False
    vocab: int | None = None  # None: continuous inputs

    def __post_init__(self) -> None:
        if self.head_dim is None:
            check_heads_fit(self.heads, width=self.width)

    @property
    def rank(self) -> int:
        """r = min(embedding rank, width, vocabulary)."""
        return min(r for r in (self.width, self.embedding_rank, self.vocab) if r is not None)

    @property
    def mixes_degrees(self) -> bool:
        """Whether polynomials of several degrees are added: weights are no degrees then."""
        return self.residual or self.vocab is not None

    @property
    def inner(self) -> int:
        """d_a."""
        return self.width // self.heads if self.head_dim is None else self.head_dim

    @property
    def layer_ranks(self) -> list[int]:
        """r_0..r_L: dimensions of the space in which the vectors behind each layer lie."""
        ranks = [self.rank]
        for _ in range(self.depth):
            r = ranks[-1]
            new = min(self.heads * min(self.inner, r), r * symmetric_entries(r))
            ranks.append(min(self.width, new + r * self.residual))
        return ranks

    @property
    def own_forms(self) -> int:
        """rho: through how many linear forms the output's own input is seen."""
        return self.rank if self.residual else min(self.rank, self.heads * self.inner)


@dataclass(frozen=True, kw_only=True)
class PrefixNetwork(MaskedNetwork):
    """A causal network, a prefix and what follows it; None: any number of positions."""

    prefix: int | None = None
    continuation: int | None = None

    @property
    def segments(self) -> Sequence[Segment]:
        """Both, in order."""
        return ("A", self.prefix), ("B", self.continuation)


@dataclass(frozen=True, kw_only=True)
class SegmentedNetwork(MaskedNetwork):
    """A causal network, and the positions up to its output in runs of either side."""

    segments: Sequence[Segment]


Divided: TypeAlias = PrefixNetwork | SegmentedNetwork


@catalogued("statistics", MaskedNetwork)
def seen_statistics(net: MaskedNetwork) -> list[int]:
    """How many numbers about a prefix each layer can see, m_0..m_(L-1).

        m_l = min( m(r_l), H (v^2 - binom(o, 2)) ),   v = min(d_a, r_l),   o = max(0, 2v - r_l)

    Of the last layer one row is read: at most r_(L-1) and H d_a numbers. Of tokens the first
    layer sees counts, whose sum is fixed: at most V - 1 numbers.
    """
    seen, ranks = [], net.layer_ranks
    for r in ranks[:-1]:
        v = min(net.inner, r)
        overlap = max(0, 2 * v - r)
        seen.append(min(symmetric_entries(r), net.heads * (v * v - math.comb(overlap, 2))))
    seen[-1] = min(seen[-1], ranks[-2], net.heads * net.inner)
    if net.vocab is not None:
        seen[0] = min(seen[0], net.vocab - 1)
    return seen


@catalogued("reachable")
def is_reachable(degrees: Sequence[int]) -> bool:
    """Whether a network of len(k) layers has terms of degree k_l in T_l for each layer l.

    k_l <= N_l,   N_(L-1) = 1,   N_(l-1) = 3 N_l - 2 k_l
    """
    nodes = 1  # of the tree of products: one with T_l has one child, the others have three
    for degree in reversed(degrees):
        if degree > nodes:
            return False
        nodes = 3 * nodes - 2 * degree
    return True


@catalogued("prefix_monomials")
def prefix_monomials(statistics: Sequence[int]) -> Series:
    """D_A(w): monomials in the statistics, by their weight w = sum_l 3^l k_l.

    sum over reachable k of weight w of prod_l multiset(m_l, k_l),   w = 0..C
    """
    _check_exact(len(statistics))
    found, nodes = [1], 1
    for m in reversed(statistics):
        new, powers = [0] * (3 * len(found) - 1), [multiset(m, k) for k in range(nodes + 1)]
        for weight, ways in enumerate(found):
            for k in range(nodes - 2 * weight + 1):  # N_l of `is_reachable`
                new[3 * weight + k] += ways * powers[k]
        found, nodes = new, 3 * nodes
    return found


def _check_exact(depth: int, segments: int = 2) -> None:
    is_long = depth > _DEEPEST or segments * interaction_count(depth) ** 2 > _MOST_PRODUCTS
    refuse_if(is_long, "sums-too-long", depth, segments=segments)


def _times(left: Series, right: Series) -> Series:
    """The product of two series, as long as they are."""
    return [
        sum(left[k] * right[place - k] for k in range(place + 1) if left[k])
        for place in range(len(left))
    ]


def _words(letters: Series, most: int | None) -> Series:
    """How many words of at most `most` letters there are; letters[0] = 0."""
    found = [1] + [0] * (len(letters) - 1)
    if most is not None and most < len(letters):
        for _ in range(most):
            found = _times(letters, found)
            found[0] = 1
        return found
    for place in range(1, len(letters)):
        found[place] = sum(letters[k] * found[place - k] for k in range(1, place + 1))
    return found


def _first(net: MaskedNetwork, letters: Series, positions: int | None) -> Series:
    """D_A of a segment that nothing stands before."""
    monomials = prefix_monomials(seen_statistics(net))
    if positions is None:
        return monomials
    words, total = _words(letters, positions), [0]
    if not net.mixes_degrees:
        return list(map(min, monomials, words))
    for more, most in zip(monomials, accumulate(words), strict=True):  # all up to a weight
        total.append(min(total[-1] + more, most))
    return [after - before for before, after in pairwise(total)]


def _last(net: MaskedNetwork, letters: Series, positions: int | None) -> Series:
    """D_B of the segment that ends in the output."""
    rho, r, places = net.own_forms, net.rank, range(len(letters))
    found = [rho * ways for ways in _words(letters, positions)]
    if positions is not None:  # the output's position apart: odd monomials there
        odd = [multiset(r, 2 * place + 1) for place in places]
        found = list(map(min, found, _times(odd, _words(letters, positions - 1))))
    if rho < r:  # vectors behind layer 1 have rho linear parts and r_1 of degree 3
        behind, r_1 = [0] * len(letters), net.layer_ranks[1]
        for place in places[1:]:
            cubes = range(2 * place // 3 + 1)
            ways = (multiset(rho, 2 * place - 3 * k) * multiset(r_1, k) for k in cubes)
            behind[place] = sum(ways)
        own = _times([rho, r_1] + [0] * len(places[2:]), _words(behind, None))
        found = list(map(min, found, own))
    return found


def side_series(net: Divided) -> tuple[Series, Series]:
    """What the side without the output contributes, by half degree, and what the other does."""
    segments = net.segments
    _check_exact(net.depth, len(segments))
    C = interaction_count(net.depth)
    letters = [0, *(multiset(net.rank, 2 * k) for k in range(1, C + 1))]
    sides = {side: [1] + [0] * C for side in "AB"}
    for place, (side, positions) in enumerate(segments):
        kind = _first if place == 0 else _last if place == len(segments) - 1 else None
        own = kind(net, letters, positions) if kind else _words(letters, positions)
        sides[side] = _times(own, sides[side])
    output = segments[-1][0]
    return sides["BA"[output == "B"]], sides[output]


def _met(net: MaskedNetwork, outside: Series, inside: Series) -> int:
    """sum_w min(D_A(w), D_B(C - w)); where degrees mix, a cut between the sides at the best w."""
    if not net.mixes_degrees:
        return sum(map(min, outside, inside[::-1]))
    below, above = [0, *accumulate(outside)], [0, *accumulate(inside)]
    return min(a + b for a, b in zip(below, reversed(above), strict=True))


@catalogued("ub_causal_prefix", PrefixNetwork)
def causal_prefix_upper_bound(net: Divided) -> int:
    """No causal network has a larger separation rank between a prefix and what follows it.

        sum_{w=0..C} min( D_A(w), D_B(C - w) ),   D_B = rho / (1 - sum_k multiset(r, 2k) t^k)

    D_A is `prefix_monomials`. It holds for every N; n_A and n_B, if given, can lower it.
    """
    outside, inside = side_series(net)
    if net.depth == 2 and net.heads == 1:  # quadratic forms of T_0 that one head sees
        m, r = seen_statistics(net)[0], net.rank
        v = min(net.inner, r, m)
        others = multiset(m - v, 2)
        seen = multiset(m, 2) - others + min(others, (r - 1) ** 2 if net.inner >= r else v * v)
        outside[2] = min(outside[2], seen)
    V = net.vocab
    fillings = [power(V, n) for _, n in net.segments if V is not None and n is not None]
    return min([_met(net, outside, inside), *fillings])


@catalogued("ub_causal_segments", SegmentedNetwork)
def causal_segments_upper_bound(net: SegmentedNetwork) -> int:
    """No causal network has a larger separation rank where the sides alternate in these segments.

    The series of the prefix bound, times 1 / (1 - sum_k multiset(r, 2k) t^k) for each segment
    between the first and the last. It holds for every N with so many segments.
    """
    outside, inside = side_series(net)
    if net.depth != 2 or net.vocab is not None:
        return _met(net, outside, inside)
    # Of two layers the part w = 2 grows linearly with the number of segments.
    moments, output, m_0 = {"A": 0, "B": 0}, net.segments[-1][0], seen_statistics(net)[0]
    for place, (side, _) in enumerate(net.segments):
        moments[side] += symmetric_entries(net.rank) if place else m_0
    part = m_0 * moments["BA"[output == "B"]] + net.layer_ranks[1] * moments[output]
    if net.residual:
        return min(_met(net, outside, inside), sum(outside[:2]) + part + sum(inside[:2]))
    return _met(net, [*outside[:2], min(outside[2], part), *outside[3:]], inside)


@certified("ub_causal_prefix_log3", PrefixNetwork)
def causal_prefix_upper_bound_log3(net: PrefixNetwork) -> Ball:
    """Logarithm base 3 of a relaxed prefix bound, for shapes whose sums are too long.

        min over w0 of log3( #A(w <= w0) + #B(b <= C - 1 - w0) )

    For any s > 0 and u = e^(-s'/2) with E(u^2) < 1, E = ((1-u)^-r + (1+u)^-r)/2 - 1,
        ln #A(w <= w0) <= s w0 - sum_l m_l ln(1 - e^(-s 3^l)),
        ln #B(b <= b0) <= s' b0 + ln rho - ln(1 - E).
    Floating point looks for good w0, s and u; whatever it finds gives a bound, and the digits
    of that one are certified. On n positions of a side multiset(r n + 1, 3^L) is one, too.
    """
    refuse_if(net.depth > _DEEPEST, "search-too-long", net.depth, most=_DEEPEST)
    cut, s, u = _best_cut(net)
    count_A, count_B = flint.arb(0), ln(net.own_forms)
    if s:
        factors = ((-flint.arb(s) * 3**layer).expm1() for layer in range(net.depth))
        lns = (m * (-x).log() for m, x in zip(seen_statistics(net), factors, strict=True))
        count_A = flint.arb(s) * cut - sum(lns, flint.arb(0))
    if u:
        letters = ((1 - flint.arb(u)) ** -net.rank + (1 + flint.arb(u)) ** -net.rank) / 2 - 1
        b0 = interaction_count(net.depth) - 1 - cut
        count_B += -2 * b0 * flint.arb(u).log() - (-letters).log1p()
    best = count_A + (count_B - count_A).exp().log1p()
    for _, n in net.segments:
        if n is not None:
            best = best.min(ln_multiset(net.rank * n + 1, 3**net.depth))
            best = best if net.vocab is None else best.min(ln(net.vocab) * n)
    return log3_from_ln(best)


@lru_cache(maxsize=256)  # asked again with more bits
def _best_cut(net: MaskedNetwork) -> tuple[int, float, float]:
    """w0, and the s and u that make the two counts small there; 0 where a count is exact."""
    last = interaction_count(net.depth) - 1

    def rises_faster(cut: int) -> bool:
        """Whether one step more adds more to #A than it takes from #B."""
        (ln_a, s), (ln_b, u) = _prefix_count(net, cut), _word_count(net, last - cut)
        return not u or (bool(s) and ln_a + math.log(s) >= ln_b + math.log(-2 * math.log(u)))

    cut = first_whole(rises_faster, 0, last)
    return cut, _prefix_count(net, cut)[1], _word_count(net, last - cut)[1]


def _prefix_count(net: MaskedNetwork, cut: int) -> tuple[float, float]:
    """The least s cut - sum_l m_l ln(1 - e^(-s 3^l)), and its s."""
    if cut == 0:
        return 0.0, 0.0
    layers = [(m, 3.0**layer) for layer, m in enumerate(seen_statistics(net))]

    def weight(ln_s: float) -> float:
        """Minus the mean weight at s, which rises."""
        each = ((m, t, math.exp(ln_s) * t) for m, t in layers)
        return -sum(m * t / math.expm1(x) for m, t, x in each if x < 700)

    s = math.exp(bisect_rising(weight, -float(cut), -690.0, 60.0))
    return s * cut - sum(m * math.log(-math.expm1(-s * t)) for m, t in layers), s


def _word_count(net: MaskedNetwork, most: int) -> tuple[float, float]:
    """The least -2 most ln u + ln rho - ln(1 - E(u^2)), and its u."""
    r, rho = net.rank, math.log(net.own_forms)
    if most == 0:
        return rho, 0.0

    def room(u: float) -> float:
        return 2 - ((1 - u) ** -r + (1 + u) ** -r) / 2

    def slope(u: float) -> float:
        if room(u) <= 0:
            return math.inf
        return r * u * ((1 - u) ** (-r - 1) - (1 + u) ** (-r - 1)) / 2 / room(u)

    u = bisect_rising(slope, 2.0 * most, 0.0, min(0.9, 4.0 / r))
    while room(u) <= 0:  # the last bit was one too many
        u = math.nextafter(u, 0.0)
    return rho - 2 * most * math.log(u) - math.log(room(u)), u
