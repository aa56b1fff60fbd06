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
from dataclasses import replace
from pathlib import Path

import torch

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import Evaluation, FullContext, Machine, RunRecord, RunSpec, Timing
from archfit.spec.files import discard_checkpoints
from archfit.train import hardware, run_files
from archfit.train.context import (
    Progress,
    RunContext,
    Stopped,
    TrainSettings,
    Watcher,
    Watchers,
    run_context,
)
from archfit.train.evaluate import Heldout, bits_per_byte, full_context_loss, heldout_loss
from archfit.train.hardware import ProcessGroup, peak_flops
from archfit.train.optimiser import build_optimiser
from archfit.train.run_files import NamedTensors, RunState
from archfit.train.step import Stepper

LARGEST_LOSS = 1e5  # nats per token; beyond it a run has diverged, finite or not
SECONDS_BETWEEN_LOOKS = 0.5  # at the losses of a GPU, which makes it wait
STEPS_BETWEEN_LOOKS = 10  # of several GPUs: their clocks differ, and all must look at once
START = RunState(step=0, loss_sum=0.0, evaluations=(), timed_seconds=0.0, timed_steps=0)

TrainingSteps = Generator[None, None, RunRecord]  # pauses after every step, ends with the record


def train(
    spec: RunSpec, data: PreparedData, out: Path, settings: TrainSettings, watch: Watcher
) -> RunRecord:
    """Train one run in the folder out/NAME and return its record; at once if it is there."""
    with run_context(data, out, settings) as context:
        return run_to_end(training_steps(spec, context, watch))


