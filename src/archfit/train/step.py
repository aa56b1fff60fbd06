"""One training step: losses of all micro-batches, gradients, clipping, AdamW.

On a GPU of its own a run makes many steps at a time. Their batches and rates are put on the device
first, and the step, recorded once, finds its own by a counter there: the host only says "again".

Shape letters: B rows of this process's batch, R numbers of a loader's row, T steps, G groups of
parameters.
"""

import contextlib
import gc
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.model import Transformer
from archfit.model.layers import HAS_TRITON, WIDEST_FUSED_HEAD, batch_of, token_losses
from archfit.spec import Architecture, RunSpec, Softmax
from archfit.spec.errors import refuse_if
from archfit.train.hardware import ProcessGroup
from archfit.train.optimiser import AdamW, learning_rate

TABLE_BYTES, MOST_STEPS = 1 << 25, 512  # of batches that wait on a GPU


def batch_losses(
    model: nn.Module, spec: RunSpec, rows_BR: Int[Tensor, "B R"], *, last_only: bool = False
) -> Tensor:
    """-ln p of each predicted token, or of those of the last position; products in the precision
    of the recipe, losses in float32."""
    given, is_coarse = spec.architecture.input, spec.recipe.precision == "bfloat16"
    inputs, targets, places = batch_of(rows_BR, spec.architecture)
    with torch.autocast(rows_BR.device.type, torch.bfloat16, enabled=is_coarse):
        if is_coarse and isinstance(model, Transformer):
            model.refresh_copies()
        logits: Tensor = model(inputs, places)
        if last_only:
            logits, targets = logits[:, -1:], targets[:, -given.tokens_per_position :]
        return token_losses(logits, targets, given)


class Replay:
    """Runs `work` from its recording, a CUDA graph made at the first call.

    A narrow network otherwise waits for the host, which starts a few thousand small kernels a step.
    `work` reads and writes tensors that stay where they are. What it returns is a tensor that the
    next call overwrites.
    """

    def __init__(self, work: Callable[[], Tensor]) -> None:
        self.work = work
        self.recorded: tuple[torch.cuda.CUDAGraph, Tensor] | None = None

    def __call__(self) -> Tensor:
        """Do the work once more, on this run's stream; it is queued, not done, when this returns.

        `torch.cuda.graph` would wait for the whole GPU and collect garbage, which takes longer than
        the training of a small network, and other runs may be on other streams. No garbage is
        collected meanwhile: the recording of an ended run must not be freed in the middle of this.
        Libraries make their plans meanwhile, which only the relaxed mode allows.
        """
        if self.recorded is None:
            graph = torch.cuda.CUDAGraph()
            gc.disable()
            graph.capture_begin(capture_error_mode="relaxed")
            try:
                result = self.work()
            finally:
                graph.capture_end()
                gc.enable()
            self.recorded = graph, result
        graph, result = self.recorded
        graph.replay()
        return result


