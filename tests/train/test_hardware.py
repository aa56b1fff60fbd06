"""Devices and memory, most of which the machine of a test does not have."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from archfit.data.prepared import PreparedData
from archfit.train.hardware import (
    ProcessGroup,
    _fits_whole,
    check_memory,
    check_precision,
    choose_device,
    device_name,
    distribute,
    fill,
    gathered,
    host_memory,
    joined_process_group,
    peak_flops,
    release_memory,
)
from tests_training import tiny_spec

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Pretend that there are these devices, with this memory."""

    def pretend(*, cuda: bool = False, mps: bool = False, name: str = "", memory: int = 0) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: name)
        properties = SimpleNamespace(total_memory=memory)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)

    return pretend


@pytest.mark.parametrize(
    ("cuda", "mps", "fastest"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu"), (True, False, "cuda")],
)
def test_auto_takes_the_fastest_device_that_is_there(
    machine: Machine, cuda: bool, mps: bool, fastest: str
) -> None:
    machine(cuda=cuda, mps=mps)
    assert choose_device("auto") == fastest
    assert choose_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_refused_with_those_that_are(machine: Machine) -> None:
    machine(mps=True)
    assert choose_device("mps") == "mps"
    with pytest.raises(ValueError, match=r"'cuda' is not on this .*; use mps, cpu, or auto"):
        choose_device("cuda")


def test_bfloat16_is_for_cuda_only() -> None:
    check_precision("bfloat16", "cuda")
    check_precision("float32", "cpu")
    with pytest.raises(ValueError, match=r"this device is mps, .*; use precision float32"):
        check_precision("bfloat16", "mps")


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA A10G", 70e12),
        ("NVIDIA GeForce RTX 4090", 165e12),
        ("NVIDIA GeForce RTX 3090", 71e12),
        ("Tesla V100-SXM2-16GB", 125e12),
        ("Tesla T4", 65e12),
        ("NVIDIA of tomorrow", None),
    ],
)
def test_the_peak_of_a_gpu_is_that_of_its_data_sheet(
    machine: Machine, name: str, peak: float | None
) -> None:
    machine(cuda=True, name=name)
    assert peak_flops(GPU, "bfloat16") == peak
    assert peak_flops(GPU, "float32") is None
    assert peak_flops(CPU, "bfloat16") is None
    assert device_name(GPU) == name


def group(device: torch.device, *, world: int = 1) -> ProcessGroup:
    return ProcessGroup(rank=0, world=world, device=device)


def is_refused(data: PreparedData, among: ProcessGroup, **more: object) -> bool:
    spec = tiny_spec(data, batch_sequences=6)
    try:
        check_memory(spec, among, may_shard=bool(more.get("may_shard")))
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("may_shard", [False, True])
@pytest.mark.parametrize("world", [1, 2])
def test_a_cpu_holds_weights_gradients_moments_and_all_rows_at_once(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch, world: int, may_shard: bool
) -> None:
    shape = tiny_spec(data).architecture
    rows, share = 6 // world, world if may_shard else 1
    needed = 16 * shape.params // share
    needed += rows * (4 * shape.activations_per_sequence + 8 * 12)
    for there, refused in ((needed, False), (needed - 1, True)):
        monkeypatch.setattr("archfit.train.hardware.host_memory", lambda there=there: there)
        among = group(CPU, world=world)
        assert is_refused(data, among, may_shard=may_shard) is refused


