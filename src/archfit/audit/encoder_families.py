"""Families that read a whole sequence, image or sound."""

from dataclasses import replace

from archfit.audit import pieces
from archfit.audit.decoder_families import CROSSES, ENCODER_AND_DECODER, GPT2
from archfit.audit.family import Family
from archfit.audit.family_parts import (
    ENCODER,
    GPT2_BLOCK,
    LLAMA_BLOCK,
    VISION,
    block_vectors,
    embedding,
    inside_stack,
    less_embedding,
    switch,
    with_biases,
    without_biases,
    without_block_vectors,
)

_MASKED = (pieces.masked_head, pieces.untied_bias)
_WITHOUT_POOLER = {"ForTokenClassification": (), "ForQuestionAnswering": ()}
_NO_KEY_BIAS = replace(GPT2_BLOCK, biases=GPT2_BLOCK.biases - {"key"})
_BERT = replace(
    GPT2,
    config_class="BertConfig",
    stacks=ENCODER,
    feed_forward_multiple=None,
    has_final_norm=False,  # each block ends with one
    needs=("positions", "types"),
    embedding=(
        pieces.token_table,
        pieces.position_table,
        pieces.type_table,
        pieces.layer_norm,
    ),
    outputs={
        "Model": (pieces.dense,),
        "ForMaskedLM": _MASKED,
        "ForPreTraining": (
            pieces.dense,
            *_MASKED,
            lambda sizes: 2 * (sizes["width"] + 1),  # whether the second sentence follows
        ),
        "LMHeadModel": _MASKED,
        **_WITHOUT_POOLER,
    },
    switches=(CROSSES,),
)
_ROBERTA = replace(
    _BERT,
    config_class="RobertaConfig",
    outputs={
        "Model": (pieces.dense,),
        "ForMaskedLM": _MASKED,
        "ForCausalLM": _MASKED,
        **_WITHOUT_POOLER,
    },
)
_INNER_TABLES = (
    pieces.token_table,
    pieces.inner_position_table,
    pieces.inner_type_table,
    pieces.inner_layer_norm,
)
_ELECTRA = replace(
    _BERT,
    config_class="ElectraConfig",
    input="factorised_lookup",
    needs=("positions", "types", "inner"),
    embedding=(*_INNER_TABLES, pieces.widening_if_narrow),
    outputs={
        "ForPreTraining": (pieces.discriminator_head,),
        "Model": (),
        "ForMaskedLM": (pieces.inner_head,),
    },
)
_ALBERT = replace(
    _ELECTRA,
    config_class="AlbertConfig",
    needs=("positions", "types", "inner", "groups", "inner_groups"),
    embedding=(*_INNER_TABLES, pieces.widening),
    outputs={
        "Model": (pieces.dense,),
        "ForMaskedLM": (pieces.inner_head, pieces.untied_bias),
    },
)
_MODERN = replace(
    _BERT,
    config_class="ModernBertConfig",
    block=LLAMA_BLOCK,
    has_final_norm=True,
    inside_stack=(pieces.vectors(-1),),  # the first block has no norm before its attention
    needs=(),
    embedding=(pieces.token_table, pieces.vectors(1)),
    outputs={"ForMaskedLM": (pieces.scaled_head,), "Model": ()},
    switches=(
        switch("attention_bias", True, with_biases("query", "key", "value", "out")),
        switch("mlp_bias", True, with_biases("feed_forward")),
    ),
)
_ESM = replace(
    _BERT,
    config_class="EsmConfig",
    has_final_norm=True,
    needs=("positions",),
    embedding=(pieces.token_table, pieces.position_table),
    outputs={
        "ForMaskedLM": (pieces.masked_head, pieces.contact_head),
        "Model": (pieces.dense, pieces.contact_head),
    },
    switches=(
        switch("position_embedding_type", "rotary", less_embedding(pieces.position_table)),
        switch("emb_layer_norm_before", True, embedding(pieces.layer_norm)),
    ),
)
_DISENTANGLED = replace(
    _BERT,
    config_class="DebertaV2Config",
    outputs={"Model": (), "ForMaskedLM": _MASKED},
    switches=(switch("position_biased_input", False, less_embedding(pieces.position_table)),),
    is_exact=False,
    left_out="the tables and matrices of its relative positions",
)

