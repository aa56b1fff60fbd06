"""The architecture that bounds are asked about, and one bound on its separation rank."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from archfit.spec.errors import refusal, refuse_if
from archfit.theory.catalogue import CAUSAL_NETWORK, ENTRIES, NETWORK, Status, as_segments
from archfit.theory.causal_bounds import Segment, SegmentedNetwork
from archfit.theory.inputs import check_heads_fit, check_sizes
from archfit.theory.reals import digits, log3

# 3^9000 has 4,295 digits. Python refuses to read integers over 4,300 unless told to, so
# longer ones would break the programs that read ours; `archfit theory` prints up to a million.
EXACT_LOG3_SHOWN = 9000
_FRACTIONS = ("ub_thm2", "ub_residual_thm4", "ub_vocab_proof")
_WIDEST_FRACTION = 1000
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
            raise refusal("partition-without-mask", self.partition)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The positions up to the output, in order, by runs of one side; the output is last."""
        N, given = self.positions, self.partition
        if self.partition in _HALVES:
            return ("A", N and N // 2), ("B", N and N - N // 2)
        if self.partition != "interleaved":
            found = as_segments("partition", given)
            is_other = N is not None and sum(n or 0 for _, n in found) != N
            refuse_if(is_other, "partition-of-other-length", given, positions=N)
            return tuple(found)
        if N is None or N > _MOST_SEGMENTS:
            raise refusal("too-many-segments", given, most=_MOST_SEGMENTS)
        return tuple(("AB"[place % 2], 1) for place in range(N))  # type: ignore[misc]  # A or B

    @property
    def embedding_rank(self) -> int:
        """r = min(rank, width, vocabulary)."""
        limits = (self.rank, self.width, self.vocab)
        return min(limit for limit in limits if limit is not None)

    @property
    def network(self) -> str:
        """What is analysed, in words."""
        return CAUSAL_NETWORK if self.causal else NETWORK

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

    @property
    def masked(self) -> SegmentedNetwork:
        """The network of vectors under a mask; positions add to the rank of its inputs."""
        names = ("depth", "width", "heads", "head_dim", "residual", "segments")
        same = {name: getattr(self, name) for name in names}
        return SegmentedNetwork(**same, embedding_rank=self.embedding_rank + self.position_rank)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """One bound on log3 of the separation rank: its value, and how far to trust it."""

    id: str
    side: Literal["lower", "upper"]
    log3: Decimal
    exact: int | Fraction | None
    status: Status
    status_line: str
    source: str


def bound(name: str, shape: Shape, **others: Any) -> Bound:
    """The bound `name` of a shape: exact where that can be shown, by its logarithm otherwise.

    It takes the sizes of the shape, or `others` in their place.
    """
    logarithms = (f"{name}_log3", f"{name}_simple_log3", name)
    entry = next(ENTRIES[known] for known in logarithms if known in ENTRIES)
    sizes = asdict(shape) | {"embedding_rank": shape.embedding_rank} | others
    value: int | Fraction | Decimal = entry.of(sizes)
    if name in ENTRIES and isinstance(value, Decimal):
        names = {"width", "embedding_rank", "position_rank"} & entry.parameters.keys()
        widest = max((sizes[word] for word in names), default=0)
        is_long_fraction = name in _FRACTIONS and widest > _WIDEST_FRACTION
        if value < EXACT_LOG3_SHOWN and not is_long_fraction:
            with suppress(ValueError):  # sums of integers that take too long
                value, entry = ENTRIES[name].of(sizes), ENTRIES[name]
    return Bound(
        id=entry.name.removesuffix("_log3"),
        side="upper" if name.startswith("ub_") else "lower",
        log3=value if isinstance(value, Decimal) else digits(lambda: log3(value)),
        exact=None if isinstance(value, Decimal) else value,
        status=entry.status,
        status_line=entry.status_line,
        source=entry.row["source"],
    )