@dataclass(eq=False)
class Stepper:
    """Makes training steps, in place; halves its micro-batch when memory runs out."""

    model: nn.Module
    optimiser: AdamW
    spec: RunSpec
    group: ProcessGroup
    notice: Callable[[str], None]

    def __post_init__(self) -> None:
        model, spec, group = self.model, self.spec, self.group
        self.rows = self.micro_rows = spec.recipe.batch_sequences // group.world
        shape = model.architecture if isinstance(model, Transformer) else spec.architecture
        self.kernels = _compile_ahead(spec, shape, group.device)
        self.is_queued = group.device.type == "cuda" and group.world == 1
        self.queue: StepQueue | None = None
        self.shares = None
        if self.is_queued and isinstance(model, Transformer):
            model.copy_weights()
            if is_fused(spec, group):
                from archfit.model.gradient_shares import GradientShares

                with contextlib.suppress(torch.OutOfMemoryError):
                    self.shares = GradientShares(model, self.rows)

    def is_compiled(self) -> bool:
        """Whether a step can be made without waiting for a compiler."""
        return all(kernel.done() for kernel in self.kernels)

    def __call__(self, step: int, rows_BR: Int[Tensor, "B R"]) -> Tensor:
        """Train on the batch of `step`; return this process's mean loss before it, which stays on
        its device: reading it makes a GPU wait."""
        return self._with_enough_memory(lambda: self._step(step, rows_BR))

    def many(self, first: int, rows_TBR: Int[Tensor, "T B R"]) -> Float[Tensor, " T"]:
        """Train on the batches of `first` and the steps after it; their losses.

        On a GPU of its own a run has the steps queued, not made, when this returns, and the losses
        are there when they are.
        """
        if not self.is_queued:
            rows_TBR = rows_TBR.to(self.group.device, torch.int64)
            return torch.stack([self(step, rows) for step, rows in enumerate(rows_TBR, first)])
        if self.queue is None:
            wait(self.kernels)  # what failed is compiled by the step, or fails there
            self.queue = StepQueue(self, rows_TBR[0])
        self.queue.fill(first, rows_TBR)
        for step in range(first, first + len(rows_TBR)):
            self._seed_dropout(step)
            self._with_enough_memory(self.queue.step)
        losses_T = self.queue.losses_T[: len(rows_TBR)]
        return losses_T.to("cpu", non_blocking=True, copy=True)

    def _with_enough_memory(self, work: Callable[[], Tensor]) -> Tensor:
        while True:
            with contextlib.suppress(torch.OutOfMemoryError):
                return work()
            # Not while the error is handled: it holds on to the memory of the step that failed.
            self._take_less_memory()

    def _step(self, step: int, rows_BR: Tensor) -> Tensor:
        self.optimiser.set_rate(learning_rate(step, self.spec.recipe))
        self._seed_dropout(step)
        return self.plain_step(rows_BR)

    def _seed_dropout(self, step: int) -> None:
        if self.spec.recipe.dropout:  # a mask is a function of seed, step and process
            torch.manual_seed(_mask_seed(self.spec.seed, step, self.group.rank))

    def plain_step(self, rows_BR: Tensor) -> Tensor:
        """One step at the rate that is set; its mean loss."""
        loss = torch.zeros((), device=rows_BR.device)
        micro_batches = rows_BR.split(self.micro_rows)
        for at, micro_BR in enumerate(micro_batches):
            with self._gradients_summed_over_group(is_last=at == len(micro_batches) - 1):
                losses = batch_losses(self.model, self.spec, micro_BR)
                micro_loss = losses.mean() * (len(micro_BR) / len(rows_BR))
                micro_loss.backward()
            loss += micro_loss.detach()
        if self.shares is not None:
            self.shares.add_up()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.spec.recipe.gradient_clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss

    @contextlib.contextmanager
    def _gradients_summed_over_group(self, is_last: bool) -> Iterator[None]:
        """Sum gradients over the group once a step, with its last micro-batch."""
        if isinstance(self.model, nn.parallel.DistributedDataParallel):
            with contextlib.nullcontext() if is_last else self.model.no_sync():
                yield
            return
        if self.group.world > 1:  # sharded
            self.model.set_requires_gradient_sync(is_last)  # type: ignore[operator]  # FSDP's
        yield

    def _take_less_memory(self) -> None:
        if self.queue is not None:
            self.queue.step.recorded = None
        if self.shares is not None:  # they are those of a whole batch
            self.shares.remove()
            self.shares = None
        self.optimiser.zero_grad()
        torch.cuda.empty_cache()
        refuse_if(self.micro_rows == 1, "run-large-row")
        self.micro_rows = -(-self.micro_rows // 2)
        self.notice(
            f"out of memory: {self.rows} sequences now go through in micro-batches of "
            f"{self.micro_rows}; the batch stays the same"
        )


def steps_that_fit(rows_BR: Int[Tensor, "B R"]) -> int:
    """Steps whose batches may wait on a GPU."""
    return max(1, min(MOST_STEPS, TABLE_BYTES // (4 * rows_BR.numel())))


class StepQueue:
    """Batches and rates of the next steps on a GPU, and the step that takes one after the other."""

    def __init__(self, stepper: Stepper, rows_BR: Int[Tensor, "B R"]) -> None:
        device, steps = stepper.group.device, steps_that_fit(rows_BR)
        self.stepper = stepper
        self.rows_TBR = torch.zeros((steps, *rows_BR.shape), dtype=torch.int32, device=device)
        self.rates_TG = torch.zeros((steps, len(stepper.optimiser.groups)), device=device)
        self.losses_T = torch.zeros(steps, device=device)
        self.at = torch.zeros(1, dtype=torch.int64, device=device)  # the step that is next
        self.step = Replay(self._step)

    def fill(self, first: int, rows_TBR: Int[Tensor, "T B R"]) -> None:
        """Put the batches of `first` and the steps after it on the device, with their rates."""
        recipe, factors = self.stepper.spec.recipe, self.stepper.optimiser.rate_factors
        steps = range(first, first + len(rows_TBR))
        rates_TG = [[learning_rate(step, recipe) * factor for factor in factors] for step in steps]
        self.rates_TG[: len(rows_TBR)].copy_(_pinned(torch.tensor(rates_TG)), non_blocking=True)
        self.rows_TBR[: len(rows_TBR)].copy_(_pinned(rows_TBR), non_blocking=True)
        self.at.zero_()

    def _step(self) -> Tensor:
        rows_BR = self.rows_TBR.index_select(0, self.at)[0].long()
        self.stepper.optimiser.rates_G.copy_(self.rates_TG.index_select(0, self.at)[0])
        loss = self.stepper.plain_step(rows_BR)
        self.losses_T.index_copy_(0, self.at, loss[None])
        self.at += 1
        return loss


def _pinned(tensor: Tensor) -> Tensor:
    """The same in memory from which a copy to the GPU waits for nobody."""
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


def is_fused(spec: RunSpec, group: ProcessGroup) -> bool:
    """Whether all blocks are made of our kernels, on a GPU of the run's own."""
    is_plain = spec.architecture.head_dim <= WIDEST_FUSED_HEAD and not spec.recipe.dropout
    return _has_kernels(spec, group.device) and group.world == 1 and is_plain


def _has_kernels(spec: RunSpec, device: torch.device) -> bool:
    """Whether some are for this run."""
    is_softmax = isinstance(spec.architecture.attention, Softmax)
    is_coarse = spec.recipe.precision == "bfloat16"
    return device.type == "cuda" and HAS_TRITON and is_softmax and is_coarse


def _compile_ahead(
    spec: RunSpec, architecture: Architecture, device: torch.device
) -> list[Future[None]]:
    """What is being compiled for this run, whose network may be a larger one."""
    if not _has_kernels(spec, device):
        return []
    from archfit.model.compile_ahead import compile_ahead

    return compile_ahead(architecture, device)


def _mask_seed(seed: int, step: int, rank: int) -> int:
    digest = hashlib.sha256(f"dropout/{seed}/{step}/{rank}".encode()).digest()
    return int.from_bytes(digest[:7], "little")