_VIT = replace(
    GPT2,
    config_class="ViTConfig",
    input="linear_patch",
    modality="image",
    stacks=VISION,
    feed_forward_multiple=None,
    needs=(),
    # the class token and its position beside those of the patches
    embedding=(pieces.patch_map, pieces.patch_positions, pieces.vectors(2)),
    outputs={"Model": (pieces.dense,), "ForImageClassification": ()},
    switches=(switch("qkv_bias", False, without_biases("query", "key", "value")),),
)
_BEIT = replace(
    _VIT,
    config_class="BeitConfig",
    block=replace(_NO_KEY_BIAS, vectors=(pieces.vectors(2),)),  # the two layer scales
    # Mean pooling, the usual, moves the last norm into the pooler: the count is the same.
    embedding=(pieces.patch_map, pieces.vectors(1)),
    outputs={
        "Model": (),
        "ForImageClassification": (),
        "ForMaskedImageModeling": (pieces.class_head,),
    },
    needs=("classes",),
    switches=(
        switch("layer_scale_init_value", 0, without_block_vectors),
        switch("use_relative_position_bias", True, block_vectors(pieces.window_table)),
        switch("use_shared_relative_position_bias", True, inside_stack(pieces.window_table)),
        switch("use_mask_token", True, embedding(pieces.vectors(1))),
        switch(
            "use_absolute_position_embeddings",
            True,
            embedding(pieces.patch_positions, pieces.vectors(1)),
        ),
    ),
)
_SIGLIP = replace(
    _VIT,
    config_class="SiglipVisionConfig",
    embedding=(pieces.patch_map, pieces.patch_positions, pieces.pooling_head),
    outputs={"Model": ()},
    switches=(switch("vision_use_head", False, less_embedding(pieces.pooling_head)),),
)
_CLIP_TEXT = replace(
    GPT2,
    config_class="CLIPTextConfig",
    stacks=ENCODER,
    feed_forward_multiple=None,
    outputs={"Model": ()},
)
_CLIP_VISION = replace(
    _VIT,
    config_class="CLIPVisionConfig",
    embedding=(
        pieces.patch_map_without_bias,
        pieces.patch_positions,
        pieces.vectors(2),
        pieces.layer_norm,
    ),
    outputs={"Model": ()},
    switches=(),
)
_SPEECH = replace(
    GPT2,
    config_class="Wav2Vec2Config",
    input="linear_on_conv_features",
    modality="audio",
    stacks=ENCODER,
    feed_forward_multiple=None,
    needs=("position_taps", "position_groups", "classes"),
    embedding=(
        pieces.convolution_stem,
        pieces.first_stem_norm,
        pieces.feature_map,
        pieces.convolutional_positions,
        pieces.vectors(1),  # stands for masked time steps
    ),
    outputs={"Model": (), "ForCTC": (pieces.class_head,)},
    switches=(
        switch("conv_bias", True, embedding(pieces.stem_biases)),
        switch("feat_extract_norm", "layer", less_embedding(pieces.first_stem_norm)),
        switch("feat_extract_norm", "layer", embedding(pieces.stem_norms)),
    ),
)
_WHISPER = replace(
    GPT2,
    config_class="WhisperConfig",
    input="nonlinear",
    modality="audio",
    stacks=ENCODER_AND_DECODER,
    block=_NO_KEY_BIAS,
    feed_forward_multiple=None,
    needs=("mel_bins", "source_positions", "target_positions"),
    embedding=(
        pieces.speech_stem,
        pieces.source_positions,
        pieces.token_table,
        pieces.target_positions,
    ),
    outputs={"ForConditionalGeneration": (pieces.untied_head,), "Model": ()},
)

ENCODER_FAMILIES: dict[str, Family] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, config_class="XLMRobertaConfig"),
    "camembert": replace(_ROBERTA, config_class="CamembertConfig"),
    "distilbert": replace(
        _BERT,
        config_class="DistilBertConfig",
        needs=("positions",),
        embedding=(pieces.token_table, pieces.position_table, pieces.layer_norm),
        outputs={"Model": (), "ForMaskedLM": (pieces.masked_head,)},
        switches=(),
    ),
    "modernbert": _MODERN,
    "electra": _ELECTRA,
    "albert": _ALBERT,
    "esm": _ESM,
    "deberta": replace(_DISENTANGLED, config_class="DebertaConfig", block=_NO_KEY_BIAS),
    "deberta-v2": _DISENTANGLED,
    "vit": _VIT,
    "deit": replace(
        _VIT,
        config_class="DeiTConfig",
        embedding=(pieces.patch_map, pieces.patch_positions, pieces.vectors(4)),
        outputs={**_VIT.outputs, "ForImageClassificationWithTeacher": ()},
    ),
    "vit_mae": replace(_VIT, config_class="ViTMAEConfig", outputs={"Model": ()}),
    "beit": _BEIT,
    "siglip_vision_model": _SIGLIP,
    "clip_text_model": _CLIP_TEXT,
    "clip_vision_model": _CLIP_VISION,
    "wav2vec2": _SPEECH,
    "hubert": replace(_SPEECH, config_class="HubertConfig"),
    "whisper": _WHISPER,
    "decision_transformer": replace(
        GPT2,
        config_class="DecisionTransformerConfig",
        input="linear_continuous",
        modality="reinforcement_learning",
        needs=("state_dimensions", "action_dimensions"),
        embedding=(),
        outputs={"Model": ()},
        is_exact=False,
        left_out="the maps of states, actions and returns and the table of time steps",
    ),
    "canine": replace(
        _BERT,
        config_class="CanineConfig",
        input="hashed_lookup_concat",
        modality="characters",
        needs=(),
        embedding=(),
        outputs={"Model": ()},
        switches=(),
        is_exact=False,
        left_out="the tables of hashes and the layers that shorten and lengthen the sequence",
    ),
}
