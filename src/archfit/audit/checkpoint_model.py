"""A model from the header of its checkpoint alone, and where a config says otherwise.

Sizes follow from names and shapes. Heads do not, in most families: a matrix of 1,024 rows may be 8
heads or 16. They are said to be missing, never guessed.
"""

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from archfit.audit.checkpoint_file import Tensors, read_checkpoint
from archfit.audit.embedding_tensor import ends_in, find_embedding
from archfit.audit.families import tensor_names
from archfit.audit.model import InputMap, Model, Parameters
from archfit.audit.stored_stacks import StoredStack, find_stacks, is_learned
from archfit.spec.errors import brief

NO_HEADS = "{}: not in a safetensors header; put config.json beside it"
LONGEST_PROBLEM = 200  # characters of why weights were not compared
MOST_STACKS = 4  # named in a note


def model_from_header(tensors: Tensors, *, name: str, origin: str) -> Model:
    """The model that stored names and shapes describe; parameters are counted exactly."""
    learned = tuple(filter(is_learned, tensors))
    _refuse_quantised_input(tensors, learned)
    reads, first_name, input_width = _input(learned)
    try:
        stacks = sorted(find_stacks(learned), key=lambda stack: _order(stack, first_name))
        shapes = tuple(stack.shape(input_width=input_width) for stack in stacks)
    except ValueError as problem:
        raise ValueError(f"{origin} does not tell its shape: {problem}") from problem
    inside = {tensor.name for stack in stacks for tensor in stack.tensors.values()}
    outside = [tensor for tensor in learned if tensor.name not in inside]
    sizes = {"heads": shapes[0].heads, "head_dim": shapes[0].head_dim}
    return Model(
        name=name,
        origin=origin,
        stacks=shapes,
        input=reads,
        is_tied=False if any(_is_head(tensor.name) for tensor in learned) else None,
        parameters=Parameters(
            blocks=sum(stack.elements for stack in stacks),
            embedding=sum(tensor.elements for tensor in outside if _is_table(tensor.name)),
            total=sum(tensor.elements for tensor in learned),
        ),
        missing=tuple(NO_HEADS.format(size) for size, value in sizes.items() if value is None),
        notes=(*_left_out(tensors), *_shape_notes(stacks[0], shapes[0].width)),
    )


def _input(learned: Tensors) -> tuple[InputMap, str, int | None]:
    """How a position enters, the tensor that says so, and the width it leads to."""
    for tensor in learned:
        if "HashBucketCodepointEmbedder" in tensor.name:  # CANINE
            return InputMap(kind="hashed_lookup_concat"), tensor.name, None
        if tensor.name.endswith("encoder.conv1.weight") and len(tensor.shape) == 3:  # Whisper
            return InputMap(kind="nonlinear"), tensor.name, tensor.shape[0]
    found = find_embedding(learned)
    reads = InputMap(
        kind=found.kind,
        vocab=found.rows if found.is_table else None,
        inner=found.inner if found.widening else None,
        dimensions=None if found.is_table else found.rows,
    )
    return reads, found.names[0], found.width


def _refuse_quantised_input(tensors: Tensors, learned: Tensors) -> None:
    """Say so where the table is there, but in integers, whose shape need not be the table's."""
    try:
        table = find_embedding(tensors).tables[0]
    except ValueError:  # then none is there at all
        return
    if table not in learned:
        raise ValueError(
            f"{brief(table.name)} holds {table.dtype}, quantised numbers whose shape need not be "
            "that of the table; put its config.json beside it, or give the original"
        )


def _order(stack: StoredStack, input_name: str) -> tuple[int, bool, str]:
    """First the stack whose name is closest to the input's, then encoders before decoders."""
    pairs = zip(stack.prefix.split("."), input_name.split("."), strict=False)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return -shared, stack.role == "decoder", stack.prefix


def _is_head(name: str) -> bool:
    return ends_in(name, tensor_names("heads"))


def _is_table(name: str) -> bool:
    is_norm = "norm" in name.lower()
    return _is_head(name) or (not is_norm and any(part in name for part in tensor_names("tables")))


def _left_out(tensors: Tensors) -> tuple[str, ...]:
    buffers = [tensor for tensor in tensors if not is_learned(tensor)]
    if not buffers:
        return ()
    return (
        f"{len(buffers)} stored tensors ({buffers[0].name}, ...) of "
        f"{sum(tensor.elements for tensor in buffers):,} elements are masks, indices, frequencies "
        "or quantised numbers, and not counted as parameters",
    )


def _shape_notes(stack: StoredStack, width: int) -> tuple[str, ...]:
    sizes = stack.attention
    notes = ["the feed-forward layers are gated"] if stack.is_gated else []
    if sizes.queries is not None and sizes.queries != width:
        notes.append(f"all query heads together have {sizes.queries:,} dimensions, width {width:,}")
    if sizes.queries and sizes.keys and sizes.queries != sizes.keys:
        notes.append(f"keys have {sizes.keys:,} dimensions where queries have {sizes.queries:,}")
    return tuple(notes)


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
    sizes = (
        ("rows" if found.is_table else "inputs", said, found.rows),
        ("columns", model.width if inner is None else inner, found.width),
    )
    for what, config, stored in sizes:
        if config != stored:
            yield (
                f"{brief(found.names[0])} has {stored:,} {what}, and the config says {config:,}; "
                "the numbers here are the config's"
            )


def _stack_disagreements(model: Model, tensors: Tensors) -> Iterator[str]:
    try:
        stored = find_stacks(tensors)
    except ValueError:  # shared layers, or names that are not known
        return
    left = [stack.blocks for stack in stored]
    for stack in model.stacks:
        if stack.depth is None:
            continue
        if stack.depth in left:
            left.remove(stack.depth)
            continue
        named = (f"{stack.blocks} in {brief(stack.prefix)}" for stack in stored[:MOST_STACKS])
        yield (
            f"the config says {stack.depth:,} blocks in the {stack.role} stack, and the weights "
            f"hold {', '.join(named)}; the numbers here are the config's"
        )
