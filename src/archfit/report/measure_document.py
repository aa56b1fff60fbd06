"""Measured separation ranks as documents: one with its certificate, and claims put to the test."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from archfit.exact.experiment import Experiment, degree_bounds
from archfit.exact.measure import Measurement
from archfit.exact.rank_claims import RankClaim, claims, failures, growth_bounds
from archfit.report.document import Document, Figure, Section, Table, json_of, said

GROWTH = "growth"
Json = dict[str, object]


def measure_document(measured: Measurement) -> Document:
    """The rank, what is certain about it, and what each prime said."""
    network, certain = measured.experiment, certificate(measured)
    title = said("measure.title", network)
    mask, residual = "Causal" if network.causal else "Unmasked", ", residual" * network.residual
    primes, ranks = zip(*((trial.prime, trial.rank) for trial in measured.trials), strict=True)
    more = {"last": measured.trials[-1], "primes": primes, "ranks": ranks, "certificate": certain}
    return Document(
        title=title,
        headline=said("measure.headline", measured, exact=" (exact)" * measured.is_exact),
        sections=(
            Section.of(
                *(f"{part[0].upper()}{part[1:]}." for part in certain.split("; ")),
                said("measure.bounds", measured),
                said("measure.network", network.partition, mask=mask, residual=residual),
            ),
            Section.of(Table.of("trial-primes", measured.trials, title=title), is_why=True),
            Section.of(*_parts(measured), is_why=True),
        ),
        data=json_of("measurement", measured, **more),
    )


def _parts(measured: Measurement) -> Iterator[str]:
    """The ranks of the parts, which add up, beside their bounds."""
    parts = measured.trials[-1].parts
    if parts is not None:
        bounded = zip(parts, degree_bounds(measured.experiment), strict=True)
        ranks = [f"{rank:,}" + f" ({most:,})" * (rank != most) for rank, most in bounded]
        yield said("measure.parts", ranks)


def certificate(measured: Measurement) -> str:
    """What is certain, and what is likely, in a sentence."""
    likely = "likely" if measured.is_sampled_at_random else "untried"
    more = "measure.exact" if measured.is_exact else f"measure.{likely}"
    return said("measure.certain", measured) + said(more, measured, trials=len(measured.trials))


def claims_document() -> Document:
    """Names and sentences of all claims."""
    rows = [*((claim.name, claim.says) for claim in claims()), (GROWTH, said("measure.growth"))]
    return Document(
        title="Claims",
        headline=said("measure.claims", number=len(rows), names=[name for name, _ in rows]),
        sections=(Section.of(Table.of("rank-claims", rows)),),
        data={"claims": [{"claim": name, "says": says} for name, says in rows]},
    )


def claim_document(claim: RankClaim, groups: Sequence[Sequence[Measurement]]) -> Document:
    """All cases of a claim as they were measured, and whether it holds."""
    failed = failures(claim, [[measured.rank for measured in group] for group in groups])
    cases = [(number, found) for number, group in enumerate(groups, 1) for found in group]
    title, held = f"Claim: {claim.says}", _verdict(len(groups), failed)
    rows = [{"case": number} | _row_json(measured) for number, measured in cases]
    table = Table.of("claim", cases, title=title, settings=_settings)
    return Document(
        title=title,
        headline=f"{claim.name}: {held['verdict']}.",
        sections=(Section.of(table),),
        data={"claim": claim.name, "says": claim.says, "rows": rows, **held},
    )


def growth_document(measured: Sequence[Measurement]) -> Document:
    """Ranks of one head over depth, width and positions, beside every bound."""
    cases = [(found, growth_bounds(*_sizes(found.experiment))) for found in measured]
    failed = tuple(index for index, found in enumerate(measured) if not found.is_exact)
    says, held = said("measure.growth"), _verdict(len(measured), failed)
    table = Table(
        title="Measured separation rank, one head, balanced partition",
        columns=("L", "d", "N", "rank", "ub_stat_N", "ub_thm1", "ub_thm2?", "lb", "lb_strong"),
        rows=tuple(
            (*map(str, _sizes(found.experiment)), f"{found.rank:,}", *map(_short, bounds.values()))
            for found, bounds in cases
        ),
    )
    figure = Figure.of(GROWTH, said("measure.figure", len(measured)), measured)
    written = ("ub_thm1", "ub_thm2")  # as text: they may be fractions, or too long for a float
    rows = [
        _row_json(found) | bounds | {name: str(bounds[name]) for name in written}
        for found, bounds in cases
    ]
    return Document(
        title=says,
        headline=f"{GROWTH}: {says}: {held['verdict']}.",
        sections=(Section.of(figure.caption, table), Section.of(figure, is_detail=True)),
        data={"claim": GROWTH, "says": says, "rows": rows, **held},
    )


def _verdict(cases: int, failed: tuple[int, ...]) -> Json:
    numbers = [number + 1 for number in failed]
    how = "measure.fails" if failed else "measure.holds"
    return {"holds": not failed, "verdict": said(how, cases, number=len(failed), failed=numbers)}


def _sizes(case: Experiment) -> tuple[int, int, int]:
    positions = len(case.partition.inside) + len(case.partition.outside)
    return case.depth, case.width, positions


def _settings(case: tuple[int, Measurement]) -> str:
    network, partition = case[1].experiment, case[1].experiment.partition
    depth, width, positions = _sizes(network)
    words = [f"L={depth} d={width} H={network.heads} N={positions}"]
    if network.vocab is not None:
        words.append(f"V={network.vocab}")
    if network.rank < width or network.vocab is not None:
        words.append(f"r={network.rank}")
    words += ["residual"] * network.residual + ["causal"] * network.causal
    if partition.inside != tuple(range(len(partition.inside))):
        words.append(f"P={','.join(map(str, partition.inside))}")
    if partition.output:
        words.append(f"output {partition.output}")
    return " ".join(words)


def _row_json(measured: Measurement) -> Json:
    return json_of("measured", measured, positions=_sizes(measured.experiment)[2])


def _short(value: int | Fraction | None) -> str:
    if value is None or value < 1e6:
        return "-" if value is None else f"{float(value):,.0f}"
    return f"{float(value):.1e}".replace("e+0", "e").replace("e+", "e")
