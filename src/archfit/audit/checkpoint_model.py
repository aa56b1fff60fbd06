"""A model from the header of its checkpoint alone: sizes follow from names and shapes.

Heads do not, in most families: a matrix of 1,024 rows may be 8 heads or 16. They are said to be
missing, never guessed.
"""

from archfit.audit.bounded_json import shown
from archfit.audit.embedding_tensor import EmbeddingTensors, find_embedding
from archfit.audit.model import InputKind, InputMap, Model, Parameters
from archfit.audit.safetensors_header import StoredTensor
from archfit.audit.stored_blocks import StoredStack, find_stacks, is_learned
from archfit.audit.stored_shapes import attention_sizes, is_gated, stack_shape

HEADS = ("lm_head.weight", "embed_out.weight", "output.weight", "head.rows_RI", "lm_heads.0.weight")
TABLE_MARKS = (  # in names of tables, input maps and heads, outside of all blocks
    *("embed", "wte", "wpe", "shared", "position", "token_type", "cls_token", "lm_head"),
    *("feature_projection", "project_in", "project_out", "rows_RI", "mix_ID"),
)
NO_HEADS = "{}: not in a safetensors header; put config.json beside it"


def model_from_header(tensors: tuple[StoredTensor, ...], *, name: str, origin: str) -> Model:
    """The model that stored names and shapes describe; parameters are counted exactly."""
    learned = tuple(tensor for tensor in tensors if is_learned(tensor))
    _refuse_quantised_input(tensors, learned)
    reads, first_name, input_width = _input(learned)
    try:
        stacks = sorted(find_stacks(learned), key=lambda stack: _order(stack, first_name))
        shapes = tuple(stack_shape(stack, input_width=input_width) for stack in stacks)
    except ValueError as problem:
        raise ValueError(f"{origin} does not tell its shape: {problem}") from problem
    sizes = {"heads": shapes[0].heads, "head_dim": shapes[0].head_dim}
    return Model(
        name=name,
        origin=origin,
        family=None,
        modality=None,
        stacks=shapes,
        input=reads,
        is_tied=False if any(_is_head(tensor.name) for tensor in learned) else None,
        parameters=_parameters(learned, stacks),
        published_params=None,
        assumed=(),
        missing=tuple(NO_HEADS.format(size) for size, value in sizes.items() if value is None),
        doubtful=(),
        notes=(*_left_out(tensors), *_shape_notes(stacks[0], shapes[0].width)),
    )


def _input(learned: tuple[StoredTensor, ...]) -> tuple[InputMap, str, int | None]:
    """How a position enters, the tensor that says so, and the width it leads to."""
    for tensor in learned:
        if "HashBucketCodepointEmbedder" in tensor.name:  # CANINE
            return _unbounded("hashed_lookup_concat"), tensor.name, None
        if tensor.name.endswith("encoder.conv1.weight") and len(tensor.shape) == 3:  # Whisper
            return _unbounded("nonlinear"), tensor.name, tensor.shape[0]
    found = find_embedding(learned)
    return _input_map(found), found.names[0], found.width


def _refuse_quantised_input(
    tensors: tuple[StoredTensor, ...], learned: tuple[StoredTensor, ...]
) -> None:
    """Say so where the table is there, but in integers, whose shape need not be the table's."""
    try:
        table = find_embedding(tensors).tables[0]
    except ValueError:  # then none is there at all
        return
    if table not in learned:
        raise ValueError(
            f"{shown(table.name)} holds {table.dtype}, quantised numbers whose shape need not be "
            "that of the table; put its config.json beside it, or give the original"
        )


def _unbounded(kind: InputKind) -> InputMap:
    return InputMap(kind=kind, vocab=None, vocab_real=None, inner=None, dimensions=None)


def _input_map(found: EmbeddingTensors) -> InputMap:
    return InputMap(
        kind=found.kind,
        vocab=found.rows if found.is_table else None,
        vocab_real=None,
        inner=found.inner if found.widening else None,
        dimensions=None if found.is_table else found.rows,
    )


def _order(stack: StoredStack, input_name: str) -> tuple[int, bool, str]:
    """First the stack whose name is closest to the input's, then encoders before decoders."""
    pairs = zip(stack.prefix.split("."), input_name.split("."), strict=False)
    shared = 0
    for ours, theirs in pairs:
        if ours != theirs:
            break
        shared += 1
    return -shared, stack.role == "decoder", stack.prefix


def _parameters(learned: tuple[StoredTensor, ...], stacks: list[StoredStack]) -> Parameters:
    inside = {tensor.name for stack in stacks for tensor in stack.tensors.values()}
    outside = [tensor for tensor in learned if tensor.name not in inside]
    return Parameters(
        blocks=sum(stack.elements for stack in stacks),
        embedding=sum(tensor.elements for tensor in outside if _is_table(tensor.name)),
        total=sum(tensor.elements for tensor in learned),
    )


def _is_head(name: str) -> bool:
    return any(f".{name}".endswith(f".{head}") for head in HEADS)


def _is_table(name: str) -> bool:
    is_norm = "norm" in name.lower()
    return _is_head(name) or (not is_norm and any(mark in name for mark in TABLE_MARKS))


def _left_out(tensors: tuple[StoredTensor, ...]) -> tuple[str, ...]:
    buffers = [tensor for tensor in tensors if not is_learned(tensor)]
    if not buffers:
        return ()
    return (
        f"{len(buffers)} stored tensors ({buffers[0].name}, ...) of "
        f"{sum(tensor.elements for tensor in buffers):,} elements are masks, indices, frequencies "
        "or quantised numbers, and not counted as parameters",
    )


def _shape_notes(stack: StoredStack, width: int) -> tuple[str, ...]:
    sizes = attention_sizes(stack)
    notes = ["the feed-forward layers are gated"] if is_gated(stack) else []
    if sizes.queries is not None and sizes.queries != width:
        notes.append(f"all query heads together have {sizes.queries:,} dimensions, width {width:,}")
    if sizes.queries and sizes.keys and sizes.queries != sizes.keys:
        notes.append(f"keys have {sizes.keys:,} dimensions where queries have {sizes.queries:,}")
    return tuple(notes)
