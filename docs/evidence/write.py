"""Recompute everything that is said about the shipped records: python docs/evidence/write.py.

Writes the conclusions that plans and audits read, the tables of docs/evidence.md, and the figures
beside this file; those of sweeps of one seed are drawn by docs/papers/write.py. `make evidence`
calls both.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from archfit.fit.evidence import (
    Evidence,
    EvidenceFinding,
    evidence_fits,
    evidence_records,
    read_evidence,
)
from archfit.fit.evidence_points import CONCLUSIONS
from archfit.fit.paper_findings import all_findings
from archfit.report.charts.sweep import sweep_figures
from archfit.report.page import save_figure
from archfit.report.papers_document import assumed, evidence_json, sweep_json

HERE = Path(__file__).parent
PAGE = HERE.parent / "evidence.md"
PACKED = HERE.parents[1] / "src" / "archfit" / "resources"
FIGURES = {  # of each sweep the one that answers its question; a pair is drawn together
    "wies-rank": ("redundancy", ("wies-rank", "input-or-output-rank")),
    "input-or-output-rank": ("input-and-output-rank", ("input-or-output-rank",)),
    "levine-depth": ("loss-against-size", ("levine-depth",)),
    "wies-vocab": ("loss-against-size", ("wies-vocab",)),
    "wies-lowrank": ("loss-against-size", ("wies-lowrank",)),
    "wies-attention": ("redundancy", ("wies-attention",)),
    "wide-attention": ("redundancy", ("wide-attention",)),
    "fair-depth": ("loss-against-size", ("fair-depth", "fair-depth-third")),
    "wies-positions": ("position-ranks", ("wies-positions",)),
    "depth-rates": ("loss-against-size", ("depth-rates",)),
    "depth-lengths": ("loss-against-size", ("depth-lengths",)),
    "repairs-dna": ("bits-per-byte", ("repairs-dna",)),
    "repairs-proteins": ("bits-per-byte", ("repairs-proteins",)),
    "repairs-mnist": ("bits-per-byte", ("repairs-mnist",)),
    "repairs-music": ("bits-per-byte", ("repairs-music",)),
}


def main() -> None:
    """Conclusions, tables, figures."""
    evidence = read_evidence()
    findings = all_findings()
    document = evidence_json(evidence, findings)
    (PACKED / CONCLUSIONS).write_text(json.dumps(document, indent=1) + "\n")
    PAGE.write_text(written_page(PAGE.read_text(), evidence, findings))
    for name, (figure, sweeps) in FIGURES.items():
        if not evidence_records(name):
            continue  # of some sweeps only the command is known yet
        figures = sweep_figures(evidence_fits(*sweeps), evidence.labels)
        save_figure(next(each for each in figures if each.name == figure), HERE / f"{name}.svg")


def written_page(text: str, evidence: Evidence, findings: Iterable[EvidenceFinding]) -> str:
    """The page with its tables between their marks, whatever stood there."""
    prepared = dict.fromkeys(command for sweep in evidence.shipped for command in sweep.prepare)
    commands = (*prepared, *(sweep.command for sweep in evidence.shipped))
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
    minutes = {sweep.name: sweep.wall_seconds / 60 for sweep in evidence.sweeps}
    rows = [
        (
            f"{finding.question}",
            f"**{finding.asks}** (`{finding.id}`)",
            finding.paper or "-",
            "<br>".join(f"{measure.what}: {measure}" for measure in finding.measures),
            "<br>".join([f"**{finding.verdict}**: {finding.because}", *assumed(finding)]),
            f"[figure](evidence/{finding.sweeps[0]}.svg)",
            "<br>".join(f"`{sweep}`, {minutes[sweep]:.1f} min" for sweep in finding.sweeps),
        )
        for finding in findings
    ]
    return _table(("", "question", "paper", "ours, 90 %", "verdict", "", "sweep"), rows)


def _sweep_table(evidence: Evidence) -> str:
    """One row a sweep: what it took."""
    head = ("sweep", "runs", "minutes", "sum of trainings", "ratio", "workers")
    rows = [
        (
            f"`{row['name']}`",
            f"{row['trained']}",
            f"{row['wall_seconds'] / 60:.1f}",
            f"{row['training_seconds'] / 60:.1f}",
            f"{row['overhead']:.2f}",
            f"{row['workers']}, {'alone' if row['sweeps_at_once'] == 1 else 'beside another'}",
            f"{row['tokens'] / 1e9:.2f}",
            f"{row['tokens_per_second'] / 1e6:.2f}",
            "-" if row["utilisation"] is None else f"{row['utilisation']:.1%}",
            row["note"],
        )
        for row in (sweep_json(evidence, sweep) for sweep in evidence.shipped)
    ]
    return _table((*head, "tokens, billion", "million a second", "of the peak", ""), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


if __name__ == "__main__":
    main()
