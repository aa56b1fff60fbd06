"""Logits and hidden states against Hugging Face's networks of the same weights."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from archfit.model import Transformer
from archfit.model.layers import NORM_EPSILON, ROTARY_BASE
from archfit.model.transformer import Block, SoftmaxTrunk
from archfit.spec import Architecture, Full, Tied, standard_architecture
from archfit.spec.parts import Head
from archfit.spec.run_options import RunOptions
from tests_models import position_table, random_model, random_tokens


def _transposed(weight: Tensor) -> Tensor:
    return weight.T if weight.dim() == 2 else weight


def _gpt2(model: Transformer) -> nn.Module:
    """Hugging Face's network with our weights; its matrices are the transposes of ours."""
    from transformers import GPT2Config, GPT2LMHeadModel  # takes seconds, so not at the top

    assert isinstance(model.trunk, SoftmaxTrunk)
    shape = model.architecture
    config = GPT2Config(
        vocab_size=shape.input.vocab,
        n_positions=shape.context,
        n_embd=shape.width,
        n_layer=shape.depth,
        n_head=shape.heads,
        n_inner=shape.feed_forward,
        activation_function="gelu",
        tie_word_embeddings=model.head is None,
        bos_token_id=0,
        eos_token_id=0,
    )
    theirs: nn.Module = GPT2LMHeadModel(config)
    assert model.trunk.norm.bias is not None
    weights: dict[str, Tensor] = {
        "transformer.wte.weight": model.embedding.tokens.rows_RI,
        "transformer.wpe.weight": position_table(model).rows_RI,
        "transformer.ln_f.weight": model.trunk.norm.weight,
        "transformer.ln_f.bias": model.trunk.norm.bias,
        "lm_head.weight": (model.embedding.tokens if model.head is None else model.head).rows_RI,
    }
    for at, block in enumerate(model.trunk.blocks):
        assert isinstance(block, Block)
        for name, layer in {
            "ln_1": block.attention_norm,
            "attn.c_attn": block.attention.qkv,
            "attn.c_proj": block.attention.out,
            "ln_2": block.feed_forward_norm,
            "mlp.c_fc": block.feed_forward.up,
            "mlp.c_proj": block.feed_forward.down,
        }.items():
            for kind, weight in layer.named_parameters():
                weights[f"transformer.h.{at}.{name}.{kind}"] = _transposed(weight)
    theirs.load_state_dict(weights)
    return theirs.eval()


@pytest.mark.parametrize("head", [Full(), Tied()])
@pytest.mark.parametrize(
    ("depth", "width", "heads", "multiple"), [(1, 8, 1, 4), (3, 48, 4, 4), (2, 30, 6, 2)]
)
def test_logits_are_those_of_hugging_faces_gpt2(
    depth: int, width: int, heads: int, multiple: int, head: Head
) -> None:
    shape = standard_architecture(depth=depth, width=width, heads=heads, vocab=97, context=24)
    model = random_model(replace(shape, head=head, feed_forward=multiple * width))
    tokens_BN = random_tokens(shape, batch=3)
    with torch.no_grad():
        ours_BNV, theirs_BNV = model(tokens_BN), _gpt2(model)(tokens_BN).logits
    assert ours_BNV.std() > 0.3
    torch.testing.assert_close(ours_BNV, theirs_BNV, atol=1e-5, rtol=0)


def _blocks(model: Transformer) -> list[Block]:
    assert isinstance(model.trunk, SoftmaxTrunk)
    return [block for block in model.trunk.blocks if isinstance(block, Block)]


def _qkv(block: Block, kind: str) -> list[Tensor]:
    """Queries, keys and values: rows of one matrix, or parts of one bias."""
    attention = block.attention
    sizes = [number * attention.head_dim for number in (attention.heads, *[attention.groups] * 2)]
    return list(attention.qkv.get_parameter(kind).split(sizes))


def _llama(model: Transformer) -> nn.Module:
    """Llama, or Qwen3 where queries and keys have norms, with our weights."""
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

    shape = model.architecture
    assert isinstance(model.trunk, SoftmaxTrunk)
    kinds = (Qwen3Config, Qwen3ForCausalLM) if shape.qk_norm else (LlamaConfig, LlamaForCausalLM)
    config = kinds[0](
        vocab_size=shape.input.vocab,
        max_position_embeddings=shape.context,
        hidden_size=shape.width,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        head_dim=shape.head_dim,
        intermediate_size=shape.feed_forward,
        rms_norm_eps=NORM_EPSILON,
        rope_parameters={"rope_type": "default", "rope_theta": ROTARY_BASE},
        tie_word_embeddings=model.head is None,
    )
    weights: dict[str, Tensor] = {
        "model.embed_tokens.weight": model.embedding.tokens.rows_RI,
        "model.norm.weight": model.trunk.norm.weight,
        "lm_head.weight": (model.embedding.tokens if model.head is None else model.head).rows_RI,
    }
    for at, block in enumerate(_blocks(model)):
        gate, up = block.feed_forward.up.weight.chunk(2)
        parts: dict[str, Tensor] = {
            "input_layernorm": block.attention_norm.weight,
            "self_attn.o_proj": block.attention.out.weight,
            "post_attention_layernorm": block.feed_forward_norm.weight,
            "mlp.gate_proj": gate,
            "mlp.up_proj": up,
            "mlp.down_proj": block.feed_forward.down.weight,
        }
        names = (f"self_attn.{name}_proj" for name in "qkv")
        parts |= dict(zip(names, _qkv(block, "weight"), strict=True))
        if block.attention.query_norm is not None and block.attention.key_norm is not None:
            parts["self_attn.q_norm"] = block.attention.query_norm.weight
            parts["self_attn.k_norm"] = block.attention.key_norm.weight
        weights |= {f"model.layers.{at}.{name}.weight": part for name, part in parts.items()}
    theirs: nn.Module = kinds[1](config)
    theirs.load_state_dict(weights)
    return theirs.eval()


