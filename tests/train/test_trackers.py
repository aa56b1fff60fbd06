import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from archfit.spec import (
    Architecture,
    Evaluation,
    Full,
    Machine,
    Recipe,
    RunRecord,
    RunSpec,
    Softmax,
    Timing,
    Tokens,
)
from archfit.train import Progress
from archfit.train.trackers import (
    MLflow,
    Outcome,
    Tracker,
    WeightsAndBiases,
    flat,
    trackers,
)

SPEC = RunSpec(
    architecture=Architecture(
        depth=1, width=8, heads=2, head_dim=4, attention=Softmax(), feed_forward=32,
        context=16, input=Tokens(vocab=257), embedding=Full(), positions=Full(), head=Full(),
    ),
    data_hash="0" * 64,
    recipe=Recipe(
        steps=4, batch_sequences=2, warmup_steps=1, peak_learning_rate=4e-3,
        learning_rate_rule="standard", weight_decay=0.01, beta1=0.9, beta2=0.999, gradient_clip=1.0,
        dropout=0.0, precision="float32", evaluation_steps=2, evaluation_sequences=16,
        full_context_tokens=0,
    ),
    seed=7,
)  # fmt: skip
TRAINING = {step: 5.0 - step / 2 for step in (1, 2, 3, 4)}
HELDOUT = {2: 4.5, 4: 3.5}
CURVES = {
    "training/nats_per_token": TRAINING,
    "heldout/nats_per_token": HELDOUT,
    "heldout/bits_per_byte": {step: 2 * nats for step, nats in HELDOUT.items()},
    "speed/tokens_per_second": {2: 200.0, 3: 300.0, 4: 400.0},
    "speed/flop_utilisation": {3: 0.25, 4: 0.25},
}


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "false")  # so that it is put back
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


def evaluation(step: int) -> Evaluation:
    return Evaluation(
        step=step,
        training_nats_per_token=TRAINING[step],
        heldout_nats_per_token=HELDOUT[step],
        heldout_bits_per_byte=2 * HELDOUT[step],
    )


def record() -> RunRecord:
    return RunRecord(
        spec=SPEC,
        status="finished",
        diverged_at_step=None,
        evaluations=tuple(evaluation(step) for step in HELDOUT),
        full_context=None,
        timing=Timing(training_seconds=1.0, tokens_per_second=1.0, flop_utilisation=None),
        machine=Machine(
            device="cpu", devices=1, micro_batch_sequences=2, archfit="", python="", torch=""
        ),
    )


def watch(tracker: Tracker, *, begin: int, end: int) -> None:
    """A run from step `begin` to `end`, finished if that is the last."""
    tracker.started(SPEC, begin)
    for step in range(begin + 1, end + 1):
        tracker.progress(
            Progress(
                step=step,
                steps=4,
                training_nats_per_token=TRAINING[step],
                tokens_per_second=0.0 if step == 1 else 100.0 * step,
                flop_utilisation=0.25 if step > 2 else None,
                seconds_left=1.0,
            )
        )
        if step in HELDOUT:
            tracker.evaluated(evaluation(step))
    tracker.notice("a sentence")
    if end == SPEC.recipe.steps:
        tracker.finished(record())
    tracker.close()


def stopped_and_resumed(name: str, folder: Path) -> None:
    """Killed after step 3, resumed from the checkpoint of step 2: step 3 is made twice."""
    notices: list[str] = []
    for begin, end in ((0, 3), (2, 4)):
        (tracker,) = trackers([name], folder, notices.append)
        watch(tracker, begin=begin, end=end)
    assert notices == []


