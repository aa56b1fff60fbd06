"""Why a format cannot express a shape; each is the middle of a sentence, or nothing."""

from archfit.export.shape import ExportShape
from archfit.spec import Factorised


def heads_fill_the_width(shape: ExportShape) -> tuple[str, ...]:
    """For formats in which head_dim is width / heads."""
    if shape.heads * shape.head_dim == shape.width:
        return ()
    return (
        f"heads x head_dim = {shape.heads} x {shape.head_dim} = {shape.heads * shape.head_dim} "
        f"is not width = {shape.width}",
    )


def every_head_has_its_keys(shape: ExportShape) -> tuple[str, ...]:
    """For formats without groups of key-value heads."""
    if shape.kv_heads == shape.heads:
        return ()
    return (f"kv_heads = {shape.kv_heads} is not heads = {shape.heads}",)


def full_embedding(shape: ExportShape) -> tuple[str, ...]:
    """For formats whose embedding is one matrix."""
    if not isinstance(shape.embedding, Factorised):
        return ()
    return (f"its embedding is one matrix, not factorised to rank = {shape.embedding.inner}",)


def even_heads(shape: ExportShape) -> tuple[str, ...]:
    """For formats that rotate pairs of a head's coordinates."""
    if shape.head_dim % 2 == 0:
        return ()
    return (f"its rotary positions need an even head_dim, not {shape.head_dim}",)
