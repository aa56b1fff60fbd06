"""Where a config and the weights beside it differ: padded tables, other widths, missing blocks."""

from collections.abc import Iterator
from pathlib import Path

from archfit.audit.bounded_json import shown
from archfit.audit.embedding_tensor import EmbeddingTensors, find_embedding
from archfit.audit.model import Model
from archfit.audit.safetensors_header import StoredTensor
from archfit.audit.sharded_index import read_checkpoint
from archfit.audit.stored_blocks import find_stacks, is_learned

LONGEST_PROBLEM = 200


def disagreements(model: Model, checkpoint: Path) -> tuple[str, ...]:
    """A sentence for each size that stored shapes contradict; of the weights none is read.

    Files that cannot be compared are a sentence, too: a config is audited without its weights.
    """
    try:
        tensors = read_checkpoint(checkpoint).tensors
    except (OSError, ValueError) as problem:
        return (f"the weights were not compared with it: {problem!s:.{LONGEST_PROBLEM}}",)
    learned = tuple(tensor for tensor in tensors if is_learned(tensor))
    return (*_of_the_input(model, learned), *_of_the_stacks(model, learned))


def _of_the_input(model: Model, tensors: tuple[StoredTensor, ...]) -> Iterator[str]:
    try:
        found = find_embedding(tensors)
    except ValueError:  # no name that is known: nothing to compare
        return
    said = model.input.vocab if found.is_table else model.input.dimensions
    if said is None or found.kind == "sum_of_lookups":
        return
    rows = "rows" if found.is_table else "inputs"
    sizes = ((rows, said, found.rows), ("columns", _columns(model, found), found.width))
    for what, config, stored in sizes:
        if config is not None and config != stored:
            yield (
                f"{shown(found.names[0])} has {stored:,} {what}, and the config says {config:,}; "
                "the numbers here are the config's"
            )


def _columns(model: Model, found: EmbeddingTensors) -> int | None:
    """What comes out of the embedding: the inner width, where what widens it was not found."""
    if model.input.inner is not None and not found.widening:
        return model.input.inner
    return model.width


def _of_the_stacks(model: Model, tensors: tuple[StoredTensor, ...]) -> Iterator[str]:
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
        there = ", ".join(f"{stack.blocks} in {shown(stack.prefix)}" for stack in stored[:4])
        yield (
            f"the config says {stack.depth:,} blocks in the {stack.role} stack, and the weights "
            f"hold {there}; the numbers here are the config's"
        )
