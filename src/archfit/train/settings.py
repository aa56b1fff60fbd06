"""How a run is carried out; nothing here decides its result."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the user of a machine chooses, and the spec does not hold."""

    device: Literal["auto", "cpu", "cuda", "mps"]
    sharding: Literal["auto", "replicate", "shard"]  # among several processes
    checkpoint_seconds: float  # from one checkpoint to the next
    keep_weights: bool  # whether the finished run keeps model.safetensors
    code_version: str  # noted in the record


class Stopped(Exception):
    """A signal asked the run to end; its checkpoint is written."""

    def __init__(self, step: int, signal_number: int) -> None:
        super().__init__(f"stopped at step {step}; the same command goes on from there")
        self.signal_number = signal_number
