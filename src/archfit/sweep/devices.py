"""The GPUs of this machine."""

import ctypes
import os
from dataclasses import dataclass

from archfit.spec import RunSpec


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


def needs_a_gpu(spec: RunSpec, device: str) -> bool:
    """Whether the run is to have one; some CPUs advertise bfloat16 and then fail."""
    return spec.recipe.precision == "bfloat16" or device == "cuda"