def test_tensorboard_holds_every_curve_once_and_the_spec(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    stopped_and_resumed("tensorboard", tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == set(CURVES)
    for name, curve in CURVES.items():
        assert {e.step: e.value for e in events.Scalars(name)} == pytest.approx(curve)
        assert len(events.Scalars(name)) == len(curve)
    start = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"recipe.peak_learning_rate" in start
    assert SPEC.name.encode() in start
    assert capfd.readouterr().out == ""


def test_mlflow_holds_every_curve_once_in_one_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from mlflow.tracking import MlflowClient

    stopped_and_resumed("mlflow", tmp_path)
    client = MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("archfit")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == SPEC.name
    assert run.info.status == "FINISHED"
    assert run.data.params["recipe.steps"] == "4"
    for name, curve in CURVES.items():
        history = client.get_metric_history(run.info.run_id, name)
        assert {point.step: point.value for point in history} == pytest.approx(curve)
        assert len(history) == len(curve)
    assert capfd.readouterr().out == ""


def test_mlflow_writes_where_the_environment_says_and_names_a_stopped_run_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracking import MlflowClient

    elsewhere = (tmp_path / "elsewhere").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", elsewhere)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    (tracker,) = trackers(["mlflow"], tmp_path / "run", pytest.fail)
    watch(tracker, begin=0, end=3)
    assert not (tmp_path / "run").exists()
    client = MlflowClient(tracking_uri=elsewhere)
    (run,) = client.search_runs([e.experiment_id for e in client.search_experiments()])
    assert run.info.status == "KILLED"


def test_wandb_keeps_an_offline_run_with_every_curve(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stopped_and_resumed("wandb", tmp_path)
    files = sorted((tmp_path / "wandb").glob(f"offline-run-*/run-{SPEC.name}.wandb"))
    assert files
    content = b"".join(file.read_bytes() for file in files)
    for word in (*CURVES, "peak_learning_rate"):
        assert word.encode() in content
    assert capfd.readouterr().out == ""


def test_two_runs_of_one_process_do_not_share_a_wandb_run(tmp_path: Path) -> None:
    one, two = (trackers(["wandb"], tmp_path / name, pytest.fail)[0] for name in ("one", "two"))
    one.started(replace(SPEC, seed=8), 0)
    watch(two, begin=0, end=4)
    one.finished(record())
    for name in ("one", "two"):
        assert list((tmp_path / name / "wandb").glob("offline-run-*/*.wandb"))


class Failing:
    """A dashboard whose network goes down at step 2."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self, spec: RunSpec, step: int) -> "Failing":
        self.calls.append(f"open {spec.seed} {step}")
        return self

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        assert scalars
        self.calls.append(f"log {step}")
        if step == 2:
            raise ConnectionError("network is down\nwith details")

    def close(self, outcome: Outcome) -> None:
        self.calls.append(outcome)


def test_a_failing_tracker_says_so_once_and_is_left_alone() -> None:
    dashboard, notices = Failing(), list[str]()
    watch(Tracker("wandb", dashboard.begin, notices.append), begin=0, end=4)
    assert notices == ["wandb stopped taking notes, training goes on: network is down"]
    assert dashboard.calls == ["open 7 0", "log 1", "log 2"]


def test_a_run_that_stops_early_is_closed_and_one_that_was_finished_long_ago_is_not_opened() -> (
    None
):
    dashboard = Failing()
    tracker = Tracker("wandb", dashboard.begin, pytest.fail)
    tracker.finished(record())
    tracker.close()
    assert dashboard.calls == []
    watch(tracker, begin=0, end=1)
    assert dashboard.calls == ["open 7 0", "log 1", "stopped"]


def test_nothing_is_written_before_a_run_starts(tmp_path: Path) -> None:
    trackers(["tensorboard", "wandb", "mlflow"], tmp_path, pytest.fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_library_says_how_to_get_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"pip install archfit\[track\]"):
        trackers([name], tmp_path, pytest.fail)


def test_an_unknown_tracker_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="'comet' is unknown; use one of tensorboard, wandb, mlflo"
    ):
        trackers(["comet"], tmp_path, pytest.fail)


def test_a_document_is_flattened_to_its_paths() -> None:
    assert flat({"a": {"b": 1, "c": {"d": "x"}}, "e": 0.5}) == {"a.b": 1, "a.c.d": "x", "e": 0.5}


ARGUMENTS = {"dir": "DIR", "project": "PROJECT", "id": "RUN_ID", "name": "NAME", "resume": "RESUME"}


@pytest.mark.parametrize("variable", ["", "WANDB_MODE", "WANDB_API_KEY", *ARGUMENTS.values()])
def test_wandb_s_variables_win_over_what_we_would_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    given: dict[str, object] = {}
    run = SimpleNamespace(summary={}, finish=lambda exit_code: given.update(exit=exit_code))
    fake = SimpleNamespace(
        init=lambda **named: given.update(named) or run, Settings=lambda **named: named
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    is_online = variable in ("WANDB_MODE", "WANDB_API_KEY")
    if variable:
        monkeypatch.setenv(variable if is_online else f"WANDB_{variable}", "theirs")
    dashboard = WeightsAndBiases(tmp_path / "run", SPEC, 0)
    usual = {
        "dir": str(tmp_path / "run"),
        "project": "archfit",
        "id": SPEC.name,
        "name": SPEC.name,
        "resume": "allow",
    }
    ours = {key: value for key, value in usual.items() if ARGUMENTS[key] != variable}
    assert {key: given[key] for key in usual if key in given} == ours
    assert given.get("mode") == (None if is_online else "offline")
    assert given["settings"] == {"console": "off", "silent": not is_online}
    assert given["reinit"] == "create_new"
    for outcome, code in (("finished", 0), ("diverged", 0), ("stopped", 1)):
        dashboard.close(outcome)  # type: ignore[arg-type]  # one of three
        assert (run.summary["status"], given["exit"]) == (outcome, code)


def test_mlflow_is_told_every_five_seconds_or_when_much_has_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, batches, statuses = [100.0], list[int](), list[str]()
    dashboard = MLflow.__new__(MLflow)
    dashboard.client = SimpleNamespace(
        log_batch=lambda _, metrics: batches.append(len(metrics)),
        set_terminated=lambda _, status: statuses.append(status),
    )
    dashboard.run_id, dashboard.waiting, dashboard.last_write = "x", [], 100.0
    dashboard.last_steps = {"training/nats_per_token": 2}
    monkeypatch.setattr("archfit.train.trackers.time.monotonic", lambda: clock[0])
    for step, now in ((2, 101.0), (3, 105.0), (4, 105.1), (5, 110.0), (6, 110.2)):
        clock[0] = now
        dashboard.log(step, {"training/nats_per_token": 1.0})
    assert batches == [2, 2]  # step 2 is known; 5.0 s are not yet too long
    for step in range(7, 7 + 450):
        dashboard.log(step, {"training/nats_per_token": 1.0, "speed/tokens_per_second": 2.0})
    assert batches == [2, 2, 900]
    for outcome in ("finished", "diverged", "stopped"):
        dashboard.close(outcome)
    assert statuses == ["FINISHED", "FAILED", "KILLED"]
