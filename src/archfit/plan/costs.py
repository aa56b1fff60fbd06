"""What training the recommended shape takes: tokens, operations, memory, and where to start."""

from dataclasses import dataclass

from archfit.plan.question import FLOPS

# ZeRO (Rajbhandari et al. 2020): mixed-precision Adam, bytes a parameter
WEIGHT_BYTES, GRADIENT_BYTES, OPTIMISER_BYTES = 2, 2, 12
ACTIVATION_BYTES = (
    34  # a position, unit of width and layer; Korthikanti et al. 2022, no scores kept
)
LOGIT_BYTES = 6  # a 16-bit logit and its 32-bit gradient
BATCH_SEQUENCES = 8  # for which activations are stated
RATE_RANGE = (1e17, 2e19)  # FLOPs that the rules for rate and batch were fitted at


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes on the device, nothing sharded or recomputed."""

    weights: int
    gradients: int
    optimiser: int
    activations: int
    batch_sequences: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.gradients + self.optimiser + self.activations


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A learning rate and batch to begin a search at, not to end it."""

    learning_rate: float
    batch_tokens: int
    source: str
    in_range: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What a training run of this shape takes."""

    tokens: int
    flops: float  # 6 N D
    attention_flops: float  # for scores and values, on top
    memory: Memory
    relative_latency: float  # layers one after the other, over those of the text shape
    start: Start


def training_memory(params: int, *, depth: int, width: int, context: int, vocab: int) -> Memory:
    """Memory for mixed-precision Adam and `BATCH_SEQUENCES` sequences."""
    positions = BATCH_SEQUENCES * context
    activations = positions * (ACTIVATION_BYTES * width * depth + LOGIT_BYTES * vocab)
    return Memory(
        weights=WEIGHT_BYTES * params,
        gradients=GRADIENT_BYTES * params,
        optimiser=OPTIMISER_BYTES * params,
        activations=activations,
        batch_sequences=BATCH_SEQUENCES,
    )


def training_flops(params: int, tokens: int) -> float:
    """6 N D."""
    return float(FLOPS * params * tokens)


def attention_flops(*, depth: int, width: int, context: int, tokens: int) -> float:
    """12 L d N for each token: scores and values, forward and backward."""
    return 12.0 * depth * width * context * tokens


def starting_point(flops: float) -> Start:
    """Peak learning rate 0.3118 C^-0.125 and batch 0.292 C^0.3271 tokens (DeepSeek LLM 2024)."""
    return Start(
        learning_rate=float(f"{0.3118 * flops**-0.1250:.2g}"),
        batch_tokens=max(1, int(float(f"{0.2920 * flops**0.3271:.2g}"))),
        source="DeepSeek LLM, arXiv:2401.02954, eq. 1; fitted at 1e17 to 2e19 FLOPs on text",
        in_range=RATE_RANGE[0] <= flops <= RATE_RANGE[1],
    )
