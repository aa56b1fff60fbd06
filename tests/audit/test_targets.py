"""What a word means: paths, names of the table, runs of ours and the cache of Hugging Face."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.audit.targets import ModelFiles, find_target
from tests_safetensors import write_shapes


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(word: str | Path, **environment: str) -> ModelFiles | str:
    return find_target(str(word), environment={"HF_HOME": "nowhere"} | environment)


def model_folder(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name.endswith(".safetensors"):
            write_shapes(folder / name, {"wte.weight": ("F32", [4, 2])})
        else:
            (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize("word", ["gpt2", "GPT2", "gpt-2 SMALL", "GPT-2"])
def test_a_name_of_the_table_is_found_by_id_and_printed_name(word: str) -> None:
    assert found(word) == "gpt2"


def test_a_path_that_exists_wins_over_a_name(tmp_path: Path) -> None:
    model_folder(tmp_path / "gpt2", "config.json")
    here = Path("gpt2")
    assert found("gpt2") == ModelFiles(
        name="gpt2", description=here / "config.json", checkpoint=None, folder=here
    )


@pytest.mark.parametrize(
    ("names", "word", "config", "checkpoint"),
    [
        (["config.json"], "m", "config.json", None),
        (["config.json"], "m/config.json", "config.json", None),
        (["config.json", "model.safetensors"], "m", "config.json", "model.safetensors"),
        (["config.json", "model.safetensors"], "m/config.json", "config.json", "model.safetensors"),
        (["config.json", "x.safetensors"], "m/x.safetensors", "config.json", "x.safetensors"),
        (["x.safetensors"], "m", None, "x.safetensors"),
        (["x.safetensors", "model.safetensors"], "m", None, "model.safetensors"),
        (["bert.json", "model.safetensors"], "m/bert.json", "bert.json", None),
        (["config.json", "x.safetensors", "y.safetensors"], "m", "config.json", None),
        (["config.json", "pytorch_model.bin"], "m", "config.json", None),
    ],
)
def test_files_of_a_model_are_found_from_each_other(
    names: list[str], word: str, config: str | None, checkpoint: str | None, tmp_path: Path
) -> None:
    folder = model_folder(tmp_path / "m", *names)
    target = found(tmp_path / word)
    assert isinstance(target, ModelFiles)
    assert target.description == (folder / config if config else None)
    assert target.checkpoint == (folder / checkpoint if checkpoint else None)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("config.json", "m"),
        ("model.safetensors", "m"),
        ("bert.json", "bert"),
        ("x.safetensors", "x"),
        ("x.safetensors.index.json", "x"),
    ],
)
def test_a_model_is_named_after_its_file_or_its_folder_where_all_files_have_that_name(
    file: str, name: str, tmp_path: Path
) -> None:
    target = found(model_folder(tmp_path / "m", file) / file)
    assert isinstance(target, ModelFiles)
    assert target.name == name


def test_the_index_stands_for_its_shards(tmp_path: Path) -> None:
    shards = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    folder = model_folder(tmp_path / "m", *shards)
    for word in (folder, folder / shards[1]):
        with pytest.raises(ValueError, match="one shard of several; put model"):
            found(word)
    index = folder / "model.safetensors.index.json"
    index.write_text("{}")
    for word in (folder, folder / shards[1], index):
        target = found(word)
        assert isinstance(target, ModelFiles)
        assert (target.name, target.checkpoint) == ("m", index)


def test_a_run_of_ours_is_told_by_its_spec(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "run", "spec.json", "record.json")
    run = ModelFiles(name="run", folder=folder, description=folder / "spec.json")
    assert found(folder) == found(folder / "spec.json") == run
    weights = model_folder(folder, "model.safetensors") / "model.safetensors"
    done = replace(run, checkpoint=weights)
    assert found(folder) == found(weights) == done


@pytest.mark.parametrize(
    ("names", "word", "sentence"),
    [
        ([], "m", "m holds neither config.json nor a .safetensors file that can be read; give a"),
        (["pytorch_model.bin"], "m", r"pytorch_model.bin is a pickled checkpoint, .*save_file"),
        (["a.pt"], "m/a.pt", "is a pickled checkpoint"),
        (["pytorch_model.bin.index.json"], "m/pytorch_model.bin.index.json", "pickled checkpoint"),
        (["x.safetensors", "y.safetensors"], "m", "several checkpoints .x.safetensors, y.safe"),
        (["model.gguf"], "m/model.gguf", "is no model file that archfit reads; give a folder"),
    ],
)
def test_files_that_are_no_model_are_refused(
    names: list[str], word: str, sentence: str, tmp_path: Path
) -> None:
    model_folder(tmp_path / "m", *names)
    with pytest.raises(ValueError, match=sentence):
        found(tmp_path / word)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["config.json", "pytorch_model.bin"],
            "and unpickling can run any code",
        ),
        (["config.json", "x.safetensors", "y.safetensors"], "holds several checkpoints"),
        (["config.json"], r"config.json has no weights beside it"),
    ],
)
def test_weights_that_are_not_there_are_explained_when_asked_for(
    names: list[str], sentence: str, tmp_path: Path
) -> None:
    target = found(model_folder(tmp_path / "m", *names))
    assert isinstance(target, ModelFiles)
    with pytest.raises(ValueError, match=sentence):
        target.weights()


# ---- the cache


def snapshots(hub: Path, name: str, *commits: str) -> Path:
    model = hub / f"models--{name.replace('/', '--')}"
    for age, commit in enumerate(commits):
        blob = model / "blobs" / commit
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_text("{}")
        folder = model / "snapshots" / commit
        folder.mkdir(parents=True)
        (folder / "config.json").symlink_to(blob)
        os.utime(folder, (1000 + age, 1000 + age))
    return model


@pytest.mark.parametrize(
    ("variable", "folder", "hub"),
    [
        ("HF_HUB_CACHE", "cache", "cache"),
        ("HF_HOME", "home", "home/hub"),
        ("XDG_CACHE_HOME", "xdg", "xdg/huggingface/hub"),
    ],
)
def test_the_cache_is_where_hugging_face_puts_it(
    variable: str, folder: str, hub: str, tmp_path: Path
) -> None:
    model = snapshots(tmp_path / hub, "org/name", "aa", "bb")
    environment = {variable: str(tmp_path / folder)}
    target = find_target("org/name", environment=environment)
    assert isinstance(target, ModelFiles)
    assert (target.name, target.description) == (
        "org/name",
        model / "snapshots" / "bb" / "config.json",
    )


def test_the_commit_of_main_comes_before_the_newest(tmp_path: Path) -> None:
    model = snapshots(tmp_path / "hub", "org/name", "aa", "bb")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("aa")
    target = found("org/name", HF_HOME=str(tmp_path))
    assert isinstance(target, ModelFiles)
    assert target.folder.name == "aa"


@pytest.mark.parametrize("reference", ["../../../../secret", "cc", "\xff", ""])
def test_a_reference_that_leads_nowhere_is_passed_over(reference: str, tmp_path: Path) -> None:
    model = snapshots(tmp_path / "hub", "org/name", "aa")
    model_folder(tmp_path / "secret", "config.json")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(reference, encoding="latin-1")
    target = found("org/name", HF_HOME=str(tmp_path))
    assert isinstance(target, ModelFiles)
    assert target.folder.name == "aa"


@pytest.mark.parametrize("word", ["../x", "org/../x", "a/b/c", "", "\x00", "x" * 5000, "org/ name"])
def test_a_word_cannot_lead_out_of_the_cache(word: str, tmp_path: Path) -> None:
    snapshots(tmp_path / "hub", "org/name", "aa")
    with pytest.raises(ValueError, match="is no file or folder here"):
        found(word, HF_HOME=str(tmp_path))


def test_a_name_not_found_says_where_it_was_looked_for_and_what_is_close(tmp_path: Path) -> None:
    snapshots(tmp_path / "hub", "google/bert-large", "aa")
    with pytest.raises(
        ValueError, match="is no file or folder here, none of 169 models"
    ) as problem:
        found("Bert-Large-Casd", HF_HOME=str(tmp_path))
    close = "bert-large-cased, bert-large-uncased, google/bert-large"
    assert f"the Hugging Face cache {tmp_path / 'hub'}; close are {close}" in str(problem.value)
    with pytest.raises(ValueError, match=r"give a folder, a config\.json, a \.safetensors file"):
        found("zzzzzz")


def test_a_folder_of_the_cache_without_a_model_is_not_its_own_suggestion(tmp_path: Path) -> None:
    (tmp_path / "models--org--name" / "snapshots").mkdir(parents=True)
    with pytest.raises(ValueError, match="not in the Hugging Face cache") as refused:
        found("org/name", HF_HUB_CACHE=str(tmp_path))
    assert "close are" not in str(refused.value)
