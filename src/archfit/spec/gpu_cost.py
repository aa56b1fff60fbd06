"""What a run takes of a GPU: memory, time, and how much of it a step keeps busy."""

from archfit.spec import lazy_numpy as np
from archfit.spec.counting import BYTES_A_TRAINED_PARAMETER
from archfit.spec.run import RunSpec

BYTES_A_NUMBER = {"float32": 4, "bfloat16": 2}
CONTEXT_BYTES = 1 << 30  # what CUDA and its libraries take in every process
SLACK = 2.0  # activations beyond the least, and a captured step that keeps its own memory

# Operations a second that our training reached on one H200, bfloat16, by width
# (docs/performance.md: the share of 790 TFLOP/s). Below all of them time goes with memory, so the
# rate with the width.
MEASURED_WIDTHS = (0, 104, 144, 256, 480, 768)
MEASURED_FLOPS = (0.0, 79e12, 118e12, 213e12, 340e12, 427e12)

SECONDS_A_BLOCK = 0.14e-3  # of one step, however small: measured at 16,384 tokens a step

# Numbers of the stream in one step (batch x context x width) that fill an H200
# (docs/performance.md).
FULL_STEP = 8e6
LEAST_SHARE = 1 / 12  # however small: more runs side by side were no faster


def device_bytes(spec: RunSpec) -> int:
    """About the GPU memory that the run takes when its whole batch is one micro-batch."""
    shape = spec.architecture
    numbers = spec.recipe.batch_sequences * shape.activations_per_sequence
    activations = numbers * BYTES_A_NUMBER[spec.recipe.precision]
    return int(CONTEXT_BYTES + BYTES_A_TRAINED_PARAMETER * shape.params + SLACK * activations)


def gpu_seconds(spec: RunSpec) -> float:
    """About how long the training takes on one H200."""
    least = SECONDS_A_BLOCK * spec.architecture.depth * spec.recipe.steps
    flops_per_second = np.interp(spec.architecture.width, MEASURED_WIDTHS, MEASURED_FLOPS)
    return max(least, spec.training_flops / float(flops_per_second))


def gpu_share(spec: RunSpec) -> float:
    """About the part of a GPU that a step keeps busy; runs whose parts add up to 1 may share it."""
    shape = spec.architecture
    numbers = spec.recipe.batch_sequences * shape.context * shape.width
    return min(1.0, max(LEAST_SHARE, numbers / FULL_STEP))
