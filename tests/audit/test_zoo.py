"""The built-in table: every row becomes a model, and counts agree with what pages print."""

import json
import subprocess
import sys
from importlib import resources

import pytest

from archfit.audit.families import knowledge
from archfit.audit.model import Model
from archfit.audit.zoo import (
    ZOO_RULES,
    counting_rule,
    nearest,
    zoo_id,
    zoo_model,
    zoo_models,
    zoo_names,
    zoo_rows,
)

TABLE = json.loads(resources.files("archfit.resources").joinpath("zoo.json").read_text())[1:]
PUBLISHED = [(row["id"], row["params_published"]) for row in TABLE if row["params_published"]]
CAUSES = ZOO_RULES["causes"]


def _gap(identifier: str, published: int) -> float | None:
    """How far the count is from the published one, in parts of it; None if it was not counted."""
    total = zoo_model(identifier).parameters.total
    return None if total is None else abs(total - published) / published


def test_every_row_of_the_table_becomes_a_model_with_its_name_and_source() -> None:
    assert [row["name"] for row in TABLE] == [model.name for model in zoo_models()]
    assert len(zoo_models()) == len(zoo_rows()) == 169
    assert all(model.origin for model in zoo_models())


def test_ratios_and_rank_limits_are_those_that_the_table_states_beside_its_sizes() -> None:
    """The table holds them by its own arithmetic; a wrong column or bound shows here."""
    for row in TABLE:
        model = zoo_model(row["id"])
        assert (model.depth, model.width) == (row["depth"], row["width"]), row["id"]
        ratio = model.stacks[0].attention_ratio
        stated = row["attention_ratio"]
        assert stated == (None if ratio is None else pytest.approx(ratio, abs=1e-4)), row["id"]
        real = row["vocab_size_real"] is not None
        limit = row["embedding_rank_limit_real" if real else "embedding_rank_limit"]
        assert model.rank_limit == limit, row["id"]


def test_counts_agree_with_their_pages_within_3_percent_or_the_gap_has_a_cause() -> None:
    """39 counts are printed on pages; a cause that no gap needs any more fails as well."""
    on_pages = [row["id"] for row in TABLE if row["params_basis"] == "page"]
    gaps = {id_: _gap(id_, size) for id_, size in PUBLISHED if id_ in on_pages}
    apart = {id_ for id_, gap in gaps.items() if gap is None or gap > 0.03}
    assert len(gaps) == 39
    assert apart == set(CAUSES)
    for identifier in apart:
        assert CAUSES[identifier] in zoo_model(identifier).notes


def test_counts_are_within_a_tenth_of_every_published_size() -> None:
    """From names and papers, too; Gemma's names leave the large table of tokens out."""
    gaps = {id_: _gap(id_, size) for id_, size in PUBLISHED}
    counted = {id_: gap for id_, gap in gaps.items() if gap is not None}
    assert len(counted) == 119
    assert {id_ for id_, gap in counted.items() if gap > 0.1} == {
        *("gemma-2b", "gemma-7b", "gemma-2-2b"),
        *("gpt3-xl", "sparse-transformer-cifar10"),  # whose causes are stated
    }
    for identifier in ("gemma-2b", "gemma-7b", "gemma-2-2b"):
        model = zoo_model(identifier)
        assert model.published_params is not None
        assert model.parameters.blocks == pytest.approx(model.published_params, rel=0.12)


def test_gpt_j_differs_from_its_page_by_what_eight_devices_stored_eightfold() -> None:
    """Two norms' worth a layer, an output bias a layer and the last norm, seven copies too many,
    and eight biases of the embedding, which the released model does not have."""
    model = zoo_model("gpt-j-6b")
    assert model.parameters.total == 6_050_882_784
    copies = 7 * (28 * (2 + 1) + 2) + 8
    assert model.published_params == model.parameters.total + copies * 4096
    assert f"{copies} * 4,096" in " ".join(model.notes)


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


@pytest.mark.parametrize(
    ("identifier", "blocks", "embedding"),
    [  # models without a class, written out: layers * (matrices + norms) + the last norm
        ("gopher-280b", 80 * (13 * 16384 + 2) * 16384 + 16384, 32000 * 16384),
        ("palm-540b", 118 * (2 * 12288 + 2 * 256 + 3 * 73728 + 1) * 18432 + 18432, 256000 * 18432),
        ("evabyte-6.5b", 32 * (4 * 4096 + 3 * 11008 + 2) * 4096 + 4096, 9 * 320 * 4096),
        ("musicgen-medium", 48 * (8 + 8) * 1536**2, None),  # it also attends to its conditioning
        ("jukebox-5b", 72 * (4 * 1200 + 2 * 4800) * 4800, None),
        ("sparse-transformer-imagenet64", 48 * 12 * 512**2, 256 * 512),
        ("falcon-40b", 60 * (2 * (8192 + 512) + 8 * 8192 + 4) * 8192 + 2 * 8192, 65024 * 8192),
    ],
)
def test_models_are_counted_by_their_variant(
    identifier: str, blocks: int, embedding: int | None
) -> None:
    parameters = zoo_model(identifier).parameters
    assert (parameters.blocks, parameters.embedding) == (blocks, embedding)


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
    assert "experts: the row does not say how many there are" in mixture.missing
    speech = zoo_model("wav2vec2-base")
    assert "stem_first: the row has none, and the embedding needs it" in speech.missing


