"""All bounds for one architecture, the best proved pair first, and where the depth stands."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from archfit.spec.errors import InvalidValue
from archfit.theory.arithmetic import (
    check_heads_fit,
    check_sizes,
    digits,
    log3,
    symmetric_entries,
)
from archfit.theory.catalogue import (
    CAUSAL_NETWORK,
    ENTRIES,
    NETWORK,
    Json,
    Status,
    as_json_value,
    as_segments,
    quantity,
)
from archfit.theory.causal_bounds import PrefixNetwork, Segment, most_chains, seen_statistics
from archfit.theory.statistics_bounds import (
    count_variables,
    statistics_upper_bound_log3,
    statistics_upper_bound_positions_log3,
    statistics_upper_bound_vocabulary_log3,
)
from archfit.theory.thresholds import depth_threshold
from archfit.theory.vocabulary_bounds import (
    positions_needed,
    vocabulary_lower_bound_log3,
    vocabulary_needed,
)
from archfit.theory.witness_formula import grow_plan

Side = Literal["lower", "upper"]

# 3^9000 has 4,295 digits. Python refuses to read integers over 4,300 unless told to, so
# longer ones would break the programs that read ours; `archfit theory` prints up to a million.
EXACT_LOG3_SHOWN = 9000
_FRACTIONS = ("ub_thm2", "ub_residual_thm4", "ub_vocab_proof")
_WIDEST_FRACTION = 1000
_LARGEST_VOCAB_LOG3 = 30  # no vocabulary has 3^30 tokens
_WITNESS_HEADS = 8  # enough to matter, few enough to cost milliseconds
_MOST_SEGMENTS = 4096
_HALVES = ("prefix", "first-half", "balanced")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What the bounds are asked about; None where the question leaves a size open."""

    depth: int
    width: int
    heads: int
    head_dim: int | None = None  # None: width / heads
    positions: int | None = None  # None: upper bounds for every N, lower for N long enough
    vocab: int | None = None  # None: continuous inputs
    rank: int | None = None  # None: as large as width and vocabulary allow
    position_rank: int = 0
    residual: bool = False
    causal: bool = False
    partition: str = "prefix"  # under a mask: prefix, interleaved, or segments such as A:3,B

    def __post_init__(self) -> None:
        sizes = {name: size for name, size in asdict(self).items() if type(size) is int}
        sizes["embedding_rank"] = sizes.pop("rank", 1)
        check_sizes(**sizes)
        if self.head_dim is None:
            check_heads_fit(self.heads, width=self.width)
        if self.causal:
            assert self.segments
        elif self.partition not in _HALVES:
            rule = "changes nothing: without a mask all balanced partitions have the same rank"
            raise InvalidValue("partition", self.partition, rule, "add {causal}, or leave it out")

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The positions up to the output, in order, by runs of one side; the output is last."""
        N, way_out = self.positions, f"give {{positions}} of 2 to {_MOST_SEGMENTS}"
        if self.partition in _HALVES:
            return ("A", N and N // 2), ("B", N and N - N // 2)
        if self.partition != "interleaved":
            found = as_segments("partition", self.partition)
            if N is not None and sum(n or 0 for _, n in found) != N:
                rule = f"does not have {{positions}}={N} positions"
                raise InvalidValue("partition", self.partition, rule, "give the number of each")
            return tuple(found)
        if N is None or N > _MOST_SEGMENTS:
            raise InvalidValue("partition", self.partition, "has a segment a position", way_out)
        return tuple(("AB"[place % 2], 1) for place in range(N))  # type: ignore[misc]  # A or B

    @property
    def embedding_rank(self) -> int:
        """r = min(rank, width, vocabulary)."""
        limits = (self.rank, self.width, self.vocab)
        return min(limit for limit in limits if limit is not None)

    @property
    def reached_rank(self) -> int:
        """Dimensions that inputs and positions reach together."""
        return min(self.width, self.embedding_rank + self.position_rank)

    @property
    def is_rank_limited(self) -> bool:
        """Whether the inputs reach the network through fewer dimensions than its width."""
        return self.embedding_rank < self.width

    @property
    def blocks(self) -> tuple[int, int]:
        """Heads h and their dimension b <= d_a of the network with h b <= d_x found in this one.

        It is the whole network when H d_a = d_x. A lower bound for it is one for the whole,
        whose other weights may be zero.
        """
        b = self.head_dim if self.head_dim is not None else self.width // self.heads
        h = min(self.heads, max(1, self.width // b))
        more = min(h + 1, self.heads, self.width)
        options = [(count, min(b, self.width // count)) for count in (h, more)]
        return max(options, key=lambda option: option[0] * (option[1] - 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """One bound on log3 of the separation rank: its value, and how far to trust it."""

    id: str
    side: Side
    log3: Decimal
    exact: int | Fraction | None
    status: Status
    status_line: str
    source: str

    def as_json(self) -> dict[str, Json]:
        """The bound as `archfit bounds --json` prints it."""
        exact = None if self.exact is None else as_json_value(self.exact)
        return asdict(self) | {"log3": str(self.log3), "exact": exact}


@dataclass(frozen=True, kw_only=True, slots=True)
class Regime:
    """Where the depth stands against two numbers that the width the inputs can use gives."""

    paper_threshold: Decimal
    corrected_threshold: Decimal
    corrected_is: str
    name: str

    def as_json(self) -> dict[str, Json]:
        """The regime as `archfit bounds --json` prints it."""
        return {
            "name": self.name,
            "paper_threshold": str(self.paper_threshold),
            "paper_threshold_is": "log3(width): below it depth beats width, proved; above it the "
            "papers say that depth stops paying, which is disputed",
            "corrected_threshold": str(self.corrected_threshold),
            "corrected_threshold_is": f"{self.corrected_is}: the proved upper bound bends there; "
            "no threshold of the network, for no lower bound is known to bend with it",
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundsReport:
    """Everything known about the separation rank of one shape."""

    shape: Shape
    regime: Regime
    bounds: tuple[Bound, ...]  # the best proved pair first
    saturation: Decimal
    saturation_is: str

    @property
    def lower(self) -> Bound:
        """The best lower bound that holds."""
        return self.bounds[0]

    @property
    def upper(self) -> Bound:
        """The best upper bound that holds."""
        return self.bounds[1]

    def as_json(self) -> dict[str, Json]:
        """The document that `archfit bounds --json` prints."""
        return {
            "inputs": asdict(self.shape),
            "embedding_rank": self.shape.embedding_rank,
            "network": CAUSAL_NETWORK if self.shape.causal else NETWORK,
            "regime": self.regime.as_json(),
            "lower": self.lower.as_json(),
            "upper": self.upper.as_json(),
            "bounds": [bound.as_json() for bound in self.bounds],
            "saturation": {"share": f"{self.saturation:.6g}", "is": self.saturation_is},
            "notes": list(notes(self.shape)),
        }


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
    share, of = _saturation(shape, upper)
    return BoundsReport(
        shape=shape,
        regime=regime(shape),
        bounds=(lower, upper, *rest),
        saturation=share,
        saturation_is=f"{of}: a reading of an upper bound, not advice",
    )


def regime(shape: Shape) -> Regime:
    """Where the depth stands for a network that can use so many dimensions as its inputs have."""
    width, bend, formula = shape.embedding_rank, 2 * shape.embedding_rank**2, "2 log3(d) + log3(2)"
    growth = "linearly in depth"
    if shape.causal:
        bend, formula = (
            4 * seen_statistics(_masked(shape))[0],
            "log3(4 m_0), m_0 the numbers a layer sees",
        )
        growth = "with the square of depth"
    if 3**shape.depth < width:
        name = "below log3(width): the bounds grow doubly exponentially in depth"
    elif 3**shape.depth < bend:
        name = "past log3(width) of the papers, below where the proved upper bound bends"
    else:
        name = f"above where the proved upper bound bends: it grows {growth}"
    return Regime(
        paper_threshold=depth_threshold(width),
        corrected_threshold=digits(lambda: log3(bend)),
        corrected_is=formula,
        name=name,
    )


def _masked(shape: Shape) -> PrefixNetwork:
    """The network of vectors, for what is asked of a prefix."""
    (_, before), *_, (_, after) = shape.segments
    return PrefixNetwork(
        depth=shape.depth,
        width=shape.width,
        heads=shape.heads,
        head_dim=shape.head_dim,
        embedding_rank=shape.reached_rank,
        residual=shape.residual,
        prefix=before,
        continuation=after,
    )


def notes(shape: Shape) -> Iterator[str]:
    """What a reader of the bounds must know about this shape."""
    if shape.head_dim is None and shape.width % shape.heads:
        yield (
            f"heads={shape.heads} does not divide width={shape.width}; upper bounds use the "
            f"formula as it stands, lower bounds a network with heads of {shape.blocks[1]}"
        )
    if shape.positions is None:
        yield "upper bounds hold for every length; lower bounds for sequences long enough"
    if shape.causal:
        yield "a mask can raise the rank: bounds of the unmasked network do not hold under it"
    elif shape.vocab is not None:
        yield (
            "lower bounds for a vocabulary need one far larger than its rank, or long sequences "
            "(lb_vocab_min_V, lemma7_N); those whose condition is not met are left out"
        )
    if shape.residual and shape.positions is None:
        yield "the papers' bounds for residual networks need --positions"


def _saturation(shape: Shape, upper: Bound) -> tuple[Decimal, str]:
    """log3 of the upper bound over what it grows like at large depth, and in words."""
    L, r = shape.depth, shape.embedding_rank
    if shape.causal:
        growth = Decimal(max(1, seen_statistics(_masked(shape))[0])) * L**2 / 2
        return upper.log3 / growth, "log3 of the upper bound over m_0 L^2 / 2, as it grows in depth"
    if shape.vocab is not None and shape.position_rank == 0:
        slope = count_variables(shape.vocab, r) - 1
        log = statistics_upper_bound_vocabulary_log3(L, shape.vocab, r)
    elif shape.is_rank_limited and shape.position_rank > 0:
        slope = symmetric_entries(r) + r * shape.position_rank
        log = statistics_upper_bound_positions_log3(L, r, shape.position_rank)
    else:
        slope = symmetric_entries(r)
        log = statistics_upper_bound_log3(L, r)
    words = "log3 of the statistics upper bound over its large-depth slope times depth"
    return log / (max(slope, 1) * L), words


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
    net = replace(_masked(shape), embedding_rank=shape.embedding_rank)
    if len(shape.segments) == 2 and (chains := most_chains(net)):
        yield _bound("lb_causal_chain", L=shape.depth, chains=chains)
    yield from _sphere_lower_bounds(shape, "lb_sphere")


def _sphere_lower_bounds(shape: Shape, *names: str) -> Iterator[Bound]:
    """Those by witnesses that need heads of two coordinates."""
    (h, b), r = shape.blocks, shape.embedding_rank
    if shape.depth > 1 and b > 1 and r > 1:
        yield from (_bound(name, L=shape.depth, d_x=h * b, H=h, r=r) for name in names)


def _continuous_lower_bounds(shape: Shape, witness_tries: int) -> Iterator[Bound]:
    L, (h, b), r = shape.depth, shape.blocks, shape.embedding_rank
    if shape.positions is None or shape.positions >= 2 * shape.width:
        yield _best_monomial_witness(shape, witness_tries)
    yield from _sphere_lower_bounds(shape, "lb_sphere", "lb_strong")
    if L < 2 or b < 2 or r < 2:
        return
    if shape.is_rank_limited:
        usable = min(r, h + _halves(shape))
        if usable - h >= 2:
            yield _bound("lb_vocab", L=L, d_x=shape.width, H=h, r=usable)
        return
    # The lower bound of Levine et al. and its relaxations, where d_x - H allows them.
    free = h * b - h
    needs = {"lb": 2, "lb_relaxA": 2, "lb_thm1_closed": 2, "lb_relaxB": 4, "lb_thm2_closed": 4}
    for name, least in needs.items():
        if free >= least and (free % 2 == 0 or "closed" not in name):
            yield _bound(name, L=L, d_x=h * b, H=h)


def _halves(shape: Shape) -> int:
    """Coordinates in the two halves of all heads of the papers' witness, 2 h floor((b - 1) / 2).

    An embedding of rank r reaches h constants and these; more rank adds nothing to the witness.
    """
    h, b = shape.blocks
    return 2 * h * ((b - 1) // 2)


def _best_monomial_witness(shape: Shape, tries: int) -> Bound:
    heads = min(shape.heads, shape.embedding_rank, _WITNESS_HEADS)
    plans = [grow_plan(shape.depth, heads, seed=seed) for seed in range(tries)]
    network = {"L": shape.depth, "d_x": shape.width, "H": heads}
    found = [_bound("monomial_witness", plan=plan, entry=at, **network) for plan, at in plans]
    return max(found, key=lambda bound: bound.log3)


def _vocabulary_lower_bounds(shape: Shape, vocab: int) -> Iterator[Bound]:
    """Those whose conditions on vocabulary and length this shape meets."""
    L, d, h = shape.depth, shape.width, shape.blocks[0]
    if L < 2:
        return
    r = min(shape.embedding_rank, h + _halves(shape))
    # The tokens that lemma 6 asks for are written out only where they are not astronomic.
    is_counted = r - h >= 2 and vocabulary_lower_bound_log3(L, d, h, r) <= _LARGEST_VOCAB_LOG3
    if is_counted and vocab >= vocabulary_needed(L, d, h, r):
        yield _bound("lb_vocab", L=L, d_x=d, H=h, r=r)
    r = min(shape.embedding_rank, h + 1 + _halves(shape))
    with suppress(ValueError):  # the search of lemma 7 is too long: we claim nothing
        if r - h >= 3 and (shape.positions is None or shape.positions >= positions_needed(L, h, r)):
            yield _bound("lb_vocab_long", L=L, H=h, r=r)


def upper_bounds(shape: Shape) -> Iterator[Bound]:
    """Every upper bound that speaks of the shape, the disputed ones among them."""
    L, d, r, r_e = shape.depth, shape.width, shape.embedding_rank, shape.position_rank
    if shape.vocab is not None and shape.positions is not None:
        yield _bound("ub_fill", V=shape.vocab, N=shape.positions)
    if shape.causal:
        yield _causal_upper_bound(shape)
        return
    if not shape.residual:
        d_a = {} if shape.head_dim is None else {"d_a": shape.head_dim}
        yield _bound("ub_thm1", L=L, d_x=d, H=shape.heads, **d_a)
    yield from _statistics_upper_bounds(shape)
    yield _bound("ub_residual_thm4" if shape.residual else "ub_thm2", L=L, d_x=d)
    if shape.is_rank_limited or shape.vocab is not None:
        yield _bound("ub_vocab_statement", L=L, r=r, r_e=r_e)
        yield _bound("ub_vocab_proof", L=L, r=r, r_e=r_e)
    elif d < 3**L and not shape.residual:
        yield _bound("ub_thm2_closed", L=L, d_x=d)
    if shape.residual and shape.heads <= d:
        network = {"L": L, "d_x": d, "H": shape.heads}
        yield _bound("ub_residual_doubled", **network)
        forms = ("recursion", "product_corrected", "product_paper", "closed_paper")
        for form in forms if shape.positions is not None else ():
            yield _bound(f"ub_residual_{form}", **network, N=shape.positions)


def _statistics_upper_bounds(shape: Shape) -> Iterator[Bound]:
    """ub_stat of the dimensions the inputs can use; positions widen a low rank again."""
    L, d, r, r_e = shape.depth, shape.width, shape.embedding_rank, shape.position_rank
    used = r
    if shape.is_rank_limited and r_e > 0:
        yield _bound("ub_stat_pos", L=L, r=r, r_e=r_e)
        used = d
    yield _bound("ub_stat", L=L, d_x=used)
    if shape.vocab is not None and r_e == 0:
        yield _worst_split(shape, "ub_stat_vocab", L=L, V=shape.vocab, r=r)
    elif shape.positions is not None and shape.positions // 2 < used:
        with suppress(ValueError):  # a sum too long for this depth: ub_stat stands
            yield _worst_split(shape, "ub_stat_N", L=L, d_x=used)
    if L == 3 and shape.heads == 1 and not shape.residual:
        yield _bound("ub_stat_one_head_depth3", d_x=used)


def _causal_upper_bound(shape: Shape) -> Bound:
    """The best for these segments; tokens are also vectors, and positions add to their rank."""
    given: dict[str, object] = {"L": shape.depth, "d_x": shape.width, "H": shape.heads}
    given |= {"d_a": shape.head_dim, "r": shape.reached_rank, "residual": shape.residual}
    name = "ub_causal_segments"
    if len(shape.segments) == 2:
        name, ((_, before), (_, after)) = "ub_causal_prefix", shape.segments
        given |= {"n_A": before, "n_B": after}
    else:
        given["segments"] = list(shape.segments)
    vocabs = {None, None if shape.position_rank else shape.vocab}
    found = [_bound(name, **given, V=vocab) for vocab in vocabs]
    return min(found, key=lambda bound: bound.log3)


def _worst_split(shape: Shape, name: str, **inputs: int) -> Bound:
    """The bound for a balanced partition; of an odd length the output may have either side."""
    if shape.positions is None:
        return _bound(name, **inputs)
    N, half = shape.positions, shape.positions // 2
    found = [_bound(name, n_P=n, n_Q=N - n, **inputs) for n in {half, N - half}]
    return max(found, key=lambda bound: bound.log3)


def _bound(name: str, **inputs: Any) -> Bound:
    """The bound `name`: exact where that can be shown, by its logarithm otherwise."""
    logarithms = (f"{name}_log3", f"{name}_simple_log3", name)
    found = quantity(next(known for known in logarithms if known in ENTRIES), **inputs)
    if name in ENTRIES and isinstance(found.value, Decimal):
        widths = (inputs.get(letter) or 0 for letter in ("d_x", "r", "r_e"))
        is_long_fraction = name in _FRACTIONS and max(widths) > _WIDEST_FRACTION
        if found.value < EXACT_LOG3_SHOWN and not is_long_fraction:
            with suppress(ValueError):  # sums of integers that take too long
                found = quantity(name, **inputs)
    value = found.value
    assert isinstance(value, int | Fraction | Decimal)
    return Bound(
        id=found.name.removesuffix("_log3"),
        side="upper" if name.startswith("ub_") else "lower",
        log3=value if isinstance(value, Decimal) else digits(lambda: log3(value)),
        exact=None if isinstance(value, Decimal) else value,
        status=found.status,
        status_line=found.status_line,
        source=found.source,
    )
