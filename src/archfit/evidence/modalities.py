"""Question 7: other data. Does depth beat a text-shaped network, and do repairs beat depth?"""

import math
from collections.abc import Sequence

from archfit.evidence.measures import EvidenceFinding, Measure, Verdict, claim_table, finding
from archfit.evidence.records import Evidence
from archfit.fit.cells import CellResult, cells_of
from archfit.fit.comparisons import CellDifference, differences

TEXT = (4, 128)  # depth and width of the text-shaped network


def modality_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """Two for each kind of data, and one of them trained once more."""
    found = []
    for kind, words in claim_table()["kinds"].items():
        found += [_depth(evidence, kind, **words), _repairs(evidence, kind, words["data"])]
    # One of them was trained once more from nothing by the same command.
    first, again = (_against_text(evidence, name) for name in ("repairs-dna", "again-dna"))
    stated = {measure.what: measure.estimate for measure in first}
    inside = [stated[measure.what].contains(measure.estimate.value or 0) for measure in again]
    verdict: Verdict = "confirmed" if all(inside) else "undecided" if any(inside) else "refuted"
    return (*found, finding("again", again, verdict, inside=sum(inside), all=len(inside)))


def _depth(evidence: Evidence, kind: str, *, data: str, tokens: int) -> EvidenceFinding:
    measures = {
        int(measure.what.split()[0]): measure
        for measure in _against_text(evidence, f"repairs-{kind}")
        if "layers" in measure.what
    }
    wanted = TEXT[0] * (TEXT[1] / tokens) ** 2  # layers of a width of V in the same blocks
    nearest = min(measures, key=lambda depth: abs(math.log(depth / wanted)))
    return finding(
        "depth-of-data", measures.values(), _better([measures[nearest]]), id_=f"depth-{kind}",
        kind=kind, data=data, tokens=tokens, wanted=wanted, nearest=nearest,
    )  # fmt: skip


def _repairs(evidence: Evidence, kind: str, data: str) -> EvidenceFinding:
    cells = cells_of(evidence.records(f"repairs-{kind}"))
    plain = [cell for cell in cells if _is_plain(cell, cells)]
    best = min(plain, key=lambda cell: cell.bits_per_byte)
    others = [cell for cell in cells if cell not in plain]
    among = len(others) * len(plain)  # the best of the depths is also the luckiest
    measures = _measures(differences(best, others, pooled=cells, among=among), cells)
    return finding(
        "repairs-of-data", measures, _better(measures), id_=f"repairs-{kind}", kind=kind, data=data,
        best=best.architecture.depth,
    )  # fmt: skip


def _better(measures: Sequence[Measure]) -> Verdict:
    """Confirmed where one is better beyond doubt, refuted where all are worse."""
    if any(measure.estimate.is_below(0) for measure in measures):
        return "confirmed"
    is_worse = all(measure.estimate.is_above(0) for measure in measures)
    return "refuted" if is_worse else "undecided"


def _against_text(evidence: Evidence, sweep: str) -> list[Measure]:
    cells = cells_of(evidence.records(sweep))
    plain = [cell for cell in cells if _is_plain(cell, cells)]
    (text,) = (c for c in plain if (c.architecture.depth, c.architecture.width) == TEXT)
    others = [cell for cell in cells if cell is not text]
    return _measures(differences(text, others, pooled=cells, among=len(others)), cells)


def _measures(found: Sequence[CellDifference], cells: Sequence[CellResult]) -> list[Measure]:
    named = {_named(item.first, cells): item for item in found}
    return [
        Measure(what=name, estimate=item.estimate, unit="bits a byte", seeds=item.seeds)
        for name, item in sorted(named.items(), key=lambda pair: pair[0])
    ]


def _named(cell: CellResult, cells: Sequence[CellResult]) -> str:
    shape = cell.architecture
    if shape.input.tokens_per_position > 1:
        return f"patches of {shape.input.tokens_per_position}"
    if not _is_plain(cell, cells):
        return f"vocabulary of {shape.input.vocab}"
    return f"{shape.depth} layers"


def _is_plain(cell: CellResult, cells: Sequence[CellResult]) -> bool:
    """Whether it reads the data as they are, token by token."""
    fewest = min(other.architecture.input.vocab for other in cells)
    read = cell.architecture.input
    return read.tokens_per_position == 1 and read.vocab == fewest
