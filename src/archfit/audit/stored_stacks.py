"""Stacks of blocks that the names of stored tensors spell, and the sizes that their shapes tell.

`model.layers.0.` and so on. A size is None where shapes do not tell it: heads, in most families.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from archfit.audit.checkpoint_file import StoredTensor
from archfit.audit.families import tensor_names
from archfit.audit.model import Stack
from archfit.spec.errors import brief

SHARED = "albert_layer_groups"  # applied again and again; no header says how often
LONGEST_NUMBER = 5  # digits
ROLES = ("vision", "visual", "encoder", "decoder", "text")  # as parts of a name, in this order
NUMBERS = ("F", "BF", "C")  # how dtypes of trained numbers start; masks and indices are integers


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionSizes:
    """What q and k tell of the heads."""

    queries: int | None  # H d_a
    keys: int | None
    heads: int | None
    head_dim: int | None

    @property
    def kv_heads(self) -> int | None:
        """Heads of keys and values."""
        if self.head_dim is None or self.keys is None or self.keys % self.head_dim:
            return None
        return self.keys // self.head_dim


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
    def matrices(self) -> list[tuple[str, StoredTensor]]:
        """What has two axes, by the name within the stack."""
        return [(name, tensor) for name, tensor in self.tensors.items() if len(tensor.shape) == 2]

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward layers have a third matrix."""
        return any(_is_layer(name, tensor_names("gates")) for name in self.tensors)

    @property
    def attention(self) -> AttentionSizes:
        """Rows of q and k; heads only if a norm over one head or a bias for each is stored."""
        queries, keys = self._rows("queries"), self._rows("keys")
        heads, head_dim = self._heads(queries) if queries else (None, None)
        return AttentionSizes(queries=queries, keys=keys, heads=heads, head_dim=head_dim)

    def shape(self, *, input_width: int | None) -> Stack:
        """The stack as far as a header tells; `input_width` is the embedding's, where found."""
        width, attention = self._width(input_width), self.attention
        return Stack(
            role=self.role,
            depth=self.blocks,
            width=width,
            heads=attention.heads,
            head_dim=attention.head_dim,
            kv_heads=attention.kv_heads,
            feed_forward=self._feed_forward(width),
            block_weights=sum(t.elements for t in self.tensors.values() if len(t.shape) >= 2),
            distinct_blocks=self.blocks,
        )

    def _rows(self, part: str) -> int | None:
        names = tensor_names(part)
        return next((t.shape[0] for name, t in self.matrices if _is_layer(name, names)), None)

    def _heads(self, queries: int) -> tuple[int | None, int | None]:
        for name, tensor in self.tensors.items():
            sizes = tensor.shape
            if name.endswith("q_norm.weight") and len(sizes) == 1 and _divides(sizes[0], queries):
                # Qwen3, Gemma 3; OLMo 2 norms all heads as one
                return queries // sizes[0], sizes[0]
            if name.endswith("relative_attention_bias.weight") and len(sizes) == 2:  # T5
                is_told = sizes[1] == 1 or _divides(sizes[1], queries)
                return (sizes[1], queries // sizes[1]) if is_told else (None, None)
        return None, None

    def _width(self, input_width: int | None) -> int:
        """The size that most matrices share; the embedding's decides between equals."""
        counts = Counter(size for _, tensor in self.matrices for size in set(tensor.shape))
        most = max(counts.values(), default=0)
        often = [size for size, count in counts.items() if count == most]
        if input_width is not None and input_width in often:
            return input_width
        if len(often) != 1:
            raise ValueError(
                f"the matrices of {brief(self.prefix)} share no one size that could be its width; "
                "put its config.json beside it"
            )
        return often[0]

    def _feed_forward(self, width: int) -> int | None:
        names = tensor_names("feed_forward_out")
        held = [name for name in self.tensors if _is_layer(name, names)]
        out = [name for name in held if "attention.output.dense" not in name]
        for name in [name for name in out if "experts" in name] or out:
            sizes = self.tensors[name].shape[
                -2:
            ]  # experts may be stored as one tensor of three axes
            if len(sizes) == 2 and width in sizes:
                return sizes[0] if sizes[1] == width else sizes[1]
        return None


def is_learned(tensor: StoredTensor) -> bool:
    """Whether it is a parameter; causal masks and rotary frequencies are stored beside them."""
    last = tensor.name.rpartition(".")[2]
    is_mask = last == "bias" and len(tensor.shape) == 4 and tensor.shape[:2] == (1, 1)
    is_kept = last not in tensor_names("not_learned") and not is_mask
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
    return tuple(_stack(prefix, inside) for prefix, inside in sorted(found.items()))


def _split(name: str) -> tuple[str, str]:
    """The stack that a tensor is in and its name there; the first number tells, so experts and
    sublayers do not. Both are empty outside of all stacks."""
    parts = name.split(".")
    if SHARED in parts:
        raise ValueError(
            f"{brief(name)} belongs to layers that ALBERT applies again and again, and a header "
            "does not say how often; put its config.json beside it"
        )
    for at, part in enumerate(parts[:-2], start=1):
        number = parts[at]
        if part in tensor_names("blocks") and number.isdecimal() and len(number) <= LONGEST_NUMBER:
            return ".".join(parts[:at]), f"{int(number)}.{'.'.join(parts[at + 1 :])}"
    return "", ""


def _stack(prefix: str, inside: dict[str, StoredTensor]) -> StoredStack:
    numbers = {int(name.partition(".")[0]) for name in inside}
    if absent := set(range(max(numbers) + 1)) - numbers:
        raise ValueError(
            f"block {min(absent)} of {brief(prefix)} is not there, though {max(numbers)} is: this "
            "is one shard of several; give the .safetensors.index.json of all"
        )
    return StoredStack(prefix=prefix, blocks=len(numbers), tensors=inside)


def _divides(part: int, whole: int) -> bool:
    return 0 < part < whole and whole % part == 0


def _is_layer(name: str, endings: tuple[str, ...]) -> bool:
    """Whether a layer of one of these names holds it, as its weight or by itself."""
    layer = f".{name.removesuffix('.weight')}"
    return any(layer.endswith(f".{ending}") for ending in endings)
