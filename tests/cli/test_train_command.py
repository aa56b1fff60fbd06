"""`archfit train`: what it prints, how it stops, and its refusals; each is one sentence."""

import contextlib
import json
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from archfit.cli.app import main
from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord, from_json
from archfit.spec.run_options import usual_rate
from archfit.train.hardware import ProcessGroup
from archfit.train.run_files import held
from tests_said import Said, unwrapped
from tests_training import (
    checkpoints,
    forked,
    program,
    record_of,
    stored_record,
    tiny_data,
    tiny_spec,
    write_spec,
)

TINY = [
    *("--depth", "1", "--width", "8", "--heads", "2", "--context", "12", "--device", "cpu"),
    *("--steps", "4", "--batch", "4", "--evaluation-sequences", "3"),
]


Archfit = Callable[..., Said]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """As the children have: two threads may add in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return tiny_data(tmp_path_factory.mktemp("training"))


@pytest.fixture
def archfit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Archfit:
    """The program, in this process."""

    def run(*arguments: str) -> Said:
        monkeypatch.setattr("sys.argv", ["archfit", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Said(ended.value.code, said.out, said.err)

    return run


@pytest.fixture
def train(archfit: Archfit, data: PreparedData, tmp_path: Path) -> Archfit:
    """`archfit train` with tiny data into `out`; a later option overrules an earlier one."""

    def run(*arguments: str) -> Said:
        where = ("--data", str(data.folder), "--out", str(tmp_path / "out"))
        return archfit("train", *where, *TINY, *arguments)

    return run


def test_json_is_one_document_with_folder_and_record(train: Archfit) -> None:
    said = train("--json")
    assert (said.status, said.err) == (0, "")
    document = json.loads(said.out)
    assert document.keys() == {"folder", "record"}
    assert from_json(RunRecord, document["record"]) == stored_record(Path(document["folder"]))


def test_the_block_and_its_parts_are_those_asked_for(train: Archfit) -> None:
    words = "--block llama --heads 4 --head-dim 6 --kv-heads 2 --qk-norm --feed-forward attention"
    document = json.loads(train(*words.split(), "--json").out)
    shape = from_json(RunRecord, document["record"]).spec.architecture
    assert (shape.block, shape.kv_heads, shape.qk_norm) == ("llama", 2, True)
    assert shape.feed_forward == 4 * 4 * 6


def test_a_finished_run_says_the_same_again_at_once(train: Archfit) -> None:
    first = train("--json")
    assert train("--json") == first
    again = train()
    assert " begins" not in again.err
    assert "finished" in again.out


def test_people_see_a_line_for_each_evaluation_and_a_table(train: Archfit) -> None:
    said = train("--evaluate-every", "2")
    assert said.status == 0
    assert [line.split("  ")[0] for line in said.err.splitlines()[1:]] == ["step 2/4", "step 4/4"]
    assert "held-out nats" in said.out


def test_what_comes_next_is_what_can_be_done(train: Archfit) -> None:
    """Fits want four repeats; one network is for export."""
    one, many = train().out, train("--seeds", "5").out
    told = unwrapped(one.replace("\\\n", " "))
    assert re.search(r"Next archfit export --run \S+/[0-9a-f]{16} --out model$", told)
    assert "archfit fit" not in one
    assert "archfit fit" in many


def test_two_seeds_are_two_runs(train: Archfit) -> None:
    runs = json.loads(train("--json", "--seeds", "2", "--seed", "5").out)["runs"]
    records = [from_json(RunRecord, run["record"]) for run in runs]
    assert [record.spec.seed for record in records] == [5, 6]
    assert replace(records[0].spec, seed=6) == records[1].spec
    assert records[0].evaluations != records[1].evaluations


def test_tuning_is_three_rates_around_the_automatic_one(train: Archfit) -> None:
    said = train("--json", "--learning-rate", "auto", "--tune")
    runs = json.loads(said.out)["runs"]
    recipes = [from_json(RunRecord, run["record"]).spec.recipe for run in runs]
    low, middle, high = (recipe.peak_learning_rate for recipe in recipes)
    assert (low, high) == (middle / 2, middle * 2)
    assert {recipe.learning_rate_rule for recipe in recipes} == {"fan-in"}
    assert (
        "archfit: automatic learning rates were fitted to other networks: width 16" not in said.err
    )
    assert "training tokens" in said.err  # so few were never tried


def test_the_best_of_several_rates_is_named_for_people(train: Archfit) -> None:
    said = train("--learning-rate", "1e-9", "--tune")  # so low that more is better
    assert "The best of 3 learning rates is 2e-09, the last of those tried on that side" in said.out


def test_an_encoder_s_losses_are_those_of_masked_tokens(train: Archfit) -> None:
    said = train("--objective", "masked")
    assert "masked nats" in said.out
    assert "masked bits" in said.out
    assert "bits per byte" not in said.out


def test_specs_from_files_are_trained_in_their_order(
    train: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    specs = [tiny_spec(data, steps=steps) for steps in (3, 2)]
    files = [word for spec in specs for word in ("--spec", str(write_spec(spec, tmp_path)))]
    runs = json.loads(train("--json", *files).out)["runs"]
    assert [from_json(RunRecord, run["record"]).spec for run in runs] == specs


def test_without_data_the_sample_is_trained_on(archfit: Archfit, tmp_path: Path) -> None:
    said = archfit("train", "--out", str(tmp_path), *TINY, "--json")
    record = from_json(RunRecord, json.loads(said.out)["record"])
    described = json.loads((tmp_path / "sample-data" / "data.json").read_text())
    assert record.spec.data_hash == described["data_hash"]


def test_a_run_that_diverges_is_a_result(train: Archfit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archfit.train.run.LARGEST_LOSS", 5.5)  # ln 257 is more
    said = train()
    assert said.status == 0
    assert "diverged at step 0" in " ".join(said.out.split())


@pytest.mark.parametrize(
    ("number", "status"),
    [pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow), (signal.SIGINT, 130)],
)
def test_a_signal_saves_says_one_sentence_and_the_same_command_goes_on(
    archfit: Archfit, data: PreparedData, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    spec = tiny_spec(data, steps=100, evaluation_steps=5, evaluation_sequences=1)
    run, file = tmp_path / spec.name, str(write_spec(spec, tmp_path))
    command = program(data, tmp_path, "--spec", file, "--json")
    process = forked(command, said=tmp_path / "said")
    while process.is_alive() and not has_evaluated(run):
        time.sleep(0.005)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(60)
    out, err = ((tmp_path / f"said.{end}").read_text() for end in ("out", "err"))
    assert (process.exitcode, out) == (status, ""), err
    (checkpoint,) = checkpoints(run)
    step = int(checkpoint.removeprefix("step-"))
    assert err == f"archfit: stopped at step {step}; run the same command again to resume\n"
    assert archfit(*command[3:]).status == 0
    expected = record_of(spec, data, tmp_path / "undisturbed")
    assert stored_record(run).same_result(expected)


def has_evaluated(run: Path) -> bool:
    log = run / "log.jsonl"
    return log.exists() and log.stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--heads 3", "--width=8 is not a multiple of --heads=3"),
        ("--heads 0", "heads=0"),
        ("--context 1000", "has 505 tokens, too few for context=1000; use a shorter context"),
        ("--patch 4 --context 200", "too few for context=803"),
        ("--precision bfloat16", "precision='bfloat16' is trained on a CUDA GPU"),
        ("--precision half", "precision='half' is unknown; use one of float32, bfloat16"),
        ("--device cuda", "device='cuda' is not on this machine; use cpu, or auto"),
        ("--device tpu", "--device='tpu' is unknown; use one of auto, cuda, mps, cpu"),
        ("--attention local", "--attention='local' is unknown; use one of softmax, linear"),
        ("--sharding some", "--sharding='some' is unknown; use one of auto, replicate, shard"),
        ("--track nobody", "track='nobody' is unknown"),
        ("--head big", "head='big' is unknown; use full, tied, or an inner size"),
        ("--feed-forward big", "--feed-forward='big' is neither a number of units nor attention"),
        ("--feed-forward 9 --feed-forward-multiple 4", "say the same twice; give one of them"),
        ("--block t5", "block='t5' is unknown; use one of gpt2, llama"),
        ("--qk-norm", "--qk-norm=True is not in GPT-2's block; use --block llama"),
        ("--block llama --heads 8", "head-dim=1 is odd, and rotary positions"),
        ("--block llama --heads 4 --kv-heads 3", "--kv-heads=3 does not divide --heads=4"),
        ("--objective blank", "objective='blank' is unknown; use one of causal, masked"),
        ("--seeds 0", "--seeds=0 is not in 1..1000; the nearest is 1"),
        ("--seed -1", "seed"),
        ("--warmup 5", "--warmup=5 exceeds --steps=4"),
        ("--learning-rate nan", "--learning-rate=nan is not in 0..10"),
        ("--checkpoint-seconds -1", "--checkpoint-seconds=-1.0 is not in 0..inf"),
        ("--checkpoint-seconds nan", "--checkpoint-seconds=nan is not in 0..inf"),
        ("--spec nowhere.json", "nowhere.json: No such file"),
        (
            "--spec /dev/null",
            "/dev/null holds no spec: it is a pipe or a device; give a regular file",
        ),
        ("--data nowhere", "'nowhere' is not a prepared data set"),
        ("--out /dev/null", "/dev/null"),
        ("--out /proc", "/proc"),
        ("--width 1000000", "12,000,541,000,000 parameters with batches of 4 sequences needs"),
        ("--depth 1e12", "GB; use a smaller network, batch or context"),
        ("--batch 1e9", "batches of 1,000,000,000 sequences needs 30,144.0 GB or more"),
        ("--head 999999999999", "GB; use a smaller network, batch or context"),
        ("--head -3", "--head=-3 is below 1"),
        ("--seeds 1e12", "--seeds=1000000000000 is not in 1..1000"),
        ("--spec /dev/zero", "it is a pipe or a device"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    train: Archfit, tmp_path: Path, arguments: str, sentence: str
) -> None:
    assert sentence in train(*arguments.split()).refusal()
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"data_hash": "0" * 64}, "and the spec asks for 0000000000000000; give the data"),
        ({"vocab": 300}, "has a vocabulary of 257 tokens and the spec one of 300"),
    ],
)
def test_data_that_the_spec_does_not_speak_of_are_refused(
    train: Archfit, data: PreparedData, tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    document = json.loads(write_spec(tiny_spec(data), tmp_path).read_text())
    document["data_hash"] = change.get("data_hash", document["data_hash"])
    document["architecture"]["input"]["vocab"] = change.get("vocab", 257)
    (tmp_path / "changed.json").write_text(json.dumps(document))
    assert sentence in train("--spec", str(tmp_path / "changed.json")).refusal()
    assert not (tmp_path / "out").exists()


def test_several_data_sets_are_for_a_worker_only(
    train: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    said = train("--data", str(data.folder)).refusal()
    assert "--data names 2 data sets, and only --spec - chooses among several" in said
    assert not (tmp_path / "out").exists()


def test_tokens_that_were_not_prepared_are_refused(archfit: Archfit, tmp_path: Path) -> None:
    data = tiny_data(tmp_path)
    (data.folder / "train.bin").write_bytes(b"\xff" * (data.folder / "train.bin").stat().st_size)
    sentence = "train.bin is not what was written: its checksum differs"
    where = ("--data", str(data.folder), "--out", str(tmp_path / "out"))
    assert sentence in archfit("train", *where, *TINY, "--json").refusal()


@pytest.mark.parametrize("size", [None, 0, "many"])
def test_a_held_out_side_without_content_is_refused(
    train: Archfit, tmp_path: Path, size: object
) -> None:
    folder = tiny_data(tmp_path).folder
    description = json.loads((folder / "data.json").read_text())
    description["heldout"]["bytes"] = size
    (folder / "data.json").write_text(json.dumps(description))
    refusal = train("--data", str(folder)).refusal()
    assert "bytes in data.json is n" in refusal
    assert "prepare it again" in refusal


@pytest.mark.parametrize("name", [".lock", ".record.json.new", ".spec.json.new"])
def test_a_link_in_a_run_s_folder_does_not_lead_outside(
    train: Archfit, data: PreparedData, tmp_path: Path, name: str
) -> None:
    spec, outside = tiny_spec(data), tmp_path / "outside"
    outside.write_text("precious")
    run = tmp_path / "out" / spec.name
    run.mkdir(parents=True)
    (run / name).symlink_to(outside)
    train("--spec", str(write_spec(spec, tmp_path)))
    assert outside.read_text() == "precious"


def test_pipes_in_a_run_s_folder_are_not_waited_for(
    train: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    spec = tiny_spec(data)
    run, file = tmp_path / "out" / spec.name, str(write_spec(spec, tmp_path))
    run.mkdir(parents=True)
    os.mkfifo(run / "record.json")
    assert "record.json is damaged (it is a pipe" in train("--spec", file).refusal()
    os.mkfifo(tmp_path / "pipe")
    assert "pipe holds no spec" in train("--spec", str(tmp_path / "pipe")).refusal()


def test_a_batch_that_processes_cannot_share_is_refused(
    train: Archfit, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = ProcessGroup(rank=0, world=3, device=torch.device("cpu"))
    monkeypatch.setattr(
        "archfit.train.together.joined_process_group", lambda _: contextlib.nullcontext(group)
    )
    monkeypatch.setattr(ProcessGroup, "sums", lambda _, values: values)
    assert "use a world that divides the --batch" in train().refusal()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"spec":1'])
def test_a_damaged_record_is_named_and_never_overwritten(
    train: Archfit, tmp_path: Path, content: bytes
) -> None:
    folder = Path(json.loads(train("--json").out)["folder"])
    (folder / "record.json").write_bytes(content)
    assert "record.json is damaged" in train().refusal()
    assert (folder / "record.json").read_bytes() == content
    (folder / "record.json").unlink()
    assert train().status == 0
    assert not list(tmp_path.glob("out/*/.*.new"))


def test_a_folder_that_another_process_holds_is_refused_until_it_is_free(
    train: Archfit, data: PreparedData, tmp_path: Path
) -> None:
    spec = tiny_spec(data)
    file, run = str(write_spec(spec, tmp_path)), tmp_path / "out" / spec.name
    with held(run):
        sentence = train("--spec", file).refusal()
    assert f"{run} is being trained by another process; wait for it" in sentence
    assert train("--spec", file).status == 0
    with held(run):  # a finished run needs no lock
        assert train("--spec", file).status == 0


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writes beyond `size` bytes of a file fail, as those on a full disk do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 100, 20_000, 60_000])
def test_a_full_disk_costs_no_checkpoint_and_a_later_run_gives_the_same_record(
    train: Archfit, data: PreparedData, tmp_path: Path, size: int
) -> None:
    spec = tiny_spec(data)
    run, command = tmp_path / "out" / spec.name, ("--spec", str(write_spec(spec, tmp_path)))
    stop_after_first_step(train, command)
    with largest_file(size):
        sentence = train(*command, "--checkpoint-seconds", "0", "--json").refusal()
    assert str(run) in sentence
    assert "File too large" in sentence
    assert checkpoints(run) == ["step-000000001"]
    assert train(*command).status == 0
    assert stored_record(run).same_result(record_of(spec, data, tmp_path / "undisturbed"))


def stop_after_first_step(train: Archfit, command: tuple[str, ...]) -> None:
    from archfit.train.run import TrainingRun

    honest = TrainingRun._step

    def stopping(self: TrainingRun) -> None:
        honest(self)
        self.context.stop.signal_number = signal.SIGTERM

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingRun, "_step", stopping)
        assert train(*command, "--json").status == 143


@pytest.mark.parametrize(
    ("width", "rule", "rate"),
    [(64, "standard", 4e-3), (1024, "standard", 1e-3), (1024, "completep", 2e-3)],
)
def test_the_usual_rate_falls_with_the_width_unless_the_rule_minds_it(
    width: int, rule: str, rate: float
) -> None:
    assert usual_rate(width, rule) == pytest.approx(rate)


def test_a_spec_that_is_not_there_leaves_no_folder(archfit: Archfit, tmp_path: Path) -> None:
    said = archfit("train", "--spec", str(tmp_path / "no.json"), "--out", str(tmp_path / "out"))
    assert "No such file" in said.refusal()
    assert not (tmp_path / "out").exists()