def run_to_end(steps: TrainingSteps) -> RunRecord:
    """The record of a run that takes turns with no other."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            record = finished.value
            assert isinstance(record, RunRecord)
            return record


def training_steps(spec: RunSpec, context: RunContext, watch: Watcher) -> TrainingSteps:
    """The run as a generator that pauses after every step, so that several can take turns."""
    group, folder = context.group, context.out / spec.name
    check_data(spec, context.data)
    if not group.is_main:
        watch = Watchers()
    record = _finished_everywhere(folder, spec, group)
    if record is None:
        # Refuse what cannot be trained here, before there is a folder for it.
        hardware.check_precision(spec.recipe.precision, group.device.type)
        _loader(spec, context)  # it refuses data that hold no row
        hardware.check_memory(spec, group, may_shard=context.settings.sharding != "replicate")
        with run_files.held(folder) if group.is_main else contextlib.nullcontext():
            record = _finished_everywhere(folder, spec, group)  # who held it may have finished
            if record is None:
                if group.is_main:
                    run_files.begin(folder, spec)
                with _memory_errors():
                    return (yield from TrainingRun(spec, context, watch).to_the_end())
    watch.finished(record)
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


def _finished_everywhere(folder: Path, spec: RunSpec, group: ProcessGroup) -> RunRecord | None:
    """The record, if every process of the group sees it."""
    record = run_files.finished_record(folder, spec)
    (seen,) = group.sums([float(record is not None)])
    if seen < group.world:
        return None
    if group.is_main:
        discard_checkpoints(folder)
    return record


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


def _loader(spec: RunSpec, context: RunContext) -> Loader:
    """Rows that hold `context` positions and the one after, in tokens of the source."""
    size = spec.architecture.input.tokens_per_position
    return Loader(
        data=context.data,
        batch=spec.recipe.batch_sequences,
        context=(spec.architecture.context + 1) * size - 1,
        seed=spec.seed,
        rank=context.group.rank,
        world=context.group.world,
    )


class TrainingRun:
    """A run in progress: the network, and what it has shown so far."""

    def __init__(self, spec: RunSpec, context: RunContext, watch: Watcher) -> None:
        self.spec, self.context, self.watch = spec, context, watch
        self.group, self.folder = context.group, context.out / spec.name
        self.loader = _loader(spec, context)
        device = self.group.device
        numbers = parametrisation(spec.architecture, spec.recipe.learning_rate_rule)
        self.model = Transformer(spec.architecture, numbers, dropout=spec.recipe.dropout)
        initialise(self.model, numbers, seed=spec.seed)
        self.model.to(device)
        called = hardware.distribute(self.model, self.group, context.settings.sharding)
        optimiser = build_optimiser(self.model, spec.recipe, numbers, device)
        self.tensors = NamedTensors(self.model, optimiser)
        self.state = run_files.load_newest_checkpoint(self.folder, self.tensors, spec=spec) or START
        self.group.barrier()  # all have read before anybody writes
        if self.group.is_main:
            run_files.write_log(self.folder, self.state.evaluations)
        self.stepper = Stepper(called, optimiser, spec, self.group, watch.notice)
        self.peak = peak_flops(device, spec.recipe.precision)
        self.unread: list[torch.Tensor] = []  # losses still on their device
        self.since = self.last_save = time.monotonic()
        self.is_warm = False  # the first step of a process plans and compiles, and is not timed

    @property
    def steps_made(self) -> int:
        """Steps from the start of the run, those whose losses nobody has read included."""
        return self.state.step + len(self.unread)

    def to_the_end(self) -> TrainingSteps:
        """Make the steps that are left; the record, which is on disk."""
        recipe, diverged_at = self.spec.recipe, None
        self.watch.started(self.spec, self.state.step)
        while self.steps_made < recipe.steps and diverged_at is None:
            self._step()
            made = self.steps_made
            is_evaluated = made % recipe.evaluation_steps == 0 or made == recipe.steps
            if is_evaluated or self._time_to_look():
                diverged_at = self._read_losses()
            if is_evaluated and diverged_at is None:
                diverged_at = self._evaluate()
            if diverged_at is None:
                diverged_at = self._save_or_stop(is_evaluated)
            yield
        return self._finish(diverged_at)

    def _step(self) -> None:
        tokens_BS = torch.from_numpy(self.loader.training_batch(self.steps_made))
        if self.group.device.type == "cuda":  # from pinned memory the copy waits for nobody
            tokens_BS = tokens_BS.pin_memory()
        tokens_BS = tokens_BS.to(self.group.device, non_blocking=True)
        self.unread.append(self.stepper(self.steps_made, tokens_BS))

    def _time_to_look(self) -> bool:
        if self.group.device.type == "cpu" or not self.is_warm:
            return True
        if self.group.world > 1:
            return len(self.unread) >= STEPS_BETWEEN_LOOKS
        return time.monotonic() - self.since > SECONDS_BETWEEN_LOOKS

    def _read_losses(self) -> int | None:
        """Take the losses from the device; the first step whose loss is no loss, or None."""
        losses = torch.stack(self.unread).tolist()
        if self.group.world > 1:
            losses = [loss / self.group.world for loss in self.group.sums(losses)]
        now = time.monotonic()
        if self.is_warm:
            self.state = replace(
                self.state,
                timed_seconds=self.state.timed_seconds + now - self.since,
                timed_steps=self.state.timed_steps + len(losses),
            )
        self.is_warm, self.since, self.unread = True, now, []
        for loss in losses:
            if not loss < LARGEST_LOSS:
                return self.state.step
            step, loss_sum = self.state.step + 1, self.state.loss_sum + loss
            self.state = replace(self.state, step=step, loss_sum=loss_sum)
        self.watch.progress(self._progress(losses[-1]))
        return None

    def _evaluate(self) -> int | None:
        """Add an evaluation; the step if its loss is no loss."""
        state = self.state
        loss = heldout_loss(self.model, self._heldout())
        if not loss < LARGEST_LOSS:
            return state.step
        before = state.evaluations[-1].step if state.evaluations else 0
        evaluation = Evaluation(
            step=state.step,
            training_nats_per_token=state.loss_sum / (state.step - before),
            heldout_nats_per_token=loss,
            heldout_bits_per_byte=bits_per_byte(loss, self.context.data),
        )
        self.state = replace(state, loss_sum=0.0, evaluations=(*state.evaluations, evaluation))
        if self.group.is_main:
            run_files.append_to_log(self.folder, evaluation)
        self.watch.evaluated(evaluation)
        self.since = time.monotonic()
        return None

    def _save_or_stop(self, is_evaluated: bool) -> int | None:
        """Write a checkpoint when it is time or a signal came; then end in the latter case.

        A group agrees on it at every evaluation or look, since all must take part. Losses are read
        before; the first step whose loss is no loss, or None.
        """
        if self.unread and self.group.world > 1:
            return None
        number = self.context.stop.signal_number or 0
        due = time.monotonic() - self.last_save > self.context.settings.checkpoint_seconds
        if is_evaluated and self.state.step == self.spec.recipe.steps:
            if not self.spec.recipe.full_context_tokens:
                return None  # the record is written next
            due = True  # a long evaluation is: who is killed in it need not train again
        stops, saves = self.group.sums([float(number), float(due and self.group.is_main)])
        if not (stops or saves):
            return None
        if self.unread and (diverged_at := self._read_losses()) is not None:
            return diverged_at
        run_files.save_checkpoint(
            self.folder, self.tensors, self.state, spec=self.spec, group=self.group
        )
        self.last_save = self.since = time.monotonic()
        if stops:  # the signal may have reached another process of the group
            raise Stopped(self.state.step, number or signal.SIGTERM)
        return None

    def _finish(self, diverged_at: int | None) -> RunRecord:
        full_context = None
        if diverged_at is None and self.spec.recipe.full_context_tokens:
            loss, tokens = full_context_loss(self.model, self._heldout())
            bits = bits_per_byte(loss, self.context.data)
            full_context = FullContext(
                tokens=tokens, heldout_nats_per_token=loss, heldout_bits_per_byte=bits
            )
        machine = Machine(
            device=hardware.device_name(self.group.device),
            devices=self.group.world,
            micro_batch_sequences=self.stepper.micro_rows,
            archfit=self.context.settings.code_version,
            python=platform.python_version(),
            torch=torch.__version__,
        )
        record = RunRecord(
            spec=self.spec,
            status="finished" if diverged_at is None else "diverged",
            diverged_at_step=diverged_at,
            evaluations=self.state.evaluations,
            full_context=full_context,
            timing=self._timing(),
            machine=machine,
        )
        keeps = self.context.settings.keep_weights
        weights = run_files.on_host(self.tensors.weights()) if keeps else None
        if self.group.is_main:
            if weights is not None:
                run_files.write_weights(self.folder, weights)
            run_files.write_record(self.folder, record)
        self.watch.finished(record)
        return record

    def _heldout(self) -> Heldout:
        rows = self.stepper.micro_rows
        if self.group.device.type == "cuda":  # a captured step keeps its memory for itself
            rows = -(-rows // 4)
        return Heldout(spec=self.spec, loader=self.loader, group=self.group, rows=rows)

    def _progress(self, last_loss: float) -> Progress:
        timing, steps = self._timing(), self.spec.recipe.steps
        left = (steps - self.state.step) * self._tokens_a_step()
        return Progress(
            step=self.state.step,
            steps=steps,
            training_nats_per_token=last_loss,
            tokens_per_second=timing.tokens_per_second,
            flop_utilisation=timing.flop_utilisation,
            seconds_left=left / timing.tokens_per_second if timing.tokens_per_second else 0.0,
        )

    def _timing(self) -> Timing:
        seconds, steps = self.state.timed_seconds, self.state.timed_steps
        rate = steps * self._tokens_a_step() / seconds if seconds else 0.0
        flops = rate * self.spec.architecture.training_flops_per_token
        return Timing(
            training_seconds=seconds,
            tokens_per_second=rate,
            flop_utilisation=flops / (self.peak * self.group.world) if self.peak else None,
        )

    def _tokens_a_step(self) -> float:
        return self.spec.training_tokens / self.spec.recipe.steps
