"""`archfit theory`, `bounds`, `measure` and `witness`: what the papers prove, and exact ranks."""

from __future__ import annotations

import importlib.util
import json
import os
from decimal import Decimal
from typing import TYPE_CHECKING

import typer

from archfit.cli.options import Chart, chosen, with_words
from archfit.cli.output import bar, show
from archfit.exact.experiment import AnalysedNetwork, Experiment, Partition, divided
from archfit.exact.measure import Measurement, check_cost
from archfit.exact.measure import measure as measure_rank
from archfit.exact.prime_field import WITNESS_PRIME, check_prime
from archfit.exact.rank_claims import claims, growth_experiments
from archfit.exact.witness import check_witness
from archfit.exact.witness_kinds import KINDS, WitnessRequest, build_witness
from archfit.report import measure_document as documents
from archfit.report.measure_document import GROWTH
from archfit.report.theory_document import (
    bounds_document,
    quantities_document,
    quantity_document,
    witness_document,
)
from archfit.spec.architecture import head_dim_of
from archfit.spec.errors import InvalidValue
from archfit.spec.sizes import parse_size
from archfit.theory.bounds import bounds_report
from archfit.theory.catalogue import as_plan, quantity
from archfit.theory.counterexample import refute_for_shape, refute_formula
from archfit.theory.shape import Shape

if TYPE_CHECKING:
    from archfit.exact.matrix import Progress
    from archfit.exact.prime_field import Arrays
    from archfit.report.document import Document

DEVICES = ("cpu", "cuda", "auto")
LIST = "list"  # of claims
FAILED = 1  # exit status of a witness that is not what was promised


@with_words("theory")
def theory(
    name: str = "",
    inputs: list[str] | None = None,
    counterexample: bool = False,
    as_json: bool = False,
) -> None:
    """One bound, threshold or count of the papers, exact or with certified digits."""
    if not name and not inputs:
        return show(quantities_document(), as_json=as_json)
    given = dict(map(parse_input, inputs or []))
    if len(given) < len(inputs or []):
        raise ValueError(f"an input is given twice in {' '.join(inputs or [])!r}; give each once")
    try:
        result = quantity(name, **given)
    except InvalidValue as problem:  # by the letters that were typed, not as options
        raise ValueError(str(problem)) from problem
    verdict = refute_formula(name, result.inputs) if counterexample else None
    return show(quantity_document(result, verdict), as_json=as_json)


def parse_input(text: str) -> tuple[str, object]:
    """`key=value`, where the value is JSON, a size such as 125M, or a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise ValueError(f"{text!r} is not an input; write KEY=VALUE, such as d_x=768")
    try:
        return key, json.loads(value, parse_float=Decimal)
    except RecursionError as problem:
        raise ValueError(
            f"{key}={value[:20]}… is nested too deeply; a plan has 3 levels"
        ) from problem
    except ValueError:
        pass
    try:
        return key, parse_size(value)
    except ValueError:
        return key, value


@with_words("bounds", fields_of=Shape)
def bounds(
    invocation: typer.Context,
    counterexample: bool = False,
    chart: Chart = None,
    as_json: bool = False,
    **_fields: object,
) -> None:
    """All bounds on the separation rank of one architecture, the best proved pair first.

    --chart draws them over depth.
    """
    report = bounds_report(chosen(Shape, invocation))
    if counterexample and report.shape.causal:
        raise ValueError("--counterexample: the papers say nothing of --causal; leave out one")
    verdict = refute_for_shape(report) if counterexample else None
    show(bounds_document(report, verdict), as_json=as_json, chart=chart, figure="bounds")


@with_words("measure")
def measure(
    depth: int | None = None,
    width: int | None = None,
    heads: int = 1,
    positions: int = 4,
    head_dim: int | None = None,
    residual: bool = False,
    causal: bool = False,
    vocab: int | None = None,
    rank: int | None = None,
    patch: int | None = None,
    position_rank: int = 0,
    partition: str = "balanced",
    output_position: str | None = None,
    prime: list[int] | None = None,
    device: str = "cpu",
    limit: float = 10.0,
    claim: str | None = None,
    chart: Chart = None,
    as_json: bool = False,
) -> None:
    """The generic separation rank of a network, measured exactly, with its certificate.

    --chart draws --claim growth.
    """
    if chart is not None and claim != GROWTH:
        raise ValueError(f"--chart {chart} draws --claim growth and nothing else; add that")
    machine = _Machine(device, limit, tuple(prime or ()))
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


class _Machine:
    """What measures, and how much of it may be used: these minutes, and most of its memory."""

    def __init__(self, device: str, minutes: float, primes: tuple[int, ...]) -> None:
        for number in primes:
            check_prime(number)
        if not 0 < minutes < 1e6:
            raise ValueError(f"--limit {minutes} is no number of minutes; use one such as 10")
        # Work is spread over the cores by us; two layers of threads would wait for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self.arrays, self.kind = _arrays(device)
        self.primes = primes  # none: the usual ones
        gigabytes = 0.7 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
        if self.kind == "cuda":
            import torch

            gigabytes = 0.8 * float(torch.cuda.mem_get_info()[0]) / 1e9
        self.limits = {"seconds": 60 * minutes, "gigabytes": gigabytes}

    def measure(self, experiment: Experiment, progress: Progress) -> Measurement:
        """Its rank; one that would take too long or too much memory is refused."""
        check_cost(experiment, self.kind, **self.limits)
        return measure_rank(experiment, self.arrays, primes=self.primes, progress=progress)


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
        cases = growth_experiments(machine.kind, **machine.limits)
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
    usual = dict.fromkeys(("balanced", "first-half", "prefix"), half)
    usual["interleaved"] = range(0, positions, 2)
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


@with_words("witness", fields_of=WitnessRequest, kinds=KINDS)
def witness(
    invocation: typer.Context,
    kind: str = "simplified",
    plan: str | None = None,
    prime: int = WITNESS_PRIME,
    as_json: bool = False,
    **_fields: object,
) -> None:
    """The weights of a lower bound on the separation rank, run and compared with their promise."""
    given = None if plan is None else as_plan(*parse_input(f"plan={plan}"))
    check = check_witness(
        build_witness(chosen(WitnessRequest, invocation, plan=given), prime=prime)
    )
    show(witness_document(check), as_json=as_json)
    if not check.verified:
        raise typer.Exit(FAILED)
