"""How the rows of the built-in table are counted: the family of each, and what rows leave out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from archfit.audit.decoder_families import LLAMA, T5
from archfit.audit.families import FAMILIES, UNKNOWN
from archfit.audit.family import Family, Sizes
from archfit.audit.family_parts import GPT2_BLOCK, LLAMA_BLOCK, NONE, norms, without_final_norm


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A size that rows of a family lack, and where it is known from."""

    value: int  # or, where `is_multiple`, a multiple of the width
    is_multiple: bool
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Kin:
    """The family whose blocks a row has."""

    model_type: str | None  # whose class says whether the head is tied; None: nothing does
    family: Family
    output: str
    facts: Mapping[str, Fact]
    has_cross_attention: bool  # in a decoder that stands alone in the table


def _kin(model_type: str | None, family: Family, output: str, /, **facts: Fact) -> Kin:
    return Kin(
        model_type=model_type,
        family=family,
        output=output,
        facts=facts,
        has_cross_attention=False,
    )


def _as(model_type: str, output: str, /, **facts: Fact) -> Kin:
    return _kin(model_type, FAMILIES[model_type], output, **facts)


def _number(value: int, source: str) -> Fact:
    return Fact(value=value, is_multiple=False, source=source)


def _multiple(value: int, source: str) -> Fact:
    return Fact(value=value, is_multiple=True, source=source)


def _distances(sizes: Sizes) -> int:
    """Transformer-XL multiplies relative positions by a matrix of their own in every layer."""
    return sizes["width"] * sizes["attention"]


def _eight_heads(sizes: Sizes) -> int:
    """EvaByte predicts eight bytes at once."""
    return 8 * sizes["vocab"] * sizes["width"]


_ONE_TABLE = {"": ()}
_PLAIN = replace(
    UNKNOWN,
    is_square=True,
    outputs=_ONE_TABLE,
    left_out="biases, norms, positions and a head of its own, which the page does not speak of",
)
_GOPHER = replace(_PLAIN, block=replace(GPT2_BLOCK, norm=1, biases=NONE, matrices=(_distances,)))
_PALM = replace(LLAMA, block=replace(LLAMA_BLOCK, norms=1))
_EVABYTE = replace(LLAMA, outputs={"": (_eight_heads,)}, left_out="EVA's pooling vectors")
_MUSIC = replace(
    UNKNOWN, is_square=True, embedding=(), left_out="everything but the matrices of its blocks"
)
_WIDE = "usual in this family; the row has none"
_FOUR_TIMES = _multiple(4, _WIDE)
_TWO_TYPES = _number(2, "default of its class; the row has none")
_BUCKETS = _number(32, "default of its class; the row has none")

_WHISPER = {
    "feed_forward": _FOUR_TIMES,
    "vocab": _number(51865, "as in the config of whisper-tiny"),
    "mel_bins": _number(80, "Whisper before v3, as the row's notes say"),
    "source_positions": _number(1500, "as in the config of whisper-tiny"),
}

