"""What an audit knows of a model: its stacks, its input and what it stores.

`None` always means "not found", never zero: a number that no file gives is not invented.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from archfit.spec import Architecture, Factorised, RunSpec, Tied, Tokens, from_json

InputKind = Literal[
    "lookup",  # one table of tokens
    "factorised_lookup",  # a narrow table and a matrix that widens it (ALBERT, ELECTRA, OPT-350m)
    "sum_of_lookups",  # several tables at one position (codebooks)
    "hashed_lookup_concat",  # CANINE: hashes of a character, looked up and put side by side
    "linear_patch",  # pixels or samples through one linear map
    "linear_on_conv_features",  # a convolutional stem that ends in a linear map
    "linear_continuous",  # vectors (states, features) through one linear map
    "nonlinear",  # convolutions with non-linearities: no rank limit follows
]
TABLES = ("lookup", "factorised_lookup", "sum_of_lookups")
UNBOUNDED = ("nonlinear", "hashed_lookup_concat")  # in rank, but for the width
RUN_KEYS = {"architecture", "data_hash"}  # by which our own documents are told from configs
ARCHITECTURE_KEYS = {"attention", "embedding", "input", "positions"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """Blocks of one shape, one after the other."""

    role: str  # encoder, decoder, vision, ...
    depth: int | None  # L, blocks a token passes
    width: int  # d_x
    heads: int | None  # H, query heads
    head_dim: int | None  # d_a
    kv_heads: int | None  # fewer than heads in grouped-query attention
    feed_forward: int | None  # hidden units; of one expert in a mixture
    block_weights: int | None  # weight matrices of all stored blocks, cross-attention included
    distinct_blocks: int | None  # sets of weights; fewer than depth where shared (ALBERT)
    is_gated: bool = False  # three feed-forward matrices, as Llama's blocks have

    @property
    def attention_ratio(self) -> float | None:
        """H d_a / d_x; above 1 the attention is wider than the stream it reads (Wies 5.3)."""
        if self.heads is None or self.head_dim is None:
            return None
        return self.heads * self.head_dim / self.width


@dataclass(frozen=True, kw_only=True, slots=True)
class InputMap:
    """How a position enters the network."""

    kind: InputKind
    vocab: int | None = None  # rows of the token table as stored, padding included
    vocab_real: int | None = None  # tokens that can occur, where known to be fewer
    inner: int | None = None  # width of a factorised table or map
    dimensions: int | None = None  # of a patch, feature or state: what enters the linear map


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Counts of what is stored; each None where a size it needs was not found."""

    blocks: int | None  # all stacks with biases, norms and cross-attention
    embedding: int | None  # token, position and type tables, input maps, an untied head
    total: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """A model as its files, or a row of the built-in table, describe it."""

    name: str
    origin: str  # the file or page that the numbers come from
    family: str | None = None  # model_type of its config
    modality: str | None = None
    stacks: tuple[Stack, ...]  # the one that reads the input first
    input: InputMap
    is_tied: bool | None  # the token table serves as the head, too
    parameters: Parameters
    published_params: int | None = None
    training_tokens: int | None = None  # that it was, or is to be, trained on
    assumed: tuple[str, ...] = ()  # "head_dim=256: default of GemmaConfig (transformers 5.22.2)"
    missing: tuple[str, ...] = ()  # "heads: looked for num_attention_heads, n_head, num_heads"
    doubtful: tuple[str, ...] = ()  # sizes probably misprinted, so that none is judged by them
    notes: tuple[str, ...] = ()  # traps worth a sentence; also what the count leaves out

    @property
    def depth(self) -> int | None:
        """Blocks of encoder and decoder, which the published tables add; None if one is not known.

        A vision stack beside a text stack is not on the way of a token.
        """
        first, *others = self.stacks
        return sum_if_known((first.depth, *(s.depth for s in others if s.role != "vision")))

    @property
    def width(self) -> int:
        """Width of the stack that reads the input."""
        return self.stacks[0].width

    @property
    def rank_limit(self) -> int | None:
        """The most dimensions in which inputs can differ: min(width, what the input allows).

        None if nothing bounds it but the width, or if what would bound it was not found.
        """
        if self.input.kind in UNBOUNDED:
            return None
        tokens = self.input.vocab if self.input.vocab_real is None else self.input.vocab_real
        entering = tokens if self.input.kind in TABLES else self.input.dimensions
        known = [bound for bound in (entering, self.input.inner) if bound is not None]
        return min([self.width, *known]) if known else None


def sum_if_known(sizes: Iterable[int | None]) -> int | None:
    """The sum, or None where one of them was not found."""
    given = tuple(sizes)
    known = [size for size in given if size is not None]
    return sum(known) if len(known) == len(given) else None


def model_from_architecture(shape: Architecture, *, name: str, origin: str) -> Model:
    """The model that an architecture of archfit's own describes: nothing of it is missing."""
    stack = Stack(
        role="decoder" if shape.objective == "causal" else "encoder",
        depth=shape.depth, width=shape.width, heads=shape.heads, head_dim=shape.head_dim,
        kv_heads=shape.key_value_heads, feed_forward=shape.feed_forward or None,
        block_weights=shape.block_params, distinct_blocks=shape.depth,
        is_gated=shape.block == "llama",
    )  # fmt: skip
    table, source = shape.embedding, shape.input
    inner = table.inner if isinstance(table, Factorised) else None
    if isinstance(source, Tokens):
        kind: InputKind = "lookup" if inner is None else "factorised_lookup"
        reads = InputMap(kind=kind, vocab=source.vocab, inner=inner)
    else:
        reads = InputMap(kind="linear_patch", inner=inner, dimensions=source.dimensions)
    return Model(
        name=name,
        origin=origin,
        family="archfit",
        stacks=(stack,),
        input=reads,
        is_tied=isinstance(shape.head, Tied),
        parameters=Parameters(
            blocks=shape.params_without_embeddings,
            embedding=shape.embedding_params,
            total=shape.params,
        ),
    )


def model_from_spec(document: Mapping[str, object], *, name: str, origin: str) -> Model | None:
    """That of the spec of a run, or of an architecture that archfit wrote; None of a config."""
    if not (document.keys() >= RUN_KEYS or document.keys() >= ARCHITECTURE_KEYS):
        return None
    try:
        if "architecture" not in document:
            shape = from_json(Architecture, dict(document))
            return model_from_architecture(shape, name=name, origin=origin)
        run = from_json(RunSpec, dict(document))
    except RecursionError as problem:
        raise ValueError("this spec is nested too deeply to be one") from problem
    model = model_from_architecture(run.architecture, name=name, origin=origin)
    return replace(model, training_tokens=run.training_tokens)
