"""The stacks of blocks that the names of stored tensors spell: `model.layers.0.` and so on."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from archfit.audit.bounded_json import shown
from archfit.audit.safetensors_header import StoredTensor

CONTAINERS = ("layers", "layer", "h", "block", "blocks", "resblocks", "blk")
SHARED = "albert_layer_groups"  # applied again and again; no header says how often
LONGEST_NUMBER = 5  # digits
ROLES = ("vision", "visual", "encoder", "decoder", "text")  # as parts of a name, in this order
NOT_LEARNED = ("inv_freq", "masked_bias", "running_mean", "running_var", "final_logits_bias")
NUMBERS = ("F", "BF", "C")  # how dtypes of trained numbers start; masks and indices are integers


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredStack:
    """Blocks that are numbered under one name."""

    prefix: str  # "model.layers"
    blocks: int
    tensors: dict[str, StoredTensor]  # by the name within its block, "0." and so on before it

    @property
    def role(self) -> str:
        """What the name says of it; "blocks" if nothing."""
        return next((role for role in ROLES if role in self.prefix), "blocks")

    @property
    def elements(self) -> int:
        """Numbers in all of its blocks."""
        return sum(tensor.elements for tensor in self.tensors.values())

    @property
    def weights(self) -> int:
        """Numbers in its matrices: what has two axes or more."""
        return sum(t.elements for t in self.tensors.values() if len(t.shape) >= 2)


def is_learned(tensor: StoredTensor) -> bool:
    """Whether it is a parameter; causal masks and rotary frequencies are stored beside them."""
    last = tensor.name.rpartition(".")[2]
    is_mask = last == "bias" and len(tensor.shape) == 4 and tensor.shape[:2] == (1, 1)
    is_kept = last not in NOT_LEARNED and not is_mask
    return tensor.dtype.startswith(NUMBERS) and tensor.elements > 0 and is_kept


def find_stacks(tensors: Iterable[StoredTensor]) -> tuple[StoredStack, ...]:
    """The stacks, by name; a sentence if there are none, or if blocks of one are missing."""
    found: dict[str, dict[str, StoredTensor]] = defaultdict(dict)
    for tensor in tensors:
        prefix, inside = _split(tensor.name)
        if prefix:
            found[prefix][inside] = tensor
    if not found:
        raise ValueError(
            "no tensor has the name of a numbered block (layers.0., h.0., block.0., ...), so it is "
            "no Transformer with known names; put its config.json beside it"
        )
    return tuple(
        StoredStack(prefix=prefix, blocks=_count(prefix, inside), tensors=inside)
        for prefix, inside in sorted(found.items())
    )


def _split(name: str) -> tuple[str, str]:
    """The stack that a tensor is in and its name there; the first number tells, so experts and
    sublayers do not. Both are empty outside of all stacks."""
    parts = name.split(".")
    if SHARED in parts:
        raise ValueError(
            f"{shown(name)} belongs to layers that ALBERT applies again and again, and a header "
            "does not say how often; put its config.json beside it"
        )
    for at, part in enumerate(parts[:-2], start=1):
        number = parts[at]
        if part in CONTAINERS and number.isdecimal() and len(number) <= LONGEST_NUMBER:
            return ".".join(parts[:at]), f"{int(number)}.{'.'.join(parts[at + 1 :])}"
    return "", ""


def _count(prefix: str, inside: dict[str, StoredTensor]) -> int:
    numbers = {int(name.partition(".")[0]) for name in inside}
    absent = set(range(max(numbers) + 1)) - numbers
    if absent:
        raise ValueError(
            f"block {min(absent)} of {shown(prefix)} is not there, though {max(numbers)} is: this "
            "is one shard of several; give the .safetensors.index.json of all"
        )
    return len(numbers)
