"""What was found, in sentences."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from archfit.fit.best_depth import BestDepth
from archfit.fit.cells import Cell
from archfit.fit.comparison import Comparison
from archfit.fit.contrasts import Contrast
from archfit.fit.crossing import Crossing
from archfit.fit.families import FamilyKey, key_of
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law, Parameter
from archfit.fit.noise import LEAST_DEGREES, Noise
from archfit.fit.redundancy import Redundancy

WITHIN = 2.0  # standard deviations of one run, by which the papers call two losses the same


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """Sentences on one subject."""

    subject: str
    sentences: tuple[str, ...]


def conclusions(fits: Fits) -> tuple[str, ...]:
    """The findings, each a sentence with its numbers; what could not be told is said too."""
    return tuple(sentence for group in findings(fits) for sentence in group.sentences)


def findings(fits: Fits) -> tuple[Findings, ...]:
    """The same by subject, what the papers ask for first; empty subjects are left out."""
    several = len({noise.data_hash for noise in fits.noise}) > 1
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
            *(_contrast(item) for item in fits.contrasts if item.kind == "side" and item.is_limit),
            *_positions(fits.contrasts),
        ),
        "Best depth": _best_depths(fits.best_depth, several),
        "Vocabularies and patches": (_comparison(item) for item in fits.comparisons),
        "Size laws": (_law(item) for item in fits.laws if item.kind == "size"),
        "Seeds": (*_spreads(fits.repeated), *_notes(fits)),
    }
    found = (Findings(subject=name, sentences=tuple(group)) for name, group in groups.items())
    return tuple(group for group in found if group.sentences)


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


def _crossing(item: Crossing, several: bool) -> str:
    shallow, deep = item.shallow.depth, item.deep.depth
    what = _with(item.shallow, several)
    sizes = f"{short_size(item.range[0])} to {short_size(item.range[1])} block parameters"
    if item.size is not None and item.width is not None:
        is_deeper = item.verdict == "deeper wins above"
        first, second = (deep, shallow) if is_deeper else (shallow, deep)
        times = f"; crossing {item.number} of {item.times}" if item.times > 1 else ""
        size = _between(item.low, item.high, short_size)
        width = _between(item.width_low, item.width_high, lambda width: f"{width:.0f}")
        return (
            f"Depth {first} overtakes depth {second}{what} at {short_size(item.size)} block "
            f"parameters (90 %: {size}), where the shallow width is {item.width:.0f} ({width})"
            f"{times}; {_seeds(item.seeds)}."
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


def _between(low: float | None, high: float | None, shown: Callable[[float], str]) -> str:
    if low is None and high is None:
        return "beyond the range on both sides"
    if low is None:
        return f"up to {shown(high or 0)}, below it the range ends"
    if high is None:
        return f"from {shown(low)}, above it the range ends"
    return f"{shown(low)} to {shown(high)}"


def _redundancy(item: Redundancy) -> str:
    names = " and ".join(item.bottleneck)
    what = f"a rank of {item.ratio:.3g} of the width ({names})"
    if item.kind == "attention":
        what = f"an attention {item.ratio:.3g} times as wide as the stream"
    cell = f"depth {item.family.depth}, width {item.cell.architecture.width}"
    flag = "; the baseline is itself limited by its vocabulary" if item.baseline_is_limited else ""
    if item.value is None and item.low is not None and item.low <= 0:
        found = "of unknown redundancy: no baseline is as bad, and none that is smaller is better"
    elif item.value is None and item.low is not None:
        found = f"at least {item.low:.1%} redundant; no baseline is as bad"
    elif item.value is None and item.high is not None:
        found = f"at most {item.high:.1%} redundant; no baseline is as good"
    elif item.value is None:
        found = "of unknown redundancy: the baseline's sizes end before"
    else:
        found = f"{item.value:.1%} redundant (90 %: {_shares(item.low, item.high)})"
    return f"With {what}, {cell} is {found}; {_seeds(item.seeds)}{flag}."


def _shares(low: float | None, high: float | None) -> str:
    return _between(low, high, lambda share: f"{share:.1%}")


def _contrast(item: Contrast) -> str:
    first, second = item.first.factorised[0], item.second.factorised[0]
    numbers = f"{item.difference:+.4f} nats (90 %: {item.low:+.4f} to {item.high:+.4f})"
    where = f"rank {item.rank} at depth {item.first.depth}, width {item.width}"
    if not item.is_settled:
        return (
            f"Whether the {first} or the {second} suffers more from {where} is undecided: "
            f"{numbers}; {_settle(item.seeds_needed, item.seeds)}."
        )
    worse, better = (first, second) if item.difference > 0 else (second, first)
    return (
        f"The limit hurts more on the {worse} than on the {better} ({where}): {first} less "
        f"{second} {numbers}; {_seeds(item.seeds)}."
    )


def _costs(contrasts: Iterable[Contrast]) -> Iterable[str]:
    """What each limited table costs against full ones, the tightest limit first."""
    shapes: dict[tuple[FamilyKey, int, tuple[str, ...]], list[Contrast]] = defaultdict(list)
    for item in contrasts:
        if item.kind == "cost":
            shapes[item.second, item.width, item.first.factorised].append(item)
    for (key, width, names), items in shapes.items():
        costs = "; ".join(
            f"rank {item.rank} costs {item.difference:+.4f} ({item.low:+.4f} to {item.high:+.4f})"
            for item in items
        )
        yield (
            f"Against {_unlimited(key)} tables, depth {key.depth}, width {width}, "
            f"{' and '.join(names)}: {costs} nats a token (90 %); "
            f"{_seeds(min(item.seeds for item in items))}."
        )


def _unlimited(key: FamilyKey) -> str:
    """Full tables, or products of matrices that are as good as those."""
    return "factorised but unlimited" if key.factorised else "full"


def _comparison(item: Comparison) -> str:
    best, *others = item.standings
    parts = [
        f"{_reading(standing.cell)} {standing.difference:+.4f} "
        f"({standing.low:+.4f} to {standing.high:+.4f}"
        + (
            ""
            if standing.is_settled
            else f"; undecided among {len(item.standings)}: "
            + _settle(standing.seeds_needed, standing.seeds)
        )
        + ")"
        for standing in others
    ]
    patched = any(s.cell.architecture.input.tokens_per_position > 1 for s in item.standings)
    caution = "; tokens of a patch are predicted at once" if patched else ""
    return (
        f"Of networks of about {short_size(item.params)} parameters {_reading(best.cell)} is best "
        f"with {best.bits_per_byte:.4f} bits a byte; {', '.join(parts)}; "
        f"{_seeds(min(standing.seeds for standing in item.standings))}{caution}."
    )


def _reading(cell: Cell) -> str:
    """A network by what it reads and how deep it is."""
    shape = cell.architecture
    patch = shape.input.tokens_per_position
    tokens = f"vocabulary {shape.input.vocab:,}" + (f" in patches of {patch}" if patch > 1 else "")
    return f"depth {shape.depth} with {tokens}"


def _spreads(cells: Sequence[Cell]) -> Iterable[str]:
    """The standard deviation of each cell of many seeds."""
    if not cells:
        return
    spreads = "; ".join(
        f"{_named(cell)} {math.sqrt(cell.squares / (cell.seeds - 1)):.2e} ({_seeds(cell.seeds)})"
        for cell in cells
    )
    yield f"Standard deviation over seeds by cell, nats a token: {spreads}."


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
            yield (
                f"Positions of rank {least.rank} are within 2 standard deviations of "
                f"{_unlimited(key)} ones (depth {key.depth}, width {width}): "
                f"{least.difference:+.4f} nats (90 %: {least.low:+.4f} to {least.high:+.4f}); "
                f"{_seeds(least.seeds)}."
            )


def _best_depths(found: Sequence[BestDepth], several: bool) -> Iterable[str]:
    questions: dict[FamilyKey, list[BestDepth]] = defaultdict(list)
    for item in found:
        questions[replace(item.family, depth=1)].append(item)
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
    numbers = ", ".join(_parameter(parameter) for parameter in item.parameters)
    numbers = numbers or "with E and A above zero is not near the losses"
    of = f"depth {item.family.depth}{_with(item.family, False)}"
    name = "Transition law" if item.kind == "transition" else f"Size law of {of}"
    rivals = ""
    if item.rivals:
        best, *rest = item.rivals
        others = ", ".join(f"{rival.form} {rival.held_out_error:.2g}" for rival in rest)
        rivals = f"; by held-out error {best.form} is best ({best.held_out_error:.2g}; {others})"
    points = f"{item.points} {'crossings' if item.kind == 'transition' else 'sizes'}"
    warning = ""
    if item.kind == "transition" and item.parameters[0].low is None:
        warning = "; an interval needs 3 crossings"
    if item.inflation > 1:
        warning += f"; points scatter {math.sqrt(item.inflation):.1f} times more than seeds explain"
    return f"{name}: {item.form}, {numbers}; {points}, {_seeds(item.seeds)}{warning}{rivals}."


def _parameter(item: Parameter) -> str:
    if item.low is None and item.high is None:
        return f"{item.name} = {item.value:.4g}"
    ends = _between(item.low, item.high, lambda value: f"{value:.4g}")
    return f"{item.name} = {item.value:.4g} (90 %: {ends})"


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
    misfits = [item for item in fits.crossings if item.inflation > 1]
    if misfits:
        yield (
            f"In {len(misfits)} of {len(fits.crossings)} comparisons of depths a curve misses its "
            "cells by more than seeds explain; their intervals are wider for it."
        )


def _named(cell: Cell) -> str:
    shape, words = cell.architecture, key_of(cell).words
    return f"depth {shape.depth}, width {shape.width}{f' ({words})' if words else ''}"


def _noise(noise: Noise) -> str:
    runs = sum(cell.seeds for cell in noise.cells)
    of = (
        f"{_counted(runs, 'run')} of {_counted(len(noise.cells), 'cell')} on data "
        f"{noise.data_hash[:8]}"
    )
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
