"""Mirrors of a run in other people's dashboards, whose libraries are imported only when asked for.

A mirror must never cost a run: the first thing that goes wrong in one turns it off, with one
sentence, and training goes on.
"""

import contextlib
import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from archfit.spec import Evaluation, RunRecord, RunSpec, to_json
from archfit.spec.errors import check_choice, refusal
from archfit.spec.record import Progress, Watchers

if TYPE_CHECKING:
    from mlflow.entities import Metric

TRAINING, HELDOUT = "training/nats_per_token", "heldout/nats_per_token"
BITS = "heldout/bits_per_byte"
SPEED, UTILISATION = "speed/tokens_per_second", "speed/flop_utilisation"
PROJECT = "archfit"  # of W&B; MLflow calls it an experiment
RUN_TAG = "archfit.run"  # by which MLflow finds a run again
SECONDS_BETWEEN_WRITES = 5.0
LARGEST_BATCH = 900  # MLflow takes 1000 metrics at once

Outcome = Literal["finished", "diverged", "stopped"]


@runtime_checkable  # the tests check arguments at run time
class Dashboard(Protocol):
    """What a tracker needs of a library, once its run is open there."""

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add one point to each curve."""

    def close(self, outcome: Outcome) -> None:
        """Write what is left and say how the run ended."""


OpenDashboard = Callable[[RunSpec, int], Dashboard]  # begins the run, or goes on after a step


def trackers(names: Sequence[str], folder: Path, notice: Callable[[str], None]) -> "list[Tracker]":
    """A tracker for each name, for the run in `folder`; `notice` hears of one that failed.

    Nothing is written before the run starts.
    """
    for name in names:
        check_choice(tuple(DASHBOARDS), track=name)
        try:
            importlib.import_module(name)
        except ImportError as problem:
            raise refusal("run-tracker", name=name, problem=problem) from problem
    return [Tracker(name, partial(DASHBOARDS[name], folder), notice) for name in names]


class Tracker(Watchers):
    """Tells a dashboard; silent before the run starts and after it failed once. Notices are for
    people, not for curves."""

    def __init__(self, name: str, begin: OpenDashboard, notice: Callable[[str], None]) -> None:
        super().__init__()
        self.name, self.begin, self.say = name, begin, notice
        self.dashboard: Dashboard | None = None

    def started(self, spec: RunSpec, step: int) -> None:
        """Open the dashboard."""
        with self._off_if_it_fails():
            self.dashboard = self.begin(spec, step)

    def progress(self, progress: Progress) -> None:
        """Log loss and speed."""
        scalars = {TRAINING: progress.training_nats_per_token}
        if progress.tokens_per_second:  # the first step is not timed
            scalars[SPEED] = progress.tokens_per_second
            if progress.flop_utilisation is not None:
                scalars[UTILISATION] = progress.flop_utilisation
        self._log(progress.step, scalars)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Log the held-out loss."""
        nats, bits = evaluation.heldout_nats_per_token, evaluation.heldout_bits_per_byte
        self._log(evaluation.step, {HELDOUT: nats, BITS: bits})

    def finished(self, record: RunRecord) -> None:
        """Close the dashboard, if the run was made now and not long ago."""
        self.close(record.status)

    def close(self, outcome: Outcome = "stopped") -> None:
        """Close the dashboard of a run that ended, or stops before its end; once."""
        if self.dashboard is not None:
            with self._off_if_it_fails():
                self.dashboard.close(outcome)
            self.dashboard = None

    def _log(self, step: int, scalars: Mapping[str, float]) -> None:
        if self.dashboard is not None:
            with self._off_if_it_fails():
                self.dashboard.log(step, scalars)

    @contextlib.contextmanager
    def _off_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except Exception as problem:  # whatever a library or a network may raise
            self.dashboard = None
            reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
            self.say(f"{self.name} stopped taking notes, training goes on: {reason}")


