"""What a measurement will take, known before it starts."""

from dataclasses import dataclass, replace

from archfit.exact.experiment import Experiment, upper_bound
from archfit.exact.inputs import MOST_LISTED, Continuous, Vocabulary, fillings
from archfit.exact.measure import FIRST_SAMPLES, MARGIN, part_sizes

HOPELESS = 10**7  # samples: nobody has the memory
TRIALS = 1 + 2 * 2.5  # one with a small prime, two with large ones, which take longer
# Seconds for a small prime, measured on two CPU cores and on one H200; elsewhere a rough guide.
EVALUATION = {"cpu": 1.3e-9, "cuda": 1.5e-11}  # a multiplication of one pair
COLUMN = {"cpu": 6e-5, "cuda": 1.3e-4}  # finding a pivot
CUBE = {"cpu": 4e-11, "cuda": 8e-14}  # of the number of samples: clearing the rows
CLEARING = 0.6  # of a matrix more while its rows are cleared


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Estimates for all trials."""

    gigabytes: float
    seconds: float


def estimate(experiment: Experiment, device: str) -> Cost:
    """Memory of the largest trial and time of all; `device` is cpu or cuda."""
    return _estimate(experiment, device, *_samples(experiment))


def most_samples(experiment: Experiment, device: str, *, seconds: float, gigabytes: float) -> int:
    """How far samples may be doubled where no upper bound is known."""
    samples = FIRST_SAMPLES
    while True:
        cost = _estimate(experiment, device, 2 * samples, 2 * samples)
        if cost.seconds > seconds or cost.gigabytes > gigabytes:
            return samples
        samples *= 2


def _estimate(experiment: Experiment, device: str, rows: int, columns: int) -> Cost:
    work = experiment.network.multiplications
    if experiment.network.is_causal:
        work *= experiment.partition.output + 1
    sizes = part_sizes(experiment, rows) if rows < HOPELESS else ()
    if sizes:
        matrices, pairs = [(size, size) for size in sizes], max(sizes) ** 2 * len(sizes)
    else:
        matrices, pairs = [(rows, columns)], rows * columns
    seconds = pairs * work * EVALUATION[device]
    seconds += sum(_elimination(device, *matrix) for matrix in matrices)
    numbers = [tall * wide for tall, wide in matrices]
    return Cost(
        gigabytes=8 * (sum(numbers) + CLEARING * max(numbers)) / 1e9, seconds=TRIALS * seconds
    )


def _elimination(device: str, rows: int, columns: int) -> float:
    short = min(rows, columns)
    return short * COLUMN[device] + rows * columns * short * CUBE[device]


def check_cost(experiment: Experiment, device: str, *, seconds: float, gigabytes: float) -> None:
    """Refuse what would take longer, or more memory, and say what would not."""
    cost = estimate(experiment, device)
    if cost.seconds <= seconds and cost.gigabytes <= gigabytes:
        return
    network = experiment.network
    raise ValueError(
        f"depth={network.depth}, width={network.width} would take about "
        f"{_shown(cost.gigabytes)} GB and {_shown(cost.seconds / 60)} minutes, over the limit of "
        f"{gigabytes:,.1f} GB and {seconds / 60:,.1f} minutes; "
        f"{_what_fits(experiment, device, seconds, gigabytes)}"
    )


def _shown(amount: float) -> str:
    return f"{amount:,.1f}" if amount < 1e6 else "a million or more"


def _what_fits(experiment: Experiment, device: str, seconds: float, gigabytes: float) -> str:
    fitting = 0
    if isinstance(experiment.inputs, Continuous):
        for width in range(1, experiment.network.width):
            narrow = replace(
                experiment,
                network=replace(experiment.network, width=width, heads=1, head_dim=width),
                inputs=Continuous(rank=min(width, experiment.inputs.rank)),
                entry=0,
            )
            cost = estimate(narrow, device)
            if cost.seconds > seconds or cost.gigabytes > gigabytes:
                break
            fitting = width
    if fitting:
        return f"--width {fitting} fits with one head, or raise --limit"
    return "use less depth or fewer tokens, or raise --limit"


def _samples(experiment: Experiment) -> tuple[int, int]:
    if isinstance(experiment.inputs, Vocabulary):
        vocab, ordered = experiment.inputs.vocab, experiment.has_order
        inside, outside = len(experiment.partition.inside), len(experiment.partition.outside)
        return (
            min(MOST_LISTED, fillings(vocab, inside, True, ordered)),
            min(MOST_LISTED, fillings(vocab, outside, False, ordered)),
        )
    upper = upper_bound(experiment)
    samples = FIRST_SAMPLES if upper is None else min(upper + MARGIN, HOPELESS)
    return samples, samples
