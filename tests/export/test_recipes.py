"""What an export comes with: a recipe that trains the network, and a tokenizer that loads.

transformers' recipe is run. Those of litgpt and nanochat, which are not installed here, are checked
against names in their source: litgpt's config_hub/pretrain/microllama.yaml at 2791654 and
data/text_files.py at 12332a1, nanochat's base_train at 00255c1 and tok_train at 030de3a.
"""

import json
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archfit.data.prepare import prepare
from archfit.data.prepared import open_prepared
from archfit.data.sources import DataSettings
from archfit.data.streams import DocumentBlock
from archfit.data.vocabulary import Bytes
from archfit.export.formats import FORMATS, ExportShape, export_config, write_files
from archfit.journey import with_tokenizer_of
from archfit.spec.rates import auto_rate
from tests_exports import GPT2, SMALL

TINY = replace(SMALL, depth=1, width=16, heads=2, head_dim=8, kv_heads=2, vocab=257, context=32)
TRAINER = [
    name for name, each in FORMATS.items() if any(f["name"] == "train.py" for f in each.files)
]
SLOW = ("hf-gpt2", "hf-qwen3")  # each takes seconds; hf-llama and hf-opt differ the most
TEXT = "Two words,  two  blanks;\r\n\ta tab, 42 «quotes», naïve café, 漢字 \U0001f600\n\x00\x7f"


def _data(folder: Path) -> Path:
    """Bytes with some order in them, both sides alike."""
    for side, count in (("train", 12_000), ("heldout", 600)):
        draws = np.random.default_rng(count).integers(0, 26, count)
        text = "".join(chr(97 + draw) + ("e " if draw % 3 else "") for draw in draws)
        (folder / f"{side}.txt").write_text(text)
    source, heldout = (str(folder / f"{side}.txt") for side in ("train", "heldout"))
    return prepare(source, folder / "data", DataSettings(kind="bytes"), heldout=heldout).data.folder


def _folder(shape: ExportShape, name: str, folder: Path) -> Path:
    folder.mkdir()
    write_files(export_config(shape, name), folder)
    return folder


