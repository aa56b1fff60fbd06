"""The architecture that bounds are asked about."""

from dataclasses import dataclass

from archfit.theory.sizes import check_heads_fit, check_sizes


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

    def __post_init__(self) -> None:
        check_sizes(
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            position_rank=self.position_rank,
        )
        if self.head_dim is None:
            check_heads_fit(width=self.width, heads=self.heads)
        optional = {
            "head_dim": self.head_dim,
            "positions": self.positions,
            "vocab": self.vocab,
            "embedding_rank": self.rank,
        }
        check_sizes(**{name: size for name, size in optional.items() if size is not None})

    @property
    def embedding_rank(self) -> int:
        """r = min(rank, width, vocabulary)."""
        limits = (self.rank, self.width, self.vocab)
        return min(limit for limit in limits if limit is not None)

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
