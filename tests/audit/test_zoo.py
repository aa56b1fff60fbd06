"""The built-in table: every row becomes a model, and counts agree with what pages print."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from typing import cast

import pytest

from archfit.audit.zoo import ZooRow, zoo_model, zoo_models, zoo_row, zoo_rows
from archfit.audit.zoo_kin import CAUSES, KIN, KIN_BY_START, TIE_VARIES

TABLE = json.loads(resources.files("archfit.resources").joinpath("zoo.json").read_text())[1:]
BY_ID: dict[str, dict[str, object]] = {row["id"]: row for row in TABLE}
FROM_A_PAGE = [row for row in zoo_rows() if row.params_basis == "page"]


def _agrees(row: ZooRow) -> bool:
    total, published = row.model.parameters.total, row.model.published_params
    assert published is not None
    return total is not None and abs(total - published) <= 0.03 * published


def test_every_row_of_the_table_becomes_a_model() -> None:
    assert [row.identifier for row in zoo_rows()] == list(BY_ID)
    assert len(zoo_models()) == 169


@pytest.mark.parametrize("row", zoo_rows(), ids=lambda row: str(row.identifier))
def test_a_model_has_the_sizes_of_its_row(row: ZooRow) -> None:
    printed, model = BY_ID[row.identifier], row.model
    assert model.depth == printed["depth"]
    assert model.width == printed["width"]
    first = model.stacks[0]
    assert (first.heads, first.head_dim) == (printed["heads"], printed["head_dim"])
    assert first.kv_heads == printed["kv_heads"]
    assert printed["d_ff"] in (None, first.feed_forward)
    ratio = first.attention_ratio
    assert printed["attention_ratio"] == (None if ratio is None else pytest.approx(ratio, abs=1e-4))


@pytest.mark.parametrize("row", zoo_rows(), ids=lambda row: str(row.identifier))
def test_the_rank_limit_is_the_one_that_the_table_states(row: ZooRow) -> None:
    printed, model = BY_ID[row.identifier], row.model
    as_stored = replace(model.input, vocab_real=None)
    assert as_stored.rank_limit(model.width) == printed["embedding_rank_limit"]
    if printed["vocab_size_real"] is not None:
        assert model.rank_limit == printed["embedding_rank_limit_real"]


@pytest.mark.parametrize("row", FROM_A_PAGE, ids=lambda row: str(row.identifier))
def test_a_count_agrees_with_its_page_or_the_gap_has_a_cause(row: ZooRow) -> None:
    """Within 3 %. A cause that no gap needs any more fails as well."""
    assert _agrees(row) != (row.identifier in CAUSES)
    if row.identifier in CAUSES:
        assert CAUSES[row.identifier] in row.model.notes


def test_of_39_counts_printed_on_pages_32_agree_within_3_percent() -> None:
    assert len(FROM_A_PAGE) == 39
    assert sum(map(_agrees, FROM_A_PAGE)) == 32
    assert {row.identifier for row in FROM_A_PAGE} >= set(CAUSES)


def test_gpt_j_differs_from_its_page_by_what_eight_devices_stored_eightfold() -> None:
    """Two norms' worth a layer, an output bias a layer and the last norm, seven copies too many,
    and eight biases of the embedding, which the released model does not have."""
    model = zoo_model("gpt-j-6b")
    assert model.parameters.total == 6_050_882_784
    copies = 7 * (28 * (2 + 1) + 2) + 8
    assert model.published_params == model.parameters.total + copies * 4096
    assert "610 * 4,096" in " ".join(model.notes)
    assert copies == 610


@pytest.mark.parametrize(
    ("identifier", "total"),
    [  # the classes of transformers count these, see test_count
        ("gpt2", 124_439_808),
        ("llama-65b", 65_285_660_672),
        ("mistral-nemo-12b", 12_247_782_400),
        ("opt-350m", 331_196_416),
        ("bloom-176b", 176_247_271_424),
        ("gemma-3-270m", 268_098_176),
        ("t5-11b", 11_307_321_344),
        ("whisper-tiny", 37_760_640),
        ("qwen3-0.6b", 596_049_920),
        ("electra-small-discriminator", 13_549_057),
    ],
)
def test_a_row_counts_as_its_config_does(identifier: str, total: int) -> None:
    assert zoo_model(identifier).parameters.total == total


def test_a_size_that_a_row_lacks_is_assumed_aloud_or_missing() -> None:
    whisper = zoo_model("whisper-base")
    assert [line.split(":")[0] for line in whisper.assumed] == [
        "feed_forward=2048",
        "vocab=51865",
        "mel_bins=80",
        "source_positions=1500",
    ]
    sweep = zoo_model("plantcad-isoflop-w1024")
    assert sweep.depth is None
    assert sweep.parameters.blocks is None
    assert sweep.missing[0] == "depth: the row has no depth"
    mixture = zoo_model("qwen3-235b-a22b")
    assert mixture.stacks[0].feed_forward == 1536
    assert mixture.stacks[0].block_weights is None


def test_a_released_vit_huge_reads_588_numbers_a_patch_and_not_768() -> None:
    model = zoo_model("vit-h-14")
    assert model.rank_limit == model.input.dimensions == 588
    assert "768" in model.notes[0]


def test_a_model_is_found_by_id_and_by_printed_name_in_any_case() -> None:
    assert zoo_model("GPT2-XL") == zoo_model("gpt2-xl")
    for row in zoo_rows():
        assert zoo_row(row.model.name.upper()) == row
        assert zoo_row(row.identifier) == row


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'gpt2-xxl' is not in the table .* gpt2-xl"):
        zoo_model("gpt2-xxl")


def test_a_row_keeps_where_it_comes_from() -> None:
    row = zoo_row("t5-3b")
    assert (row.status, row.year, row.params_basis) == ("memory", 2019, "name")
    assert "heads" in row.memory_fields
    assert row.model.origin == BY_ID["t5-3b"]["source"]
    assert row.model.modality == "text"


def test_every_way_of_counting_is_used_by_some_row() -> None:
    assert set(KIN) == {cast(str, row["family"]) for row in TABLE}
    for start in (*KIN_BY_START, *TIE_VARIES):
        assert any(identifier.startswith(start) for identifier in BY_ID), start


def test_the_table_is_read_in_a_moment() -> None:
    code = (
        "import time; import archfit.audit.zoo as zoo; start = time.process_time(); "
        "zoo.zoo_rows(); print(time.process_time() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 0.3
