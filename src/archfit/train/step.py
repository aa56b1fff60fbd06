"""One training step: losses of all micro-batches, gradients, clipping, AdamW.

On a GPU the whole step is captured once as a CUDA graph and replayed: a narrow network otherwise
waits for the host, which starts a few thousand small kernels for every step.

Shape letters: B rows of this process's batch, S tokens of a row.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator

import torch
from jaxtyping import Int
from torch import Tensor, nn

from archfit.model.layers import HAS_TRITON
from archfit.model.loss import inputs_and_targets, token_losses
from archfit.spec import RunSpec, Softmax
from archfit.train.hardware import ProcessGroup
from archfit.train.optimiser import AdamW, learning_rate

STEPS_BEFORE_CAPTURE = 3  # real ones, in which libraries make their plans and buffers


def batch_losses(
    model: nn.Module, spec: RunSpec, tokens_BS: Int[Tensor, "B S"], *, last_only: bool = False
) -> Tensor:
    """-ln p of each predicted token, or of those of the last position; products in the precision
    of the recipe, losses in float32."""
    given, is_coarse = spec.architecture.input, spec.recipe.precision == "bfloat16"
    inputs, targets = inputs_and_targets(tokens_BS, given)
    with torch.autocast(tokens_BS.device.type, torch.bfloat16, enabled=is_coarse):
        logits: Tensor = model(inputs)
        if last_only:
            logits, targets = logits[:, -1:], targets[:, -given.tokens_per_position :]
        return token_losses(logits, targets, given)


class Stepper:
    """Makes training steps, in place; halves its micro-batch when memory runs out."""

    def __init__(
        self,
        model: nn.Module,
        optimiser: AdamW,
        spec: RunSpec,
        group: ProcessGroup,
        notice: Callable[[str], None],
    ) -> None:
        self.model, self.optimiser, self.spec, self.group = model, optimiser, spec, group
        self.notice = notice
        self.rows = self.micro_rows = spec.recipe.batch_sequences // group.world
        self.steps_made = 0
        _compile_ahead(spec, group.device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.graph_tokens_BS: Tensor | None = None
        self.graph_loss: Tensor | None = None

    def __call__(self, step: int, tokens_BS: Int[Tensor, "B S"]) -> Tensor:
        """Train on the batch of `step`; return this process's mean loss before it, which stays on
        its device: reading it makes a GPU wait."""
        while True:
            try:
                return self._step(step, tokens_BS)
            except torch.OutOfMemoryError:
                self._take_less_memory()

    def _step(self, step: int, tokens_BS: Tensor) -> Tensor:
        self.optimiser.set_rate(learning_rate(step, self.spec.recipe))
        if self.spec.recipe.dropout:  # a mask is a function of seed, step and process
            torch.manual_seed(_mask_seed(self.spec.seed, step, self.group.rank))
        can_capture = self.group.device.type == "cuda" and self.group.world == 1
        if not can_capture or self.steps_made < STEPS_BEFORE_CAPTURE:
            loss = self._eager_step(tokens_BS)
        else:
            loss = self._captured_step(tokens_BS)
        self.steps_made += 1
        return loss

    def _eager_step(self, tokens_BS: Tensor) -> Tensor:
        loss = torch.zeros((), device=tokens_BS.device)
        micro_batches = tokens_BS.split(self.micro_rows)
        for at, micro_BS in enumerate(micro_batches):
            with self._gradients_summed_over_group(is_last=at == len(micro_batches) - 1):
                micro_loss = self._mean_loss(micro_BS) * (len(micro_BS) / len(tokens_BS))
                micro_loss.backward()
            loss += micro_loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.spec.recipe.gradient_clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss

    def _mean_loss(self, micro_BS: Tensor) -> Tensor:
        return batch_losses(self.model, self.spec, micro_BS).mean()

    def _captured_step(self, tokens_BS: Tensor) -> Tensor:
        if self.graph is None:
            self.graph_tokens_BS = tokens_BS.clone()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=torch.cuda.Stream()):
                self.graph_loss = self._eager_step(self.graph_tokens_BS)
        assert self.graph_tokens_BS is not None
        assert self.graph_loss is not None
        self.graph_tokens_BS.copy_(tokens_BS, non_blocking=True)
        self.graph.replay()
        return self.graph_loss.clone()

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
        self.graph = self.graph_tokens_BS = self.graph_loss = None
        self.optimiser.zero_grad()
        torch.cuda.empty_cache()
        if self.micro_rows == 1:
            raise ValueError(
                "one sequence is more than the memory of this device holds; use a smaller network "
                "or context, or more devices"
            )
        self.micro_rows = -(-self.micro_rows // 2)
        self.notice(
            f"out of memory: {self.rows} sequences now go through in micro-batches of "
            f"{self.micro_rows}; the batch stays the same"
        )


def _compile_ahead(spec: RunSpec, device: torch.device) -> None:
    is_softmax = isinstance(spec.architecture.attention, Softmax)
    if device.type == "cuda" and HAS_TRITON and is_softmax and spec.recipe.precision == "bfloat16":
        from archfit.model.row_kernels import compile_ahead

        compile_ahead(spec.architecture, device)


def _mask_seed(seed: int, step: int, rank: int) -> int:
    digest = hashlib.sha256(f"dropout/{seed}/{step}/{rank}".encode()).digest()
    return int.from_bytes(digest[:7], "little")
