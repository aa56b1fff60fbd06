"""Measured separation ranks as documents: one with its certificate, and claims put to the test."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from archfit.exact.experiment import Experiment, degree_bounds
from archfit.exact.measure import Measurement
from archfit.exact.rank_claims import RankClaim, claims, failures, growth_bounds
from archfit.report.document import Document, Figure, Section, Table, json_of, loaded
from archfit.theory.statistics_bounds import isotropic_deficit, statistics_upper_bound

NETWORK = "linear attention, no norm, no feed-forward layer"
GROWTH = "growth"
GROWTH_SAYS = "with one head the rank is the proved statistics bound"
Json = dict[str, object]


def measure_document(measured: Measurement) -> Document:
    """The rank, what is certain about it, and what each prime said."""
    experiment = network = measured.experiment
    partition, mask = experiment.partition, "Causal" if network.causal else "Unmasked"
    residual = ", residual" if network.residual else ""
    positions = f"{len(partition.inside)} + {len(partition.outside)} positions"
    said = certificate(measured)
    lower = "none" if measured.lower is None else f"{measured.lower:,}"
    title = (
        f"Separation rank at depth {network.depth}, width {network.width}, heads {network.heads}"
    )
    return Document(
        title=title,
        headline=f"separation rank = {measured.rank:,}{' (exact)' if measured.is_exact else ''}",
        sections=(
            Section.of(
                "",
                *(f"{part[0].upper()}{part[1:]}." for part in said.split("; ")),
                f"Bounds proved in the paper or here: {lower} (lower), {measured.upper:,} (upper).",
                *_reason(measured),
                f"{mask} network, {NETWORK}{residual}; {positions}, output at {partition.output}.",
            ),
            Section.of("", Table.of("trial-primes", measured.trials, title=title), is_why=True),
            Section.of("", *_parts(measured), is_why=True),
        ),
        data=json_of(
            "measurement",
            measured,
            last=measured.trials[-1],
            primes=[trial.prime for trial in measured.trials],
            ranks=[trial.rank for trial in measured.trials],
            certificate=said,
        ),
    )


def _reason(measured: Measurement) -> Iterator[str]:
    """Why three layers of one head have less than the count of statistics."""
    network, r = measured.experiment, measured.experiment.rank
    statistics = None if network.depth != 3 else int(statistics_upper_bound(3, r))
    deficit = isotropic_deficit(r) if r <= 12 else 0
    has_deficit = network.heads == 1 and not network.causal and not network.residual
    if has_deficit and deficit and statistics and measured.upper == statistics - deficit:
        yield (
            f"ub_stat counts {statistics:,}; {deficit:,} are missing in the part of degree 7 "
            f"outside (isotropic_deficit d={r})."
        )


def _parts(measured: Measurement) -> Iterator[str]:
    """The ranks of the parts, which add up, beside their bounds."""
    parts = measured.trials[-1].parts
    if parts is not None:
        bounds = degree_bounds(measured.experiment)
        yield (
            "Ranks by half degree inside (of at most): "
            + ", ".join(
                f"{rank:,}" if rank == most else f"{rank:,} ({most:,})"
                for rank, most in zip(parts, bounds, strict=True)
            )
            + "."
        )


def certificate(measured: Measurement) -> str:
    """What is certain, and what is likely, in a sentence."""
    least = f"at least {measured.rank:,} for almost all weights"
    certain = f"{least}: certain, by a minor that is not 0 modulo a prime"
    if measured.is_exact:
        return f"{certain}; not more, by the proved upper bound: exact"
    likely = (
        f"not more: {len(measured.trials)} random tests agree, which err with probability "
        f"{measured.failure_probability:.1e} (if no prime of theirs divides all larger minors)"
    )
    if not measured.is_sampled_at_random:
        likely = "it may be more: not all fillings of both sides with tokens were tried"
    return f"{certain}; {likely}"


def claims_document() -> Document:
    """Names and sentences of all claims."""
    rows = [*((claim.name, claim.says) for claim in claims()), (GROWTH, GROWTH_SAYS)]
    data = [{"claim": name, "says": says} for name, says in rows]
    sections = (Section.of("", Table.of("rank-claims", rows)),)
    names = f"{len(rows)} claims that --claim can test: {', '.join(name for name, _ in rows)}"
    return Document(title="Claims", headline=names, sections=sections, data={"claims": data})


def claim_document(claim: RankClaim, groups: Sequence[Sequence[Measurement]]) -> Document:
    """All cases of a claim as they were measured, and whether it holds."""
    failed = failures(claim, [[measured.rank for measured in group] for group in groups])
    cases = [(number, found) for number, group in enumerate(groups, 1) for found in group]
    table = Table.of(
        "claim",
        cases,
        title=f"Claim: {claim.says}",
        settings=lambda case: _settings(case[1].experiment),
    )
    held = _verdict(len(groups), failed)
    rows = [{"case": number} | _row_json(measured) for number, measured in cases]
    return Document(
        title=table.title,
        headline=f"{claim.name}: {held['verdict']}.",
        sections=(Section.of("", table),),
        data={"claim": claim.name, "says": claim.says, "rows": rows, **held},
    )


def growth_document(measured: Sequence[Measurement]) -> Document:
    """Ranks of one head over depth, width and positions, beside every bound."""
    cases = [(found, growth_bounds(*_sizes(found.experiment))) for found in measured]
    failed = tuple(index for index, found in enumerate(measured) if not found.is_exact)
    held = _verdict(len(measured), failed)
    table = Table(
        title="Measured separation rank, one head, balanced partition",
        columns=("L", "d", "N", "rank", "ub_stat_N", "ub_thm1", "ub_thm2?", "lb", "lb_strong"),
        rows=tuple(
            (*map(str, _sizes(found.experiment)), f"{found.rank:,}", *map(_short, bounds.values()))
            for found, bounds in cases
        ),
    )
    figure = Figure.of(
        GROWTH,
        f"Separation ranks of {len(measured)} networks of one head over depth.",
        lambda _: loaded("theory").growth_chart(list(measured)),
    )
    written = ("ub_thm1", "ub_thm2")  # as text: they may be fractions, or too long for a float
    rows = [
        _row_json(found) | bounds | {name: str(bounds[name]) for name in written}
        for found, bounds in cases
    ]
    return Document(
        title=GROWTH_SAYS,
        headline=f"{GROWTH}: {GROWTH_SAYS}: {held['verdict']}.",
        sections=(Section.of("", figure.caption, table), Section.of("", figure, is_detail=True)),
        data={"claim": GROWTH, "says": GROWTH_SAYS, "rows": rows, **held},
    )


def _verdict(cases: int, failed: tuple[int, ...]) -> Json:
    said = f"holds in all {cases} cases"
    if failed:
        numbers = ", ".join(str(number + 1) for number in failed)
        said = f"fails in {len(failed)} of {cases} cases: {numbers}"
    return {"holds": not failed, "verdict": said}


def _sizes(case: Experiment) -> tuple[int, int, int]:
    positions = len(case.partition.inside) + len(case.partition.outside)
    return case.depth, case.width, positions


def _settings(case: Experiment) -> str:
    network, partition = case, case.partition
    depth, width, positions = _sizes(case)
    words = [f"L={depth} d={width} H={network.heads} N={positions}"]
    if case.vocab is not None:
        words.append(f"V={case.vocab}")
    if case.rank < width or case.vocab is not None:
        words.append(f"r={case.rank}")
    words += ["residual"] * network.residual + ["causal"] * network.causal
    if partition.inside != tuple(range(len(partition.inside))):
        words.append(f"P={','.join(map(str, partition.inside))}")
    if partition.output:
        words.append(f"output {partition.output}")
    return " ".join(words)


def _row_json(measured: Measurement) -> Json:
    case = measured.experiment
    return json_of("measured", measured, positions=_sizes(case)[2])


def _short(value: int | Fraction | None) -> str:
    if value is None or value < 1e6:
        return "-" if value is None else f"{float(value):,.0f}"
    return f"{float(value):.1e}".replace("e+0", "e").replace("e+", "e")
