"""Sizes of one stack that follow from the shapes of its tensors; None where they do not."""

from collections import Counter
from dataclasses import dataclass

from archfit.audit.bounded_json import shown
from archfit.audit.model import Stack
from archfit.audit.safetensors_header import StoredTensor
from archfit.audit.stored_blocks import StoredStack

QUERIES = ("q_proj", "query", "q_lin", "q", "wq", "q_attn")
KEYS = ("k_proj", "key", "k_lin", "k", "wk", "k_attn")
FEED_FORWARD_OUT = (  # from the hidden units back to the width
    "down_proj",  # Llama, Qwen, Gemma, Mistral, Phi-3
    "w2",  # the original Llama, Mixtral
    "fc2",  # OPT, BART, Whisper, CLIP
    "mlp.c_proj",  # GPT-2
    "dense_4h_to_h",  # GPT-NeoX, BLOOM, Falcon
    "output.dense",  # BERT, ViT, ESM; not attention.output.dense
    "DenseReluDense.wo",  # T5
    "lin2",  # DistilBERT
    "output_dense",  # wav2vec2
    "fc_out",  # GPT-J
    "feed_forward.down",  # archfit
)
GATES = ("gate_proj", "gate_up_proj", "w3", "wi_1")


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


def stack_shape(stack: StoredStack, *, input_width: int | None) -> Stack:
    """The stack as far as a header tells; `input_width` is that of the embedding, where found."""
    width = _width(stack, input_width)
    attention = attention_sizes(stack)
    return Stack(
        role=stack.role,
        depth=stack.blocks,
        width=width,
        heads=attention.heads,
        head_dim=attention.head_dim,
        kv_heads=attention.kv_heads,
        feed_forward=_feed_forward(stack, width),
        block_weights=stack.weights,
        distinct_blocks=stack.blocks,
    )


def attention_sizes(stack: StoredStack) -> AttentionSizes:
    """Rows of q and k; heads only if a norm over one head or a bias for each head is stored."""
    queries, keys = _rows(stack, QUERIES), _rows(stack, KEYS)
    heads, head_dim = _heads(stack, queries) if queries else (None, None)
    return AttentionSizes(queries=queries, keys=keys, heads=heads, head_dim=head_dim)


def is_gated(stack: StoredStack) -> bool:
    """Whether the feed-forward layers have a third matrix."""
    return any(_ends_in(name, GATES) for name in stack.tensors)


def _heads(stack: StoredStack, queries: int) -> tuple[int | None, int | None]:
    for name, tensor in stack.tensors.items():
        sizes = tensor.shape
        if name.endswith("q_norm.weight") and len(sizes) == 1 and _divides(sizes[0], queries):
            return queries // sizes[0], sizes[0]  # Qwen3, Gemma 3; OLMo 2 norms all heads as one
        if name.endswith("relative_attention_bias.weight") and len(sizes) == 2:  # T5
            heads = sizes[1]
            return (
                (heads, queries // heads) if heads == 1 or _divides(heads, queries) else (None,) * 2
            )
    return None, None


def _divides(part: int, whole: int) -> bool:
    return 0 < part < whole and whole % part == 0


def _rows(stack: StoredStack, names: tuple[str, ...]) -> int | None:
    matrices = _matrices(stack)
    return next((tensor.shape[0] for name, tensor in matrices if _ends_in(name, names)), None)


def _width(stack: StoredStack, input_width: int | None) -> int:
    """The size that most matrices share; the embedding's decides between equals."""
    counts = Counter(size for _, t in _matrices(stack) for size in set(t.shape))
    most = max(counts.values(), default=0)
    often = [size for size, count in counts.items() if count == most]
    if input_width in often and input_width is not None:
        return input_width
    if len(often) != 1:
        raise ValueError(
            f"the matrices of {shown(stack.prefix)} share no one size that could be its width; "
            "put its config.json beside it"
        )
    return often[0]


def _feed_forward(stack: StoredStack, width: int) -> int | None:
    out = [
        (name, tensor)
        for name, tensor in stack.tensors.items()
        if _ends_in(name, FEED_FORWARD_OUT) and "attention.output.dense" not in name
    ]
    experts = [(name, tensor) for name, tensor in out if "experts" in name]
    for _, tensor in experts or out:
        sizes = tensor.shape[-2:]  # experts may be stored as one tensor of three axes
        if len(sizes) == 2 and width in sizes:
            return sizes[0] if sizes[1] == width else sizes[1]
    return None


def _matrices(stack: StoredStack) -> list[tuple[str, StoredTensor]]:
    return [(name, tensor) for name, tensor in stack.tensors.items() if len(tensor.shape) == 2]


def _ends_in(name: str, endings: tuple[str, ...]) -> bool:
    """Whether a layer of one of these names holds it, as its weight or by itself."""
    layer = f".{name.removesuffix('.weight')}"
    return any(layer.endswith(f".{ending}") for ending in endings)
