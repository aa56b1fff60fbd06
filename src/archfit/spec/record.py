"""What a run leaves behind: its spec, its losses, where and how fast it ran; and who follows it."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from archfit.spec.errors import check_at_least, check_choice, check_real, refusal, refuse_if
from archfit.spec.run import RunSpec

# The version of the arithmetic of training: 1 is that of 0.1; since 2 a GPU sums gradients in a
# fixed order, with kernels of our own for every context. Losses of two versions differ by less than
# those of two seeds.
NUMERICS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The losses at one step."""

    step: int
    training_nats_per_token: float  # mean since the evaluation before
    heldout_nats_per_token: float
    heldout_bits_per_byte: float

    def __post_init__(self) -> None:
        check_at_least(0, step=self.step)
        check_real(0, 1e6, training_nats_per_token=self.training_nats_per_token)
        check_real(0, 1e6, heldout_nats_per_token=self.heldout_nats_per_token)
        check_real(0, 1e6, heldout_bits_per_byte=self.heldout_bits_per_byte)


@dataclass(frozen=True, kw_only=True, slots=True)
class FullContext:
    """The loss after the last step when every token is predicted from a whole context (stride 1).

    In rows that follow each other the first tokens see little; here all see `context` positions.
    """

    tokens: int
    heldout_nats_per_token: float
    heldout_bits_per_byte: float

    def __post_init__(self) -> None:
        check_at_least(1, tokens=self.tokens)
        check_real(0, 1e6, heldout_nats_per_token=self.heldout_nats_per_token)
        check_real(0, 1e6, heldout_bits_per_byte=self.heldout_bits_per_byte)


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """How long it took; differs from run to run."""

    training_seconds: float
    tokens_per_second: float
    flop_utilisation: float | None  # None where the device's peak is unknown

    def __post_init__(self) -> None:
        check_real(0, 1e18, training_seconds=self.training_seconds)
        check_real(0, 1e18, tokens_per_second=self.tokens_per_second)
        check_real(0, 1e18, flop_utilisation=self.flop_utilisation or 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Steps that were made by other threads, devices or versions than the last ones of a run."""

    steps: int  # made when they ended, from the start of the run
    device: str  # of a CPU with its threads
    devices: int
    archfit: str
    python: str
    torch: str
    numerics: int

    def __post_init__(self) -> None:
        check_at_least(0, steps=self.steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Where it ran; differs from machine to machine."""

    USUAL: ClassVar = {"numerics": 1, "history": []}  # 0.1 knew of neither

    device: str  # of a CPU with its threads
    devices: int  # processes that shared the batch
    micro_batch_sequences: int  # rows that a device takes at once; the batch is the sum of several
    archfit: str  # version and commit
    python: str
    torch: str
    numerics: int = 1  # of the code that trained; see NUMERICS
    history: tuple[Stretch, ...] = ()  # where the run was before, if it was elsewhere


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """The result of one run; written last, so that its existence says that the run is done."""

    spec: RunSpec
    status: Literal["finished", "diverged"]
    diverged_at_step: int | None
    evaluations: tuple[Evaluation, ...]
    full_context: FullContext | None  # None unless the recipe asks for it
    timing: Timing
    machine: Machine

    def __post_init__(self) -> None:
        check_choice(("finished", "diverged"), status=self.status)
        if (self.status == "diverged") != (self.diverged_at_step is not None):
            raise refusal("record-status", self.status, step=self.diverged_at_step)
        refuse_if(self.status == "finished" and not self.evaluations, "record-empty")
        steps = [evaluation.step for evaluation in self.evaluations]
        refuse_if(steps != sorted(set(steps)), "record-order", steps=steps)
        for step in (*steps, self.diverged_at_step or 0):
            check_real(0, self.spec.recipe.steps, step=step)

    def same_result(self, other: "RunRecord") -> bool:
        """Whether two records agree in everything but timing and machine."""
        return replace(other, timing=self.timing, machine=self.machine) == self


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where a run is."""

    step: int
    steps: int
    training_nats_per_token: float  # of the last step
    tokens_per_second: float
    flop_utilisation: float | None
    seconds_left: float


class Watchers:
    """Whoever follows a run, such as the command line or TensorBoard: it overrides what it hears.

    The rest it passes on to others; with none, silence.
    """

    def __init__(self, *watchers: "Watchers") -> None:
        self.watchers = watchers

    def started(self, spec: RunSpec, step: int) -> None:
        """Tell each that the run begins, or goes on."""
        for watcher in self.watchers:
            watcher.started(spec, step)

    def progress(self, progress: Progress) -> None:
        """Tell each where the run is."""
        for watcher in self.watchers:
            watcher.progress(progress)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Tell each the held-out loss."""
        for watcher in self.watchers:
            watcher.evaluated(evaluation)

    def notice(self, sentence: str) -> None:
        """Pass the sentence on to each."""
        for watcher in self.watchers:
            watcher.notice(sentence)

    def finished(self, record: RunRecord) -> None:
        """Give each the record."""
        for watcher in self.watchers:
            watcher.finished(record)
