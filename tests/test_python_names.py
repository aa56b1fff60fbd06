"""What `import archfit` offers: the answers of the command line, as values."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from html import escape
from pathlib import Path
from typing import Any

import pytest

import archfit
from archfit.report.answer import Answer
from tests_said import said

ARCHFIT: Any = archfit  # of which `audit` and `advise` are folders that can be called
NETWORK: dict[str, Any] = {"depth": 2, "width": 4, "heads": 1}


def test_the_atlas_is_a_table_of_runs() -> None:
    atlas = archfit.atlas()
    frame = atlas.to_frame()
    assert type(frame).__name__ == "DataFrame"
    assert len(frame) == len(atlas.runs)
    assert {"kind", "family", "depth", "width", "params", "seed", "bits"} <= set(frame.columns)
    assert repr(atlas).startswith(f"<{len(frame):,} runs on ")
    assert atlas.to_dict()["runs"] == len(frame)


def test_importing_archfit_loads_nothing_heavy() -> None:
    code = "import archfit, sys; print({'numpy', 'torch', 'altair'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("line", "ask"),
    [
        ("plan --params 10M --vocab 257", lambda: archfit.plan(params="10M", vocab=257)),
        ("plan --bytes 16MB --tied", lambda: archfit.plan(bytes="16MB", tied=True)),
        ("audit gpt2 T5-11B", lambda: ARCHFIT.audit("gpt2", "T5-11B")),
        ("bounds --depth 2 --width 4 --heads 1", lambda: archfit.bounds(**NETWORK)),
        ("backtest --grid gadre", lambda: archfit.backtest("gadre")),
    ],
)
def test_a_function_says_what_the_command_says(line: str, ask: Any) -> None:
    answer, document = ask(), json.loads(said(*line.split(), "--json").out)
    assert json.loads(json.dumps(answer.to_dict())) == document
    assert said(*line.split()).out == f"{answer}\n"
    assert repr(answer) == f"<{answer.document.headline}>"
    assert len(repr(answer)) < 200
    page = answer._repr_html_()
    assert escape(answer.document.headline) in page
    assert "<script" not in page
    assert page.count("<img ") == len(answer.document.figures)
    assert len(answer.to_frame()) >= 1
    with pytest.raises(FrozenInstanceError):
        answer.value = None


def test_measured_ranks_are_values() -> None:
    answer = archfit.measure(**NETWORK, positions=4)
    assert answer.rank == answer.to_dict()["separation_rank"] == 110
    assert answer.to_frame()["separation_rank"][0] == 110
    with pytest.raises(AttributeError):
        _ = answer.nothing_of_this_name


def test_a_plan_reads_a_file_as_it_is_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "poem.txt"
    file.write_text("\n\n".join(f"line {number} of a poem" for number in range(2000)))
    answer = archfit.plan(params="1M", data=file)
    assert answer.to_dict()["question"]["data"]["kind"] == "text"
    assert [path.name for path in tmp_path.iterdir()] == ["poem.txt"]
    assert said("plan", "--params", "1M", "--data", file, "--json").document() == json.loads(
        json.dumps(answer.to_dict())
    )
    commands = [str(line) for line in answer.document.sections[1].sentences]
    assert commands[0] == f"archfit data prepare {file} --out poem-data"
    assert "--data poem-data" in commands[-1]


def test_advice_is_written_and_returned(tmp_path: Path) -> None:
    file = tmp_path / "poem.txt"
    file.write_text("\n\n".join(f"line {number} of a poem" for number in range(2000)))
    out = tmp_path / "advice"
    answer = ARCHFIT.advise(file, out=out, params="1M", no_measure=True)
    assert isinstance(answer, Answer)
    assert (out / "report.html").is_file()
    assert answer.to_dict()["recommended"]["depth"] == answer.plan.shape.depth


def test_advice_for_blocks_alone_is_for_their_parameters(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("which shape fits? " * 2000)
    answer = ARCHFIT.advise(file, out=tmp_path / "o", block_params="1M", vocab=257, no_measure=True)
    assert answer.plan.params.blocks == pytest.approx(10**6, rel=0.03)


def test_a_config_or_model_of_transformers_is_audited_as_its_file_is(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=300)
    config.save_pretrained(tmp_path)
    (of_file,) = ARCHFIT.audit(tmp_path).to_dict()
    for target in (config, transformers.GPT2LMHeadModel(config), config.to_dict()):
        (of_object,) = ARCHFIT.audit(target).to_dict()
        free = {"name", "origin", "assumed"}
        assert {key: value for key, value in of_object.items() if key not in free} == {
            key: value for key, value in of_file.items() if key not in free
        }
    with pytest.raises(ValueError, match="nothing of type int can be audited"):
        ARCHFIT.audit(3)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: archfit.plan(parms="10M"), "'parms' is no option; use params, "),
        (lambda: archfit.plan(params="ten"), "ten"),
        (lambda: archfit.plan(params="10M", vocab=3, data="x"), "each give a vocabulary"),
        (lambda: archfit.plan(params="10M", data="nowhere"), "no file or folder 'nowhere'"),
        (lambda: archfit.plan(params=float("nan")), "params=nan is not a whole number; use one"),
        (lambda: archfit.plan(params=True), "params=True is not a whole number"),
        (lambda: archfit.plan(params=[10]), "params=a list of 1 is not a whole number"),
        (lambda: archfit.bounds(depth=2.5, width=4, heads=1), "depth=2.5 is not a whole number"),
        (lambda: archfit.bounds(depth=2), "width and heads must be given"),
        (lambda: ARCHFIT.audit(), "no target is given"),
        (lambda: archfit.backtest("nowhere"), "nowhere"),
    ],
)
def test_what_is_wrong_is_one_sentence(ask: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ask()


def test_whole_numbers_may_be_written_as_reals() -> None:
    assert archfit.bounds(depth=2.0, width=4, heads="1").to_dict() == (
        archfit.bounds(**NETWORK).to_dict()
    )


def test_the_questions_are_offered_by_name() -> None:
    assert {"plan", "advise", "audit", "measure", "bounds", "atlas", "backtest"} <= set(
        dir(archfit)
    )


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        _ = ARCHFIT.plam