def test_whether_a_head_is_tied_is_taken_from_the_class_unless_models_of_it_differ() -> None:
    def model(start: str) -> Model:
        stated = [row["id"] for row in TABLE if row["tied_embeddings"] is None]
        return zoo_model(next(identifier for identifier in stated if identifier.startswith(start)))

    gpt3 = model("gpt3-")
    assert gpt3.is_tied is True
    assert "is_tied=True: default of GPT2Config (transformers 5.22.2)" in gpt3.assumed
    for start in ZOO_RULES["tie_varies"]:
        if any(row["id"].startswith(start) and row["tied_embeddings"] is None for row in TABLE):
            varied = model(start)
            assert varied.is_tied is None
            assert "small and large models differ in it" in " ".join(varied.missing)


def test_a_released_vit_huge_reads_588_numbers_a_patch_and_not_768() -> None:
    model = zoo_model("vit-h-14")
    assert model.rank_limit == model.input.dimensions == 588
    assert "768" in model.notes[0]


def test_a_model_is_found_by_id_and_by_printed_name_in_any_case() -> None:
    assert zoo_model("GPT2-XL") == zoo_model("gpt2-xl")
    for identifier, name in zoo_names().items():
        assert zoo_model(name.upper()) is zoo_model(identifier)


@pytest.mark.parametrize(
    ("word", "identifier"),
    [
        ("mistral-7b", "mistral-7b-v0.1"),
        ("gpt2-small", "gpt2"),
        ("GPT-2 small", "gpt2"),
        ("llama2_7b", "llama-2-7b"),
        ("llama-2-7b", "llama-2-7b"),
        ("bert-base", "bert-base-uncased"),
        ("Qwen 2.5 7B", "qwen2.5-7b"),
        ("vit-huge", "vit-h-14"),
        ("opt13b", "opt-13b"),
        # not in the table, and not to be taken for another size
        ("opt-1.3b", None),
        ("llama-27b", None),
        ("esm2-35m", None),
        ("", None),
        ("-", None),
    ],
)
def test_common_names_find_their_model_and_no_other(word: str, identifier: str | None) -> None:
    assert zoo_id(word) == identifier


def test_every_name_of_the_table_is_one_rows_own() -> None:
    """Other names too: none is the id, the printed name or another name of a second row."""
    called = ZOO_RULES["called"]
    assert called.keys() <= zoo_rows().keys()
    for identifier, printed in zoo_names().items():
        for name in (identifier, printed, *called.get(identifier, ())):
            assert zoo_id(name) == identifier, name


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("esm2-35m", ["esm2-150m", "esm2-8m", "esm2-650m"]),  # by ratio of sizes
        ("meta-llama/Llama-3.1-8B", ["llama-3-8b", "llama-2-7b", "llama-2-13b"]),
        ("opt-1.3b", ["opt-350m", "opt-13b", "opt-125m"]),
        ("zzz", []),
    ],
)
def test_the_nearest_are_of_the_same_family_and_about_the_same_size(
    word: str, near: list[str]
) -> None:
    assert nearest(word, zoo_rows()) == near


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'gpt2-xxl' is not in the table .* gpt2-xl"):
        zoo_model("gpt2-xxl")
    with pytest.raises(ValueError, match="it has 169 models"):
        zoo_model("~~~~")


def test_every_rule_is_used_by_some_row_and_names_a_family_that_is_there() -> None:
    rules, entries = ZOO_RULES, {**knowledge()["families"], **knowledge()["variants"]}
    assert set(rules["by_family"]) <= {row["family"] for row in TABLE}
    for start in (*rules["by_start"], *rules["tie_varies"]):
        assert any(row["id"].startswith(start) for row in TABLE), start
    for table in ("causes", "doubtful", "notes"):
        assert rules[table].keys() <= zoo_rows().keys()
    used = {fact for row in TABLE for fact in counting_rule(row).get("facts", ())}
    assert used == set(rules["facts"])
    assert {counting_rule(row)["family"] for row in TABLE} <= entries.keys()
    turbo = {"id": "whisper-large-v3-turbo", "family": "whisper"}
    assert counting_rule(turbo)["facts"][1] == "whisper_3_vocab"
    first = next(iter(knowledge()["families"]))
    assert counting_rule({"id": "anything", "family": first})["family"] == first


def test_a_row_is_read_in_a_moment_and_alone() -> None:
    code = (
        "import time; import archfit.audit.zoo as zoo; start = time.process_time(); "
        "zoo.zoo_model('gpt2'); print(time.process_time() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 0.1
