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
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import torch

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import (
    Evaluation,
    FullContext,
    Machine,
    RunRecord,
    RunSpec,
    Stretch,
    Timing,
    files,
)
from archfit.spec.errors import refusal
from archfit.spec.record import NUMERICS, Progress, Watchers
from archfit.spec.signals import Stopped
from archfit.train import evaluate, hardware, run_files
from archfit.train.hardware import ProcessGroup, RunContext
from archfit.train.optimiser import build_optimiser
from archfit.train.run_files import NamedTensors, RunState
from archfit.train.step import Stepper, is_fused, steps_that_fit

LARGEST_LOSS = 1e5  # nats per token; beyond it a run has diverged, finite or not
SECONDS_BETWEEN_LOOKS = 0.3  # at the losses of a GPU, which makes it wait
STEPS_BETWEEN_LOOKS = 10  # of several GPUs: their clocks differ, and all must look at once
START = RunState(step=0, loss_sum=0.0, evaluations=(), timed_seconds=0.0, timed_steps=0)

Pause = Callable[[], bool] | None  # after some steps; whether what there is to wait for is done
TrainingSteps = Generator[Pause, None, RunRecord]  # ends with the record


def training_steps(spec: RunSpec, context: RunContext, watch: Watchers) -> TrainingSteps:
    """The run as a generator that pauses often, so that several can take turns."""
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
                    run_files.write_lines(folder / files.SPEC, spec)
                    run_files.discard_unfinished(folder)
                with _memory_errors():
                    return (yield from TrainingRun(spec, context, watch).to_the_end())
    watch.finished(record)
    return record


def check_data(spec: RunSpec, data: PreparedData) -> None:
    """Refuse data that the spec does not speak of."""
    vocab, found = spec.architecture.input.vocab, data.vocab
    added = spec.architecture.objective == "masked"
    if found + added != vocab:
        wanted = f"{vocab}, the mask token counted" if added else vocab
        about = {"found": found, "wanted": wanted, "usable": found + added}
        raise refusal("run-vocabulary", folder=data.folder, **about)
    if data.data_hash != spec.data_hash:
        hashes = {"found": data.data_hash[:16], "wanted": spec.data_hash[:16]}
        raise refusal("run-other-data", folder=data.folder, **hashes)


def _finished_everywhere(folder: Path, spec: RunSpec, group: ProcessGroup) -> RunRecord | None:
    """The record of the run in its folder, if every process of the group sees it."""
    record = files.read_record(folder)
    if record is not None and record.spec.hash != spec.hash:
        raise refusal("run-other", path=folder / files.RECORD, name=record.spec.name)
    (seen,) = group.sums([float(record is not None)])
    if seen < group.world:
        return None
    if group.is_main:
        files.discard_checkpoints(folder)
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
    shape = spec.architecture
    size = shape.input.tokens_per_position
    return Loader(
        data=context.data,
        batch=spec.recipe.batch_sequences,
        context=(shape.context + 1) * size - 1 if shape.objective == "causal" else shape.context,
        seed=spec.seed,
        rank=context.group.rank,
        world=context.group.world,
        mask_id=None if shape.objective == "causal" else shape.input.vocab - 1,
    )


