"""Which device trains, and what it could do at best."""

import gc
import platform

import torch

# Dense bfloat16 floating point operations a second, from the makers' data sheets.
PEAK_FLOPS = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L4": 121e12,
    "A10G": 70e12,
    "RTX 4090": 165e12,
    "RTX 3090": 71e12,
    "V100": 125e12,
    "T4": 65e12,
}


def choose_device(wanted: str) -> str:
    """`cpu`, `cuda` or `mps`; `auto` takes the fastest that is there."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if wanted == "auto":
        return next(name for name, is_there in available.items() if is_there)
    if not available[wanted]:
        there = ", ".join(name for name, is_there in available.items() if is_there)
        raise ValueError(f"device={wanted} is not on this machine; use {there}, or auto")
    return wanted


def check_precision(precision: str, device: str) -> None:
    """Refuse bfloat16 where it is not fast, or not safe."""
    if precision == "bfloat16" and device != "cuda":
        raise ValueError(
            f"precision=bfloat16 is trained on a CUDA GPU, and this device is {device}, where some "
            "machines advertise it and then fail; use precision float32"
        )


def peak_flops(device: torch.device, precision: str) -> float | None:
    """Operations a second that the device promises, or None where we do not know."""
    if device.type != "cuda" or precision != "bfloat16":
        return None
    name = torch.cuda.get_device_name(device)
    known = sorted(PEAK_FLOPS, key=len, reverse=True)  # L40S before L4
    return next((PEAK_FLOPS[part] for part in known if part in name), None)


def device_name(device: torch.device) -> str:
    """What a record says about it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = f"{torch.get_num_threads()} threads"
    return f"{device.type} ({platform.machine()}, {threads})"


def release_memory() -> None:
    """Give back the device memory of runs that have ended; other processes may want it.

    What is left then are the parts of torch that runs have loaded. They stay, so they are set
    aside: looking through them again after each run would take longer than a small run.
    """
    gc.collect()
    gc.freeze()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