def _llama_shape(head: str, kv_heads: int, qk_norm: bool) -> Architecture:
    sizes = RunOptions(precision="float32", depth=3, width=48, heads=4, head_dim=16, context=24)
    options = replace(sizes, block="llama", head=head, kv_heads=kv_heads, qk_norm=qk_norm)
    return options.architecture(97)


@pytest.mark.parametrize("head", ["full", "tied"])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("qk_norm", [False, True])
def test_logits_are_those_of_hugging_faces_llama_and_qwen3(
    head: str, kv_heads: int, qk_norm: bool
) -> None:
    shape = _llama_shape(head, kv_heads, qk_norm)
    model = random_model(shape)
    tokens_BN = random_tokens(shape, batch=3)
    with torch.no_grad():
        ours_BNV, theirs_BNV = model(tokens_BN), _llama(model)(tokens_BN).logits
    assert ours_BNV.std() > 0.3
    torch.testing.assert_close(ours_BNV, theirs_BNV, atol=1e-5, rtol=0)


def _esm(model: Transformer) -> nn.Module:
    """The encoder of ESM, without its head and its probe of contacts, with our weights."""
    from transformers import EsmConfig, EsmModel

    shape, padding = model.architecture, 0
    assert isinstance(model.trunk, SoftmaxTrunk)
    config = EsmConfig(
        vocab_size=shape.input.vocab,
        max_position_embeddings=shape.context + padding + 1,
        pad_token_id=padding,
        hidden_size=shape.width,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        intermediate_size=shape.feed_forward,
        layer_norm_eps=NORM_EPSILON,
        position_embedding_type="absolute",
        emb_layer_norm_before=False,
        token_dropout=False,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    positions_ND = position_table(model).rows_RI
    unused_D = torch.zeros(padding + 1, shape.width)  # its positions begin after the padding
    weights = {
        "embeddings.word_embeddings.weight": model.embedding.tokens.rows_RI,
        "embeddings.position_embeddings.weight": torch.cat((unused_D, positions_ND)),
    }
    layers: dict[str, nn.Module] = {"encoder.emb_layer_norm_after": model.trunk.norm}
    for at, block in enumerate(_blocks(model)):
        for kind in ("weight", "bias"):
            for name, part in zip(("query", "key", "value"), _qkv(block, kind), strict=True):
                weights[f"encoder.layer.{at}.attention.self.{name}.{kind}"] = part
        layers |= {
            f"encoder.layer.{at}.attention.LayerNorm": block.attention_norm,
            f"encoder.layer.{at}.attention.output.dense": block.attention.out,
            f"encoder.layer.{at}.LayerNorm": block.feed_forward_norm,
            f"encoder.layer.{at}.intermediate.dense": block.feed_forward.up,
            f"encoder.layer.{at}.output.dense": block.feed_forward.down,
        }
    for name, layer in layers.items():
        weights |= {f"{name}.{kind}": weight for kind, weight in layer.named_parameters()}
    theirs: nn.Module = EsmModel(config, add_pooling_layer=False)
    missing = theirs.load_state_dict(weights, strict=False).missing_keys
    assert {name.split(".")[0] for name in missing} <= {"contact_head"}
    return theirs.eval()


@pytest.mark.parametrize(("depth", "width", "heads"), [(1, 8, 1), (3, 48, 4)])
def test_hidden_states_of_an_encoder_are_those_of_hugging_faces_esm(
    depth: int, width: int, heads: int
) -> None:
    shape = standard_architecture(depth=depth, width=width, heads=heads, vocab=97, context=24)
    shape = replace(shape, objective="masked", feed_forward=3 * width)
    model = random_model(shape)
    tokens_BN = random_tokens(shape, batch=3).clamp(min=1)  # none is padding
    with torch.no_grad():
        ours_BND = model.trunk(model.embedding(tokens_BN))
        theirs_BND = _esm(model)(tokens_BN).last_hidden_state
    assert ours_BND.std() > 0.3
    torch.testing.assert_close(ours_BND, theirs_BND, atol=1e-5, rtol=0)
