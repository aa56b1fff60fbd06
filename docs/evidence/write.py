"""Recompute everything that is said about the shipped records: python docs/evidence/write.py.

Writes the conclusions that plans and audits read, the tables of docs/evidence.md, and the figures
beside this file; those of sweeps of one seed are drawn by docs/papers/write.py. `make evidence`
calls both.
"""

import json
from pathlib import Path

from archfit.fit.evidence import evidence_fits, evidence_records, read_evidence
from archfit.fit.evidence_points import CONCLUSIONS
from archfit.fit.paper_findings import all_findings
from archfit.report.charts.sweep import sweep_figures
from archfit.report.evidence_document import evidence_json, written_page
from archfit.report.page import save_figure

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


if __name__ == "__main__":
    main()
