"""What was found, in sentences; their words are in `resources/fit_sentences.toml`."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult, FamilyKey, grouped
from archfit.fit.comparisons import CellDifference, Ranking
from archfit.fit.depths import BestDepth, Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import LEAST_DEGREES, Noise
from archfit.spec.estimate import Estimate
from archfit.spec.packed import packed_table
from archfit.spec.sizes import short_size

SENTENCES = "fit_sentences.toml"
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
    spreads = [f"{_named(c)} {c.std:.2e} ({_counted(c.seeds)})" for c in fits.repeated]
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
        "Seeds": (
            *([_say("spreads", spreads="; ".join(spreads))] if spreads else []),
            *map(_noise, fits.noise),
            *_notes(fits),
        ),
    }
    found = {name: tuple(sentences) for name, sentences in groups.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def _say(sentence: str, item: Any = None, **words: object) -> str:
    """The sentence of this name; `words` fill its braces, and may be more than it needs.

    Of an item also its seeds are said, and how many would settle what is undecided.
    """
    sentences: dict[str, str] = packed_table(SENTENCES)
    seeds, needed = getattr(item, "seeds", 0), getattr(item, "seeds_needed", None)
    settle = sentences["settle-never" if needed is None else "settle"]
    words |= {"settle": settle.format(needed=max(needed or 0, seeds + 1))}
    return sentences[sentence].format(**{"item": item, "seeds": _counted(seeds), **words})


def _counted(count: int, noun: str = "seed") -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


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


def _crossing(item: Crossing, several: bool) -> str:
    smallest, largest = (short_size(size) for size in item.range)
    depths = item.shallow.depth, item.deep.depth
    first, second = reversed(depths) if item.verdict.startswith("deeper") else depths
    edge = smallest if item.beyond == "below" else largest
    sentence = "undecided-crossing" if item.verdict == "undecided" else "no-crossing"
    return _say(
        sentence if item.size.value is None else "crossing",
        item,
        first=first,
        second=second,
        what=_with(item.shallow, several),
        sizes=f"{smallest} to {largest} block parameters",
        size=short_size(item.size.value or 0),
        ends=_ends(item.size, short_size),
        width=_ends(item.width, "{:.0f}".format),
        times=_say("times", item) if item.times > 1 else "",
        beyond=_say("beyond", item, edge=edge) if item.beyond else "",
    )


def _redundancy(item: MeasuredRedundancy) -> str:
    share, outcome = item.estimate.rising(lambda part: 100 * part), str(item.outcome)
    if outcome == "at least" and not share.is_above(0):
        outcome = "at least nothing"
    what = _say(item.kind, item, tables=" and ".join(item.bottleneck))
    found = _say(outcome, share=share, ends=_ends(share, "{:.1f} %".format))
    flag = _say("limited-baseline") if item.baseline_is_limited else ""
    return _say("redundancy", item, what=what, found=found, flag=flag)


def _side(item: CellDifference) -> str:
    """On which of two tables the same rank hurts more."""
    first, second = item.first.key.factorised[0], item.second.key.factorised[0]
    tables = (first, second) if item.estimate.is_above(0) else (second, first)
    words = {"first": first, "second": second, "worse": tables[0], "better": tables[1]}
    words |= {"numbers": _say("nats", item), "where": _say("side-where", item)}
    return _say("side" if item.is_settled else "undecided-side", item, **words)


def _costs(costs: Iterable[CellDifference]) -> Iterable[str]:
    """What each limited table costs against full ones, the tightest limit first."""
    shapes = grouped(
        costs, lambda c: (c.second.key, c.second.architecture.width, c.first.key.factorised)
    )
    for (key, width, tables), items in shapes.items():
        told = "; ".join(_say("cost", item) for item in items)
        fewest = min(items, key=lambda item: item.seeds)
        words = {"tables": " and ".join(tables), "unlimited": _unlimited(key), "costs": told}
        yield _say("costs", fewest, depth=key.depth, width=width, **words)


def _unlimited(key: FamilyKey) -> str:
    """Full tables, or products of matrices that are as good as those."""
    return "factorised but unlimited" if key.factorised else "full"


def _positions(costs: Iterable[CellDifference]) -> Iterable[str]:
    """The least rank of positions that is as good as full."""
    least: dict[tuple[FamilyKey, int], CellDifference] = {}
    for item in sorted(costs, key=lambda item: item.first.rank):
        if item.first.key.factorised == ("positions",) and item.stds <= WITHIN:
            least.setdefault((item.second.key, item.second.architecture.width), item)
    for (key, _), item in least.items():
        words = {"unlimited": _unlimited(key), "numbers": _say("nats", item)}
        yield _say("positions", item, **words)


def _ranking(item: Ranking) -> str:
    def against_best(result: CellDifference) -> str:
        undecided = _say("undecided-ranking", result, count=len(item.results))
        more = "" if result.is_settled else undecided
        return _say("against-best", result, reading=_reading(result.first), undecided=more)

    is_patched = any(r.first.architecture.input.tokens_per_position > 1 for r in item.results)
    return _say(
        "ranking",
        item,
        size=short_size(item.best.architecture.params),
        best=_reading(item.best),
        others=", ".join(map(against_best, item.results[1:])),
        seeds=_counted(min(result.seeds for result in item.results)),
        patched=_say("patched") if is_patched else "",
    )


def _reading(cell: CellResult) -> str:
    """A network by what it reads and how deep it is."""
    shape = cell.architecture
    patch = shape.input.tokens_per_position
    tokens = f"vocabulary {shape.input.vocab:,}" + (f" in patches of {patch}" if patch > 1 else "")
    return f"depth {shape.depth} with {tokens}"


def _best_depths(found: Sequence[BestDepth], several: bool) -> Iterable[str]:
    for key, items in grouped(found, lambda item: item.family.any_depth).items():
        parts = [
            f"{item.family.depth} at {short_size(item.size)}"
            + (_say("tied", ties=", ".join(map(str, item.ties))) if item.ties else "")
            for item in items
        ]
        every = map(str, sorted({depth for item in items for depth in item.depths}))
        words = {"depths": ", ".join(every), "what": _with(key, several)}
        yield _say("best-depths", parts="; ".join(parts), **words)


def _law(item: Law) -> str:
    is_size, forms = item.kind == "size", ""
    if item.forms:
        best, *rest = item.forms
        others = ", ".join(f"{other.form} {other.held_out_error:.2g}" for other in rest)
        forms = _say("law-forms", best=best, others=others)
    numbers = []
    for parameter, found in item.parameters.items():
        is_open = found.low is None and found.high is None
        ends = "" if is_open else f" (90 %: {_ends(found, '{:.4g}'.format)})"
        numbers.append(f"{parameter} = {found.value:.4g}{ends}")
    name = _say("size-law", item, what=_with(item.family, False))
    times = math.sqrt(item.inflation)
    return _say(
        "law",
        item,
        name=name if is_size else "Transition law",
        numbers=", ".join(numbers) or _say("no-law"),
        points="sizes" if is_size else "crossings",
        warning="" if is_size or item.parameters["a"].is_bounded else _say("law-needs"),
        scatter=_say("law-scatter", times=times) if item.inflation > 1 else "",
        forms=forms,
    )


def _named(cell: CellResult) -> str:
    shape, words = cell.architecture, cell.key.words
    return f"depth {shape.depth}, width {shape.width}{f' ({words})' if words else ''}"


def _notes(fits: Fits) -> Iterable[str]:
    if fits.tunings:
        yield _say("tunings", shapes=_counted(len(fits.tunings), "shape"))
    if fits.diverged:
        yield _say("diverged", runs=_counted(fits.diverged, "diverged run"))
    if len(fits.numerics) > 1:
        yield _say("numerics", versions=" and ".join(map(str, fits.numerics)))
    misfits = sum(item.inflation > 1 for item in fits.crossings)
    if misfits:
        yield _say("misfits", count=misfits, all=len(fits.crossings))
    if not fits.is_one_source:
        yield _say("sources", names=", ".join(name[:8] for name in sorted(fits.data_hashes)))


def _noise(noise: Noise) -> str:
    runs = _counted(sum(cell.seeds for cell in noise.cells), "run")
    runs = f"{runs} of {_counted(len(noise.cells), 'cell')} on data {noise.data_hash[:8]}"
    if noise.usual.degrees < LEAST_DEGREES:
        times = _counted(noise.usual.degrees, "time")
        return _say("noise-few", runs=runs, times=times, least=LEAST_DEGREES)
    if not noise.is_enough:
        return _say("noise-none", runs=runs)
    noisy = ", ".join(map(_named, noise.noisy.cells))
    uneven = _say("noise-uneven", noise=noise, cells=noisy) if noisy else ""
    return _say("noise", noise=noise, runs=runs, uneven=uneven)
