"""Mirrors of a run in other people's dashboards; each library is imported only when asked for.

A mirror must never cost a run: the first thing that goes wrong in one turns it off, with one
sentence, and training goes on.
"""

import importlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from archfit.spec import Evaluation, RunRecord, RunSpec, to_json
from archfit.train.watch import Progress

if TYPE_CHECKING:
    import wandb
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient
    from torch.utils.tensorboard import SummaryWriter

TRAINING, HELDOUT, BITS = (
    "training/nats_per_token",
    "heldout/nats_per_token",
    "heldout/bits_per_byte",
)
SPEED, UTILISATION = "speed/tokens_per_second", "speed/flop_utilisation"
PROJECT = "archfit"  # of W&B; MLflow calls it an experiment
RUN_TAG = "archfit.run"  # by which MLflow finds a run again
SECONDS_BETWEEN_WRITES = 5.0
LARGEST_BATCH = 900  # MLflow takes 1000 metrics at once

Outcome = Literal["finished", "diverged", "stopped"]


def trackers(names: Sequence[str], folder: Path, notice: Callable[[str], None]) -> "list[Tracker]":
    """A tracker for each name, for the run in `folder`; `notice` hears of one that failed.

    Nothing is written before the run starts.
    """
    return [Tracker(name, _dashboard(name, folder), notice) for name in names]


@runtime_checkable  # the tests check arguments at run time
class Dashboard(Protocol):
    """What a tracker needs of a library."""

    def open(self, spec: RunSpec, step: int) -> None:
        """Begin the run, or go on with it after `step`."""

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add one point to each curve."""

    def close(self, outcome: Outcome) -> None:
        """Write what is left."""


class Tracker:
    """A watcher that tells a dashboard; silent before the run starts and after it failed once."""

    def __init__(self, name: str, dashboard: Dashboard, notice: Callable[[str], None]) -> None:
        self.name, self.dashboard, self.say = name, dashboard, notice
        self.is_open = False

    def started(self, spec: RunSpec, step: int) -> None:
        """Open the dashboard."""
        self.is_open = True
        self._unless_it_fails(lambda: self.dashboard.open(spec, step))

    def progress(self, progress: Progress) -> None:
        """Log loss and speed."""
        scalars = {TRAINING: progress.training_nats_per_token}
        if progress.tokens_per_second:  # the first step is not timed
            scalars[SPEED] = progress.tokens_per_second
            if progress.flop_utilisation is not None:
                scalars[UTILISATION] = progress.flop_utilisation
        self._unless_it_fails(lambda: self.dashboard.log(progress.step, scalars))

    def evaluated(self, evaluation: Evaluation) -> None:
        """Log the held-out loss."""
        scalars = {
            HELDOUT: evaluation.heldout_nats_per_token,
            BITS: evaluation.heldout_bits_per_byte,
        }
        self._unless_it_fails(lambda: self.dashboard.log(evaluation.step, scalars))

    def notice(self, sentence: str) -> None:
        """For people, not for curves."""

    def finished(self, record: RunRecord) -> None:
        """Close the dashboard, if the run was made now and not long ago."""
        self._unless_it_fails(lambda: self.dashboard.close(record.status))
        self.is_open = False

    def close(self) -> None:
        """Close the dashboard of a run that stops before its end; else do nothing."""
        self._unless_it_fails(lambda: self.dashboard.close("stopped"))
        self.is_open = False

    def _unless_it_fails(self, act: Callable[[], None]) -> None:
        if not self.is_open:
            return
        try:
            act()
        except Exception as problem:  # whatever a library or a network may raise
            self.is_open = False
            reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
            self.say(f"{self.name} stopped taking notes, training goes on: {reason}")


class TensorBoard:
    """Event files in FOLDER/tensorboard; `tensorboard --logdir` of any folder above shows them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer: SummaryWriter | None = None

    def open(self, spec: RunSpec, step: int) -> None:
        """Begin; points of steps that will be made again are withdrawn."""
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        self.writer = SummaryWriter(
            self.folder / "tensorboard",
            purge_step=step + 1,
            flush_secs=round(SECONDS_BETWEEN_WRITES),
        )
        # What add_hparams writes, without the second run that it opens.
        for summary in hparams({"run": spec.name, **flat(to_json(spec))}, {HELDOUT: 0.0}):
            self.writer._get_file_writer().add_summary(summary)

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        assert self.writer is not None
        for name, value in scalars.items():
            self.writer.add_scalar(name, value, step)

    def close(self, outcome: Outcome) -> None:
        """Write what is left."""
        del outcome
        if self.writer is not None:
            self.writer.close()


