"""A run from its spec to its record.

    weights(0) = initialise(seed)
    for step in 0 .. steps - 1:  weights(step + 1) = step(weights(step), batch(seed, step))

A batch, a dropout mask and a learning rate are functions of seed and step, so a checkpoint is
weights, moments and the losses so far, and a run that goes on from one gives the same record.
"""

import contextlib
import platform
import signal
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import Evaluation, FullContext, Machine, RunRecord, RunSpec, Timing
from archfit.spec.run_folder import CHECKPOINTS, discard_checkpoints
from archfit.train.checkpoint import (
    Saved,
    Tensors,
    discard_unfinished,
    load_newest,
    save,
    write_weights,
)
from archfit.train.devices import check_precision, choose_device, device_name, peak_flops
from archfit.train.evaluate import Heldout, bits_per_byte, full_context_loss, heldout_loss
from archfit.train.folder import (
    WEIGHTS,
    append_to_log,
    finished_record,
    held,
    write_log,
    write_record,
    write_spec,
)
from archfit.train.memory import check_memory
from archfit.train.optimiser import build_optimiser
from archfit.train.settings import Settings, Stopped
from archfit.train.signals import StopRequest, stop_requests
from archfit.train.step import Stepper
from archfit.train.team import Team, distribute, joined_team
from archfit.train.watch import Progress, Watcher, Watchers

