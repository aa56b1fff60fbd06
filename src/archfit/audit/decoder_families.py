"""Families that predict the next token, and encoder-decoders of text."""

from dataclasses import replace

from archfit.audit import pieces
from archfit.audit.family import Family, StackPlan
from archfit.audit.family_parts import (
    ALL,
    DECODER,
    FEED_FORWARD,
    GPT2_BLOCK,
    LLAMA_BLOCK,
    NONE,
    block_vectors,
    full_key_value_heads,
    gated,
    grouped_key_value_heads,
    head_norm,
    norms,
    switch,
    ungated,
    with_biases,
    with_cross_attention,
    without_biases,
    without_final_norm,
    without_norm_parameters,
)

_CAUSAL = {"ForCausalLM": (pieces.untied_head,), "Model": ()}
_BIASED_HEAD = {"ForCausalLM": (pieces.untied_head, pieces.head_bias), "Model": ()}
_ATTENTION_BIAS = switch("attention_bias", True, with_biases("query", "key", "value", "out"))
_MLP_BIAS = switch("mlp_bias", True, with_biases("feed_forward"))
CROSSES = switch("add_cross_attention", True, with_cross_attention)

GPT2 = Family(
    config_class="GPT2Config",
    input="lookup",
    modality=None,
    stacks=DECODER,
    block=GPT2_BLOCK,
    is_square=True,
    feed_forward_multiple=4,
    fixed_kv_heads=None,
    has_final_norm=True,
    inside_stack=(),
    needs=("positions",),
    embedding=(pieces.token_table, pieces.position_table),
    outputs={"LMHeadModel": (pieces.untied_head,), "Model": ()},
    switches=(),
    is_exact=True,
    left_out=None,
)
_NO_POSITIONS = replace(GPT2, needs=(), embedding=(pieces.token_table,), outputs=_CAUSAL)

LLAMA = replace(
    _NO_POSITIONS,
    config_class="LlamaConfig",
    block=LLAMA_BLOCK,
    feed_forward_multiple=None,
    needs=("kv_heads", "head_dim"),
    switches=(_ATTENTION_BIAS, _MLP_BIAS),
)
_MISTRAL = replace(LLAMA, config_class="MistralConfig", switches=())
_QWEN3 = replace(
    LLAMA,
    config_class="Qwen3Config",
    block=replace(LLAMA_BLOCK, head_norm="head"),
    is_square=False,
    switches=(_ATTENTION_BIAS,),
)
_GEMMA = replace(LLAMA, config_class="GemmaConfig", is_square=False, switches=(_ATTENTION_BIAS,))
_GEMMA2 = replace(_GEMMA, config_class="Gemma2Config", block=replace(LLAMA_BLOCK, norms=4))
_MIXTURE = ("kv_heads", "head_dim", "experts", "expert_feed_forward")

_T5_ENCODER = StackPlan(
    role="encoder",
    has_cross_attention=False,
    keys={"depth": ("num_layers", "num_hidden_layers", "n_layer")},
)
_T5_DECODER = StackPlan(
    role="decoder", has_cross_attention=True, keys={"depth": ("num_decoder_layers",)}
)
T5 = replace(
    LLAMA,
    config_class="T5Config",
    stacks=(_T5_ENCODER, _T5_DECODER),
    block=replace(LLAMA_BLOCK, is_gated=False),
    is_square=False,
    inside_stack=(pieces.relative_table,),
    needs=("head_dim", "buckets"),
    outputs={
        "ForConditionalGeneration": (pieces.untied_head,),
        "WithLMHeadModel": (pieces.untied_head,),
        "Model": (),
    },
    switches=(
        switch("feed_forward_proj", "gated-gelu", gated),
        switch("feed_forward_proj", "gated-silu", gated),
        switch("is_gated_act", True, gated),
    ),
)


def _two_stacks(cross_decoder: bool) -> StackPlan:
    role = "decoder" if cross_decoder else "encoder"
    keys = {
        "depth": (f"{role}_layers",),
        "heads": (f"{role}_attention_heads",),
        "feed_forward": (f"{role}_ffn_dim",),
    }
    return StackPlan(role=role, has_cross_attention=cross_decoder, keys=keys)


ENCODER_AND_DECODER = (_two_stacks(False), _two_stacks(True))

_OPT = replace(
    GPT2,
    config_class="OPTConfig",
    feed_forward_multiple=None,
    needs=("positions", "inner"),
    embedding=(
        pieces.token_table,
        pieces.position_table,
        pieces.two_more_positions,
        pieces.projections_if_narrow,
    ),
    outputs=_CAUSAL,
    switches=(
        switch("do_layer_norm_before", False, without_final_norm),
        switch("_remove_final_layer_norm", True, without_final_norm),
        switch("enable_bias", False, without_biases(*ALL)),
        switch("layer_norm_elementwise_affine", False, without_norm_parameters),
    ),
)
_FALCON = replace(
    _NO_POSITIONS,
    config_class="FalconConfig",
    block=replace(GPT2_BLOCK, norms=1, biases=NONE),
    fixed_kv_heads=1,
    switches=(
        switch("multi_query", False, full_key_value_heads),
        switch("new_decoder_architecture", True, grouped_key_value_heads),
        switch("new_decoder_architecture", True, norms(2)),
        switch("num_ln_in_parallel_attn", 1, norms(1)),
        switch("num_ln_in_parallel_attn", 2, norms(2)),
        switch("parallel_attn", False, norms(2)),
        switch("bias", True, with_biases(*ALL)),
    ),
)
_BART = replace(
    GPT2,
    config_class="BartConfig",
    stacks=ENCODER_AND_DECODER,
    feed_forward_multiple=None,
    has_final_norm=False,
    embedding=(
        pieces.token_table,
        pieces.untied_tables,
        *(2 * (pieces.position_table, pieces.two_more_positions, pieces.layer_norm)),
    ),
    outputs={"ForConditionalGeneration": (pieces.untied_head,), "Model": ()},
)
# Their positions are computed, but stored.
_PEGASUS = replace(
    _BART,
    config_class="PegasusConfig",
    has_final_norm=True,
    embedding=(pieces.token_table, pieces.untied_tables, *(2 * (pieces.position_table,))),
)
_GPTJ = replace(
    _NO_POSITIONS,
    config_class="GPTJConfig",
    block=replace(GPT2_BLOCK, norms=1, biases=FEED_FORWARD),
    outputs=_BIASED_HEAD,
)

