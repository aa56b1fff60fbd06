"""`archfit measure` and `archfit witness`: exact separation ranks, and weights that reach them."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.cli import options
from archfit.cli.options import AsJson, Chart, chosen, flag, size, word
from archfit.cli.output import bar, show
from archfit.cli.theory_commands import parse_input
from archfit.exact.experiment import (
    AnalysedNetwork,
    Experiment,
    Partition,
    divided,
)
from archfit.exact.measure import Measurement, check_cost, most_samples
from archfit.exact.measure import measure as measure_rank
from archfit.exact.prime_field import WITNESS_PRIME, check_prime
from archfit.exact.rank_claims import claims, growth_experiments
from archfit.exact.witness import KINDS, WitnessRequest, build_witness, check_witness, recipe_for
from archfit.report import measure_document as documents
from archfit.report.measure_document import GROWTH
from archfit.report.theory_document import witness_document
from archfit.spec.architecture import head_dim_of
from archfit.spec.sizes import parse_size
from archfit.theory.catalogue import as_plan

if TYPE_CHECKING:
    from archfit.exact.matrix import Progress
    from archfit.exact.prime_field import Arrays
    from archfit.report.document import Document

DEVICES = ("cpu", "cuda", "auto")
LIST = "list"  # of claims
FAILED = 1  # exit status of a witness that is not what was promised
PARTITION = word("balanced, first-half, interleaved, or positions: 0,2,5.")
OUTPUT = word("A position, or last. Default: 0; last if --causal.", metavar="I")
CLAIM = word("Test a claim instead; `list` names them.", metavar="NAME")
PLAN = word("Of a monomial: JSON, or example. Default: a search.", metavar="PLAN")


def measure(
    depth: Annotated[int | None, options.DEPTH] = None,
    width: Annotated[int | None, options.WIDTH] = None,
    heads: Annotated[int, options.HEADS] = 1,
    positions: Annotated[int, size("Length of the sequence.")] = 4,
    head_dim: Annotated[int | None, options.HEAD_DIM] = None,
    residual: Annotated[bool, options.RESIDUAL] = False,
    causal: Annotated[bool, flag("--causal", "Positions see those before them.")] = False,
    vocab: Annotated[int | None, size("Tokens; else continuous inputs.", "V")] = None,
    rank: Annotated[int | None, options.RANK] = None,
    patch: Annotated[int | None, size("Values of a patch: a rank of at most K.", "K")] = None,
    position_rank: Annotated[int, options.POSITION_RANK] = 0,
    partition: Annotated[str, PARTITION] = "balanced",
    output_position: Annotated[str | None, OUTPUT] = None,
    prime: Annotated[list[int] | None, word("Modulo these instead; repeatable.")] = None,
    device: Annotated[str, word(f"{', '.join(DEVICES)}.")] = "cpu",
    limit: Annotated[float, word("Minutes that it may take.")] = 10.0,
    claim: Annotated[str | None, CLAIM] = None,
    chart: Chart = None,
    as_json: AsJson = False,
) -> None:
    """The generic separation rank of a network, measured exactly, with its certificate.

    --chart draws --claim growth.
    """
    if chart is not None and claim != GROWTH:
        raise ValueError(f"--chart {chart} draws --claim growth and nothing else; add that")
    machine = _machine(device, limit, tuple(prime or ()))
    if claim is not None:
        if depth is not None or width is not None:
            raise ValueError(f"--claim {claim} has networks of its own; leave out depth and width")
        return show(_claim(claim, machine), as_json=as_json, chart=chart, figure=GROWTH)
    if depth is None or width is None:
        raise ValueError("--depth and --width say which network; give both, or --claim NAME")
    output = output_position or ("last" if causal else "0")
    experiment = Experiment(
        network=AnalysedNetwork(
            depth=depth,
            width=width,
            heads=heads,
            head_dim=head_dim_of(width, heads) if head_dim is None else head_dim,
            has_residual=residual,
            is_causal=causal,
        ),
        rank=_rank(width, vocab, rank, patch),
        vocab=vocab,
        position_rank=position_rank,
        partition=_partition(partition, positions, output),
    )
    with bar("evaluating") as progress:
        measured = machine.measure(experiment, progress)
    return show(documents.measure_document(measured), as_json=as_json)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Machine:
    """What measures, and how much of it may be used."""

    arrays: Arrays
    kind: str  # cpu or cuda
    seconds: float
    gigabytes: float
    primes: tuple[int, ...]  # none: the usual ones

    def measure(self, experiment: Experiment, progress: Progress) -> Measurement:
        """Its rank; one that would take too long or too much memory is refused."""
        limits = {"seconds": self.seconds, "gigabytes": self.gigabytes}
        check_cost(experiment, self.kind, **limits)
        return measure_rank(
            experiment,
            self.arrays,
            primes=self.primes,
            progress=progress,
            most_samples=most_samples(experiment, self.kind, **limits),
        )


def _machine(device: str, limit: float, primes: tuple[int, ...]) -> _Machine:
    """The device, with most of the memory there is."""
    for number in primes:
        check_prime(number)
    if not 0 < limit < 1e6:
        raise ValueError(f"--limit {limit} is no number of minutes; use one such as 10")
    # Work is spread over the cores by us; two layers of threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arrays, kind = _arrays(device)
    gigabytes = 0.7 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if kind == "cuda":
        import torch

        gigabytes = 0.8 * float(torch.cuda.mem_get_info()[0]) / 1e9
    return _Machine(
        arrays=arrays, kind=kind, seconds=60 * limit, gigabytes=gigabytes, primes=primes
    )


def _claim(name: str, machine: _Machine) -> Document:
    """All cases of a claim, measured."""
    if name == LIST:
        return documents.claims_document()
    known = {claim.name: claim for claim in claims()}
    if name not in (*known, GROWTH):
        names = ", ".join([*known, GROWTH, LIST])
        raise ValueError(f"--claim {name!r} is unknown; use one of {names}")
    with bar("evaluating") as progress:
        if name != GROWTH:
            claim = known[name]
            groups = [[machine.measure(case, progress) for case in group] for group in claim.groups]
            return documents.claim_document(claim, groups)
        cases = growth_experiments(machine.kind, machine.seconds, machine.gigabytes)
        return documents.growth_document([machine.measure(case, progress) for case in cases])


def _rank(width: int, vocab: int | None, rank: int | None, patch: int | None) -> int:
    """That of what a position reads: the largest there is, unless one is asked for."""
    if vocab is not None and patch is not None:
        raise ValueError("--vocab and --patch are given; a position reads tokens or a patch")
    if rank is not None:
        return min(rank, width, patch) if patch else rank
    return min(limit for limit in (width, vocab, patch) if limit is not None)


def _partition(words: str, positions: int, output: str) -> Partition:
    """The positions on either side, by one of three names or by their numbers."""
    half = range(positions // 2)
    usual = {"balanced": half, "first-half": half, "interleaved": range(0, positions, 2)}
    try:
        named = usual.get(words)
        side = tuple(sorted({int(word) for word in words.split(",")}) if named is None else named)
    except ValueError as problem:
        raise ValueError(
            f"--partition {words!r} is unknown; use balanced, first-half, interleaved, or "
            "positions such as 0,2,5"
        ) from problem
    if positions > 1 and (max(side) >= positions or min(side) < 0):
        raise ValueError(
            f"--partition {words} names a position outside 0..{positions - 1}; use those, or more "
            "--positions"
        )
    return divided(positions, side, "last" if output == "last" else parse_size(output))


def _arrays(device: str) -> tuple[Arrays, str]:
    """What calculates, and whether that is a cpu or cuda; auto takes a GPU where there is one."""
    from archfit.exact.prime_field import NumpyArrays, TorchArrays

    if device not in DEVICES:
        raise ValueError(f"--device {device!r} is unknown; use {', '.join(DEVICES)}")
    problem = "--device cuda needs torch; pip install 'archfit[train]'"
    if device != "cpu" and importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return TorchArrays("cuda"), "cuda"
        problem = "--device cuda: torch finds no GPU here; use --device cpu"
    if device == "cuda":
        raise ValueError(problem)
    return NumpyArrays(), "cpu"


def witness(
    invocation: typer.Context,
    depth: Annotated[int, options.DEPTH],
    width: Annotated[int, options.WIDTH],
    heads: Annotated[int, options.HEADS],
    kind: Annotated[str, word(f"One of {', '.join(KINDS)}.", metavar="KIND")] = "simplified",
    positions: Annotated[int | None, size("Default: few that do.")] = None,
    rank: Annotated[int | None, size("Of the embedding. Default: the most.", "R")] = None,
    vocab: Annotated[int | None, size("Tokens. Default: the fewest that do.", "V")] = None,
    patch: Annotated[int | None, size("Vectors of a patch. Default: 2.", "K")] = None,
    channels: Annotated[int | None, size("Numbers of a patch's vector.", "C")] = None,
    plan: Annotated[str | None, PLAN] = None,
    entry: Annotated[int | None, size("Output coordinate read.", "E")] = None,
    prime: Annotated[int, size("All is exact modulo this.", "P")] = WITNESS_PRIME,
    as_json: AsJson = False,
) -> None:
    """The weights of a lower bound on the separation rank, run and compared with their promise."""
    given = None if plan is None else as_plan(*parse_input(f"plan={plan}"))
    recipe = recipe_for(chosen(WitnessRequest, invocation, plan=given))
    check = check_witness(build_witness(recipe, prime=prime))
    inputs = asdict(recipe)  # all that fixes it, the sizes that were left to its kind among them
    show(witness_document(check, inputs.pop("shape") | inputs), as_json=as_json)
    if not check.verified:
        raise typer.Exit(FAILED)
