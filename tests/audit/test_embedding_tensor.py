"""Which tensor is the embedding, in the names that the families use."""

from pathlib import Path

import pytest

from archfit.audit.checkpoint_file import read_header
from archfit.audit.embedding import EmbeddingTensors, find_embedding
from tests_safetensors import write_shapes


def found(folder: Path, shapes: dict[str, list[int]]) -> EmbeddingTensors:
    path = folder / "x.safetensors"
    return find_embedding(
        read_header(write_shapes(path, {n: ("F32", s) for n, s in shapes.items()}))
    )


@pytest.mark.parametrize(
    "name",
    [
        *(
            "wte.weight",
            "transformer.wte.weight",
            "gpt_neox.embed_in.weight",
            "tok_embeddings.weight",
        ),
        *("bert.embeddings.word_embeddings.weight", "_orig_mod.transformer.wte.weight"),
        *("model.embed_tokens.weight", "language_model.model.embed_tokens.weight"),
        *("transformer.word_embeddings.weight", "embedding.tokens.rows_RI", "token_embd.weight"),
        *("text_model.embeddings.token_embedding.weight", "model.shared.weight"),
    ],
)
def test_a_token_table_is_found_among_tables_of_other_things(name: str, tmp_path: Path) -> None:
    others = {
        "transformer.wpe.weight": [512, 8],
        "bert.embeddings.position_embeddings.weight": [512, 8],
        "bert.embeddings.token_type_embeddings.weight": [2, 8],
        "lm_head.weight": [300, 8],
        "model.layers.0.mlp.up_proj.weight": [999, 8],
        "vision_tower.embeddings.patch_embedding.weight": [8, 3, 2, 2],
    }
    embedding = found(tmp_path, others | {name: [300, 8]})
    assert (embedding.kind, embedding.names) == ("lookup", (name,))
    assert (embedding.rows, embedding.inner, embedding.width) == (300, 8, 8)


@pytest.mark.parametrize(
    ("table", "widening", "shape"),
    [
        (
            "albert.embeddings.word_embeddings.weight",
            "encoder.embedding_hidden_mapping_in.weight",
            [8, 4],
        ),
        ("electra.embeddings.word_embeddings.weight", "electra.embeddings_project.weight", [8, 4]),
        ("model.decoder.embed_tokens.weight", "model.decoder.project_in.weight", [8, 4]),
        ("embedding.tokens.rows_RI", "embedding.tokens.mix_ID", [4, 8]),
    ],
)
def test_a_factorised_table_brings_the_map_that_widens_it(
    table: str, widening: str, shape: list[int], tmp_path: Path
) -> None:
    positions = {"embedding.positions.mix_ID": [4, 8], "model.decoder.project_out.weight": [4, 8]}
    embedding = found(tmp_path, positions | {table: [300, 4], widening: shape})
    assert (embedding.kind, embedding.names) == ("factorised_lookup", (table, widening))
    assert (embedding.rows, embedding.inner, embedding.width) == (300, 4, 8)


def test_of_two_maps_that_would_fit_the_first_widens_the_table(tmp_path: Path) -> None:
    """ELECTRA's generator and discriminator may lie in one file."""
    shapes = {"wte.weight": [300, 4], "a.project_in.weight": [8, 4], "b.project_in.weight": [9, 4]}
    embedding = found(tmp_path, shapes)
    assert embedding.names == ("wte.weight", "a.project_in.weight")
    assert embedding.width == 8


def test_a_map_that_does_not_fit_the_table_does_not_widen_it(tmp_path: Path) -> None:
    shapes = {"embed_tokens.weight": [300, 4], "project_in.weight": [8, 5]}
    assert found(tmp_path, shapes).kind == "lookup"


@pytest.mark.parametrize(
    ("name", "shape", "kind", "dimensions"),
    [
        ("vit.embeddings.patch_embeddings.projection.weight", [8, 3, 4, 4], "linear_patch", 48),
        ("patch_embed.proj.weight", [8, 3, 2, 2], "linear_patch", 12),
        ("wav2vec2.feature_projection.projection.weight", [8, 5], "linear_on_conv_features", 5),
    ],
)
def test_without_a_token_table_the_linear_map_of_the_input_is_found(
    name: str, shape: list[int], kind: str, dimensions: int, tmp_path: Path
) -> None:
    embedding = found(tmp_path, {"head.weight": [10, 8], name: shape})
    assert (embedding.kind, embedding.rows, embedding.width) == (kind, dimensions, 8)


def test_several_codebooks_are_one_sum(tmp_path: Path) -> None:
    for books in (2, 4):
        shapes = {f"model.decoder.embed_tokens.{n}.weight": [21, 8] for n in range(books)}
        embedding = found(tmp_path, shapes)
        assert (embedding.kind, embedding.rows) == ("sum_of_lookups", books * 21)
        assert len(embedding.tables) == books
    alone = found(tmp_path, {"embed_tokens.0.weight": [21, 8], "embed_tokens.1.weight": [21, 9]})
    assert (alone.kind, alone.rows) == ("lookup", 21)  # another width is no codebook of it


def test_the_shared_table_comes_before_its_copies_and_an_encoders_before_a_decoders(
    tmp_path: Path,
) -> None:
    copies = {"decoder.embed_tokens.weight": [9, 8], "encoder.embed_tokens.weight": [9, 8]}
    assert found(tmp_path, copies).names == ("encoder.embed_tokens.weight",)
    assert found(tmp_path, copies | {"shared.weight": [9, 8]}).names == ("shared.weight",)


def test_the_unused_table_of_a_decision_transformer_is_passed_over(tmp_path: Path) -> None:
    shapes = {"encoder.wte.weight": [1, 8], "encoder.wpe.weight": [1024, 8], "b": [8]}
    with pytest.raises(
        ValueError,
        match=r"3 tensors of .* most rows are 'encoder.wpe.weight' \(1,024 x 8\), ",
    ):
        found(tmp_path, shapes)
