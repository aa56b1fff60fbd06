"""All bounds for one architecture, the best proved pair first, and where the depth stands."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Literal

from archfit.theory import statistics_bounds as statistics
from archfit.theory import vocabulary_bounds as vocabulary
from archfit.theory.causal_bounds import seen_statistics
from archfit.theory.reals import digits, log3
from archfit.theory.shape import Bound, Shape, bound
from archfit.theory.thresholds import depth_threshold
from archfit.theory.witness_formula import grow_plan, most_chains

_LARGEST_VOCAB_LOG3 = 30  # no vocabulary has 3^30 tokens
_WITNESS_HEADS = 8  # enough to matter, few enough to cost milliseconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Regime:
    """Where the depth stands against two numbers that the width the inputs can use gives."""

    paper_threshold: Decimal
    corrected_threshold: Decimal
    place: Literal["below", "between", "past"]  # both


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundsReport:
    """Everything known about the separation rank of one shape."""

    shape: Shape
    regime: Regime
    bounds: tuple[Bound, ...]  # the best proved pair first
    saturation: Decimal

    @property
    def lower(self) -> Bound:
        """The best lower bound that holds."""
        return self.bounds[0]

    @property
    def upper(self) -> Bound:
        """The best upper bound that holds."""
        return self.bounds[1]


def bounds_report(shape: Shape, witness_tries: int = 4) -> BoundsReport:
    """All bounds on the separation rank of this shape, best proved pair first.

    `witness_tries` plans are grown for the monomial witness, the only bound that is searched for.
    """
    found = [*lower_bounds(shape, witness_tries), *upper_bounds(shape)]
    trusted = [bound for bound in found if bound.status != "disputed"]
    lower = max((b for b in trusted if b.side == "lower"), key=lambda bound: bound.log3)
    upper = min((b for b in trusted if b.side == "upper"), key=lambda bound: bound.log3)
    rest = sorted(
        (bound for bound in found if bound is not lower and bound is not upper),
        key=lambda bound: (bound.status == "disputed", bound.side, bound.log3),
    )
    bounds, saturation = (lower, upper, *rest), _saturation(shape, upper)
    return BoundsReport(shape=shape, regime=regime(shape), bounds=bounds, saturation=saturation)


def regime(shape: Shape) -> Regime:
    """Where the depth stands for a network that can use so many dimensions as its inputs have."""
    width, bend, power = shape.embedding_rank, 2 * shape.embedding_rank**2, 3**shape.depth
    if shape.causal:
        bend = 4 * seen_statistics(shape.masked)[0]
    return Regime(
        paper_threshold=digits(lambda: depth_threshold(width)),
        corrected_threshold=digits(lambda: log3(bend)),
        place="below" if power < width else "between" if power < bend else "past",
    )


def lower_bounds(shape: Shape, witness_tries: int) -> Iterator[Bound]:
    """Every lower bound whose conditions the shape meets; the last resort is that y is not 0."""
    yield Bound(
        id="nonzero",
        side="lower",
        log3=Decimal(0),
        exact=1,
        status="proved",
        status_line="proved",
        source="a function that is not zero",
    )
    if shape.causal:
        yield from _causal_lower_bounds(shape)
    elif shape.vocab is not None:
        yield from _vocabulary_lower_bounds(shape, shape.vocab)
    else:
        yield from _continuous_lower_bounds(shape, witness_tries)


def _causal_lower_bounds(shape: Shape) -> Iterator[Bound]:
    if shape.vocab is not None or shape.depth < 2:
        return
    net = replace(shape.masked, embedding_rank=shape.embedding_rank)
    if len(shape.segments) == 2 and (chains := most_chains(net)):
        yield bound("lb_causal_chain", shape, chains=chains)
    yield from _sphere_lower_bounds(shape, "lb_sphere")


def _sphere_lower_bounds(shape: Shape, *names: str) -> Iterator[Bound]:
    """Those by witnesses that need heads of two coordinates."""
    h, b = shape.blocks
    if shape.depth > 1 and b > 1 and shape.embedding_rank > 1:
        yield from (bound(name, shape, width=h * b, heads=h) for name in names)


def _continuous_lower_bounds(shape: Shape, witness_tries: int) -> Iterator[Bound]:
    L, (h, b), r = shape.depth, shape.blocks, shape.embedding_rank
    if shape.positions is None or shape.positions >= 2 * shape.width:
        heads = min(shape.heads, r, _WITNESS_HEADS)
        plans = [grow_plan(L, heads, seed=seed) for seed in range(witness_tries)]
        found = [bound("monomial_witness", shape, heads=heads, plan=p, entry=at) for p, at in plans]
        yield max(found, key=lambda one: one.log3)
    yield from _sphere_lower_bounds(shape, "lb_sphere", "lb_strong")
    if L < 2 or b < 2 or r < 2:
        return
    if shape.is_rank_limited:
        usable = min(r, h + _halves(shape))
        if usable - h >= 2:
            yield bound("lb_vocab", shape, heads=h, embedding_rank=usable)
        return
    # The lower bound of Levine et al. and its relaxations, where d_x - H allows them.
    free = h * b - h
    needs = {"lb": 2, "lb_relaxA": 2, "lb_thm1_closed": 2, "lb_relaxB": 4, "lb_thm2_closed": 4}
    for name, least in needs.items():
        if free >= least and (free % 2 == 0 or "closed" not in name):
            yield bound(name, shape, width=h * b, heads=h)


def _halves(shape: Shape) -> int:
    """Coordinates in the two halves of all heads of the papers' witness, 2 h floor((b - 1) / 2).

    An embedding of rank r reaches h constants and these; more rank adds nothing to the witness.
    """
    h, b = shape.blocks
    return 2 * h * ((b - 1) // 2)


def _vocabulary_lower_bounds(shape: Shape, vocab: int) -> Iterator[Bound]:
    """Those whose conditions on vocabulary and length this shape meets."""
    L, d, h = shape.depth, shape.width, shape.blocks[0]
    if L < 2:
        return
    r = min(shape.embedding_rank, h + _halves(shape))
    if r - h >= 2:
        # The tokens that lemma 6 asks for are written out only where they are not astronomic.
        rows = digits(vocabulary.vocabulary_lower_bound(L, d, h, r).log3)
        if rows <= _LARGEST_VOCAB_LOG3 and vocab >= vocabulary.vocabulary_needed(L, d, h, r):
            yield bound("lb_vocab", shape, heads=h, embedding_rank=r)
    r, N = min(shape.embedding_rank, h + 1 + _halves(shape)), shape.positions
    with suppress(ValueError):  # the search of lemma 7 is too long: we claim nothing
        if r - h >= 3 and (N is None or vocabulary.positions_needed(L, h, r) <= N):
            yield bound("lb_vocab_long", shape, heads=h, embedding_rank=r)


def upper_bounds(shape: Shape) -> Iterator[Bound]:
    """Every upper bound that speaks of the shape, the disputed ones among them."""
    if shape.vocab is not None and shape.positions is not None:
        yield bound("ub_fill", shape)
    if shape.causal:
        yield _causal_upper_bound(shape)
        return
    if not shape.residual:
        yield bound("ub_thm1", shape)
    yield from _statistics_upper_bounds(shape)
    yield bound("ub_residual_thm4" if shape.residual else "ub_thm2", shape)
    if shape.is_rank_limited or shape.vocab is not None:
        yield bound("ub_vocab_statement", shape)
        yield bound("ub_vocab_proof", shape)
    elif shape.width < 3**shape.depth and not shape.residual:
        yield bound("ub_thm2_closed", shape)
    if shape.residual and shape.heads <= shape.width:
        yield bound("ub_residual_doubled", shape)
        forms = ("recursion", "product_corrected", "product_paper", "closed_paper")
        for form in forms if shape.positions is not None else ():
            yield bound(f"ub_residual_{form}", shape)


def _statistics_upper_bounds(shape: Shape) -> Iterator[Bound]:
    """ub_stat of the dimensions the inputs can use; positions widen a low rank again."""
    used = shape.embedding_rank
    if shape.is_rank_limited and shape.position_rank > 0:
        yield bound("ub_stat_pos", shape)
        used = shape.width
    yield bound("ub_stat", shape, width=used)
    if shape.vocab is not None and shape.position_rank == 0:
        yield _worst_split("ub_stat_vocab", shape)
    elif shape.positions is not None and shape.positions // 2 < used:
        with suppress(ValueError):  # a sum too long for this depth: ub_stat stands
            yield _worst_split("ub_stat_N", shape, width=used)
    if shape.depth == 3 and shape.heads == 1 and not shape.residual:
        yield bound("ub_stat_one_head_depth3", shape, width=used)


def _causal_upper_bound(shape: Shape) -> Bound:
    """The best for these segments; tokens are also vectors, and positions add to their rank."""
    given = asdict(shape.masked)
    (_, given["prefix"]), *others, (_, given["continuation"]) = shape.segments
    name = "ub_causal_segments" if others else "ub_causal_prefix"
    vocabs = {None, None if shape.position_rank else shape.vocab}
    found = [bound(name, shape, **given | {"vocab": vocab}) for vocab in vocabs]
    return min(found, key=lambda found: found.log3)


def _worst_split(name: str, shape: Shape, **others: int) -> Bound:
    """The bound for a balanced partition; of an odd length the output may have either side."""
    sides: list[dict[str, int]] = [{}]
    if (N := shape.positions) is not None:
        sides = [{"inside": n, "outside": N - n} for n in {N // 2, N - N // 2}]
    found = [bound(name, shape, **others, **side) for side in sides]
    return max(found, key=lambda found: found.log3)


def _saturation(shape: Shape, upper: Bound) -> Decimal:
    """log3 of the upper bound over what it grows like at large depth."""
    L, r = shape.depth, shape.embedding_rank
    if shape.causal:
        growth = Decimal(max(1, seen_statistics(shape.masked)[0])) * L**2 / 2
        return upper.log3 / growth
    if shape.vocab is not None and shape.position_rank == 0:
        bound = statistics.statistics_upper_bound_vocabulary(L, shape.vocab, r)
    elif shape.is_rank_limited and shape.position_rank > 0:
        bound = statistics.statistics_upper_bound_positions(L, r, shape.position_rank)
    else:
        bound = statistics.statistics_upper_bound(L, r)
    return digits(bound.log3) / (max(bound.variables - 1, 1) * L)
