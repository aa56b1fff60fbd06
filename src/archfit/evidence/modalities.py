"""Question 7: other data. Does depth beat a text-shaped network, and do repairs beat depth?"""

import math
from collections.abc import Sequence

from archfit.evidence.finding import Finding, Measure, Verdict, is_above, is_below
from archfit.evidence.records import Evidence
from archfit.fit.against import Difference, differences
from archfit.fit.cells import Cell, cells_of
from archfit.spec import Architecture

TEXT = (4, 128)  # depth and width of the text-shaped network
KINDS = {  # in words, and tokens that occur
    "dna": ("DNA", 5),
    "proteins": ("proteins", 24),
    "mnist": ("pixels (MNIST, 16 grey levels)", 17),
    "music": ("ABC music, bytes", 81),
}


def modality_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Two for each kind of data."""
    return tuple(
        finding for kind in KINDS for finding in (_depth(evidence, kind), _repairs(evidence, kind))
    )


def again_finding(evidence: Evidence) -> Finding:
    """One of them, trained once more from nothing by the same command."""
    first, again = (_against_text(evidence, name) for name in ("repairs-dna", "again-dna"))
    stated = {one.what: one for one in first}
    inside = [
        (stated[one.what].low or 0) <= (one.value or 0) <= (stated[one.what].high or 0)
        for one in again
    ]
    return Finding(
        id="again",
        question=7,
        asks="Does a finding come out again when its command is run once more?",
        paper="",
        measures=tuple(again),
        verdict="confirmed" if all(inside) else "undecided" if any(inside) else "refuted",
        because=f"{sum(inside)} of {len(inside)} differences of repairs-dna lie inside the "
        "intervals of the first time, which alone excluded zero for 32 layers. Equal seeds gave "
        "equal losses to the last bit for patches and others for tokens, whose gradients torch "
        "sums in any order on a GPU where few rows occur often",
        sweeps=("repairs-dna", "again-dna"),
    )


def _depth(evidence: Evidence, kind: str) -> Finding:
    name, vocab = KINDS[kind]
    sweep = f"repairs-{kind}"
    measures = {
        int(one.what.split()[0]): one
        for one in _against_text(evidence, sweep)
        if "layers" in one.what
    }
    wanted = TEXT[0] * (TEXT[1] / vocab) ** 2  # layers of a width of V in the same blocks
    nearest = min(measures, key=lambda depth: abs(math.log(depth / wanted)))
    return Finding(
        id=f"depth-{kind}",
        question=7,
        asks=f"{name}: do deeper networks beat a text-shaped one of equal size?",
        paper=f"Wies et al. 2021 (theory): where {vocab} tokens occur, width beyond {vocab} gives "
        f"nothing, depth does; at this size {wanted:,.0f} layers of that width",
        measures=tuple(measures.values()),
        verdict=_better([measures[nearest]]),
        because=f"0.8M parameters, 16M positions, bits a byte less those of 4 x 128; {nearest} "
        "layers, the nearest to what theory and planner ask for, decide the verdict",
        sweeps=(sweep,),
    )


def _repairs(evidence: Evidence, kind: str) -> Finding:
    sweep = f"repairs-{kind}"
    cells = cells_of(evidence.records(sweep))
    plain = [cell for cell in cells if _is_plain(cell, cells)]
    best = min(plain, key=lambda cell: cell.bits_per_byte)
    others = [cell for cell in cells if cell not in plain]
    among = len(others) * len(plain)  # the best of the depths is also the luckiest
    measures = _measures(differences(best, others, pooled=cells, among=among), cells)
    return Finding(
        id=f"repairs-{kind}",
        question=7,
        asks=f"{KINDS[kind][0]}: do repairs of the vocabulary beat every depth?",
        paper="Wies et al. 2021, section 6: raise the vocabulary or the rank of the input",
        measures=tuple(measures),
        verdict=_better(measures),
        because=f"bits a byte less those of the best depth ({best.architecture.depth} layers), "
        "which these runs chose; the tokens of a patch are predicted at once",
        sweeps=(sweep,),
    )


def _better(measures: Sequence[Measure]) -> Verdict:
    """Confirmed where one is better beyond doubt, refuted where all are worse."""
    if any(is_below(one, 0) for one in measures):
        return "confirmed"
    return "refuted" if all(is_above(one, 0) for one in measures) else "undecided"


def _against_text(evidence: Evidence, sweep: str) -> list[Measure]:
    cells = cells_of(evidence.records(sweep))
    (text,) = (cell for cell in cells if _is_plain(cell, cells) and _shape(cell) == TEXT)
    others = [cell for cell in cells if cell is not text]
    return _measures(differences(text, others, pooled=cells, among=len(others)), cells)


def _measures(found: Sequence[Difference], cells: Sequence[Cell]) -> list[Measure]:
    return [
        Measure(
            what=_named(one.other, cells),
            at=None,
            value=one.bits_per_byte,
            low=one.low,
            high=one.high,
            unit="bits a byte",
            seeds=one.seeds,
        )
        for one in sorted(found, key=lambda one: _named(one.other, cells))
    ]


def _named(cell: Cell, cells: Sequence[Cell]) -> str:
    shape = cell.architecture
    if shape.input.tokens_per_position > 1:
        return f"patches of {shape.input.tokens_per_position}"
    if not _is_plain(cell, cells):
        return f"vocabulary of {shape.input.vocab}"
    return f"{shape.depth} layers"


def _is_plain(cell: Cell, cells: Sequence[Cell]) -> bool:
    """Whether it reads the data as they are, token by token."""
    fewest = min(other.architecture.input.vocab for other in cells)
    read = cell.architecture.input
    return read.tokens_per_position == 1 and read.vocab == fewest


def _shape(cell: Cell) -> tuple[int, int]:
    shape: Architecture = cell.architecture
    return shape.depth, shape.width
