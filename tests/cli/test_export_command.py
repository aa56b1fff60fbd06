"""`archfit export`: what it writes and prints, and its refusals; each is one sentence."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.cli.app import main
from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData
from archfit.data.sources import DataSettings
from archfit.export.formats import FORMATS
from archfit.spec import Architecture, Rotary
from tests_exports import NETWORK, random_run
from tests_safetensors import write_shapes
from tests_said import Said
from tests_training import record_of, tiny_spec

SHAPE = ("--depth", "2", "--width", "48", "--heads", "4")
TEXT = "to be, or not to be: that is the question\n" * 80


Archfit = Callable[..., Said]


@pytest.fixture
def export(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Archfit:
    """`archfit export` into `out`, in this process."""

    def run(*arguments: str) -> Said:
        where = ("--out", str(tmp_path / "out"))
        monkeypatch.setattr("sys.argv", ["archfit", "export", *where, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Said(ended.value.code, said.out, said.err)

    return run


@pytest.fixture
def bpe(tmp_path: Path) -> PreparedData:
    """Text by a tokenizer of Hugging Face."""
    for name in ("train.txt", "heldout.txt"):
        (tmp_path / name).write_text(TEXT)
    settings = DataSettings(kind="text", vocab=270)
    held = str(tmp_path / "heldout.txt")
    return prepare(str(tmp_path / "train.txt"), tmp_path / "bpe", settings, heldout=held).data


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", FORMATS)
def test_json_names_the_files_that_are_there(name: str, export: Archfit, tmp_path: Path) -> None:
    document = export(*SHAPE, "--format", name, "--json").document()
    assert document.keys() == {"format", "files", "params", "notes"}
    assert document["format"] == name
    files = document["files"]
    assert isinstance(files, list)
    assert sorted(files) == sorted(map(str, (tmp_path / "out").iterdir()))
    params = document["params"]
    assert isinstance(params, dict)
    assert params["total"] == params["blocks"] + params["embedding"]


def test_people_see_files_parameters_and_notes(export: Archfit, tmp_path: Path) -> None:
    said = export(
        *("--depth", "12", "--width", "768", "--heads", "12"),
        *("--vocab", "50257", "--context", "1024", "--tied"),
    )
    assert said.status == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("hf-gpt2: 124,439,808 parameters (85,056,000 in blocks, ")
    assert lines[1].strip() == str(tmp_path / "out" / "config.json")
    assert lines[2].strip() == str(tmp_path / "out" / "train.py")
    assert lines[3].startswith("  Note: ")
    assert lines[-3:-1] == ["Next", f"    python {tmp_path / 'out' / 'train.py'} DATA"]
    assert "it is not tied to the embedding" not in said.out
    assert "it is not tied to the embedding" in export(*SHAPE, "--overwrite").out


def test_options_reach_the_file(export: Archfit, tmp_path: Path) -> None:
    options = ("--head-dim", "20", "--kv-heads", "2", "--vocab", "1K", "--context", "77")
    export(*SHAPE, *options, "--feed-forward", "100", "--format", "hf-qwen3")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["head_dim"], config["num_key_value_heads"]) == (20, 2)
    assert (config["vocab_size"], config["max_position_embeddings"]) == (1000, 77)
    assert config["intermediate_size"] == 100


def test_a_rank_reaches_opt(export: Archfit, tmp_path: Path) -> None:
    export(*SHAPE, "--rank", "5", "--tied", "--format", "hf-opt")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["word_embed_proj_dim"], config["tie_word_embeddings"]) == (5, True)


def test_a_run_becomes_a_folder_that_loads(
    export: Archfit, bpe: PreparedData, tmp_path: Path
) -> None:
    """Config, weights and tokenizer, without remote code."""
    import numpy as np
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = tiny_spec(bpe)
    record_of(spec, bpe, tmp_path / "runs")
    run = ("--run", str(tmp_path / "runs" / spec.name), "--data", str(bpe.folder))
    document = export(*run, "--json").document()
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert document["params"] == {
        "blocks": spec.architecture.params_without_embeddings,
        "embedding": spec.architecture.embedding_params,
        "total": sum(parameter.numel() for parameter in model.parameters()),
    }
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    separator = bpe.vocabulary().separator
    ids = np.array([*tokenizer(TEXT, truncation=False, verbose=False).input_ids, separator])
    assert bpe.vocabulary().decode(ids) == [TEXT.encode()]
    assert len(ids) == len(bpe.tokens("heldout"))
    assert (model.config.eos_token_id, tokenizer.eos_token_id) == (separator, separator)


def test_data_gives_a_shape_its_vocabulary(
    export: Archfit, bpe: PreparedData, tmp_path: Path
) -> None:
    export(*SHAPE, "--data", str(bpe.folder))
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["vocab_size"], config["eos_token_id"]) == (bpe.vocab, bpe.vocab - 1)
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (
        bpe.folder / "tokenizer.json"
    ).read_bytes()


def _files(*names: str) -> set[str]:
    return {"config.json", "train.py", *names}


def test_bytes_come_with_a_tokenizer_and_other_data_with_a_note(
    export: Archfit, tmp_path: Path
) -> None:
    (tmp_path / "bytes.txt").write_text(TEXT)
    source = str(tmp_path / "bytes.txt")
    data = prepare(source, tmp_path / "data", DataSettings(kind="bytes"), heldout=source).data
    assert export(*SHAPE, "--data", str(data.folder)).status == 0
    written = _content(tmp_path / "out")
    assert written.keys() == _files("tokenizer.json", "tokenizer_config.json")
    config = json.loads(written["config.json"])
    assert (config["vocab_size"], config["eos_token_id"]) == (257, 256)
    (tmp_path / "seq.fasta").write_text(">a\nACGTACGTAC\n>b\nGGTTACGT\n" * 50)
    source = str(tmp_path / "seq.fasta")
    data = prepare(source, tmp_path / "letters", DataSettings(kind="fasta"), heldout=source).data
    words = (*SHAPE, "--data", str(data.folder), "--overwrite", "--json")
    notes = export(*words).document()["notes"]
    assert isinstance(notes, list)
    assert notes[-1].startswith("no tokenizer: the data is encoded as k-mers")
    assert _content(tmp_path / "out").keys() == _files()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*SHAPE, "--head-dim", "20"), "hf-llama, hf-qwen3, litgpt, megatron can"),
        (("--depth", "2"), "a shape needs --depth, --width and --heads; or give --run DIR"),
        (("--depth", "2", "--width", "50", "--heads", "4"), "or give --head-dim"),
        ((*SHAPE, "--format", "onnx"), "format='onnx' is unknown; use one of hf-gpt2"),
        ((*SHAPE, "--vocab", "many"), "is not a size"),
        ((*SHAPE, "--rank", "0", "--format", "hf-opt"), "--rank=0 is below 1"),
        ((*SHAPE, "--run", "here"), "--depth does not go with --run"),
        (("--tied", "--run", "here"), "--tied does not go with --run"),
        (("--run", "nowhere"), "'nowhere' is not the folder of a run"),
        ((*SHAPE, "--data", "nowhere"), "'nowhere' is not a prepared data set"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(
    arguments: tuple[str, ...], sentence: str, export: Archfit, tmp_path: Path
) -> None:
    assert sentence in export(*arguments).refusal()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("architecture", "asked", "able"),
    [
        (NETWORK, "hf-llama", "hf-gpt2"),
        (NETWORK, "litgpt", "hf-gpt2"),
        (replace(NETWORK, objective="masked"), "hf-gpt2", "hf-esm"),
        (replace(NETWORK, block="llama", positions=Rotary()), "hf-gpt2", "hf-llama"),
        (replace(NETWORK, block="llama", positions=Rotary(), qk_norm=True), "hf-llama", "hf-qwen3"),
    ],
)
def test_a_format_without_the_blocks_of_a_run_is_refused_with_the_one_that_has_them(
    architecture: Architecture, asked: str, able: str, export: Archfit, tmp_path: Path
) -> None:
    random_run(tmp_path / "run", architecture)
    run = ("--run", str(tmp_path / "run"))
    refusal = export(*run, "--format", asked).refusal()
    assert f"--format {asked} does not have such blocks as this run; use --format {able}" in refusal
    assert not (tmp_path / "out").exists()
    assert export(*run, "--json").document()["format"] == able


def test_a_vocabulary_below_that_of_the_data_is_refused(export: Archfit, bpe: PreparedData) -> None:
    said = export(*SHAPE, "--vocab", "100", "--data", str(bpe.folder))
    assert f"--vocab 100 is below the {bpe.vocab} tokens" in said.refusal()


def test_the_tokenizer_of_other_data_is_refused(
    export: Archfit, bpe: PreparedData, tmp_path: Path
) -> None:
    random_run(tmp_path / "run")
    said = export("--run", str(tmp_path / "run"), "--data", str(bpe.folder))
    assert "give the data it was trained on" in said.refusal()


def test_damaged_weights_are_refused_and_leave_nothing(export: Archfit, tmp_path: Path) -> None:
    random_run(tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").write_bytes(b"\0" * 100)
    assert "model.safetensors is damaged" in export("--run", str(tmp_path / "run")).refusal()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_export_is_replaced_only_when_asked_to(export: Archfit, tmp_path: Path) -> None:
    export(*SHAPE)
    before = _content(tmp_path / "out")
    again = export(*SHAPE, "--format", "litgpt").refusal()
    assert "already holds config.json; use --overwrite" in again
    assert _content(tmp_path / "out") == before
    assert export(*SHAPE, "--format", "litgpt", "--overwrite").status == 0
    assert _content(tmp_path / "out").keys() == {"model_config.yaml", "pretrain.yaml"}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_knows_its_own_files(
    name: str, export: Archfit, bpe: PreparedData, tmp_path: Path
) -> None:
    options = (*SHAPE, "--format", name, "--data", str(bpe.folder))
    export(*options)
    before = _content(tmp_path / "out")
    assert export(*options, "--overwrite").status == 0
    assert _content(tmp_path / "out") == before


def test_weights_need_no_torch(tmp_path: Path) -> None:
    random_run(tmp_path / "run")
    arguments = ["export", "--run", str(tmp_path / "run"), "--out", str(tmp_path / "out")]
    code = "import sys; sys.modules['torch'] = None; from archfit.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=False)
    assert done.returncode == 0
    assert _content(tmp_path / "out").keys() == _files("model.safetensors")


def test_what_is_no_export_is_never_replaced(export: Archfit, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years")
    said = export(*SHAPE, "--overwrite")
    assert "holds thesis.tex, which is of no export and would be lost" in said.refusal()
    assert _content(tmp_path / "out") == {"thesis.tex": b"years"}


def test_weights_of_somebody_elses_model_are_never_replaced(
    export: Archfit, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "config.json").write_text("{}")
    write_shapes(out / "model.safetensors", {"wte.weight": ("F32", [4, 2])})
    before = _content(out)
    sentence = "holds model.safetensors, which is of no export and would be lost"
    assert sentence in export(*SHAPE, "--overwrite").refusal()
    assert _content(out) == before


def test_weights_of_an_export_are_replaced(export: Archfit, tmp_path: Path) -> None:
    random_run(tmp_path / "run", NETWORK)
    export("--run", str(tmp_path / "run"))
    before = _content(tmp_path / "out")
    assert export("--run", str(tmp_path / "run"), "--overwrite").status == 0
    assert _content(tmp_path / "out") == before
    assert export(*SHAPE, "--overwrite").status == 0
    assert _content(tmp_path / "out").keys() == _files()


def test_a_folder_that_is_named_like_a_file_of_an_export_is_never_replaced(
    export: Archfit, tmp_path: Path
) -> None:
    (tmp_path / "out" / "config.json").mkdir(parents=True)
    (tmp_path / "out" / "config.json" / "precious").touch()
    assert "holds config.json, which is of no export" in export(*SHAPE, "--overwrite").refusal()
    assert (tmp_path / "out" / "config.json" / "precious").exists()


def test_a_link_to_itself_is_refused(export: Archfit, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("out")
    export(*SHAPE).refusal()


def test_a_file_in_the_way_is_refused(export: Archfit, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    assert "is a file, and an export is a folder" in export(*SHAPE, "--overwrite").refusal()


def test_an_empty_folder_is_filled(export: Archfit, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert export(*SHAPE).status == 0
    assert _content(tmp_path / "out").keys() == _files()