class WeightsAndBiases:
    """A W&B run with the spec's name, in FOLDER/wandb; offline unless a key or mode is set.

    `wandb sync FOLDER/wandb/offline-run-*` sends it later. WANDB_* variables win over all of it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: wandb.Run | None = None

    def open(self, spec: RunSpec, step: int) -> None:
        """Begin, or go on with the run of that name; W&B itself drops steps made again."""
        del step
        import wandb

        is_online = "WANDB_API_KEY" in os.environ or "WANDB_MODE" in os.environ
        arguments = {
            "dir": str(self.folder),
            "project": PROJECT,
            "run_id": spec.name,
            "name": spec.name,
            "resume": "allow",
        }
        wanted = {key: text for key, text in arguments.items() if _is_free(f"WANDB_{key}")}
        if "run_id" in wanted:
            wanted["id"] = wanted.pop("run_id")
        if not is_online:
            wanted["mode"] = "offline"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run = wandb.init(
            config=to_json(spec),  # type: ignore[arg-type]  # a dictionary, as a spec is a dataclass
            reinit="create_new",  # other runs of this process may be open
            settings=wandb.Settings(console="off", silent=not is_online),
            **wanted,  # type: ignore[arg-type]  # strings, all of them
        )

    def log(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        assert self.run is not None
        self.run.log(dict(scalars), step=step)

    def close(self, outcome: Outcome) -> None:
        """Write what is left, and wait until it is sent if W&B is online."""
        if self.run is not None:
            self.run.summary["status"] = outcome
            self.run.finish(exit_code=1 if outcome == "stopped" else 0)


class MLflow:
    """A run of the experiment `archfit`, in FOLDER/mlruns or where MLFLOW_TRACKING_URI says.

    A database store needs more than mlflow-skinny holds, so the folder is a file store, which
    MLflow 3 keeps but opens only with MLFLOW_ALLOW_FILE_STORE=true. To look at it:
    `MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri FOLDER/mlruns`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client: MlflowClient | None = None
        self.run_id = ""
        self.last_steps: dict[str, int] = {}  # of each curve, in a run that goes on
        self.waiting: list[Metric] = []  # a server is asked every few seconds, not every step
        self.last_write = time.monotonic()

    def open(self, spec: RunSpec, step: int) -> None:
        """Begin, or go on with the run that carries the spec's tag."""
        del step
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        place = os.environ.get("MLFLOW_TRACKING_URI")
        if not place:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            place = (self.folder / "mlruns").resolve().as_uri()
        self.client = MlflowClient(tracking_uri=place)
        experiment = self._experiment()
        found = self.client.search_runs([experiment], f"tags.`{RUN_TAG}` = '{spec.name}'")
        if found:
            self.run_id = found[0].info.run_id
            self.client.update_run(self.run_id, status="RUNNING")
            self.last_steps = {name: self._last_step(name) for name in (TRAINING, HELDOUT)}
            return
        run = self.client.create_run(experiment, tags={RUN_TAG: spec.name}, run_name=spec.name)
        self.run_id = run.info.run_id
        params = [Param(name, str(value)) for name, value in flat(to_json(spec)).items()]
        self.client.log_batch(self.run_id, params=params)

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
        if self.client is None or not self.run_id:
            return
        self._write()
        status = {"finished": "FINISHED", "diverged": "FAILED", "stopped": "KILLED"}[outcome]
        self.client.set_terminated(self.run_id, status)

    def _experiment(self) -> str:
        assert self.client is not None
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        known = self.client.get_experiment_by_name(name)
        return str(known.experiment_id if known else self.client.create_experiment(name))

    def _last_step(self, name: str) -> int:
        assert self.client is not None
        history = self.client.get_metric_history(self.run_id, name)
        return max((point.step for point in history), default=0)

    def _write(self) -> None:
        assert self.client is not None
        self.client.log_batch(self.run_id, metrics=self.waiting)
        self.waiting, self.last_write = [], time.monotonic()


def flat(document: object, prefix: str = "") -> dict[str, int | float | str | bool]:
    """The leaves of a JSON document by their paths: {"recipe": {"steps": 3}} has recipe.steps."""
    if not isinstance(document, dict):
        assert isinstance(document, int | float | str | bool)
        return {prefix: document}
    leaves: dict[str, int | float | str | bool] = {}
    for key, part in document.items():
        leaves |= flat(part, f"{prefix}.{key}" if prefix else str(key))
    return leaves


DASHBOARDS: dict[str, type[TensorBoard] | type[WeightsAndBiases] | type[MLflow]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "mlflow": MLflow,
}


def _dashboard(name: str, folder: Path) -> Dashboard:
    if name not in DASHBOARDS:
        raise ValueError(f"tracker {name!r} is unknown; use one of {', '.join(DASHBOARDS)}")
    try:
        importlib.import_module(name)
    except ImportError as problem:
        raise ValueError(
            f"tracker {name} needs a library that cannot be imported ({problem}); "
            "pip install archfit[track]"
        ) from problem
    return DASHBOARDS[name](folder)


def _is_free(variable: str) -> bool:
    return variable.upper() not in os.environ
