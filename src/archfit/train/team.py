"""Several processes that share one run: `torchrun --nproc-per-node N -m archfit train ...`.

Each takes its rows of the same global batch, so data and their order do not depend on N. Every
process holds the whole model (data parallel), or a share of each matrix (FSDP2) where it would
not fit.
"""

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

BYTES_A_PARAMETER = 16  # weight, gradient and two moments in float32
SHARE_FOR_PARAMETERS = 0.6  # of a GPU's memory; activations need the rest


@dataclass(frozen=True, kw_only=True, slots=True)
class Team:
    """This process among those that share the run."""

    rank: int
    world: int
    device: torch.device

    @property
    def leads(self) -> bool:
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


@contextlib.contextmanager
def joined_team(device: str) -> Iterator[Team]:
    """The processes that torchrun started, or this one alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Team(
            rank=0,
            world=1,
            device=torch.device(device, 0) if device == "cuda" else torch.device(device),
        )
        return
    own = torch.device(device, int(os.environ["LOCAL_RANK"])) if device == "cuda" else None
    if own is not None:
        torch.cuda.set_device(own)
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield Team(rank=dist.get_rank(), world=world, device=own or torch.device(device))
        dist.barrier()  # who leaves early breaks the connections of the others
    finally:
        dist.destroy_process_group()


def distribute(
    model: nn.Module, team: Team, sharding: Literal["auto", "replicate", "shard"]
) -> nn.Module:
    """What to call in training: `model`, whose gradients the team now sums.

    Sharding changes the parameters of `model` in place.
    """
    if team.world == 1:
        return model
    if sharding == "shard" or (sharding == "auto" and not _fits(model, team.device)):
        _shard(model, team)
        return model
    return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor that may be sharded; every process must ask."""
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def fill(tensor: Tensor, content: Tensor) -> None:
    """Put all of `content` into a tensor that may be sharded, in place."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if isinstance(tensor, DTensor):
        content = distribute_tensor(
            content.to(tensor.device), tensor.device_mesh, tensor.placements
        )
    tensor.copy_(content)


def _fits(model: nn.Module, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    needed = BYTES_A_PARAMETER * sum(parameter.numel() for parameter in model.parameters())
    memory = torch.cuda.get_device_properties(device).total_memory
    return needed <= SHARE_FOR_PARAMETERS * memory


def _shard(model: nn.Module, team: Team) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # Nobody writes into what a block returns, so that it may be a view.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module", category=UserWarning)
    mesh = init_device_mesh(team.device.type, (team.world,))
    trunk = model.get_submodule("trunk")
    for block in trunk.get_submodule("blocks").children():
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
