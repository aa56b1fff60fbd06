"""Recompute everything that is said about the shipped records: python docs/evidence/write.py.

Writes the conclusions that plans and audits read, the tables of docs/evidence.md, and the figures
beside this file. `make evidence` calls it.
"""

import json
from pathlib import Path

from archfit.evidence.evidence_json import CONCLUSIONS, all_findings, evidence_json
from archfit.evidence.evidence_page import written_page
from archfit.evidence.records import Evidence, read_evidence
from archfit.report.charts.sweep import sweep_figures
from archfit.report.page import save_figure

HERE = Path(__file__).parent
PAGE = HERE.parent / "evidence.md"
PACKED = HERE.parents[1] / "src" / "archfit" / "resources" / "evidence"
FIGURES = {  # of each sweep the one that answers its question; a pair is drawn together
    "wies-rank": ("redundancy", ("wies-rank", "input-or-output-rank")),
    "input-or-output-rank": ("input-and-output-rank", ("input-or-output-rank",)),
    "levine-depth": ("loss-against-size", ("levine-depth",)),
    "wies-vocab": ("loss-against-size", ("wies-vocab",)),
    "wies-lowrank": ("loss-against-size", ("wies-lowrank",)),
    "wies-attention": ("redundancy", ("wies-attention",)),
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
    findings = all_findings(evidence)
    document = evidence_json(evidence, findings)
    (PACKED / CONCLUSIONS).write_text(json.dumps(document, indent=1) + "\n")
    PAGE.write_text(written_page(PAGE.read_text(), evidence, findings))
    for name, (figure, sweeps) in FIGURES.items():
        _draw(evidence, sweeps, figure, HERE / f"{name}.svg")


def _draw(evidence: Evidence, sweeps: tuple[str, ...], name: str, file: Path) -> None:
    labels = {data.hash: data.label for data in evidence.manifest.data}
    figures = sweep_figures(evidence.fits(*sweeps), labels)
    (figure,) = (figure for figure in figures if figure.name == name)
    save_figure(figure, file)


if __name__ == "__main__":
    main()
