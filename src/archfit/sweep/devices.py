"""The GPUs of this machine, and what a run takes of one: memory and time, before it is started."""

import ctypes
import os
from bisect import bisect
from dataclasses import dataclass

from archfit.spec import RunSpec
from archfit.spec.counting import BYTES_A_TRAINED_PARAMETER

BYTES_A_NUMBER = {"float32": 4, "bfloat16": 2}
CONTEXT_BYTES = 1 << 30  # what CUDA and its libraries take in every process
SLACK = 2.0  # activations beyond the least, and a captured step that keeps its own memory

# Operations a second that our training reached on one H200, bfloat16, by width
# (docs/performance.md: the share of 790 TFLOP/s). Below all of them time goes with memory, so the
# rate with the width.
MEASURED_FLOPS = ((0, 0.0), (104, 77e12), (144, 110e12), (480, 349e12), (680, 361e12))

SECONDS_A_BLOCK = 0.6e-3  # of one step, however small: measured at 16,384 tokens a step


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One GPU that this process may use."""

    visible_as: str  # what CUDA_VISIBLE_DEVICES must say for a process to have it alone
    memory_bytes: int


def gpus() -> tuple[Gpu, ...]:
    """All of them, in the driver's order; none where there is no driver.

    The driver itself is asked: loading torch would take seconds.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [*map(str, range(count.value))]
    found = []
    for index in range(count.value):
        memory = ctypes.c_size_t(0)
        driver.cuDeviceTotalMem_v2(ctypes.byref(memory), ctypes.c_int(index))
        found.append(Gpu(visible_as=names[index], memory_bytes=memory.value))
    return tuple(found)


def device_bytes(spec: RunSpec) -> int:
    """About the GPU memory that the run takes when its whole batch is one micro-batch."""
    shape = spec.architecture
    numbers = spec.recipe.batch_sequences * shape.activations_per_sequence
    activations = numbers * BYTES_A_NUMBER[spec.recipe.precision]
    return int(CONTEXT_BYTES + BYTES_A_TRAINED_PARAMETER * shape.params + SLACK * activations)


def needs_a_gpu(spec: RunSpec, device: str) -> bool:
    """Whether the run is to have one; some CPUs advertise bfloat16 and then fail."""
    return spec.recipe.precision == "bfloat16" or device == "cuda"


def gpu_seconds(spec: RunSpec) -> float:
    """About how long the training takes on one H200."""
    least = SECONDS_A_BLOCK * spec.architecture.depth * spec.recipe.steps
    width = min(spec.architecture.width, MEASURED_FLOPS[-1][0])  # no faster beyond the last
    at = bisect(MEASURED_FLOPS, width, 1, len(MEASURED_FLOPS) - 1, key=lambda known: known[0])
    (low, slow), (high, fast) = MEASURED_FLOPS[at - 1], MEASURED_FLOPS[at]
    flops_per_second = slow + (fast - slow) * (width - low) / (high - low)
    return max(least, spec.training_flops / flops_per_second)
