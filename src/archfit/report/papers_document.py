"""Every theorem, figure, table and claim of the papers: which command it is, and what we got.

The items stand in resources/papers.toml; numbers of trained networks come from the shipped
conclusions, those of formulas from `theory`. What the shipped runs say about the papers' findings
is a document, too, with its JSON and the tables of its page.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from archfit.fit import evidence as shipped
from archfit.fit.evidence_points import estimate_of, shipped_findings
from archfit.report.document import Command, Document, Section, Table, json_of, said, written
from archfit.report.fit_document import fit_json
from archfit.spec.errors import refuse_if
from archfit.spec.estimate import CONFIDENCE
from archfit.spec.packed import packed_table
from archfit.theory.catalogue import quantity

NOT_RUN = "not trained here"
SHOWN = 6  # items of a search, one line each
DIGITS = 6
SMALL_WORDS = ("a", "an", "and", "command", "for", "in", "is", "of", "on", "the", "what", "which")
HOLE = re.compile(r"\{(=?)\s*([^}]*)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperItem:
    """One or several numbered items that one command answers."""

    document: str
    items: tuple[str, ...]
    says: str
    command: str
    status: str
    ours: str
    figure: str = ""  # of docs/papers

    @property
    def name(self) -> str:
        """The items with the document that has them."""
        return f"{papers_table()['short'][self.document]}, {', '.join(self.items)}"

    @property
    def authors(self) -> str:
        """Whose document it is."""
        return str(papers_table()["documents"][self.document])

    def matches(self, words: Sequence[str], *, in_text: bool) -> bool:
        """Whether all words are in the name of one of its items, or else in what it says."""
        texts = [f"{self.document} {self.authors} {item}" for item in self.items]
        if in_text:
            texts = [f"{self.document} {self.name} {self.authors} {self.says} {self.command}"]
        return any(set(words) <= set(_words(text)) for text in texts)


def _words(text: str) -> list[str]:
    found = (word.strip(".?") for word in re.findall(r"[\w.?-]+", text.lower()))
    return [word for word in found if word not in SMALL_WORDS]


def papers_table() -> dict[str, Any]:
    """What the file says: documents, entries, and captions of the page."""
    return packed_table("papers.toml")


def paper_items() -> tuple[PaperItem, ...]:
    """All of them, in the order of the documents; numbers are not filled in yet."""
    return tuple(
        PaperItem(**entry | {"items": tuple(entry["items"])}) for entry in papers_table()["entry"]
    )


def our_number(item: PaperItem) -> str:
    """What is ours, with the numbers of formulas and findings in their places."""
    return HOLE.sub(_filled, item.ours)


def _filled(hole: re.Match[str]) -> str:
    is_formula, text = hole.groups()
    if is_formula:
        name, *inputs = text.split()
        given = dict(part.split("=") for part in inputs)
        values = {key: int(word) if word.isdigit() else word for key, word in given.items()}
        name, _, part = name.partition(".")  # of several, the one that is named
        value = quantity(name, **values).value
        return _short(str(value[part] if isinstance(value, dict) else value))
    id_, _, what = text.partition("/")
    finding = shipped_findings().get(id_)
    if finding is None:
        return NOT_RUN
    if not what:
        return str(finding["verdict"])
    (found,) = (one for one in finding["measures"] if one["what"] == what)
    known = {"unit": found["unit"], "seeds": found["seeds"]}
    return str(shipped.Measure(what=what, estimate=estimate_of(found), **known))


def _short(number: str) -> str:
    """An integer as it is while people can read it; other numbers to a few digits."""
    if number.isdigit() and len(number) <= 2 * DIGITS:
        return number
    return f"{float(number):.{DIGITS}g}"


def papers_document(words: Sequence[str] = ()) -> Document:
    """The items that these words name; without words how many there are."""
    asked, every = _words(" ".join(words)), paper_items()
    found = [item for item in every if item.matches(asked, in_text=False)]
    found = found or [item for item in every if item.matches(asked, in_text=True)]
    refuse_if(not found, "papers-nothing", words=repr(" ".join(words)))
    is_why = not asked or len(found) > 1
    short, shown = papers_table()["short"], found[: SHOWN * is_why]
    brief, table = Section(), Table.of("papers-found", shown, short=lambda one: short[one.document])
    headline = said("papers.one", found[0])
    if not asked:
        counts = Counter(item.document for item in every)
        documents = {title: counts[key] for key, title in papers_table()["documents"].items()}
        statuses = Counter(item.status for item in every).most_common()
        headline = said("papers.all", len(every), [f"{count} {word}" for word, count in statuses])
        brief = Section.of(*papers_table()["about"])
        table = Table.of("papers", documents.items())
    elif is_why:
        headline = said("papers.first" if len(found) > SHOWN else "papers.few", len(found), SHOWN)
    sections = (
        Section.of(
            f"{item.authors}: {item.says}",
            Command(item.command),
            f"ours: {our_number(item)}",
            title=item.name,
            is_why=is_why,
        )
        for item in found
    )
    return Document(
        title="The papers, item by item",
        headline=headline,
        sections=(Section.of(table), brief, *sections),
        data={"items": [json_of("paper-item", one, ours=our_number(one)) for one in found]},
    )


def evidence_document(
    evidence: shipped.Evidence, findings: Sequence[shipped.EvidenceFinding], *, rows: bool
) -> Document:
    """What the shipped runs say about the papers' findings; `rows`: with every fit in the JSON."""
    data = evidence_json(evidence, findings)
    counts = Counter(str(finding.verdict) for finding in findings)
    verdicts, answers = written("sentences")["verdicts"], written("sentences")["answers"]
    told = [f"{counts[verdict]} {words}" for verdict, words in verdicts.items()]
    answered = (
        f"{each.asks} {answer}"
        for verdict, answer in answers.items()
        for each in findings
        if each.verdict == verdict
    )
    return Document(
        title="What the shipped runs say about the papers' findings",
        headline=said("evidence.experiments", len(findings), told),
        sections=(Section.of(*answered), *map(_section, findings)),
        data=data | fit_rows(evidence) if rows else data,
    )


