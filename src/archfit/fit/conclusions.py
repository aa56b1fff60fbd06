"""What was found, in sentences."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult, FamilyKey, key_of
from archfit.fit.comparisons import CellDifference, Contrast, Ranking
from archfit.fit.depths import BestDepth, Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import LEAST_DEGREES, Noise
from archfit.spec.estimate import Estimate

WITHIN = 2.0  # standard deviations of one run, by which the papers call two losses the same


def conclusions(fits: Fits) -> tuple[str, ...]:
    """The findings, each a sentence with its numbers; what could not be told is said too."""
    return tuple(sentence for sentences in subjects(fits).values() for sentence in sentences)


def subjects(fits: Fits) -> dict[str, tuple[str, ...]]:
    """The same by subject, what the papers ask for first; empty subjects are left out."""
    several = len(fits.data_hashes) > 1
    groups: dict[str, Iterable[str]] = {
        "Depth against size": (
            *(_crossing(item, several) for item in fits.crossings),
            *(_law(item) for item in fits.laws if item.kind == "transition"),
        ),
        "What a bottleneck wastes": (
            _redundancy(item) for item in fits.redundancy if item.is_best_depth
        ),
        "What a low rank costs": (
            *_costs(fits.contrasts),
            *(_side(item) for item in fits.contrasts if item.kind == "side" and item.is_limit),
            *_positions(fits.contrasts),
        ),
        "Best depth": _best_depths(fits.best_depth, several),
        "Vocabularies and patches": (_ranking(item) for item in fits.rankings),
        "Size laws": (_law(item) for item in fits.laws if item.kind == "size"),
        "Seeds": (*_spreads(fits.repeated), *_notes(fits)),
    }
    found = {name: tuple(sentences) for name, sentences in groups.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def short_size(size: float) -> str:
    """A number of parameters as people write it: 1.31M."""
    for unit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= unit:
            digits = max(0, 2 - math.floor(math.log10(size / unit)))
            return f"{size / unit:.{digits}f}{letter}"
    return f"{size:.0f}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _seeds(seeds: int) -> str:
    return _counted(seeds, "seed")


def _settle(needed: int | None, seeds: int) -> str:
    if needed is None:
        return "more than 1,000 seeds would be needed to settle it, if there is an effect"
    return f"about {max(needed, seeds + 1)} seeds would settle it"


def _with(key: FamilyKey, several: bool) -> str:
    words = [key.words] if key.words else []
    if several:
        words.append(f"data {key.data_hash[:8]}, vocabulary {key.input.vocab:,}")
    return f" ({', '.join(words)})" if words else ""


def _ends(estimate: Estimate, number: Callable[[float], str]) -> str:
    """The interval in words; where an end is open, the sizes that were trained end."""
    if estimate.low is None and estimate.high is None:
        return "beyond the range on both sides"
    if estimate.low is None:
        return f"up to {number(estimate.high or 0)}, below it the range ends"
    if estimate.high is None:
        return f"from {number(estimate.low)}, above it the range ends"
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _signed(estimate: Estimate) -> str:
    """The ends of a difference, both of which are known."""
    return f"{estimate.low:+.4f} to {estimate.high:+.4f}"


def _crossing(item: Crossing, several: bool) -> str:
    shallow, deep = item.shallow.depth, item.deep.depth
    what = _with(item.shallow, several)
    sizes = f"{short_size(item.range[0])} to {short_size(item.range[1])} block parameters"
    if item.size.value is not None:
        is_deeper = item.verdict == "deeper wins above"
        first, second = (deep, shallow) if is_deeper else (shallow, deep)
        times = f"; crossing {item.number} of {item.times}" if item.times > 1 else ""
        width = _ends(item.width, lambda width: f"{width:.0f}")
        return (
            f"Depth {first} overtakes depth {second}{what} at {short_size(item.size.value)} block "
            f"parameters (90 %: {_ends(item.size, short_size)}), where the shallow width is "
            f"{item.width.value:.0f} ({width}){times}; {_seeds(item.seeds)}."
        )
    beyond = ""
    if item.beyond is not None:
        edge = item.range[0] if item.beyond == "below" else item.range[1]
        beyond = f"; a crossing would lie {item.beyond} {short_size(edge)}"
    if item.verdict == "undecided":
        return (
            f"No crossing of depth {shallow} and depth {deep}{what} can be told in "
            f"{sizes}{beyond}: undecided; {_settle(item.seeds_needed, item.seeds)}."
        )
    better, worse = (deep, shallow) if item.verdict.startswith("deeper") else (shallow, deep)
    return (
        f"Depth {better} beats depth {worse}{what} at all of {sizes}: no crossing in "
        f"range{beyond}; {_seeds(item.seeds)}."
    )


def _redundancy(item: MeasuredRedundancy) -> str:
    what = f"a rank of {item.ratio:.3g} of the width ({' and '.join(item.bottleneck)})"
    if item.kind == "attention":
        what = f"an attention {item.ratio:.3g} times as wide as the stream"
    share = item.estimate
    match item.outcome:
        case "value":
            ends = _ends(share, lambda share: f"{share:.1%}")
            found = f"{share.value:.1%} redundant (90 %: {ends})"
        case "at least" if share.is_above(0):
            found = f"at least {share.low:.1%} redundant; no baseline is as bad"
        case "at least":
            found = (
                "of unknown redundancy: no baseline is as bad, and none that is smaller is better"
            )
        case "at most":
            found = f"at most {share.high:.1%} redundant; no baseline is as good"
        case "unknown":
            found = "of unknown redundancy: the baseline's sizes end before"
    cell = f"depth {item.family.depth}, width {item.cell.architecture.width}"
    flag = "; the baseline is itself limited by its vocabulary" if item.baseline_is_limited else ""
    return f"With {what}, {cell} is {found}; {_seeds(item.seeds)}{flag}."


def _side(item: Contrast) -> str:
    """On which of two tables the same rank hurts more."""
    first, second = item.first.factorised[0], item.second.factorised[0]
    difference, estimate = item.difference, item.difference.estimate
    numbers = f"{estimate.value:+.4f} nats (90 %: {_signed(estimate)})"
    where = f"rank {item.rank} at depth {item.first.depth}, width {item.width}"
    if not difference.is_settled:
        return (
            f"Whether the {first} or the {second} suffers more from {where} is undecided: "
            f"{numbers}; {_settle(difference.seeds_needed, difference.seeds)}."
        )
    worse, better = (first, second) if estimate.is_above(0) else (second, first)
    return (
        f"The limit hurts more on the {worse} than on the {better} ({where}): {first} less "
        f"{second} {numbers}; {_seeds(difference.seeds)}."
    )


def _costs(contrasts: Iterable[Contrast]) -> Iterable[str]:
    """What each limited table costs against full ones, the tightest limit first."""
    shapes: dict[tuple[FamilyKey, int, tuple[str, ...]], list[Contrast]] = defaultdict(list)
    for item in contrasts:
        if item.kind == "cost":
            shapes[item.second, item.width, item.first.factorised].append(item)
    for (key, width, names), items in shapes.items():
        estimates = [(item.rank, item.difference.estimate) for item in items]
        costs = [
            f"rank {rank} costs {cost.value:+.4f} ({_signed(cost)})" for rank, cost in estimates
        ]
        yield (
            f"Against {_unlimited(key)} tables, depth {key.depth}, width {width}, "
            f"{' and '.join(names)}: {'; '.join(costs)} nats a token (90 %); "
            f"{_seeds(min(item.difference.seeds for item in items))}."
        )


def _unlimited(key: FamilyKey) -> str:
    """Full tables, or products of matrices that are as good as those."""
    return "factorised but unlimited" if key.factorised else "full"


def _positions(contrasts: Iterable[Contrast]) -> Iterable[str]:
    """The least rank of positions that is as good as full."""
    shapes: dict[tuple[FamilyKey, int], list[Contrast]] = defaultdict(list)
    for item in contrasts:
        if item.kind == "cost" and item.first.factorised == ("positions",):
            shapes[item.second, item.width].append(item)
    for (key, width), items in shapes.items():
        ranks = [item for item in items if item.stds <= WITHIN]
        if ranks:
            least = min(ranks, key=lambda item: item.rank)
            cost = least.difference.estimate
            yield (
                f"Positions of rank {least.rank} are within 2 standard deviations of "
                f"{_unlimited(key)} ones (depth {key.depth}, width {width}): {cost.value:+.4f} "
                f"nats (90 %: {_signed(cost)}); {_seeds(least.difference.seeds)}."
            )


def _ranking(item: Ranking) -> str:
    def against_best(result: CellDifference) -> str:
        undecided = (
            f"; undecided among {len(item.results)}: {_settle(result.seeds_needed, result.seeds)}"
        )
        more = "" if result.is_settled else undecided
        value, ends = result.estimate.value, _signed(result.estimate)
        return f"{_reading(result.first)} {value:+.4f} ({ends}{more})"

    shapes = [result.first.architecture for result in item.results]
    patched = any(shape.input.tokens_per_position > 1 for shape in shapes)
    return (
        f"Of networks of about {short_size(item.best.architecture.params)} parameters "
        f"{_reading(item.best)} is best with {item.best.bits_per_byte:.4f} bits a byte; "
        f"{', '.join(against_best(result) for result in item.results[1:])}; "
        f"{_seeds(min(result.seeds for result in item.results))}"
        f"{'; tokens of a patch are predicted at once' if patched else ''}."
    )


def _reading(cell: CellResult) -> str:
    """A network by what it reads and how deep it is."""
    shape = cell.architecture
    patch = shape.input.tokens_per_position
    tokens = f"vocabulary {shape.input.vocab:,}" + (f" in patches of {patch}" if patch > 1 else "")
    return f"depth {shape.depth} with {tokens}"


def _best_depths(found: Sequence[BestDepth], several: bool) -> Iterable[str]:
    questions: dict[FamilyKey, list[BestDepth]] = defaultdict(list)
    for item in found:
        questions[item.family.any_depth].append(item)
    for key, items in questions.items():
        parts = [
            f"{item.depth} at {short_size(item.size)}"
            + (f" (tied with {', '.join(map(str, item.ties))})" if item.ties else "")
            for item in items
        ]
        depths = sorted({depth for item in items for depth in item.depths})
        yield (
            f"Best of the depths {', '.join(map(str, depths))} at equal size"
            f"{_with(key, several)}: {'; '.join(parts)} block parameters."
        )


def _law(item: Law) -> str:
    numbers = ", ".join(_parameter(*pair) for pair in item.parameters.items())
    numbers = numbers or "with E and A above zero is not near the losses"
    of = f"depth {item.family.depth}{_with(item.family, False)}"
    name = "Transition law" if item.kind == "transition" else f"Size law of {of}"
    forms = ""
    if item.forms:
        best, *rest = item.forms
        others = ", ".join(f"{other.form} {other.held_out_error:.2g}" for other in rest)
        forms = f"; by held-out error {best.form} is best ({best.held_out_error:.2g}; {others})"
    points = f"{item.points} {'crossings' if item.kind == 'transition' else 'sizes'}"
    warning = ""
    if item.kind == "transition" and not item.parameters["a"].is_bounded:
        warning = "; an interval needs 3 crossings"
    if item.inflation > 1:
        warning += f"; points scatter {math.sqrt(item.inflation):.1f} times more than seeds explain"
    return f"{name}: {item.form}, {numbers}; {points}, {_seeds(item.seeds)}{warning}{forms}."


def _parameter(name: str, estimate: Estimate) -> str:
    if estimate.low is None and estimate.high is None:
        return f"{name} = {estimate.value:.4g}"
    return f"{name} = {estimate.value:.4g} (90 %: {_ends(estimate, lambda end: f'{end:.4g}')})"


def _spreads(cells: Sequence[CellResult]) -> Iterable[str]:
    """The standard deviation of each cell of many seeds."""
    if cells:
        spreads = "; ".join(
            f"{_named(cell)} {math.sqrt(cell.squares / (cell.seeds - 1)):.2e} "
            f"({_seeds(cell.seeds)})"
            for cell in cells
        )
        yield f"Standard deviation over seeds by cell, nats a token: {spreads}."


def _named(cell: CellResult) -> str:
    shape, words = cell.architecture, key_of(cell).words
    return f"depth {shape.depth}, width {shape.width}{f' ({words})' if words else ''}"


def _notes(fits: Fits) -> Iterable[str]:
    for noise in fits.noise:
        yield _noise(noise)
    if fits.tunings:
        yield (
            f"{_counted(len(fits.tunings), 'shape')} trained at several learning rates: the best "
            "rate of each stands for it."
        )
    if fits.diverged:
        yield f"Left out: {_counted(fits.diverged, 'diverged run')}."
    if len(fits.numerics) > 1:
        versions = " and ".join(map(str, fits.numerics))
        yield (
            f"Runs of versions {versions} of archfit's arithmetic are mixed: a run made again by "
            "the newer one may differ by as much as another seed."
        )
    misfits = [item for item in fits.crossings if item.inflation > 1]
    if misfits:
        yield (
            f"In {len(misfits)} of {len(fits.crossings)} comparisons of depths a curve misses its "
            "cells by more than seeds explain; their intervals are wider for it."
        )
    if not fits.is_one_source:
        names = ", ".join(name[:8] for name in sorted(fits.data_hashes))
        yield (
            f"Runs on the data sets {names} were fitted each on their own and not compared: no "
            "sweep.json says that these are one source in several vocabularies."
        )


def _noise(noise: Noise) -> str:
    runs = _counted(sum(cell.seeds for cell in noise.cells), "run")
    of = f"{runs} of {_counted(len(noise.cells), 'cell')} on data {noise.data_hash[:8]}"
    if noise.degrees < LEAST_DEGREES:
        return (
            f"No interval can be had within {of}: they repeat cells "
            f"{_counted(noise.degrees, 'time')}, and {LEAST_DEGREES} are needed; train more seeds."
        )
    if not noise.is_enough:
        return (
            f"No interval can be had within {of}: those of one cell have the very same losses; "
            "train seeds that differ."
        )
    uneven = ""
    if noise.noisy.cells:
        noisy = ", ".join(_named(cell) for cell in noise.noisy.cells)
        uneven = f"; {noise.noisy.std:.2e} for {noisy}, more than accident allows, so pooled apart"
    return (
        f"Standard deviation over seeds: {noise.std:.2e} nats per token "
        f"({of}, {noise.degrees} degrees of freedom){uneven}."
    )