def _train(script: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> float:
    """Run a recipe here; what it prints at its end."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(sys, "argv", [str(script), *words])
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        runpy.run_path(str(script), run_name="__main__")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "heldout_nats" in line]
    return float(json.loads(line)["heldout_nats_per_token"])


def test_the_formats_of_decoders_come_with_a_recipe_for_the_trainer() -> None:
    assert TRAINER == ["hf-gpt2", "hf-llama", "hf-qwen3", "hf-opt"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in TRAINER],
)
def test_the_trainer_learns_from_prepared_data_and_goes_on_from_weights(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers import AutoModelForCausalLM

    shape = TINY if name != "hf-opt" else replace(TINY, width=24, head_dim=12)
    data = _data(tmp_path)
    folder = _folder(shape, name, tmp_path / "model")
    out = tmp_path / "trained"
    words = [str(data), "--steps", "12", "--out", str(out)]
    first = _train(folder / "train.py", words, capsys)
    assert first < 4  # ln 257 = 5.55 at its start
    built = AutoModelForCausalLM.from_pretrained(out)
    assert sum(p.numel() for p in built.parameters()) == export_config(shape, name).params.total
    shutil.copy(out / "model.safetensors", folder)
    assert _train(folder / "train.py", words, capsys) < first  # from new weights it would be equal


def test_the_trainer_of_a_wide_network_starts_from_the_rate_of_gpt_3() -> None:
    text = export_config(GPT2, "hf-gpt2").files["train.py"]
    assert "CONTEXT, STEPS, EPOCHS = 1024, 99510, 4" in text  # 20 tokens for each of 163,037,184
    assert "LEARNING_RATE, INITIAL_STD = 0.0006, 0.0228" in text  # GPT-3's, at this width
    assert "SEQUENCES, AT_ONCE = 32, 8" in text
    wide = replace(GPT2, context=1000, heads=6, kv_heads=6, head_dim=128)
    qwen = export_config(wide, "hf-qwen3").files["train.py"]
    assert "LEARNING_RATE, INITIAL_STD = 0.0006" in qwen
    assert "SEQUENCES, AT_ONCE = 32, 8" in qwen
    long = export_config(replace(TINY, context=100_000), "hf-gpt2").files["train.py"]
    assert "SEQUENCES, AT_ONCE = 1, 1" in long


def test_the_trainer_takes_no_more_than_four_epochs_and_no_fewer_than_200_steps() -> None:
    """Of 10,000 tokens: 40,000 in all, 200 a step, which hold 6 rows of 32."""
    exported = export_config(replace(TINY, data_tokens=10_000), "hf-gpt2")
    text = exported.files["train.py"]
    assert "SEQUENCES, AT_ONCE = 6, 6" in text
    assert "STEPS, EPOCHS = 32, 208, 4" in text
    assert "192 tokens a step, 4 epochs of the data," in text
    assert json.loads(exported.files["config.json"])["training_tokens"] == 40_000
    other = export_config(replace(TINY, tokens_per_param=1.5), "hf-gpt2")
    tokens = json.loads(other.files["config.json"])["training_tokens"]
    assert tokens == round(1.5 * other.params.total)
    assert "tokens a step, 1.5 tokens a parameter," in other.files["train.py"]


def test_the_trainer_reads_data_that_it_did_not_know_four_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, folder = _data(tmp_path), _folder(TINY, "hf-gpt2", tmp_path / "model")
    script, out = folder / "train.py", tmp_path / "trained"
    text = script.read_text()
    sequences = int(text.partition("SEQUENCES, AT_ONCE = ")[2].partition(",")[0])
    rows = json.loads((data / "data.json").read_text())["train"]["tokens"] // 32
    script.write_text(text.replace("STEPS, EPOCHS = 32,", "STEPS, EPOCHS = 32, 10**6 +"))
    _train(script, [str(data), "--out", str(out)], capsys)
    (last,) = out.glob("checkpoint-*")
    assert last.name == f"checkpoint-{4 * rows // sequences}"


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        (replace(TINY, vocab=20), "is in 257 tokens, this network in 20"),
        (replace(TINY, vocab=512), "is in 257 tokens, this network in 512"),
        (replace(TINY, context=10**6), "is shorter than one row of 1000000 tokens"),
    ],
)
def test_data_that_do_not_fit_are_refused(
    shape: ExportShape, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = _data(tmp_path)
    script = _folder(shape, "hf-llama", tmp_path / "model") / "train.py"
    with pytest.raises(SystemExit, match=sentence):
        _train(script, [str(data), "--out", str(tmp_path / "out")], capsys)


# ---- other tools

PRETRAIN = {  # litgpt's, and what stands below
    "model_name", "model_config", "out_dir", "precision", "initial_checkpoint_dir", "resume",
    "data", "train", "eval", "optimizer", "devices", "tokenizer_dir", "logger_name", "seed",
}  # fmt: skip
TRAIN = {
    "save_interval", "log_interval", "global_batch_size", "micro_batch_size", "lr_warmup_steps",
    "epochs", "max_tokens", "max_steps", "max_seq_length", "tie_embeddings", "max_norm", "min_lr",
}  # fmt: skip


@pytest.mark.parametrize("context", [32, 1000, 50_000])
def test_litgpt_reads_every_key_of_its_recipe(context: int) -> None:
    yaml: Any = pytest.importorskip("yaml")
    shape = replace(TINY, context=context)
    recipe = yaml.safe_load(export_config(shape, "litgpt").files["pretrain.yaml"])
    assert recipe.keys() <= PRETRAIN
    train, optimizer = recipe["train"], recipe["optimizer"]
    assert train.keys() <= TRAIN
    assert train["global_batch_size"] % train["micro_batch_size"] == 0
    batch = train["global_batch_size"] * context
    total = export_config(shape, "litgpt").params.total
    assert abs(train["max_tokens"] - 20 * total) <= batch
    assert optimizer["class_path"] == "torch.optim.AdamW"
    assert optimizer["init_args"]["lr"] == auto_rate("gpt2", width=16, batch_tokens=batch)
    assert recipe["data"]["init_args"].keys() <= {"train_data_path", "val_data_path", "seed"}


def test_rates_are_numbers_to_a_reader_of_yaml_however_small() -> None:
    yaml: Any = pytest.importorskip("yaml")
    wide = replace(TINY, width=2**20, heads=2**14, head_dim=64, kv_heads=2**14)
    recipe = yaml.safe_load(export_config(wide, "litgpt").files["pretrain.yaml"])
    assert 0 < recipe["optimizer"]["init_args"]["lr"] < 1e-5


@pytest.mark.parametrize("context", [32, 1000, 2048])
def test_nanochat_takes_every_flag_and_a_batch_of_whole_steps(context: int, tmp_path: Path) -> None:
    """The script is run with a python that prints what it was given."""
    shape = replace(TINY, width=32, heads=2, head_dim=16, context=context, vocab=300)
    folder = _folder(shape, "nanochat", tmp_path / "model")
    (tmp_path / "python").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "python").chmod(0o755)
    command = ["sh", str(folder / "base_train.sh"), "--run=a b"]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    tokenizer, train = map(shlex.split, done.stdout.splitlines())
    assert tokenizer == ["-m", "scripts.tok_train", "--vocab=300"]
    assert train[:2] == ["-m", "scripts.base_train"]
    flags = dict(word.split("=") for word in train[2:-1])
    assert train[-2:] == ["--run=a", "b"]  # one word, printed
    at_once = int(flags["--device-batch-size"]) * int(flags["--max-seq-len"])
    assert int(flags["--total-batch-size"]) % at_once == 0


# ---- tokenizers


def test_bytes_have_a_tokenizer_that_hugging_face_loads(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    vocabulary = Bytes()
    tokenizer = vocabulary.hugging_face()
    assert tokenizer.size == vocabulary.size
    data = open_prepared(_data(tmp_path))
    write_files(with_tokenizer_of(export_config(TINY, "hf-gpt2"), data, context=32), tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    ids = theirs(TEXT)["input_ids"]
    assert ids == [*TEXT.encode()]
    assert ids == vocabulary.encode(DocumentBlock([TEXT.encode()], complete=False)).tolist()
    assert theirs.decode(ids) == TEXT
    assert (theirs.eos_token_id, theirs.bos_token_id, len(theirs)) == (256, 256, 257)
    assert theirs(f"a{theirs.eos_token}b")["input_ids"] == [97, 256, 98]
    every = "".join(map(chr, range(0x800)))  # all one- and two-byte characters
    assert theirs(every)["input_ids"] == [*every.encode()]
