"""From what is asked for to a recipe: the options of each kind, and their values if left out."""

from dataclasses import dataclass

from archfit.exact.witness import (
    Base,
    Convolution,
    LongVocabulary,
    Monomial,
    NetworkShape,
    Recipe,
    Simplified,
    Vocabulary,
)
from archfit.exact.witness_embedded import active_coordinates, used_columns
from archfit.exact.witness_long import spelled_columns
from archfit.exact.witness_parts import check_run
from archfit.spec.checks import check_choice
from archfit.theory.vocabulary import positions_needed, vocabulary_needed
from archfit.theory.witness_formula import Plan, grow_plan, monomial_witness

# Each kind, and the options that it takes besides depth, width, heads and positions.
KINDS: dict[str, tuple[str, ...]] = {
    "base": (),
    "simplified": (),
    "convolution": ("rank", "patch", "channels"),
    "vocabulary": ("rank", "vocab"),
    "vocabulary-long": ("rank", "vocab"),
    "monomial": ("plan", "entry"),
}
_POSITIONS = 4  # two a side: a template and a filler
_PATCH = 2
_PLANS_GROWN, _MANY_HEADS = 20, 8  # a plan for more heads takes long to grow


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The witness that is asked for; None leaves a size to its kind."""

    kind: str
    depth: int
    width: int
    heads: int
    positions: int | None = None
    rank: int | None = None
    vocab: int | None = None
    patch: int | None = None
    channels: int | None = None
    plan: Plan | None = None
    entry: int | None = None

    def __post_init__(self) -> None:
        check_choice(list(KINDS), kind=self.kind)
        for name in ("rank", "vocab", "patch", "channels", "plan", "entry"):
            if getattr(self, name) is not None and name not in KINDS[self.kind]:
                takers = " or ".join(kind for kind, options in KINDS.items() if name in options)
                raise ValueError(f"the {self.kind} kind takes no {name}; use --kind {takers}")

    def shape(self, positions: int) -> NetworkShape:
        """The network, with this length unless another was asked for."""
        return NetworkShape(
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            positions=positions if self.positions is None else self.positions,
        )


def recipe_for(wanted: Wanted) -> Recipe:
    """The recipe of what is wanted, the smallest that its kind allows where nothing was said."""
    match wanted.kind:
        case "base":
            return Base(shape=wanted.shape(_POSITIONS))
        case "simplified":
            return Simplified(shape=wanted.shape(_POSITIONS))
        case "convolution":
            return _convolution(wanted)
        case "vocabulary":
            return _vocabulary(wanted)
        case "vocabulary-long":
            return _long_vocabulary(wanted)
    return _monomial(wanted)


def _convolution(wanted: Wanted) -> Convolution:
    shape, rank = wanted.shape(_POSITIONS), _given(wanted.rank, wanted.width)
    patch = _given(wanted.patch, _PATCH)
    needed = len(active_coordinates(shape, rank))
    channels = _given(wanted.channels, -(-needed // max(1, patch)))
    return Convolution(shape=shape, embedding_rank=rank, patch=patch, channels=channels)


def _vocabulary(wanted: Wanted) -> Vocabulary:
    shape, rank = wanted.shape(_POSITIONS), _given(wanted.rank, wanted.width)
    used_columns(shape, rank)
    needed = vocabulary_needed(shape.depth, shape.width, shape.heads, rank)
    return Vocabulary(shape=shape, embedding_rank=rank, vocab=_given(wanted.vocab, needed))


def _long_vocabulary(wanted: Wanted) -> LongVocabulary:
    rank = _given(wanted.rank, wanted.width + 1)
    d = spelled_columns(wanted.shape(_POSITIONS), rank)
    least = positions_needed(wanted.depth, wanted.heads, rank)
    vocab = _given(wanted.vocab, 2 * d + 1)
    return LongVocabulary(shape=wanted.shape(least), embedding_rank=rank, vocab=vocab)


def _monomial(wanted: Wanted) -> Monomial:
    shape = wanted.shape(2 * wanted.heads)
    check_run(shape)
    plan, entry = (wanted.plan, 0) if wanted.plan is not None else _grown(shape)
    return Monomial(shape=shape, plan=plan, entry=_given(wanted.entry, entry))


def _grown(shape: NetworkShape) -> tuple[Plan, int]:
    """The best of a few plans."""
    tries = _PLANS_GROWN if shape.heads <= _MANY_HEADS else 1
    plans = [grow_plan(shape.depth, shape.heads, seed=seed) for seed in range(tries)]
    return max(
        plans, key=lambda found: monomial_witness(shape.depth, shape.width, shape.heads, *found)
    )


def _given(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