class TensorBoard:
    """Event files in FOLDER/tensorboard; `tensorboard --logdir` of any folder above shows them."""

    def __init__(self, folder: Path, spec: RunSpec, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        self.writer = SummaryWriter(
            folder / "tensorboard",
            purge_step=step + 1,  # points of steps that will be made again are withdrawn
            flush_secs=round(SECONDS_BETWEEN_WRITES),
        )
        # What add_hparams writes, without the second run that it opens.
        for summary in hparams({"run": spec.name, **flat(to_json(spec))}, {HELDOUT: 0.0}):
            self.writer._get_file_writer().add_summary(summary)

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        for name, value in scalars.items():
            self.writer.add_scalar(name, value, step)

    def close(self, _outcome: Outcome) -> None:
        """Write what is left; event files have no place for the outcome."""
        self.writer.close()


class WeightsAndBiases:
    """A W&B run with the spec's name, in FOLDER/wandb; offline unless a key or mode is set.

    `wandb sync FOLDER/wandb/offline-run-*` sends it later. WANDB_* variables win over all of it.
    W&B itself drops steps that are made again.
    """

    def __init__(self, folder: Path, spec: RunSpec, _step: int) -> None:
        import wandb

        is_online = "WANDB_API_KEY" in os.environ or "WANDB_MODE" in os.environ
        usual = {"DIR": str(folder), "PROJECT": PROJECT, "RUN_ID": spec.name, "NAME": spec.name}
        wanted = {
            variable.removeprefix("RUN_").lower(): text
            for variable, text in (usual | {"RESUME": "allow"}).items()
            if f"WANDB_{variable}" not in os.environ
        }
        if not is_online:
            wanted["mode"] = "offline"
        folder.mkdir(parents=True, exist_ok=True)
        self.run = wandb.init(
            config=to_json(spec),  # type: ignore[arg-type]  # a dictionary, as a spec is a dataclass
            reinit="create_new",  # other runs of this process may be open
            settings=wandb.Settings(console="off", silent=not is_online),
            **wanted,  # type: ignore[arg-type]  # strings, all of them
        )

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        self.run.log(dict(scalars), step=step)

    def close(self, outcome: Outcome) -> None:
        """Write what is left, and wait until it is sent if W&B is online."""
        self.run.summary["status"] = outcome
        self.run.finish(exit_code=1 if outcome == "stopped" else 0)


class MLflow:
    """A run of the experiment `archfit`, in FOLDER/mlruns or where MLFLOW_TRACKING_URI says.

    A database store needs more than mlflow-skinny holds, so the folder is a file store, which
    MLflow 3 keeps but opens only with MLFLOW_ALLOW_FILE_STORE=true. To look at it:
    `MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri FOLDER/mlruns`. The run that carries
    the spec's tag knows where it was.
    """

    def __init__(self, folder: Path, spec: RunSpec, _step: int) -> None:
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        place = os.environ.get("MLFLOW_TRACKING_URI")
        if not place:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            place = (folder / "mlruns").resolve().as_uri()
        self.client = client = MlflowClient(tracking_uri=place)
        self.last_steps: dict[str, int] = {}  # of each curve, in a run that goes on
        self.waiting: list[Metric] = []  # a server is asked every few seconds, not every step
        self.last_write = time.monotonic()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        known = client.get_experiment_by_name(name)
        experiment = str(known.experiment_id if known else client.create_experiment(name))
        found = client.search_runs([experiment], f"tags.`{RUN_TAG}` = '{spec.name}'")
        if found:
            self.run_id = found[0].info.run_id
            client.update_run(self.run_id, status="RUNNING")
            for curve in (TRAINING, HELDOUT):
                points = client.get_metric_history(self.run_id, curve)
                self.last_steps[curve] = max((point.step for point in points), default=0)
            return
        run = client.create_run(experiment, tags={RUN_TAG: spec.name}, run_name=spec.name)
        self.run_id = run.info.run_id
        params = [Param(name, str(value)) for name, value in flat(to_json(spec)).items()]
        client.log_batch(self.run_id, params=params)

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add one point to each curve, unless an earlier process did."""
        from mlflow.entities import Metric

        if step <= self.last_steps.get(TRAINING if TRAINING in scalars else HELDOUT, 0):
            return
        now = round(time.time() * 1000)
        self.waiting += [Metric(name, value, now, step) for name, value in scalars.items()]
        is_due = time.monotonic() - self.last_write > SECONDS_BETWEEN_WRITES
        if is_due or len(self.waiting) >= LARGEST_BATCH:
            self._write()

    def close(self, outcome: Outcome) -> None:
        """Write what is left and say how the run ended."""
        self._write()
        status = {"finished": "FINISHED", "diverged": "FAILED", "stopped": "KILLED"}[outcome]
        self.client.set_terminated(self.run_id, status)

    def _write(self) -> None:
        self.client.log_batch(self.run_id, metrics=self.waiting)
        self.waiting, self.last_write = [], time.monotonic()


def flat(document: object, prefix: str = "") -> dict[str, int | float | str | bool]:
    """The leaves of a JSON document by their paths: {"recipe": {"steps": 3}} has recipe.steps."""
    if isinstance(document, dict):
        parts = [flat(part, f"{prefix}{key}.") for key, part in document.items()]
        return {path: leaf for leaves in parts for path, leaf in leaves.items()}
    assert isinstance(document, int | float | str | bool)
    return {prefix.removesuffix("."): document}


DASHBOARDS: dict[str, Callable[[Path, RunSpec, int], Dashboard]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "mlflow": MLflow,
}