DECODER_FAMILIES: dict[str, Family] = {
    "gpt2": replace(GPT2, switches=(CROSSES,)),
    "gpt_bigcode": replace(
        GPT2,
        config_class="GPTBigCodeConfig",
        fixed_kv_heads=1,
        outputs=_CAUSAL,
        switches=(switch("multi_query", False, full_key_value_heads), CROSSES),
    ),
    "gpt_neo": replace(
        GPT2,
        config_class="GPTNeoConfig",
        block=replace(GPT2_BLOCK, biases=frozenset(("out", "feed_forward"))),
        outputs=_CAUSAL,
    ),
    "gptj": _GPTJ,
    "codegen": replace(_GPTJ, config_class="CodeGenConfig"),
    "gpt_neox": replace(
        _NO_POSITIONS,
        config_class="GPTNeoXConfig",
        feed_forward_multiple=None,
        switches=(switch("attention_bias", False, without_biases("query", "key", "value", "out")),),
    ),
    "imagegpt": replace(
        GPT2,
        config_class="ImageGPTConfig",
        modality="image",
        block=replace(GPT2_BLOCK, norm=1),
        outputs={
            "ForCausalImageModeling": (pieces.untied_head_but_one,),
            "Model": (),
        },
        switches=(CROSSES,),
    ),
    "bloom": replace(
        _NO_POSITIONS,
        config_class="BloomConfig",
        embedding=(pieces.token_table, pieces.layer_norm),
    ),
    "opt": _OPT,
    "mpt": replace(
        _NO_POSITIONS,
        config_class="MptConfig",
        block=replace(GPT2_BLOCK, norm=1, biases=NONE),
    ),
    "falcon": _FALCON,
    "bart": _BART,
    "mbart": replace(_BART, config_class="MBartConfig", has_final_norm=True),
    "pegasus": _PEGASUS,
    "marian": replace(
        _PEGASUS,
        config_class="MarianConfig",
        has_final_norm=False,
        outputs={"MTModel": (pieces.untied_head,), "Model": ()},
    ),
    "llama": LLAMA,
    "smollm3": replace(LLAMA, config_class="SmolLM3Config"),
    "mistral": _MISTRAL,
    "mixtral": replace(
        _MISTRAL, config_class="MixtralConfig", needs=("kv_heads", "head_dim", "experts")
    ),
    "qwen2": replace(
        LLAMA,
        config_class="Qwen2Config",
        block=replace(LLAMA_BLOCK, biases=frozenset(("query", "key", "value"))),
        switches=(),
    ),
    "qwen3": _QWEN3,
    "qwen3_moe": replace(_QWEN3, config_class="Qwen3MoeConfig", is_square=True, needs=_MIXTURE),
    "qwen2_moe": replace(
        LLAMA,
        config_class="Qwen2MoeConfig",
        block=replace(LLAMA_BLOCK, biases=frozenset(("query", "key", "value"))),
        needs=("kv_heads", "experts", "expert_feed_forward", "shared_feed_forward"),
        switches=(switch("qkv_bias", False, without_biases("query", "key", "value")),),
    ),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3_text": replace(
        _GEMMA2,
        config_class="Gemma3TextConfig",
        block=replace(LLAMA_BLOCK, norms=4, head_norm="head"),
    ),
    "olmo": replace(
        LLAMA,
        config_class="OlmoConfig",
        block=replace(LLAMA_BLOCK, norm=0),
        switches=(_ATTENTION_BIAS,),
    ),
    "olmo2": replace(
        LLAMA,
        config_class="Olmo2Config",
        block=replace(LLAMA_BLOCK, head_norm="all"),
        switches=(_ATTENTION_BIAS,),
    ),
    "phi": replace(
        LLAMA,
        config_class="PhiConfig",
        block=replace(GPT2_BLOCK, norms=1),
        outputs=_BIASED_HEAD,
        switches=(switch("qk_layernorm", True, block_vectors(pieces.head_layer_norms)),),
    ),
    "phi3": replace(LLAMA, config_class="Phi3Config", switches=()),
    "starcoder2": replace(
        LLAMA,
        config_class="Starcoder2Config",
        block=GPT2_BLOCK,
        switches=(switch("use_bias", False, without_biases(*ALL)),),
    ),
    "stablelm": replace(
        LLAMA,
        config_class="StableLmConfig",
        block=replace(LLAMA_BLOCK, norm=2),
        needs=("kv_heads",),
        switches=(
            switch("use_qkv_bias", True, with_biases("query", "key", "value")),
            switch("use_parallel_residual", True, norms(1)),
            switch("qk_layernorm", True, head_norm("all")),
        ),
    ),
    "t5": T5,
    "mt5": replace(
        T5,
        config_class="MT5Config",
        block=LLAMA_BLOCK,
        switches=(
            switch("feed_forward_proj", "relu", ungated),
            switch("feed_forward_proj", "gelu", ungated),
            switch("is_gated_act", False, ungated),
        ),
    ),
}