LARGEST_LOSS = 1e5  # nats per token; beyond it a run has diverged, finite or not
SECONDS_BETWEEN_LOOKS = 0.5  # at the losses of a GPU, which makes it wait
STEPS_BETWEEN_LOOKS = 10  # of a team on GPUs: its clocks differ, and all must look at once
START = Saved(step=0, loss_sum=0.0, evaluations=(), timed_seconds=0.0, timed_steps=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Workplace:
    """What the runs of one process share."""

    data: PreparedData
    out: Path  # holds a folder for each run
    settings: Settings
    team: Team
    stop: StopRequest


@contextlib.contextmanager
def workplace(data: PreparedData, out: Path, settings: Settings) -> Iterator[Workplace]:
    """This process, with the others of its team, ready to train."""
    with joined_team(choose_device(settings.device)) as team, stop_requests() as stop:
        yield Workplace(data=data, out=out, settings=settings, team=team, stop=stop)


def train(
    spec: RunSpec, data: PreparedData, out: Path, settings: Settings, watch: Watcher
) -> RunRecord:
    """Train one run in the folder out/NAME and return its record; at once if it is there."""
    with workplace(data, out, settings) as place:
        return result(training(spec, place, watch))


def result(run: Generator[None, None, RunRecord]) -> RunRecord:
    """The record of a run that has nobody to take turns with."""
    while True:
        try:
            next(run)
        except StopIteration as finished:
            record = finished.value
            assert isinstance(record, RunRecord)
            return record


def check_data(spec: RunSpec, data: PreparedData) -> None:
    """Refuse data that the spec does not speak of."""
    vocab = spec.architecture.input.vocab
    if data.vocab != vocab:
        raise ValueError(
            f"{data.folder} has a vocabulary of {data.vocab} tokens and the spec one of {vocab}; "
            f"use vocab={data.vocab}, or other data"
        )
    if data.data_hash != spec.data_hash:
        raise ValueError(
            f"{data.folder} has data hash {data.data_hash[:16]} and the spec asks for "
            f"{spec.data_hash[:16]}; give the data that the spec was made for"
        )


def training(spec: RunSpec, place: Workplace, watch: Watcher) -> Generator[None, None, RunRecord]:
    """The run as a generator that pauses after every step, so that several can take turns."""
    team, folder = place.team, place.out / spec.name
    check_data(spec, place.data)
    if not team.leads:
        watch = Watchers()
    record = _found(folder, spec, team)
    if record is None:
        _check_feasible(spec, place)
        with held(folder) if team.leads else contextlib.nullcontext():
            record = _found(folder, spec, team)  # who held the folder may have finished
            if record is None:
                if team.leads:
                    write_spec(folder, spec)
                    discard_unfinished(folder / CHECKPOINTS)
                with _memory_errors():
                    return (yield from _Run(spec, place, watch).to_the_end())
    watch.finished(record)
    return record


def _found(folder: Path, spec: RunSpec, team: Team) -> RunRecord | None:
    """The record, if every process of the team sees it."""
    record = finished_record(folder, spec)
    (seen,) = team.sums([float(record is not None)])
    if seen < team.world:
        return None
    if team.leads:
        discard_checkpoints(folder)
    return record


def _check_feasible(spec: RunSpec, place: Workplace) -> None:
    """Refuse what cannot be trained here, before there is a folder for it."""
    check_precision(spec.recipe.precision, place.team.device.type)
    _loader(spec, place.data, place.team)  # it refuses data that hold no row
    check_memory(spec, place.team, may_shard=place.settings.sharding != "replicate")


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    """Torch's errors about memory as Python's, which has one; the allocator of the host raises
    one that only its text tells from others."""
    try:
        yield
    except RuntimeError as problem:
        if isinstance(problem, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(problem):
            raise MemoryError(str(problem)) from problem
        raise


def _loader(spec: RunSpec, data: PreparedData, team: Team) -> Loader:
    """Rows that hold `context` positions and the one after, in tokens of the source."""
    size = spec.architecture.input.tokens_per_position
    return Loader(
        data=data,
        batch=spec.recipe.batch_sequences,
        context=(spec.architecture.context + 1) * size - 1,
        seed=spec.seed,
        rank=team.rank,
        world=team.world,
    )


class _Run:
    """A run in progress: the network, and what it has shown so far."""

    def __init__(self, spec: RunSpec, place: Workplace, watch: Watcher) -> None:
        self.spec, self.watch = spec, watch
        self.data, self.settings, self.team = place.data, place.settings, place.team
        self.stop, self.folder = place.stop, place.out / spec.name
        data, team = self.data, self.team
        self.loader = _loader(spec, data, team)
        numbers = parametrisation(spec.architecture, spec.recipe.learning_rate_rule)
        self.model = Transformer(spec.architecture, numbers, dropout=spec.recipe.dropout)
        initialise(self.model, numbers, seed=spec.seed)
        self.model.to(team.device)
        called = distribute(self.model, team, self.settings.sharding)
        optimiser = build_optimiser(self.model, spec.recipe, numbers, team.device)
        self.tensors = Tensors(self.model, optimiser)
        self.saved = self._resumed()
        self.stepper = Stepper(called, optimiser, spec, team, watch.notice)
        self.peak = peak_flops(team.device, spec.recipe.precision)
        self.unread: list[torch.Tensor] = []  # losses still on their device
        self.since = self.last_save = time.monotonic()
        self.is_warm = False  # the first step of a process plans and compiles, and is not timed

    def to_the_end(self) -> Generator[None, None, RunRecord]:
        """Make the steps that are left; the record, which is on disk."""
        recipe = self.spec.recipe
        self.watch.started(self.spec, self.saved.step)
        diverged_at = None
        while self.saved.step + len(self.unread) < recipe.steps and diverged_at is None:
            self._step()
            made = self.saved.step + len(self.unread)
            is_evaluated = made % recipe.evaluation_steps == 0 or made == recipe.steps
            if is_evaluated or self._time_to_look():
                diverged_at = self._read_losses()
            if is_evaluated and diverged_at is None:
                diverged_at = self._evaluate()
            if diverged_at is None:
                diverged_at = self._save_or_stop(is_evaluated)
            yield
        return self._finish(diverged_at)

    def _resumed(self) -> Saved:
        folder = self.folder / CHECKPOINTS
        saved = load_newest(folder, self.tensors, spec=self.spec) or START
        self.team.barrier()  # all have read before anybody writes
        if self.team.leads:
            write_log(self.folder, saved.evaluations)
        return saved

    def _step(self) -> None:
        step = self.saved.step + len(self.unread)
        tokens_BS = torch.from_numpy(self.loader.training_batch(step))
        if self.team.device.type == "cuda":  # from pinned memory the copy waits for nobody
            tokens_BS = tokens_BS.pin_memory()
        tokens_BS = tokens_BS.to(self.team.device, non_blocking=True)
        self.unread.append(self.stepper(step, tokens_BS))

    def _time_to_look(self) -> bool:
        if self.team.device.type == "cpu" or not self.is_warm:
            return True
        if self.team.world > 1:
            return len(self.unread) >= STEPS_BETWEEN_LOOKS
        return time.monotonic() - self.since > SECONDS_BETWEEN_LOOKS

    def _read_losses(self) -> int | None:
        """Take the losses from the device; the first step whose loss is no loss, or None."""
        losses = torch.stack(self.unread).tolist()
        if self.team.world > 1:
            losses = [loss / self.team.world for loss in self.team.sums(losses)]
        now = time.monotonic()
        if self.is_warm:
            self.saved = replace(
                self.saved,
                timed_seconds=self.saved.timed_seconds + now - self.since,
                timed_steps=self.saved.timed_steps + len(losses),
            )
        self.is_warm, self.since, self.unread = True, now, []
        for loss in losses:
            if not loss < LARGEST_LOSS:
                return self.saved.step
            self.saved = replace(
                self.saved, step=self.saved.step + 1, loss_sum=self.saved.loss_sum + loss
            )
        self.watch.progress(self._progress(losses[-1]))
        return None

    def _evaluate(self) -> int | None:
        """Add an evaluation; the step if its loss is no loss."""
        loss = heldout_loss(self.model, self._heldout())
        before = self.saved.evaluations[-1].step if self.saved.evaluations else 0
        if not loss < LARGEST_LOSS:
            return self.saved.step
        evaluation = Evaluation(
            step=self.saved.step,
            training_nats_per_token=self.saved.loss_sum / (self.saved.step - before),
            heldout_nats_per_token=loss,
            heldout_bits_per_byte=bits_per_byte(loss, self.data),
        )
        self.saved = replace(
            self.saved, loss_sum=0.0, evaluations=(*self.saved.evaluations, evaluation)
        )
        if self.team.leads:
            append_to_log(self.folder, evaluation)
        self.watch.evaluated(evaluation)
        self.since = time.monotonic()
        return None

    def _save_or_stop(self, is_evaluated: bool) -> int | None:
        """Write a checkpoint when it is time or a signal came; then end in the latter case.

        A team agrees on it at every evaluation or look, since all must take part. Losses are read
        before; the first step whose loss is no loss, or None.
        """
        if self.unread and self.team.world > 1:
            return None
        number = self.stop.signal_number or 0
        due = time.monotonic() - self.last_save > self.settings.checkpoint_seconds
        if is_evaluated and self.saved.step == self.spec.recipe.steps:
            if not self.spec.recipe.full_context_tokens:
                return None  # the record is written next
            due = True  # a long evaluation is: who is killed in it need not train again
        stops, saves = self.team.sums([float(number), float(due and self.team.leads)])
        if not (stops or saves):
            return None
        if self.unread and (diverged_at := self._read_losses()) is not None:
            return diverged_at
        save(self.folder / CHECKPOINTS, self.tensors, self.saved, spec=self.spec, team=self.team)
        self.last_save = self.since = time.monotonic()
        if stops:  # the signal may have reached another process of the team
            raise Stopped(self.saved.step, number or signal.SIGTERM)
        return None

    def _finish(self, diverged_at: int | None) -> RunRecord:
        record = RunRecord(
            spec=self.spec,
            status="finished" if diverged_at is None else "diverged",
            diverged_at_step=diverged_at,
            evaluations=self.saved.evaluations,
            full_context=self._full_context() if diverged_at is None else None,
            timing=self._timing(),
            machine=self._machine(),
        )
        weights = self.tensors.model() if self.settings.keep_weights else None
        if self.team.leads:
            if weights is not None:
                write_weights(self.folder / WEIGHTS, weights, by_way_of=self.folder / CHECKPOINTS)
            write_record(self.folder, record)
        self.watch.finished(record)
        return record

    def _full_context(self) -> FullContext | None:
        if not self.spec.recipe.full_context_tokens:
            return None
        loss, tokens = full_context_loss(self.model, self._heldout())
        return FullContext(
            tokens=tokens,
            heldout_nats_per_token=loss,
            heldout_bits_per_byte=bits_per_byte(loss, self.data),
        )

    def _heldout(self) -> Heldout:
        rows = self.stepper.micro_rows
        if self.team.device.type == "cuda":  # a captured step keeps its memory for itself
            rows = -(-rows // 4)
        return Heldout(spec=self.spec, loader=self.loader, team=self.team, rows=rows)

    def _progress(self, last_loss: float) -> Progress:
        timing = self._timing()
        left = (self.spec.recipe.steps - self.saved.step) * self._tokens_a_step()
        return Progress(
            step=self.saved.step,
            steps=self.spec.recipe.steps,
            training_nats_per_token=last_loss,
            tokens_per_second=timing.tokens_per_second,
            flop_utilisation=timing.flop_utilisation,
            seconds_left=left / timing.tokens_per_second if timing.tokens_per_second else 0.0,
        )

    def _timing(self) -> Timing:
        seconds, steps = self.saved.timed_seconds, self.saved.timed_steps
        rate = steps * self._tokens_a_step() / seconds if seconds else 0.0
        flops = rate * self.spec.architecture.training_flops_per_token
        return Timing(
            training_seconds=seconds,
            tokens_per_second=rate,
            flop_utilisation=flops / (self.peak * self.team.world) if self.peak else None,
        )

    def _tokens_a_step(self) -> float:
        return self.spec.training_tokens / self.spec.recipe.steps

    def _machine(self) -> Machine:
        return Machine(
            device=device_name(self.team.device),
            devices=self.team.world,
            micro_batch_sequences=self.stepper.micro_rows,
            archfit=self.settings.code_version,
            python=platform.python_version(),
            torch=torch.__version__,
        )
