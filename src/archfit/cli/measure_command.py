"""`archfit measure`: the exact separation rank of a network, with its certificate."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli.measure_claims import (
    GROWTH,
    LIST,
    named_claim,
    print_claims,
    run_claim,
    run_growth,
)
from archfit.cli.options import size_option
from archfit.cli.output import print_json, print_table
from archfit.exact.cost import check_cost, most_samples
from archfit.exact.experiment import Experiment
from archfit.exact.growth import growth_experiments
from archfit.exact.inputs import Continuous, Partition, Vocabulary
from archfit.exact.measure import Measurement, measure, silent
from archfit.exact.network import Network
from archfit.exact.prime_field import check_prime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archfit.exact.arrays import Arrays
    from archfit.exact.inputs import Inputs
    from archfit.exact.measure import Progress

NETWORK = "linear attention, no norm, no feed-forward layer"
DEVICES = ("cpu", "cuda", "auto")


def measure_command(
    depth: Annotated[
        int | None, typer.Option(parser=size_option, metavar="L", help="Layers.")
    ] = None,
    width: Annotated[
        int | None, typer.Option(parser=size_option, metavar="D", help="Residual stream.")
    ] = None,
    heads: Annotated[int, typer.Option(parser=size_option, metavar="H", help="Heads.")] = 1,
    positions: Annotated[
        int, typer.Option(parser=size_option, metavar="N", help="Length of the sequence.")
    ] = 4,
    head_dim: Annotated[
        int | None, typer.Option(parser=size_option, metavar="K", help="Default: width / heads.")
    ] = None,
    residual: Annotated[
        bool, typer.Option("--residual", help="With residual connections.")
    ] = False,
    causal: Annotated[
        bool, typer.Option("--causal", help="Positions see those before them.")
    ] = False,
    vocab: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="V", help="Tokens; else continuous inputs."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(parser=size_option, metavar="R", help="Of the embedding.")
    ] = None,
    patch: Annotated[
        int | None,
        typer.Option(
            parser=size_option, metavar="K", help="Values of a patch: a rank of at most K."
        ),
    ] = None,
    position_rank: Annotated[
        int, typer.Option(parser=size_option, metavar="R", help="0: no positional vectors.")
    ] = 0,
    partition: Annotated[
        str, typer.Option(help="balanced, first-half, interleaved, or positions: 0,2,5.")
    ] = "balanced",
    output_position: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="I", help="Default: 0; the last if --causal."),
    ] = None,
    prime: Annotated[
        list[int] | None, typer.Option(help="Modulo these instead; repeatable.")
    ] = None,
    device: Annotated[str, typer.Option(help=f"{', '.join(DEVICES)}.")] = "cpu",
    limit: Annotated[float, typer.Option(help="Minutes that it may take.")] = 10.0,
    claim: Annotated[
        str | None, typer.Option(metavar="NAME", help="Test a claim instead; `list` names them.")
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw --claim growth: .svg .png .html"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """The generic separation rank of a network, measured exactly, with its certificate."""
    if chart is not None and claim != GROWTH:
        raise ValueError(f"--chart {chart} draws --claim growth and nothing else; add that")
    primes = tuple(prime or ())
    for number in primes:
        check_prime(number)
    machine = _machine(device, limit)
    if claim is not None:
        if depth is not None or width is not None:
            raise ValueError(f"--claim {claim} has networks of its own; leave out depth and width")
        return _claim(claim, machine, primes, chart, as_json)
    if depth is None or width is None:
        raise ValueError("--depth and --width say which network; give both, or --claim NAME")
    network = Network(
        depth=depth,
        width=width,
        heads=heads,
        head_dim=_head_dim(width, heads, head_dim),
        has_residual=residual,
        is_causal=causal,
    )
    output = (positions - 1 if causal else 0) if output_position is None else output_position
    experiment = Experiment(
        network=network,
        inputs=_inputs(width, vocab, rank, patch),
        position_rank=position_rank,
        partition=_partition(partition, positions, output),
        entry=0,
    )
    with _progress() as progress:
        measured = machine.measure(experiment, primes, progress)
    if as_json:
        return print_json(measurement_json(measured))
    return _print_for_people(measured)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Machine:
    """What measures, and how much of it may be used."""

    arrays: Arrays
    kind: str  # cpu or cuda
    seconds: float
    gigabytes: float

    def measure(
        self, experiment: Experiment, primes: tuple[int, ...], progress: Progress
    ) -> Measurement:
        check_cost(experiment, self.kind, seconds=self.seconds, gigabytes=self.gigabytes)
        return measure(
            experiment,
            self.arrays,
            primes=primes,
            progress=progress,
            most_samples=most_samples(
                experiment, self.kind, seconds=self.seconds, gigabytes=self.gigabytes
            ),
        )


def _machine(device: str, limit: float) -> _Machine:
    if not 0 < limit < 1e6:
        raise ValueError(f"--limit {limit} is no number of minutes; use one such as 10")
    # Work is spread over the cores by us; two layers of threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arrays, kind = _arrays(device)
    return _Machine(arrays=arrays, kind=kind, seconds=60 * limit, gigabytes=_memory(kind))


def _claim(
    name: str, machine: _Machine, primes: tuple[int, ...], chart: Path | None, as_json: bool
) -> None:
    if name == LIST:
        return print_claims()
    if chart is not None:
        from archfit.report.page import check_chart_file

        check_chart_file(chart)
    claim = None if name == GROWTH else named_claim(name)
    with _progress() as progress:

        def measured(case: Experiment) -> Measurement:
            return machine.measure(case, primes, progress)

        if claim is not None:
            return run_claim(claim, measured, as_json)
        cases = growth_experiments(machine.kind, machine.seconds, machine.gigabytes)
        return run_growth(cases, measured, chart=chart, as_json=as_json)


def measurement_json(measured: Measurement) -> dict[str, object]:
    """The document of one measurement."""
    return {
        "separation_rank": measured.rank,
        "exact": measured.is_exact,
        "samples": measured.trials[-1].samples,
        "primes": [trial.prime for trial in measured.trials],
        "ranks": [trial.rank for trial in measured.trials],
        "upper": measured.upper,
        "lower": measured.lower,
        "failure_probability": measured.failure_probability,
        "certificate": certificate(measured),
        "parts_by_degree": measured.trials[-1].parts,
        "seconds": round(measured.seconds, 3),
    }


def certificate(measured: Measurement) -> str:
    """What is certain, and what is likely, in a sentence."""
    certain = f"at least {measured.rank:,} for almost all weights, for certain"
    if measured.is_exact:
        return f"{certain}; no more, by the proved upper bound: exact"
    likely = (
        f"no more with a failure probability of {measured.failure_probability:.1e} (if no prime "
        "divides all minors of that size)"
    )
    experiment = measured.experiment
    if isinstance(experiment.inputs, Vocabulary) and not experiment.lists_all:
        likely = "it may be more, for not all fillings of both sides with tokens were tried"
    bound = "no upper bound is known under a causal mask"
    if measured.upper is not None:
        bound = f"the proved upper bound is {measured.upper:,}"
    return f"{certain}; {likely}; {bound}"


def _head_dim(width: int, heads: int, head_dim: int | None) -> int:
    if head_dim is not None:
        return head_dim
    if heads < 1 or width % heads:
        raise ValueError(
            f"width={width} is not a multiple of heads={heads}, so head_dim would be a fraction; "
            "give --head-dim, or other heads"
        )
    return width // heads


def _inputs(width: int, vocab: int | None, rank: int | None, patch: int | None) -> Inputs:
    if vocab is not None and patch is not None:
        raise ValueError("--vocab and --patch are given; a position reads tokens or a patch")
    if vocab is not None:
        return Vocabulary(vocab=vocab, rank=min(width, vocab) if rank is None else rank)
    largest = width if patch is None else min(width, patch)
    return Continuous(rank=largest if rank is None else min(rank, largest) if patch else rank)


def _partition(words: str, positions: int, output: int) -> Partition:
    if positions < 2:
        raise ValueError(f"positions={positions} cannot be divided; use 2 or more")
    if positions > 4096:
        raise ValueError(f"positions={positions} is over 4096; no rank grows beyond 2 x width")
    if not 0 <= output < positions:
        raise ValueError(
            f"output position {output} is not in 0..{positions - 1}; use one of them, or more "
            "--positions"
        )
    chosen = _chosen(words, positions)
    if max(chosen, default=0) >= positions or min(chosen, default=0) < 0:
        raise ValueError(
            f"--partition {words} names a position outside 0..{positions - 1}; use those, or more "
            "--positions"
        )
    rest = tuple(place for place in range(positions) if place not in chosen)
    inside, outside = (chosen, rest) if output in chosen else (rest, chosen)
    return Partition(inside=inside, outside=outside, output=output)


def _chosen(words: str, positions: int) -> tuple[int, ...]:
    match words:
        case "balanced" | "first-half":
            return tuple(range(positions // 2))
        case "interleaved":
            return tuple(range(0, positions, 2))
    try:
        return tuple(sorted({int(word) for word in words.split(",")}))
    except ValueError as problem:
        raise ValueError(
            f"--partition {words!r} is unknown; use balanced, first-half, interleaved, or "
            "positions such as 0,2,5"
        ) from problem


def _arrays(device: str) -> tuple[Arrays, str]:
    from archfit.exact.arrays import NumpyArrays, TorchArrays

    if device not in DEVICES:
        raise ValueError(f"--device {device!r} is unknown; use {', '.join(DEVICES)}")
    if device == "cpu":
        return NumpyArrays(), "cpu"
    try:
        import torch
    except ImportError as problem:
        if device == "auto":
            return NumpyArrays(), "cpu"
        raise ValueError("--device cuda needs torch; pip install 'archfit[train]'") from problem
    if torch.cuda.is_available():
        return TorchArrays("cuda"), "cuda"
    if device == "auto":
        return NumpyArrays(), "cpu"
    raise ValueError("--device cuda: torch finds no GPU here; use --device cpu")


def _memory(kind: str) -> float:
    """Gigabytes that may be used: most of what there is."""
    if kind == "cuda":
        import torch

        return 0.8 * float(torch.cuda.mem_get_info()[0]) / 1e9
    return 0.7 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("evaluating", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )


def _print_for_people(measured: Measurement) -> None:
    experiment, network = measured.experiment, measured.experiment.network
    sides = len(experiment.partition.inside), len(experiment.partition.outside)
    mask = "causal" if network.is_causal else "unmasked"
    print_table(
        f"Separation rank at depth {network.depth}, width {network.width}, heads {network.heads}",
        ("prime", "rank", "samples", "seconds"),
        [
            (str(trial.prime), f"{trial.rank:,}", f"{trial.samples:,}", f"{trial.seconds:.2f}")
            for trial in measured.trials
        ],
    )
    typer.echo(f"separation rank = {measured.rank:,}{' (exact)' if measured.is_exact else ''}")
    typer.echo(f"  {certificate(measured)}.")
    typer.echo(
        f"  {mask} network, {NETWORK}{', residual' if network.has_residual else ''}; "
        f"{sides[0]} + {sides[1]} positions, output at {experiment.partition.output}."
    )
    if measured.lower is not None:
        typer.echo(f"  proved lower bound: {measured.lower:,}.")