class TrainingRun:
    """A run in progress: the network, and what it has shown so far."""

    def __init__(self, spec: RunSpec, context: RunContext, watch: Watchers) -> None:
        self.spec, self.context, self.watch = spec, context, watch
        self.group, self.folder = context.group, context.out / spec.name
        self.loader = _loader(spec, context)
        device = self.group.device
        numbers = parametrisation(spec.architecture, spec.recipe.learning_rate_rule)
        self.model = Transformer(spec.architecture, numbers, dropout=spec.recipe.dropout)
        initialise(self.model, numbers, seed=spec.seed)
        shapes = {name: weight.shape for name, weight in self.model.named_parameters()}
        if is_fused(spec, self.group):
            self.model = Transformer.around(self.model, numbers)
        self.model.to(device, non_blocking=True)
        called = hardware.distribute(self.model, self.group, context.settings.sharding)
        optimiser = build_optimiser(self.model, spec.recipe, numbers, device)
        self.tensors = NamedTensors(self.model, optimiser, shapes)
        self.here = Stretch(
            steps=0,
            device=hardware.device_name(device),
            devices=self.group.world,
            archfit=context.settings.code_version,
            python=platform.python_version(),
            torch=torch.__version__,
            numerics=NUMERICS,
        )
        self.state = self._state_at_start()
        self.group.barrier()  # all have read before anybody writes
        if self.group.is_main:
            # The log as it was then: lines written after it will be written again.
            run_files.write_lines(self.folder / files.LOG, *self.state.evaluations)
        self.stepper = Stepper(called, optimiser, spec, self.group, watch.notice)
        # Alone on a GPU a run queues many steps and looks at them when they are made.
        self.is_queued = self.stepper.is_queued
        heldout = self._heldout()
        self.evaluation = evaluate.HeldoutReplay(self.model, heldout) if self.is_queued else None
        self.peak = hardware.peak_flops(device, spec.recipe.precision)
        self.tokens_a_step = spec.training_tokens / spec.recipe.steps
        self.unread = torch.zeros(0)  # losses still on their device
        self.since = self.last_save = time.monotonic()
        self.is_cold = True  # the first step plans, compiles and is recorded; it is not timed

    def _state_at_start(self) -> RunState:
        """That of the newest checkpoint; with a word where it was written elsewhere."""
        state = run_files.load_newest_checkpoint(self.folder, self.tensors, self.spec) or START
        before, history = state.made_by, state.history
        if before is not None and before != self.here:
            now, then = asdict(self.here), asdict(before)
            changes = [f"{key} {then[key]}, now {it}" for key, it in now.items() if it != then[key]]
            self.watch.notice(
                f"steps up to {state.step} were made elsewhere ({'; '.join(changes)}), so losses "
                "may differ in their last digits; the record says so"
            )
            history = (*history, replace(before, steps=state.step))
        return replace(state, made_by=self.here, history=history)

    @property
    def steps_made(self) -> int:
        """Steps from the start of the run, those whose losses nobody has read included."""
        return self.state.step + len(self.unread)

    def to_the_end(self) -> TrainingSteps:
        """Make the steps that are left; the record, which is on disk."""
        recipe, diverged_at = self.spec.recipe, None
        self.watch.started(self.spec, self.state.step)
        yield self.stepper.is_compiled
        while self.steps_made < recipe.steps and diverged_at is None:
            self._step()
            yield from self._until_done()
            made = self.steps_made
            is_evaluated = made % recipe.evaluation_steps == 0 or made == recipe.steps
            diverged_at = self._read_losses()
            if is_evaluated and diverged_at is None:
                diverged_at = yield from self._evaluate()
            if diverged_at is None:
                self._save_or_stop(is_evaluated)
            yield None
        return self._finish(diverged_at)

    def _step(self) -> None:
        """Make the next steps, or queue them, up to an evaluation at most."""
        first, every = self.steps_made, self.spec.recipe.evaluation_steps
        left = min(every - first % every, self.spec.recipe.steps - first)
        rows = [self._rows(first)]
        most = min(left, self._steps_at_once(rows[0]))
        rows += [self._rows(step) for step in range(first + 1, first + most)]
        self.unread = self.stepper.many(first, torch.stack(rows))

    def _rows(self, step: int) -> torch.Tensor:
        rows_BR = torch.from_numpy(self.loader.training_batch(step))
        return rows_BR.int() if self.is_queued else rows_BR

    def _steps_at_once(self, rows_BR: torch.Tensor) -> int:
        if self.group.device.type == "cpu" or self.is_cold:
            return 1
        if not self.is_queued:
            return STEPS_BETWEEN_LOOKS
        seconds, steps = self.state.timed_seconds, self.state.timed_steps
        wanted = SECONDS_BETWEEN_LOOKS * steps / seconds if seconds else 1.0
        return max(1, min(steps_that_fit(rows_BR), int(wanted)))

    def _until_done(self) -> Iterator[Pause]:
        """Let others work until all that was queued is done."""
        if self.is_queued:
            done = torch.cuda.Event()
            done.record()
            yield done.query

    def _read_losses(self) -> int | None:
        """Take the losses from the device; the first step whose loss is no loss, or None."""
        losses = self.unread.tolist()
        if self.group.world > 1:
            losses = [loss / self.group.world for loss in self.group.sums(losses)]
        now = time.monotonic()
        if not self.is_cold:
            seconds = self.state.timed_seconds + now - self.since
            steps = self.state.timed_steps + len(losses)
            self.state = replace(self.state, timed_seconds=seconds, timed_steps=steps)
        self.since, self.unread, self.is_cold = now, torch.zeros(0), False
        for loss in losses:
            if not loss < LARGEST_LOSS:
                return self.state.step
            step, loss_sum = self.state.step + 1, self.state.loss_sum + loss
            self.state = replace(self.state, step=step, loss_sum=loss_sum)
        self.watch.progress(self._progress(losses[-1]))
        return None

    def _evaluate(self) -> Generator[Pause, None, int | None]:
        """Add an evaluation; the step if its loss is no loss."""
        self.context.data.check_unchanged()  # what it reads may be on the GPU already
        state = self.state
        if self.evaluation is None:
            loss = evaluate.heldout_loss(self.model, self._heldout())
        else:
            queued = self.evaluation()
            yield from self._until_done()
            loss = float(queued)
        if not loss < LARGEST_LOSS:
            return state.step
        before = state.evaluations[-1].step if state.evaluations else 0
        evaluation = Evaluation(
            step=state.step,
            training_nats_per_token=state.loss_sum / (state.step - before),
            heldout_nats_per_token=loss,
            heldout_bits_per_byte=evaluate.bits_per_byte(loss, self.context.data),
        )
        self.state = replace(state, loss_sum=0.0, evaluations=(*state.evaluations, evaluation))
        if self.group.is_main:
            run_files.append_to_log(self.folder, evaluation)
        self.watch.evaluated(evaluation)
        self.since = time.monotonic()
        return None

    def _save_or_stop(self, is_evaluated: bool) -> None:
        """Write a checkpoint when it is time or a signal came; then end in the latter case.

        A group agrees on it whenever losses were read, since all must take part.
        """
        number = self.context.stop.signal_number or 0
        due = time.monotonic() - self.last_save > self.context.settings.checkpoint_seconds
        if is_evaluated and self.state.step == self.spec.recipe.steps:
            if not self.spec.recipe.full_context_tokens:
                return  # the record is written next
            due = True  # a long evaluation is: who is killed in it need not train again
        stops, saves = self.group.sums([float(number), float(due and self.group.is_main)])
        if not (stops or saves):
            return
        run_files.save_checkpoint(self.folder, self.spec, self.group, self.tensors, self.state)
        self.last_save = self.since = time.monotonic()
        if stops:  # the signal may have reached another process of the group
            raise Stopped(self.state.step, number or signal.SIGTERM)

    def _finish(self, diverged_at: int | None) -> RunRecord:
        full_context = None
        if diverged_at is None and self.spec.recipe.full_context_tokens:
            loss, tokens = evaluate.full_context_loss(self.model, self._heldout())
            bits = evaluate.bits_per_byte(loss, self.context.data)
            full_context = FullContext(
                tokens=tokens, heldout_nats_per_token=loss, heldout_bits_per_byte=bits
            )
        here = {name: part for name, part in asdict(self.here).items() if name != "steps"}
        rows, history = self.stepper.micro_rows, self.state.history
        machine = Machine(**here, micro_batch_sequences=rows, history=history)
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
            run_files.write_lines(self.folder / files.RECORD, record)  # it makes the run done
            files.discard_checkpoints(self.folder)
        self.watch.finished(record)
        return record

    def _heldout(self) -> evaluate.Heldout:
        rows = self.stepper.micro_rows
        if self.group.device.type == "cuda":  # a captured step keeps its memory for itself
            rows = -(-rows // 4)
        return evaluate.Heldout(spec=self.spec, loader=self.loader, group=self.group, rows=rows)

    def _progress(self, last_loss: float) -> Progress:
        timing, steps = self._timing(), self.spec.recipe.steps
        left = (steps - self.state.step) * self.tokens_a_step
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
        rate = steps * self.tokens_a_step / seconds if seconds else 0.0
        flops = rate * self.spec.architecture.training_flops_per_token
        return Timing(
            training_seconds=seconds,
            tokens_per_second=rate,
            flop_utilisation=flops / (self.peak * self.group.world) if self.peak else None,
        )