def _section(finding: shipped.EvidenceFinding) -> Section:
    """What was asked and measured, what the claim assumes, and the verdict."""
    return Section.of(
        f"Paper: {finding.paper}" if finding.paper else "",
        *(said("evidence.measure", found) for found in finding.measures),
        *assumed(finding),
        said("evidence.verdict", finding, verdict=finding.verdict.upper()),
        title=said("evidence.asks", finding),
        is_why=True,
        status=finding.verdict,
    )


def evidence_json(
    evidence: shipped.Evidence, findings: Sequence[shipped.EvidenceFinding]
) -> dict[str, object]:
    """What `archfit fit --evidence --json` prints before the rows of every sweep."""
    sweeps = [sweep_json(evidence, sweep) for sweep in evidence.shipped]
    more = {"confidence": CONFIDENCE, "findings": tuple(findings), "sweeps": sweeps}
    return json_of("evidence", evidence, **more)


def fit_rows(evidence: shipped.Evidence) -> dict[str, object]:
    """Every crossing, redundancy and law of every sweep, as `archfit fit` gives them."""
    rows: dict[str, list[object]] = {name: [] for name in ("crossings", "redundancy", "laws")}
    for sweep in (sweep for sweep in evidence.shipped if sweep.is_repeated):
        document = fit_json(shipped.evidence_fits(sweep.name))
        for name, found in rows.items():
            found += [{"sweep": sweep.name, **row} for row in document[name]]  # type: ignore[attr-defined]
    return dict(rows)


def sweep_json(evidence: shipped.Evidence, sweep: shipped.ShippedSweep) -> dict[str, Any]:
    """How a sweep was made and, from the timings in its records, what it took."""
    records, trained = shipped.evidence_records(sweep.name), sweep.trained()
    timings = [record.timing for record in trained]
    seconds = math.fsum(timing.training_seconds for timing in timings)  # of runs, which overlap
    busy = [(t.flop_utilisation, t.training_seconds) for t in timings]
    used = [share * seconds for share, seconds in busy if share is not None]
    tokens = sum(record.spec.training_tokens for record in trained)
    machines = {
        name: ", ".join(sorted({getattr(record.machine, name) for record in records}))
        for name in ("device", "archfit", "torch")
    }
    return json_of(
        "evidence-sweep",
        sweep,
        data=sorted({evidence.labels[record.spec.data_hash] for record in records}),
        **machines,
        runs=len(records),
        trained=len(trained),
        training_seconds=seconds,
        overhead=sweep.wall_seconds / seconds,  # below 1 where runs overlap
        tokens=tokens,
        tokens_per_second=tokens / sweep.wall_seconds,
        utilisation=math.fsum(used) / sweep.wall_seconds if used else None,  # of the GPU's peak
    )


def assumed(finding: shipped.EvidenceFinding) -> list[str]:
    """What its claim assumes, each a sentence."""
    return [f"assumes {hypothesis}" for hypothesis in finding.hypotheses]
