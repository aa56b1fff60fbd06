"""Memory that runs out (`most` rows fit at once), and the GPU's way to make a step; simulated."""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from archfit.data.prepared import PreparedData
from archfit.spec import Linear, RunSpec
from archfit.train import train
from archfit.train.hardware import ProcessGroup
from archfit.train.step import Stepper, _compile_ahead, _mask_seed
from tests_training import HERE, Recorder, largest_difference, record_of, tiny_spec


def let_rows_fit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    honest = Stepper._mean_loss

    def greedy(self: Stepper, micro_BS: torch.Tensor) -> torch.Tensor:
        if len(micro_BS) > most:
            raise torch.OutOfMemoryError("no more")
        return honest(self, micro_BS)

    monkeypatch.setattr(Stepper, "_mean_loss", greedy)


@pytest.mark.parametrize(("most", "micro"), [(4, 3), (3, 3), (2, 2), (1, 1)])
def test_less_memory_makes_smaller_micro_batches_of_the_same_batch(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, micro: int
) -> None:
    spec, watch = tiny_spec(data, batch_sequences=5), Recorder()
    expected = record_of(spec, data, tmp_path / "ample")
    assert expected.machine.micro_batch_sequences == 5
    let_rows_fit(monkeypatch, most)
    emptied: list[None] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(None))
    record = train(spec, data, tmp_path, HERE, watch)
    assert len(emptied) == len(watch.notices)
    assert largest_difference(record, expected) < 1e-5
    assert record.machine.micro_batch_sequences == micro
    assert watch.notices[-1] == (
        f"out of memory: 5 sequences now go through in micro-batches of {micro}; "
        "the batch stays the same"
    )


def test_when_one_row_is_too_much_the_way_out_is_told(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_rows_fit(monkeypatch, 0)
    with pytest.raises(ValueError, match="use a smaller network or context, or more devices"):
        record_of(tiny_spec(data), data, tmp_path)


def stepper_on(device: str, spec: RunSpec, *, world: int = 1) -> Stepper:
    """One whose network is of no matter."""
    stepper = Stepper.__new__(Stepper)
    stepper.group = ProcessGroup(rank=0, world=world, device=torch.device(device))
    stepper.spec, stepper.steps_made, stepper.graph = spec, 0, None
    stepper.optimiser = SimpleNamespace(set_rate=lambda _: None)  # type: ignore[assignment]
    return stepper


@pytest.mark.parametrize(
    ("device", "world", "ways"), [("cuda", 1, "eeecc"), ("cuda", 2, "eeeee"), ("cpu", 1, "eeeee")]
)
def test_a_gpu_of_its_own_replays_its_steps_from_the_fourth_on(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch, device: str, world: int, ways: str
) -> None:
    seen = list[str]()

    def way(letter: str) -> Callable[..., torch.Tensor]:
        def step(*_: object) -> torch.Tensor:
            seen.append(letter)
            return torch.zeros(())

        return step

    monkeypatch.setattr(Stepper, "_eager_step", way("e"))
    monkeypatch.setattr(Stepper, "_captured_step", way("c"))
    stepper = stepper_on(device, tiny_spec(data), world=world)
    for step in range(5):
        stepper._step(step, torch.zeros(1, 1, dtype=torch.int64))
    assert "".join(seen) == ways


def test_a_replayed_step_reads_its_own_batch_and_its_loss_is_a_copy(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph runs again what was captured: the sum of the tokens at one place in memory."""
    stepper, captures = stepper_on("cuda", tiny_spec(data)), list[torch.Tensor]()
    loss = torch.zeros(())

    def captured(_: Stepper, tokens_BS: torch.Tensor) -> torch.Tensor:
        captures.append(tokens_BS)
        return loss

    def replay() -> None:
        loss.copy_(captures[0].sum())

    monkeypatch.setattr(Stepper, "_eager_step", captured)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=replay))
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "graph", lambda *_, **__: contextlib.nullcontext())
    batches = [torch.full((2, 3), value) for value in (1, 2, 5)]
    losses = [stepper._captured_step(batch) for batch in batches]
    assert [float(value) for value in losses] == [6.0, 12.0, 30.0]
    assert len(captures) == 1
    assert [int(batch.sum()) for batch in batches] == [6, 12, 30]  # nobody wrote into them


def test_a_sharded_network_sums_gradients_with_its_last_micro_batch(data: PreparedData) -> None:
    stepper, asked = stepper_on("cpu", tiny_spec(data), world=2), list[bool]()
    stepper.model = SimpleNamespace(set_requires_gradient_sync=asked.append)  # type: ignore[assignment]
    for is_last in (False, True):
        with stepper._gradients_summed_over_group(is_last):
            pass
    assert asked == [False, True]


def test_a_replicated_network_sums_gradients_with_its_last_micro_batch(data: PreparedData) -> None:
    notes: list[str] = []

    class Replicated(nn.parallel.DistributedDataParallel):
        def __init__(self) -> None:
            nn.Module.__init__(self)

        @contextlib.contextmanager
        def no_sync(self) -> Iterator[None]:
            notes.append("not summed")
            yield

    stepper = stepper_on("cpu", tiny_spec(data), world=2)
    stepper.model = Replicated()
    for is_last in (False, True):
        with stepper._gradients_summed_over_group(is_last):
            notes.append(f"last: {is_last}")
    assert notes == ["not summed", "last: False", "last: True"]


@pytest.mark.parametrize(
    ("changes", "device", "has_triton", "compiles"),
    [
        ({"precision": "bfloat16"}, "cuda", True, True),
        ({"precision": "bfloat16"}, "cuda", False, False),
        ({"precision": "bfloat16"}, "cpu", True, False),
        ({"precision": "float32"}, "cuda", True, False),
        (
            {
                "precision": "bfloat16",
                "attention": Linear(residual=True, causal=True),
                "feed_forward_multiple": 0,
            },
            "cuda",
            True,
            False,
        ),
    ],
)
def test_kernels_are_compiled_ahead_where_they_will_be_used(
    data: PreparedData, changes: dict[str, object], device: str, has_triton: bool, compiles: bool
) -> None:
    compiled: list[object] = []
    kernels = SimpleNamespace(compile_ahead=lambda *arguments: compiled.append(arguments))
    spec = tiny_spec(data, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "archfit.model.row_kernels", kernels)
        patch.setattr("archfit.train.step.HAS_TRITON", has_triton)
        _compile_ahead(spec, torch.device(device))
    assert compiled == ([(spec.architecture, torch.device(device))] if compiles else [])


def test_a_dropout_mask_is_a_function_of_seed_step_and_process() -> None:
    """Old runs go on with the masks that they had."""
    digest = hashlib.sha256(b"dropout/3/14/1").digest()
    assert _mask_seed(3, 14, 1) == sum(byte << 8 * at for at, byte in enumerate(digest[:7]))
