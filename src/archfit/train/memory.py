"""Whether a run can fit into memory at all, asked before anything is allocated.

A system that promises more memory than it has would start the run and then kill the process.
"""

import os
from pathlib import Path

import torch

from archfit.spec import RunSpec
from archfit.train.team import BYTES_A_PARAMETER, Team

# What a container may use, as its files say (cgroups 2 and 1).
CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def check_memory(spec: RunSpec, team: Team, *, may_shard: bool) -> None:
    """Refuse a run that needs more than its device or the host has, however it is carried out."""
    params, on_gpu = spec.architecture.params, team.device.type == "cuda"
    rows = spec.recipe.batch_sequences // team.world
    batch = 8 * rows * spec.architecture.context * spec.architecture.input.tokens_per_position
    trained = BYTES_A_PARAMETER * params // (team.world if may_shard else 1)
    if on_gpu:  # micro-batches may be as small as one row; the network is made on the host
        device_memory = torch.cuda.get_device_properties(team.device).total_memory
        _check(
            "the GPU", trained + 2 * spec.architecture.activations_per_sequence, device_memory, spec
        )
        _check("this machine", 4 * params + batch, host_memory(), spec)
    else:
        activations = 4 * rows * spec.architecture.activations_per_sequence
        _check("this machine", trained + activations + batch, host_memory(), spec)


def host_memory() -> int:
    """Bytes that this process could get at best."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in CONTAINER_LIMITS:
        if path.is_file() and (text := path.read_text().strip()).isdecimal():
            limits.append(int(text))
    return min(limits)


def _check(place: str, needed: int, there: int, spec: RunSpec) -> None:
    if needed > there:
        raise ValueError(
            f"a network of {spec.architecture.params:,} parameters with batches of "
            f"{spec.recipe.batch_sequences:,} sequences needs {needed / 1e9:,.1f} GB or more, and "
            f"{place} has {there / 1e9:,.1f} GB; use a smaller network, batch or context"
        )
