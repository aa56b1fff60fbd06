"""What is measured and by what, as people say it: the options of `archfit measure`."""

import importlib.util
import os
from dataclasses import dataclass

from archfit.exact.experiment import Experiment, Partition, divided
from archfit.exact.matrix import Progress
from archfit.exact.measure import Measurement, check_cost, measure
from archfit.exact.prime_field import Arrays, check_prime
from archfit.spec.architecture import head_dim_of
from archfit.spec.sizes import parse_size

DEVICES = ("cpu", "cuda", "auto")


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureOptions:
    """A network, and how the positions of its input are divided; None: not given."""

    depth: int | None = None
    width: int | None = None
    heads: int = 1
    positions: int = 4
    head_dim: int | None = None
    residual: bool = False
    causal: bool = False
    vocab: int | None = None
    rank: int | None = None
    patch: int | None = None
    position_rank: int = 0
    partition: str = "balanced"
    output_position: str | None = None

    def experiment(self) -> Experiment:
        """The measurement that is asked for."""
        if self.depth is None or self.width is None:
            raise ValueError("--depth and --width say which network; give both, or --claim NAME")
        head_dim = self.head_dim
        if head_dim is None:
            head_dim = head_dim_of(self.width, self.heads)
        names = ("depth", "width", "heads", "residual", "causal", "vocab", "position_rank")
        return Experiment(
            **{name: getattr(self, name) for name in names},
            head_dim=head_dim,
            rank=self._rank(self.width),
            partition=self._partition(),
        )

    def _rank(self, width: int) -> int:
        """That of what a position reads: the largest there is, unless one is asked for."""
        vocab, rank, patch = self.vocab, self.rank, self.patch
        if vocab is not None and patch is not None:
            raise ValueError("--vocab and --patch are given; a position reads tokens or a patch")
        if rank is not None:
            return min(rank, width, patch) if patch else rank
        return min(limit for limit in (width, vocab, patch) if limit is not None)

    def _partition(self) -> Partition:
        """The positions on either side, by a name or by their numbers."""
        words, positions, half = self.partition, self.positions, range(self.positions // 2)
        usual = dict.fromkeys(("balanced", "first-half", "prefix"), half)
        usual["interleaved"] = range(0, positions, 2)
        try:
            named = usual.get(words)
            side = tuple(sorted({*map(int, words.split(","))} if named is None else named))
        except ValueError as problem:
            raise ValueError(
                f"--partition {words!r} is unknown; use balanced, first-half, interleaved, or "
                "positions such as 0,2,5"
            ) from problem
        if positions > 1 and (max(side) >= positions or min(side) < 0):
            raise ValueError(
                f"--partition {words} names a position outside 0..{positions - 1}; use those, or "
                "more --positions"
            )
        output = self.output_position or ("last" if self.causal else "0")
        return divided(positions, side, positions - 1 if output == "last" else parse_size(output))


class Machine:
    """What measures, and how much of it may be used: these minutes, and most of its memory."""

    def __init__(self, device: str, minutes: float, primes: tuple[int, ...]) -> None:
        for number in primes:
            check_prime(number)
        if not 0 < minutes < 1e6:
            raise ValueError(f"--limit {minutes} is no number of minutes; use one such as 10")
        # Work is spread over the cores by us; two layers of threads would wait for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self.arrays = _arrays(device)
        self.kind = self.arrays.device
        self.primes = primes  # none: the usual ones
        gigabytes = 0.7 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
        if self.kind == "cuda":
            import torch

            gigabytes = 0.8 * float(torch.cuda.mem_get_info()[0]) / 1e9
        self.limits = {"seconds": 60 * minutes, "gigabytes": gigabytes}

    def measure(self, experiment: Experiment, progress: Progress) -> Measurement:
        """Its rank; one that would take too long or too much memory is refused."""
        check_cost(experiment, self.kind, **self.limits)
        return measure(experiment, self.arrays, primes=self.primes, progress=progress)


def _arrays(device: str) -> Arrays:
    """What calculates; auto takes a GPU where there is one."""
    if device not in DEVICES:
        raise ValueError(f"--device {device!r} is unknown; use {', '.join(DEVICES)}")
    problem = "--device cuda needs torch; pip install 'archfit[train]'"
    if device != "cpu" and importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return Arrays("cuda")
        problem = "--device cuda: torch finds no GPU here; use --device cpu"
    if device == "cuda":
        raise ValueError(problem)
    return Arrays()
