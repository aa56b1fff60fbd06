"""Memory that runs out (`most` rows fit at once), and the GPU's way to make a step; simulated."""

import contextlib
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from archfit.data.prepared import PreparedData
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import Linear, RunSpec
from archfit.train import train
from archfit.train.hardware import ProcessGroup
from archfit.train.optimiser import AdamW, build_optimiser
from archfit.train.step import (
    Replay,
    Stepper,
    _compile_ahead,
    _mask_seed,
    batch_losses,
    is_fused,
)
from tests_training import HERE, Recorder, largest_difference, record_of, tiny_spec


def let_rows_fit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    def greedy(model: nn.Module, spec: RunSpec, micro_BR: torch.Tensor) -> torch.Tensor:
        if len(micro_BR) > most:
            raise torch.OutOfMemoryError("no more")
        return batch_losses(model, spec, micro_BR)

    monkeypatch.setattr("archfit.train.step.batch_losses", greedy)


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


def test_shares_of_gradients_are_those_of_a_whole_batch(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are added up when the pass is over; smaller batches make their gradients themselves."""
    spec, done = tiny_spec(data, batch_sequences=4), list[str]()
    stepper, _ = real_stepper(spec)
    stepper.shares = SimpleNamespace(  # type: ignore[assignment]
        add_up=lambda: done.append("add up"), remove=lambda: done.append("remove")
    )
    rows_BR = torch.zeros(4, spec.architecture.context + 1, dtype=torch.int64)
    stepper.plain_step(rows_BR)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    stepper._take_less_memory()
    stepper.plain_step(rows_BR)
    assert done == ["add up", "remove"]


def test_memory_is_freed_when_the_error_that_holds_it_is_gone(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepper, _ = real_stepper(tiny_spec(data, batch_sequences=4))
    seen, failures = list[bool](), iter([True, False])

    def work() -> torch.Tensor:
        if next(failures):
            raise torch.OutOfMemoryError("no more")
        return torch.zeros(())

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: seen.append(sys.exc_info()[0] is None))
    stepper._with_enough_memory(work)
    assert seen == [True]


def stepper_on(device: str, spec: RunSpec, *, world: int = 1) -> Stepper:
    """One whose network is of no matter."""
    stepper = Stepper.__new__(Stepper)
    stepper.group = ProcessGroup(rank=0, world=world, device=torch.device(device))
    stepper.spec = spec
    return stepper


def real_stepper(spec: RunSpec) -> tuple[Stepper, nn.Module]:
    """One of this machine, and the network that it trains."""
    numbers = parametrisation(spec.architecture, spec.recipe.learning_rate_rule)
    model = Transformer(spec.architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=0)
    cpu = torch.device("cpu")
    optimiser = build_optimiser(model, spec.recipe, numbers, cpu)
    return Stepper(model, optimiser, spec, ProcessGroup(rank=0, world=1, device=cpu), print), model


@pytest.mark.parametrize(
    ("device", "world", "queues"), [("cuda", 1, True), ("cuda", 2, False), ("cpu", 1, False)]
)
def test_a_gpu_of_its_own_queues_its_steps(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch, device: str, world: int, queues: bool
) -> None:
    monkeypatch.setattr("archfit.train.step._compile_ahead", lambda *_: [])
    group = ProcessGroup(rank=0, world=world, device=torch.device(device))
    optimiser = AdamW([], tiny_spec(data).recipe, torch.device("cpu"))
    stepper = Stepper(nn.Linear(1, 1), optimiser, tiny_spec(data), group, print)
    assert stepper.is_queued is queues


@pytest.mark.parametrize("rule", ["standard", "completep"])
def test_queued_steps_are_those_made_one_by_one(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """Two fillings of the queue, the second shorter than the first; rates differ by group."""
    monkeypatch.setattr("archfit.train.step.Replay", lambda work: work)  # never recorded
    spec = tiny_spec(data, steps=7, learning_rate_rule=rule, weight_decay=0.1)
    rows_TBR = torch.randint(0, data.vocab, (7, 4, 13))
    plain, network = real_stepper(spec)
    expected = torch.stack([plain(step, rows_BR) for step, rows_BR in enumerate(rows_TBR)])
    queued, other = real_stepper(spec)
    queued.is_queued, queued.optimiser.rates = True, [*queued.optimiser.rates_G.unbind()]
    losses = torch.cat((queued.many(0, rows_TBR[:4].int()), queued.many(4, rows_TBR[4:].int())))
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=0)
    for mine, theirs in zip(other.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=5e-4)  # rates are float32


def test_work_is_done_once_then_recorded_and_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording does nothing but note; a replay does what was noted."""
    said = list[str]()

    class Graph:
        def capture_begin(self, **_: object) -> None:
            said.append("begin")

        def capture_end(self) -> None:
            said.append("end")

        def replay(self) -> None:
            said.append("replay")

    def work() -> torch.Tensor:
        said.append("work")
        return torch.zeros(())

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    replay = Replay(work)
    results = [replay() for _ in range(3)]
    assert said == ["begin", "work", "end", "replay", "replay", "replay"]
    assert results[0] is results[1] is results[2]


def test_a_recording_that_fails_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = list[None]()
    graph = SimpleNamespace(capture_begin=lambda **_: None, capture_end=lambda: ended.append(None))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: graph)

    def work() -> torch.Tensor:
        raise torch.OutOfMemoryError("no more")

    with pytest.raises(torch.OutOfMemoryError):
        Replay(work)()
    assert ended == [None]


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
                "feed_forward": 0,
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
    kernels = SimpleNamespace(compile_ahead=lambda *given: compiled.append(given) or [])  # type: ignore[func-returns-value]
    spec = tiny_spec(data, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "archfit.model.compile_ahead", kernels)
        patch.setattr("archfit.train.step.HAS_TRITON", has_triton)
        _compile_ahead(spec, spec.architecture, torch.device(device))
    assert compiled == ([(spec.architecture, torch.device(device))] if compiles else [])


@pytest.mark.parametrize(
    ("changes", "world", "fused"),
    [({}, 1, True), ({}, 2, False), ({"dropout": 0.1}, 1, False), ({"head_dim": 513}, 1, False)],
)
def test_kernels_make_plain_blocks_on_a_gpu_of_the_runs_own(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], world: int,
    fused: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr("archfit.train.step._has_kernels", lambda *_: True)
    group = ProcessGroup(rank=0, world=world, device=torch.device("cuda"))
    assert is_fused(tiny_spec(data, **changes), group) == fused


def test_a_dropout_mask_is_a_function_of_seed_step_and_process() -> None:
    """Old runs go on with the masks that they had."""
    digest = hashlib.sha256(b"dropout/3/14/1").digest()
    assert _mask_seed(3, 14, 1) == sum(byte << 8 * at for at, byte in enumerate(digest[:7]))
