"""How a position enters the model that a config describes, and the sizes outside its stacks."""

from archfit.audit.fields import pair, wholes
from archfit.audit.model import InputMap
from archfit.audit.reader import Reader
from archfit.audit.spellings import SPELLINGS

_OF_A_STACK = (
    "kv_heads",
    "head_dim",
    "experts",
    "expert_feed_forward",
    "shared_feed_forward",
    "groups",
    "inner_groups",
)
_MAY_BE_ZERO = ("types",)
_BYTES = 256 + 3  # bytes, and ByT5's padding, end and unknown
_TOKENS = ("lookup", "factorised_lookup", "nonlinear")  # Whisper's decoder has a table, too


def outside_sizes(reader: Reader, width: int) -> dict[str, int]:
    """The sizes that the parts outside the stacks need; what is not there is noted as missing."""
    sizes: dict[str, int] = {}
    family = reader.family
    names = [name for name in family.needs if name not in _OF_A_STACK]
    for name in ["vocab", *names] if family.input in _TOKENS else names:
        found = reader.size(name, least=0 if name in _MAY_BE_ZERO else 1)
        if found is None and name == "inner":
            found = width  # the class takes the width where the key is absent or null
        if found is None:
            reader.lack(name)
        else:
            sizes[name] = found
    if family.input == "linear_patch":
        sizes |= _patches(reader)
    if family.input == "linear_on_conv_features":
        sizes |= _stem(reader)
    return sizes


def input_map(reader: Reader, sizes: dict[str, int], width: int) -> InputMap:
    """The way in, with what bounds the rank of the inputs."""
    kind, inner = reader.family.input, sizes.get("inner")
    if kind == "lookup" and inner is not None and inner != width:
        kind = "factorised_lookup"
    vocab = sizes.get("vocab")
    is_byte_model = reader.document.get("tokenizer_class") == "ByT5Tokenizer"
    dimensions = sizes.get("patch_dimensions", sizes.get("stem_last"))
    if kind == "linear_continuous":
        dimensions = _continuous(sizes)
    return InputMap(
        kind=kind,
        vocab=vocab,
        vocab_real=min(_BYTES, vocab) if is_byte_model and vocab is not None else None,
        inner=inner,
        dimensions=dimensions,
    )


def _continuous(sizes: dict[str, int]) -> int | None:
    """State, action and return of one time step."""
    if "state_dimensions" not in sizes or "action_dimensions" not in sizes:
        return None
    return sizes["state_dimensions"] + sizes["action_dimensions"] + 1


def _patches(reader: Reader) -> dict[str, int]:
    channels = reader.size("channels")
    patch, image = reader.value(SPELLINGS["patch_size"]), reader.value(SPELLINGS["image_size"])
    for name, found in (("channels", channels), ("patch_size", patch), ("image_size", image)):
        if found is None:
            reader.lack(name)
    sizes: dict[str, int] = {}
    if patch is None:
        return sizes
    height, width = pair(*patch)
    if channels is not None:
        sizes["patch_dimensions"] = height * width * channels
    if image is not None:
        image_height, image_width = pair(*image)
        down, across = image_height // height, image_width // width
        sizes["patches"] = down * across
        # offsets between two patches, and three for those from, to and of the class token
        sizes["patch_offsets"] = max(0, 2 * down - 1) * max(0, 2 * across - 1) + 3
    return sizes


def _stem(reader: Reader) -> dict[str, int]:
    """Sums over the convolutions of a stem that starts from one channel of sound."""
    found = reader.value(SPELLINGS["stem_channels"])
    kernels = reader.value(SPELLINGS["stem_kernels"])
    if found is None:
        reader.lack("stem_channels")
        return {}
    channels = wholes(*found)
    sizes = {
        "stem_channels": sum(channels),
        "stem_first": channels[0],
        "stem_last": channels[-1],
    }
    if kernels is None:
        reader.lack("stem_kernels")
        return sizes
    taps = wholes(*kernels)
    if len(taps) != len(channels):
        raise ValueError(
            f"conv_kernel has {len(taps)} entries and conv_dim {len(channels)}; "
            "give both for every convolution"
        )
    layers = zip((1, *channels), channels, taps, strict=False)
    return sizes | {"stem_weights": sum(before * after * tap for before, after, tap in layers)}
