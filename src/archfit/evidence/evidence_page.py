"""The tables of docs/evidence.md, as Markdown."""

from collections.abc import Iterable

from archfit.evidence.evidence_json import cost_of
from archfit.evidence.measures import EvidenceFinding
from archfit.evidence.records import Evidence

FOLDER = "evidence"  # of figures and sweep files, beside the page


def written_page(text: str, evidence: Evidence, findings: Iterable[EvidenceFinding]) -> str:
    """The page with its tables between their marks, whatever stood there."""
    sweeps = evidence.manifest.sweeps
    prepared = dict.fromkeys(command for sweep in sweeps for command in sweep.prepare)
    commands = (*prepared, *(sweep.command for sweep in sweeps))
    parts = {
        "findings": _finding_table(evidence, findings),
        "sweeps": _sweep_table(evidence),
        "commands": "".join(f"    {command}\n" for command in commands),
    }
    for name, part in parts.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"the page has no place for its {name}; put {start.strip()} into it")
        text = f"{before}{start}\n{part}{end}{after}"
    return text


def _finding_table(evidence: Evidence, findings: Iterable[EvidenceFinding]) -> str:
    """One row a finding."""
    minutes = {sweep.name: sweep.wall_seconds / 60 for sweep in evidence.manifest.sweeps}
    rows = [
        (
            f"{finding.question}",
            f"**{finding.asks}** (`{finding.id}`)",
            finding.paper or "-",
            "<br>".join(f"{measure.what}: {measure}" for measure in finding.measures),
            f"**{finding.verdict}**: {finding.because}",
            f"[figure]({FOLDER}/{finding.sweeps[0]}.svg)",
            "<br>".join(f"`{sweep}`, {minutes[sweep]:.1f} min" for sweep in finding.sweeps),
        )
        for finding in findings
    ]
    return _table(("", "question", "paper", "ours, 90 %", "verdict", "", "sweep"), rows)


def _sweep_table(evidence: Evidence) -> str:
    """One row a sweep: what it took."""
    rows = []
    for sweep in evidence.manifest.sweeps:
        cost = cost_of(evidence, sweep)
        at_once = "alone" if sweep.sweeps_at_once == 1 else "beside another"
        rows.append(
            (
                f"`{sweep.name}`",
                f"{cost.runs}",
                f"{cost.wall_seconds / 60:.1f}",
                f"{cost.training_seconds / 60:.1f}",
                f"{cost.overhead:.2f}",
                f"{sweep.workers}, {at_once}",
                f"{cost.tokens / 1e9:.2f}",
                f"{cost.tokens_per_second / 1e6:.2f}",
                "-" if cost.utilisation is None else f"{cost.utilisation:.1%}",
                sweep.note,
            )
        )
    head = ("sweep", "runs", "minutes", "sum of trainings", "ratio", "workers")
    return _table((*head, "tokens, billion", "million a second", "of the peak", ""), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
