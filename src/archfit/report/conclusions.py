"""What was found, in sentences; their words are in resources/report/sentences.toml, under fits."""

import math
from collections.abc import Iterable, Iterator, Sequence

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult, FamilyKey, grouped
from archfit.fit.comparisons import CellDifference, Ranking
from archfit.fit.depths import BestDepth, Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import LEAST_DEGREES, Noise
from archfit.report.document import said
from archfit.spec.estimate import Estimate

WITHIN = 2.0  # standard deviations of one run, by which the papers call two losses the same


def conclusions(fits: Fits) -> tuple[str, ...]:
    """The findings, each a sentence with its numbers; what could not be told is said too."""
    return tuple(sentence for sentences in subjects(fits).values() for sentence in sentences)


def subjects(fits: Fits) -> dict[str, tuple[str, ...]]:
    """The same by subject, what the papers ask for first; empty subjects are left out."""
    several = len(fits.data_hashes) > 1
    costs = [item for item in fits.contrasts if item.kind == "cost"]
    sides = (item for item in fits.contrasts if item.kind == "side")
    limited = (item for item in sides if item.first.rank < item.first.architecture.width)
    groups: dict[str, Iterable[str]] = {
        "Depth against size": (
            *(_crossing(item, several) for item in fits.crossings),
            *(_law(item) for item in fits.laws if item.kind == "transition"),
        ),
        "What a bottleneck wastes": (
            _redundancy(item) for item in fits.redundancy if item.is_best_depth
        ),
        "What a low rank costs": (*_costs(costs), *map(_side, limited), *_positions(costs)),
        "Best depth": _best_depths(fits.best_depth, several),
        "Vocabularies and patches": map(_ranking, fits.rankings),
        "Size laws": (_law(item) for item in fits.laws if item.kind == "size"),
        "Seeds": _seeds(fits),
    }
    found = {name: tuple(filter(None, sentences)) for name, sentences in groups.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def _settle(item: Crossing | CellDifference) -> str:
    """How many seeds would settle what is undecided."""
    if item.seeds_needed is None:
        return said("fits.settle-never")
    return said("fits.settle", max(item.seeds_needed, item.seeds + 1))


def _with(key: FamilyKey, several: bool) -> str:
    words = [key.words] * bool(key.words) + [said("fits.data", key)] * several
    return f" ({', '.join(words)})" if words else ""


def _ends(estimate: Estimate, form: str) -> str:
    """The interval in words; where an end is open, the sizes that were trained end."""
    if estimate.is_bounded:
        return said("fits.between", estimate, form)
    if estimate.high is not None:
        return said("fits.up-to", estimate, form)
    return said("fits.nowhere" if estimate.low is None else "fits.from", estimate, form)


def _crossing(item: Crossing, several: bool) -> str:
    depths = item.shallow.depth, item.deep.depth
    first, second = reversed(depths) if item.verdict.startswith("deeper") else depths
    sentence = "undecided-crossing" if item.verdict == "undecided" else "no-crossing"
    return said(
        "fits.crossing" if item.is_crossing else f"fits.{sentence}",
        item,
        first=first,
        second=second,
        what=_with(item.shallow, several),
        ends=_ends(item.size, "short"),
        width=_ends(item.width, ".0f"),
        times=said("fits.times", item) if item.times > 1 else "",
        beyond=said("fits.beyond", item, item.range[item.beyond == "above"]),
        settle=_settle(item),
    )


def _redundancy(item: MeasuredRedundancy) -> str:
    share, outcome = item.estimate, str(item.outcome)
    if outcome == "at least" and not share.is_above(0):
        outcome = "at least nothing"
    found = said(f"fits.{outcome}", share, ends=_ends(share, ".1%"))
    flag = said("fits.limited-baseline") if item.baseline_is_limited else ""
    return said(
        "fits.redundancy", item, what=said(f"fits.{item.kind}", item), found=found, flag=flag
    )


def _side(item: CellDifference) -> str:
    """On which of two tables the same rank hurts more."""
    first, second = item.first.key.factorised[0], item.second.key.factorised[0]
    worse, better = (first, second) if item.estimate.is_above(0) else (second, first)
    words = {"first": first, "second": second, "worse": worse, "better": better}
    words |= {"numbers": said("fits.nats", item), "where": said("fits.side-where", item)}
    sentence = "fits.side" if item.is_settled else "fits.undecided-side"
    return said(sentence, item, settle=_settle(item), **words)


def _costs(costs: Iterable[CellDifference]) -> Iterator[str]:
    """What each limited table costs against full ones, the tightest limit first."""
    shapes = grouped(
        costs, lambda c: (c.second.key, c.second.architecture.width, c.first.key.factorised)
    )
    for (key, width, tables), items in shapes.items():
        told = "; ".join(said("fits.cost", item) for item in items)
        words = {"tables": tables, "unlimited": _unlimited(key), "costs": told}
        seeds = min(item.seeds for item in items)
        yield said("fits.costs", depth=key.depth, width=width, seeds=seeds, **words)


def _unlimited(key: FamilyKey) -> str:
    """Full tables, or products of matrices that are as good as those."""
    return "factorised but unlimited" if key.factorised else "full"


def _positions(costs: Iterable[CellDifference]) -> Iterator[str]:
    """The least rank of positions that is as good as full."""
    least: dict[tuple[FamilyKey, int], CellDifference] = {}
    for item in sorted(costs, key=lambda item: item.first.rank):
        if item.first.key.factorised == ("positions",) and item.stds <= WITHIN:
            least.setdefault((item.second.key, item.second.architecture.width), item)
    for (key, _), item in least.items():
        numbers = said("fits.nats", item)
        yield said("fits.positions", item, unlimited=_unlimited(key), numbers=numbers)


def _ranking(item: Ranking) -> str:
    def against_best(result: CellDifference) -> str:
        words = {"count": len(item.results), "settle": _settle(result)}
        more = "" if result.is_settled else said("fits.undecided-ranking", **words)
        return said("fits.against-best", result, reading=_reading(result.first), undecided=more)

    is_patched = any(r.first.architecture.input.tokens_per_position > 1 for r in item.results)
    return said(
        "fits.ranking",
        item,
        best=_reading(item.best),
        others=[*map(against_best, item.results[1:])],
        seeds=min(result.seeds for result in item.results),
        patched=said("fits.patched") if is_patched else "",
    )


def _reading(cell: CellResult) -> str:
    """A network by what it reads and how deep it is."""
    shape = cell.architecture
    patch = shape.input.tokens_per_position
    tokens = f"vocabulary {shape.input.vocab:,}" + (f" in patches of {patch}" if patch > 1 else "")
    return f"depth {shape.depth} with {tokens}"


def _best_depths(found: Sequence[BestDepth], several: bool) -> Iterator[str]:
    for key, items in grouped(found, lambda item: item.family.any_depth).items():
        ties = [said("fits.tied", item.ties) if item.ties else "" for item in items]
        best = [said("fits.best", *each) for each in zip(items, ties, strict=True)]
        depths = sorted({depth for item in items for depth in item.depths})
        words = {"what": _with(key, several), "parts": "; ".join(best)}
        yield said("fits.best-depths", depths, **words)


def _law(item: Law) -> str:
    is_size, forms = item.kind == "size", ""
    if item.forms:
        best, *rest = item.forms
        others = [f"{other.form} {other.held_out_error:.2g}" for other in rest]
        forms = said("fits.law-forms", best, others)
    numbers = []
    for parameter, found in item.parameters.items():
        is_open = found.low is None and found.high is None
        ends = "" if is_open else f" (90 %: {_ends(found, '.4g')})"
        numbers.append(f"{parameter} = {found.value:.4g}{ends}")
    name = said("fits.size-law", item, what=_with(item.family, False))
    times = math.sqrt(item.inflation)
    return said(
        "fits.law",
        item,
        name=name if is_size else "Transition law",
        numbers=", ".join(numbers) or said("fits.no-law"),
        points="sizes" if is_size else "crossings",
        warning="" if is_size or item.parameters["a"].is_bounded else said("fits.law-needs"),
        scatter=said("fits.law-scatter", times) if item.inflation > 1 else "",
        forms=forms,
    )


def _named(cell: CellResult) -> str:
    shape, words = cell.architecture, cell.key.words
    return f"depth {shape.depth}, width {shape.width}{f' ({words})' if words else ''}"


def _seeds(fits: Fits) -> Iterator[str]:
    """How much seeds change the loss, and what to know of the runs; nothing where all is well."""
    spreads = (said("fits.spread", cell, name=_named(cell)) for cell in fits.repeated)
    yield said("fits.spreads", "; ".join(spreads))
    yield from map(_noise, fits.noise)
    yield said("fits.tunings", len(fits.tunings) or None)
    yield said("fits.diverged", fits.diverged or None)
    if len(fits.numerics) > 1:
        yield said("fits.numerics", fits.numerics)
    misfits = sum(item.inflation > 1 for item in fits.crossings)
    yield said("fits.misfits", misfits or None, len(fits.crossings))
    if not fits.is_one_source:
        yield said("fits.sources", [name[:8] for name in sorted(fits.data_hashes)])


def _noise(noise: Noise) -> str:
    runs = said("fits.runs", sum(cell.seeds for cell in noise.cells), len(noise.cells), noise)
    if noise.usual.degrees < LEAST_DEGREES:
        return said("fits.noise-few", noise.usual, runs=runs, least=LEAST_DEGREES)
    if not noise.is_enough:
        return said("fits.noise-none", runs=runs)
    noisy = ", ".join(map(_named, noise.noisy.cells))
    return said("fits.noise", noise, runs=runs, uneven=said("fits.noise-uneven", noise, noisy))