KIN: dict[str, Kin] = {  # by family of the table
    "albert": _as("albert", "Model", types=_TWO_TYPES),
    "beit": _kin("beit", replace(FAMILIES["beit"], left_out="its relative positions"), "Model"),
    "bert": _as("bert", "Model", types=_TWO_TYPES),
    "bloom": _as("bloom", "ForCausalLM"),
    "byt5": _as("t5", "ForConditionalGeneration", buckets=_BUCKETS),
    "canine": _as("canine", "Model"),
    "chronos": _as("t5", "ForConditionalGeneration", buckets=_BUCKETS),
    "deberta": _as(
        "deberta-v2", "Model", types=_number(0, "default of its class; the row has none")
    ),
    "decision_transformer": _as("decision_transformer", "Model"),
    "deit": _as("deit", "Model"),
    "dnabert": _as("bert", "Model", types=_TWO_TYPES),
    "electra": _as("electra", "ForPreTraining", types=_TWO_TYPES),
    "esm": _as("esm", "ForMaskedLM", feed_forward=_FOUR_TIMES),
    "evabyte": _kin(None, _EVABYTE, ""),
    "falcon": _as("falcon", "ForCausalLM"),
    "gemma": _as("gemma", "ForCausalLM"),
    "gopher": _kin(
        None,
        _GOPHER,
        "",
        vocab=_number(32000, "for the count alone: Rae et al. 2021, general knowledge"),
    ),
    "gpt2": _as("gpt2", "LMHeadModel"),
    "gpt3": _as("gpt2", "LMHeadModel"),
    "gpt_neo": _as("gpt_neo", "ForCausalLM"),
    "gpt_neox": _as("gpt_neox", "ForCausalLM"),
    "gptj": _as("gptj", "ForCausalLM"),
    "hubert": _as("hubert", "Model"),
    "imagegpt": _as("imagegpt", "ForCausalImageModeling"),
    "jukebox": _kin(None, _MUSIC, ""),
    "jurassic1": _kin(None, _PLAIN, "", feed_forward=_FOUR_TIMES),
    "llama": _as("llama", "ForCausalLM"),
    "marin_plantcad": _kin(None, _PLAIN, ""),
    "mistral": _as("mistral", "ForCausalLM"),
    "mobilellm": _as("llama", "ForCausalLM"),
    "mpt": _as("mpt", "ForCausalLM"),
    "musicgen": replace(_kin(None, _MUSIC, ""), has_cross_attention=True),
    "nucleotide_transformer": _as("esm", "ForMaskedLM"),
    "olmo": _as("olmo", "ForCausalLM"),
    "opt": _as("opt", "ForCausalLM", feed_forward=_FOUR_TIMES),
    "palm": _kin(None, _PALM, "ForCausalLM"),
    "phi": _as("phi", "ForCausalLM"),
    "progen2": _as("codegen", "ForCausalLM"),
    "prottrans": _as("bert", "Model", types=_TWO_TYPES),
    "pythia": _as("gpt_neox", "ForCausalLM"),
    "qwen2.5": _as("qwen2", "ForCausalLM"),
    "qwen3": _as("qwen3", "ForCausalLM"),
    "roberta": _as("roberta", "Model", types=_number(1, "general knowledge; the row has none")),
    "smollm2": _as("llama", "ForCausalLM"),
    "sparse_transformer": _kin(None, _PLAIN, "", feed_forward=_FOUR_TIMES),
    "t5": _as("t5", "ForConditionalGeneration", buckets=_BUCKETS),
    "t5_efficient": _as("t5", "ForConditionalGeneration", buckets=_BUCKETS),
    "ul2": _as("t5", "ForConditionalGeneration", buckets=_BUCKETS),
    "vit": _as("vit", "Model"),
    "vit_mae": _as("vit_mae", "Model"),
    "wav2vec2": _as("wav2vec2", "Model"),
    "whisper": _as("whisper", "ForConditionalGeneration", **_WHISPER),
}

_GROUPED_FALCON = _kin("falcon", norms(2)(FAMILIES["falcon"]), "ForCausalLM")
KIN_BY_START: dict[str, Kin] = {  # by the start of the row's id, where it differs from its family
    "falcon-40b": _GROUPED_FALCON,
    "falcon-180b": _GROUPED_FALCON,
    "gemma-2-": _as("gemma2", "ForCausalLM"),
    "gemma-3-": _as("gemma3_text", "ForCausalLM"),
    "olmo2-": _as("olmo2", "ForCausalLM"),
    "opt-350m": _kin("opt", without_final_norm(FAMILIES["opt"]), "ForCausalLM"),
    "phi-3-": _as("phi3", "ForCausalLM"),
    "prot-t5-": _kin("t5", T5, "ForConditionalGeneration", buckets=_BUCKETS),
    "qwen3-235b": _as("qwen3_moe", "ForCausalLM"),
    "whisper-large-v3": _as(
        "whisper",
        "ForConditionalGeneration",
        **_WHISPER
        | {
            "vocab": _number(51866, "v3 has one language more, general knowledge"),
            "mel_bins": _number(128, "as the row's notes say"),
        },
    ),
}

# Small models of these tie their heads and large ones do not, so the class's default says nothing.
TIE_VARIES = ("llama-3.2-", "olmo-", "qwen2.5-", "qwen3-", "smollm2-")

CAUSES: dict[str, str] = {  # why a count and the page's figure differ by more than 3 %
    "whisper-tiny": "the page says 39M; the class with the sizes of its config has 37.8M",
    "sparse-transformer-cifar10": "the paper halves feed-forward, queries and keys here, which the "
    "row's sizes do not show",
    "esm2-8m": "the page rounds to one digit: 8M for 7.5M",
    "esm2-3b": "the page rounds to one digit: 3B for 2.84B",
    "albert-large-v1": "the page cuts 17.7M down to 17M",
    "deberta-v2-xxlarge": "the page rounds 1.56B down to 1.5B",
    "gpt3-xl": "24 heads are printed, but the printed 1.3B needs 16",
}
DOUBTFUL: dict[str, tuple[str, ...]] = {"gpt3-xl": ("heads",)}
NOTES: dict[str, str] = {
    "gpt-j-6b": "the page's 6,053,381,344 holds 610 * 4,096 more than the model: exactly what "
    "8 devices add that each keep norms, output biases and an embedding bias of their own",
}


def kin_of(identifier: str, family: str) -> Kin:
    """How a row is counted: by the start of its id, else by its family."""
    starts = [start for start in KIN_BY_START if identifier.startswith(start)]
    if starts:
        return KIN_BY_START[max(starts, key=len)]
    return KIN[family]
