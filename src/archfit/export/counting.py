"""Parameters of the blocks that formats share."""

from archfit.export.shape import ExportShape


def biased_blocks(shape: ExportShape) -> int:
    """Blocks of GPT-2's kind and the last norm: layer norms, two matrices, biases everywhere."""
    units = shape.hidden_units(gated=False)
    into = (shape.heads + 2 * shape.kv_heads) * shape.head_dim  # queries, keys, values
    attention = shape.width * into + into + shape.heads * shape.head_dim * shape.width + shape.width
    feed_forward = 2 * shape.width * units + units + shape.width
    norms = 4 * shape.width
    return shape.depth * (attention + feed_forward + norms) + 2 * shape.width


def gated_blocks(shape: ExportShape, *, query_key_norm: bool) -> int:
    """Blocks of Llama's kind and the last norm: scales only, three matrices, no biases."""
    into = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    attention = shape.width * (into + shape.heads * shape.head_dim)
    attention += 2 * shape.head_dim if query_key_norm else 0
    feed_forward = 3 * shape.width * shape.hidden_units(gated=True)
    return shape.depth * (attention + feed_forward + 2 * shape.width) + shape.width


def padded(rows: int, multiple: int) -> int:
    """Rows of a table that a tool pads to a multiple."""
    return -(-rows // multiple) * multiple