def test_a_gpu_holds_at_least_one_row_and_its_host_the_new_network(
    data: PreparedData, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = tiny_spec(data).architecture
    on_gpu = 16 * shape.params + 2 * shape.activations_per_sequence
    on_host = 4 * shape.params + 6 * 8 * 12
    for short_of_gpu, short_of_host in ((0, 0), (1, 0), (0, 1)):
        machine(cuda=True, memory=on_gpu - short_of_gpu)
        there = on_host - short_of_host
        monkeypatch.setattr("archfit.train.hardware.host_memory", lambda there=there: there)
        assert is_refused(data, group(GPU)) is bool(short_of_gpu or short_of_host)


def test_what_is_needed_and_what_is_there_are_told(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.train.hardware.host_memory", lambda: 1_400_000_000)
    shape = tiny_spec(data, width=8192).architecture
    needed = (16 * shape.params + 4 * (4 * shape.activations_per_sequence + 8 * 12)) / 1e9
    said = (
        rf"of {shape.params:,} .* of 4 sequences needs {needed:,.1f} GB or more, and this machine"
    )
    with pytest.raises(ValueError, match=rf"{said} has 1\.4 GB; use a smaller network"):
        check_memory(tiny_spec(data, width=8192), group(CPU), may_shard=True)


@pytest.mark.parametrize(("limit", "counts"), [("1000", True), ("max", False), ("9" * 30, False)])
def test_a_container_may_have_less_memory_than_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, counts: bool
) -> None:
    monkeypatch.setattr("archfit.train.hardware.CONTAINER_LIMITS", (tmp_path / "nowhere",))
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert host_memory() == machine
    (tmp_path / "max").write_text(limit + "\n")
    monkeypatch.setattr("archfit.train.hardware.CONTAINER_LIMITS", (tmp_path / "max",))
    assert host_memory() == (1000 if counts else machine)


def test_a_model_is_kept_whole_while_its_training_takes_six_tenths_of_a_gpu(
    machine: Machine,
) -> None:
    model = nn.Linear(29, 5)  # 150 parameters, 2400 bytes
    machine(cuda=True, memory=4000)
    assert _fits_whole(model, GPU)
    machine(cuda=True, memory=3999)
    assert not _fits_whole(model, GPU)
    assert _fits_whole(model, CPU)


def test_alone_nothing_is_distributed_summed_or_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    model, values = nn.Linear(2, 2), [1.0, 2.0]
    with joined_process_group("cpu") as alone:
        assert alone == ProcessGroup(rank=0, world=1, device=CPU)
        assert alone.is_main
        assert distribute(model, alone, "shard") is model
        assert alone.sums(values) == values
        alone.barrier()
    with joined_process_group("cuda") as on_gpu:
        assert on_gpu.device == GPU
    assert gathered(model.weight) is model.weight
    fill(model.weight.data, torch.full((2, 2), 3.0))
    assert model.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert not ProcessGroup(rank=1, world=2, device=CPU).is_main


@pytest.mark.parametrize("cuda", [True, False])
def test_memory_of_a_gpu_is_given_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, cuda: bool
) -> None:
    calls: list[str] = []
    machine(cuda=cuda)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("emptied"))
    monkeypatch.setattr("archfit.train.hardware.gc.freeze", lambda: calls.append("frozen"))
    release_memory()
    assert calls == (["frozen", "emptied"] if cuda else ["frozen"])


@pytest.mark.parametrize(
    ("device", "place", "backend"), [("cpu", "cpu", "gloo"), ("cuda", "cuda:3", "nccl")]
)
def test_processes_of_torchrun_meet_and_leave_together(
    monkeypatch: pytest.MonkeyPatch, device: str, place: str, backend: str
) -> None:
    calls: list[object] = []
    for variable, value in (("WORLD_SIZE", "5"), ("LOCAL_RANK", "3")):
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(torch.cuda, "set_device", lambda d: calls.append(str(d)))
    monkeypatch.setattr("torch.distributed.init_process_group", calls.append)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 4)
    monkeypatch.setattr("torch.distributed.barrier", lambda: calls.append("barrier"))
    monkeypatch.setattr("torch.distributed.destroy_process_group", lambda: calls.append("end"))
    with joined_process_group(device) as group:
        assert group == ProcessGroup(rank=4, world=5, device=torch.device(place))
        group.barrier()
    begin = [backend] if device == "cpu" else [place, backend]
    assert calls == [*begin, "barrier", "barrier", "end"]
    with pytest.raises(KeyError), joined_process_group(device):
        raise KeyError
    assert calls[-2:] == [backend, "end"]  # who fails waits for nobody
