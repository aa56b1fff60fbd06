"""A model from the header of its checkpoint alone, and where a config says otherwise.

Sizes follow from names and shapes: stacks of blocks are spelled `model.layers.0.` and so on. Heads
do not, in most families: a matrix of 1,024 rows may be 8 heads or 16. They are said to be missing,
never guessed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import multimode

from archfit.audit.checkpoint_file import StoredTensor, Tensors, read_checkpoint
from archfit.audit.embedding import ends_in, find_embedding
from archfit.audit.families import knowledge, tensor_names
from archfit.audit.model import InputMap, Model, Parameters, Stack
from archfit.spec.errors import brief, refusal, refuse_if

NO_HEADS = "{}: not in a safetensors header; put config.json beside it"
OURS = "the numbers here are the config's"  # where weights say otherwise
LONGEST_PROBLEM = 200  # characters of why weights were not compared
MOST_STACKS = 4  # named in a note
SHARED = "albert_layer_groups"  # applied again and again; no header says how often
LONGEST_NUMBER = 5  # digits
ROLES = ("vision", "visual", "encoder", "decoder", "text")  # as parts of a name, in this order
NUMBERS = ("F", "BF", "C")  # how dtypes of trained numbers start; masks and indices are integers


def model_from_header(tensors: Tensors, *, name: str, origin: str) -> Model:
    """The model that stored names and shapes describe; parameters are counted exactly."""
    learned = tuple(filter(is_learned, tensors))
    reads, first_name, input_width = _input(tensors, learned)
    try:
        stacks = sorted(find_stacks(learned), key=lambda stack: _order(stack, first_name))
        shapes = tuple(stack.shape(input_width=input_width) for stack in stacks)
    except ValueError as problem:
        raise ValueError(f"{origin} does not tell its shape: {problem}") from problem
    inside = {tensor.name for stack in stacks for tensor in stack.tensors.values()}
    outside = [tensor for tensor in learned if tensor.name not in inside]
    sizes = {"heads": shapes[0].heads, "head_dim": shapes[0].head_dim}
    has_head = any(ends_in(tensor.name, tensor_names("heads")) for tensor in learned)
    return Model(
        name=name,
        origin=origin,
        stacks=shapes,
        input=reads,
        is_tied=False if has_head else None,
        parameters=Parameters(
            blocks=_elements(tensor for stack in stacks for tensor in stack.tensors.values()),
            embedding=_elements(tensor for tensor in outside if _is_table(tensor.name)),
            total=_elements(learned),
        ),
        missing=tuple(NO_HEADS.format(size) for size, value in sizes.items() if value is None),
        notes=tuple(_notes(tensors, stacks[0], shapes[0])),
    )


def _elements(tensors: Iterable[StoredTensor]) -> int:
    return sum(tensor.elements for tensor in tensors)


def _input(tensors: Tensors, learned: Tensors) -> tuple[InputMap, str, int | None]:
    """How a position enters, the tensor that says so, and the width it leads to."""
    for tensor in learned:
        if "HashBucketCodepointEmbedder" in tensor.name:  # CANINE
            return InputMap(kind="hashed_lookup_concat"), tensor.name, None
        if tensor.name.endswith("encoder.conv1.weight") and len(tensor.shape) == 3:  # Whisper
            return InputMap(kind="nonlinear"), tensor.name, tensor.shape[0]
    table = find_embedding(tensors).tables[0]  # in integers its shape need not be the table's
    is_quantised = table not in learned
    refuse_if(is_quantised, "quantised-table", name=brief(table.name), dtype=table.dtype)
    found = find_embedding(learned)
    reads = InputMap(
        kind=found.kind,
        vocab=found.rows if found.is_table else None,
        inner=found.inner if found.widening else None,
        dimensions=None if found.is_table else found.rows,
    )
    return reads, found.names[0], found.width


def is_learned(tensor: StoredTensor) -> bool:
    """Whether it is a parameter; causal masks and rotary frequencies are stored beside them."""
    last = tensor.name.rpartition(".")[2]
    is_mask = last == "bias" and len(tensor.shape) == 4 and tensor.shape[:2] == (1, 1)
    is_kept = last not in tensor_names("not_learned") and not is_mask
    return tensor.dtype.startswith(NUMBERS) and tensor.elements > 0 and is_kept


def _is_table(name: str) -> bool:
    is_named = any(part in name for part in tensor_names("tables"))
    return ends_in(name, tensor_names("heads")) or (is_named and "norm" not in name.lower())


# ---- stacks


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredStack:
    """Blocks that are numbered under one name; a size is None where shapes do not tell it."""

    prefix: str  # "model.layers"
    blocks: int
    tensors: dict[str, StoredTensor]  # by the name within its block, "0." and so on before it

    @property
    def role(self) -> str:
        """What the name says of it; "blocks" if nothing."""
        return next((role for role in ROLES if role in self.prefix), "blocks")

    def rows(self, part: str) -> int | None:
        """Rows of the matrix of this part: H d_a of the queries, likewise of the keys."""
        named = (t for name, t in self.tensors.items() if _is_layer(name, part))
        return next((tensor.shape[0] for tensor in named if len(tensor.shape) == 2), None)

    def shape(self, *, input_width: int | None) -> Stack:
        """The stack as far as a header tells; `input_width` is the embedding's, where found."""
        width, keys = self._width(input_width), self.rows("keys")
        heads, head_dim = self._heads()
        hidden = self._feed_forward(width)
        has_gates = any(_is_layer(name, "gates") for name in self.tensors)
        is_double = hidden is not None and self.rows("gates_inside") == 2 * hidden
        return Stack(
            role=self.role, depth=self.blocks, width=width, heads=heads, head_dim=head_dim,
            kv_heads=keys // head_dim if keys and head_dim and not keys % head_dim else None,
            feed_forward=hidden, is_gated=has_gates or is_double, distinct_blocks=self.blocks,
            block_weights=_elements(t for t in self.tensors.values() if len(t.shape) >= 2),
        )  # fmt: skip

    def _heads(self) -> tuple[int | None, int | None]:
        """Heads and their size, told only by a norm over one head or a bias for each."""
        queries = self.rows("queries")
        if not queries:
            return None, None
        for name, tensor in self.tensors.items():
            size = (0, *tensor.shape)[-1]
            is_part = 0 < size < queries and not queries % size  # OLMo 2 norms all as one
            if name.endswith("q_norm.weight") and len(tensor.shape) == 1 and is_part:
                return queries // size, size  # Qwen3, Gemma 3
            if name.endswith("relative_attention_bias.weight") and len(tensor.shape) == 2:  # T5
                return (size, queries // size) if is_part or size == 1 else (None, None)
        return None, None

    def _width(self, input_width: int | None) -> int:
        """The size that most matrices share; the embedding's decides between equals."""
        matrices = [tensor.shape for tensor in self.tensors.values() if len(tensor.shape) == 2]
        often = multimode(size for shape in matrices for size in set(shape))
        if input_width is not None and input_width in often:
            return input_width
        refuse_if(len(often) != 1, "no-width", prefix=brief(self.prefix))
        return often[0]

    def _feed_forward(self, width: int) -> int | None:
        held = [name for name in self.tensors if _is_layer(name, "feed_forward_out")]
        out = [name for name in held if "attention.output.dense" not in name]
        for name in [name for name in out if "experts" in name] or out:
            sizes = self.tensors[name].shape[-2:]  # experts may be one tensor of three axes
            if len(sizes) == 2 and width in sizes:
                return sizes[0] if sizes[1] == width else sizes[1]
        return None


def find_stacks(tensors: Iterable[StoredTensor]) -> tuple[StoredStack, ...]:
    """The stacks, by name; a sentence if there are none, or if blocks of one are missing."""
    found: dict[str, dict[str, StoredTensor]] = defaultdict(dict)
    for tensor in tensors:
        prefix, name = _split(tensor.name)
        if prefix:
            found[prefix][name] = tensor
    refuse_if(not found, "no-blocks")
    stacks = []
    for prefix, inside in sorted(found.items()):
        numbers = {int(each.partition(".")[0]) for each in inside}
        if absent := set(range(max(numbers) + 1)) - numbers:
            numbered = {"block": min(absent), "last": max(numbers)}
            raise refusal("absent-block", prefix=brief(prefix), **numbered)
        stacks.append(StoredStack(prefix=prefix, blocks=len(numbers), tensors=inside))
    return tuple(stacks)


def _split(name: str) -> tuple[str, str]:
    """The stack that a tensor is in and its name there; the first number tells, so experts and
    sublayers do not. Both are empty outside of all stacks."""
    parts = name.split(".")
    refuse_if(SHARED in parts, "shared-blocks", name=brief(name))
    for at, part in enumerate(parts[:-2], start=1):
        number = parts[at]
        if part in tensor_names("blocks") and number.isdecimal() and len(number) <= LONGEST_NUMBER:
            return ".".join(parts[:at]), f"{int(number)}.{'.'.join(parts[at + 1 :])}"
    return "", ""


def _order(stack: StoredStack, input_name: str) -> tuple[int, bool, str]:
    """First the stack whose name is closest to the input's, then encoders before decoders."""
    pairs = zip(stack.prefix.split("."), input_name.split("."), strict=False)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return -shared, stack.role == "decoder", stack.prefix


def _notes(tensors: Tensors, stack: StoredStack, shape: Stack) -> Iterator[str]:
    """What is not counted, and what is unusual about the stack that reads the input."""
    if buffers := [tensor for tensor in tensors if not is_learned(tensor)]:
        numbers = {"count": len(buffers), "elements": _elements(buffers)}
        yield knowledge()["notes"]["buffers"].format(name=buffers[0].name, **numbers)
    if shape.is_gated:
        yield "the feed-forward layers are gated"
    queries, keys = stack.rows("queries"), stack.rows("keys")
    if queries is not None and queries != shape.width:
        yield f"all query heads together have {queries:,} dimensions, width {shape.width:,}"
    if queries and keys and queries != keys:
        yield f"keys have {keys:,} dimensions where queries have {queries:,}"


def _is_layer(name: str, part: str) -> bool:
    """Whether a layer that is this part of a block holds it, as its weight or by itself."""
    return ends_in(name.removesuffix(".weight"), tensor_names(part))


# ---- a config and the weights beside it


def disagreements(model: Model, checkpoint: Path) -> tuple[str, ...]:
    """A sentence for each size that stored shapes contradict: padded tables, other widths, missing
    blocks. Of the weights none is read.

    Files that cannot be compared are a sentence, too: a config is audited without its weights.
    """
    try:
        tensors = read_checkpoint(checkpoint)
    except (OSError, ValueError) as problem:
        return (f"the weights were not compared with it: {problem!s:.{LONGEST_PROBLEM}}",)
    learned = tuple(filter(is_learned, tensors))
    return (*_input_disagreements(model, learned), *_stack_disagreements(model, learned))


def _input_disagreements(model: Model, tensors: Tensors) -> Iterator[str]:
    try:
        found = find_embedding(tensors)
    except ValueError:  # no name that is known: nothing to compare
        return
    said = model.input.vocab if found.is_table else model.input.dimensions
    if said is None or found.kind == "sum_of_lookups":
        return
    inner = None if found.widening else model.input.inner  # where what widens it was not found
    rows = "rows" if found.is_table else "inputs"
    columns = model.width if inner is None else inner
    for what, config, stored in ((rows, said, found.rows), ("columns", columns, found.width)):
        if config != stored:
            has = f"{brief(found.names[0])} has {stored:,} {what}"
            yield f"{has}, and the config says {config:,}; {OURS}"


def _stack_disagreements(model: Model, tensors: Tensors) -> Iterator[str]:
    try:
        stored = find_stacks(tensors)
    except ValueError:  # shared layers, or names that are not known
        return
    left = [stack.blocks for stack in stored]
    for stack in model.stacks:
        if stack.depth in left:
            left.remove(stack.depth)
        elif stack.depth is not None:
            named = (f"{stack.blocks} in {brief(stack.prefix)}" for stack in stored[:MOST_STACKS])
            says = f"the config says {stack.depth:,} blocks in the {stack.role} stack"
            yield f"{says}, and the weights hold {', '.join(named)}; {OURS}"
