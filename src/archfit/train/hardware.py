"""Where and how a run is trained: its device, the memory there, processes that share the run, and
what else surrounds it. Nothing here decides a result; that is the spec's part.

Several processes (`torchrun --nproc-per-node N -m archfit train ...`) each take their rows of the
same global batch, so data and their order do not depend on N. Every process holds the whole model
(data parallel), or a share of each matrix (FSDP2) where it would not fit.
"""

import contextlib
import gc
import os
import platform
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec
from archfit.spec.counting import BYTES_A_TRAINED_PARAMETER
from archfit.spec.errors import InvalidValue, refusal, refuse_if
from archfit.spec.signals import StopRequest

# Dense bfloat16 floating point operations a second, in units of 10^12, from makers' data sheets;
# L40S comes before L4.
PEAK_TERAFLOPS = {
    "H200": 989, "H100": 989, "A100": 312, "V100": 125, "L40S": 362, "L4": 121, "A10G": 70,
    "T4": 65, "RTX 4090": 165, "RTX 3090": 71,
}  # fmt: skip
SHARE_FOR_PARAMETERS = 0.6  # of a GPU's memory; activations need the rest
# What a container may use, as its files say (cgroups 2 and 1).
CGROUP = Path("/sys/fs/cgroup")
CONTAINER_LIMITS = (CGROUP / "memory.max", CGROUP / "memory/memory.limit_in_bytes")


def choose_device(wanted: str) -> str:
    """`cpu`, `cuda` or `mps`; `auto` takes the fastest that is there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    available = [*(name for name, is_there in there.items() if is_there), "cpu"]
    if wanted != "auto" and wanted not in available:
        way_out = f"use {', '.join(available)}, or auto"
        raise InvalidValue("device", wanted, "is not on this machine", way_out)
    return available[0] if wanted == "auto" else wanted


def check_precision(precision: str, device: str) -> None:
    """Refuse bfloat16 where it is not fast, or not safe."""
    is_unsafe = precision == "bfloat16" and device != "cuda"
    refuse_if(is_unsafe, "run-precision", precision, device=device)


def peak_flops(device: torch.device, precision: str) -> float | None:
    """Operations a second that the device promises, or None where we do not know."""
    if device.type != "cuda" or precision != "bfloat16":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak * 1e12 for part, peak in PEAK_TERAFLOPS.items() if part in name), None)


def device_name(device: torch.device) -> str:
    """What a record says about the device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} ({platform.machine()}, {torch.get_num_threads()} threads)"


def release_memory() -> None:
    """Give back the device memory of runs that have ended; other processes may want it.

    What is left then are the parts of torch that runs have loaded. They stay, so they are set
    aside: looking through them again after each run would take longer than a small run.
    """
    gc.collect()
    gc.freeze()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessGroup:
    """This process among those that share the run."""

    rank: int
    world: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def sums(self, values: list[float]) -> list[float]:
        """The sum of each value over all processes, which all receive."""
        if self.world == 1:
            return values
        summed = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(summed)
        return [float(value) for value in summed.tolist()]

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world > 1:
            dist.barrier()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainSettings:
    """What the user of a machine chooses, and the spec does not hold."""

    device: Literal["auto", "cpu", "cuda", "mps"]
    sharding: Literal["auto", "replicate", "shard"]  # among several processes
    checkpoint_seconds: float  # from one checkpoint to the next
    keep_weights: bool  # whether the finished run keeps model.safetensors
    code_version: str  # noted in the record


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """What the runs of one process share."""

    data: PreparedData
    out: Path  # holds a folder for each run
    settings: TrainSettings
    group: ProcessGroup
    stop: StopRequest


@contextlib.contextmanager
def joined_process_group(device: str) -> Iterator[ProcessGroup]:
    """The processes that torchrun started, or this one alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    on_gpu = device == "cuda"
    local = int(os.environ["LOCAL_RANK"]) if world > 1 else 0
    place = torch.device(device, local) if on_gpu else torch.device(device)
    if world == 1:
        yield ProcessGroup(rank=0, world=1, device=place)
        return
    if on_gpu:
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield ProcessGroup(rank=dist.get_rank(), world=world, device=place)
        dist.barrier()  # who leaves early breaks the connections of the others
    finally:
        dist.destroy_process_group()


def check_memory(spec: RunSpec, group: ProcessGroup, *, may_shard: bool) -> None:
    """Refuse a run that needs more than its device or the host has, however it is carried out.

    Asked before anything is allocated: a system that promises more memory than it has would start
    the run and then kill the process.
    """
    architecture, rows = spec.architecture, spec.recipe.batch_sequences // group.world
    batch = 8 * rows * architecture.context * architecture.input.tokens_per_position
    trained = BYTES_A_TRAINED_PARAMETER * architecture.params // (group.world if may_shard else 1)
    if group.device.type == "cuda":  # micro-batches may be as small as one row
        memory = torch.cuda.get_device_properties(group.device).total_memory
        _check_fits(spec, trained + 2 * architecture.activations_per_sequence, "the GPU", memory)
        needed = 4 * architecture.params + batch  # the network is made on the host
    else:
        needed = trained + 4 * rows * architecture.activations_per_sequence + batch
    _check_fits(spec, needed, "this machine", host_memory())


def host_memory() -> int:
    """Bytes that this process could get at best."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in CONTAINER_LIMITS:
        if path.is_file() and (text := path.read_text().strip()).isdecimal():
            limits.append(int(text))
    return min(limits)


def _check_fits(spec: RunSpec, needed: int, place: str, memory: int) -> None:
    if needed > memory:
        params, rows = f"{spec.architecture.params:,}", f"{spec.recipe.batch_sequences:,}"
        sizes = {"needed": f"{needed / 1e9:,.1f}", "there": f"{memory / 1e9:,.1f}"}
        raise refusal("run-memory", params=params, rows=rows, place=place, **sizes)


def distribute(
    model: nn.Module, group: ProcessGroup, sharding: Literal["auto", "replicate", "shard"]
) -> nn.Module:
    """What to call in training: `model`, whose gradients the group now sums.

    Sharding changes the parameters of `model` in place.
    """
    if group.world == 1:
        return model
    if sharding == "replicate" or (sharding == "auto" and _fits_whole(model, group.device)):
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # Nobody writes into what a block returns, so that it may be a view.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module", category=UserWarning)
    mesh = init_device_mesh(group.device.type, (group.world,))
    for block in model.get_submodule("trunk.blocks").children():
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def _fits_whole(model: nn.Module, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    needed = BYTES_A_TRAINED_PARAMETER * sum(parameter.numel() for parameter in model.parameters())
    memory = torch.cuda.get_device_properties(device).total_memory
    return needed <= SHARE_FOR_PARAMETERS * memory


def gathered(tensor: Tensor) -> Tensor:
    """All of a tensor that may be sharded; every process must ask."""
    whole = getattr(tensor, "full_tensor", None)  # its class would take seconds to load
    return tensor if whole is None else whole()


def fill(tensor: Tensor, content: Tensor) -> None:
    """Put all of `content` into a tensor that may be sharded, in place."""
    if hasattr(tensor, "device_mesh") and hasattr(tensor, "placements"):
        from torch.distributed.tensor import distribute_tensor

        content = content.to(tensor.device)
        content = distribute_tensor(content, tensor.device_mesh, tensor.placements)
    tensor.copy_(content)
