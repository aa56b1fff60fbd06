"""Recompute everything that is said about the shipped records: python docs/evidence/write.py.

Writes the conclusions that plans and audits read, the tables of docs/evidence.md, and the figures
beside this file. `make evidence` calls it.
"""

import json
from pathlib import Path

from archfit.evidence.tables import cost_table, finding_table

from archfit.evidence.document import CONCLUSIONS, document_of
from archfit.evidence.findings import all_findings
from archfit.evidence.records import read_evidence

DOCS = Path(__file__).parents[1]
PACKED = DOCS.parent / "src" / "archfit" / "resources" / "evidence"


def main() -> None:
    """Conclusions, tables, figures."""
    evidence = read_evidence()
    findings = all_findings(evidence)
    document = document_of(evidence, findings)
    (PACKED / CONCLUSIONS).write_text(json.dumps(document, indent=1) + "\n")
    page = DOCS / "evidence.md"
    text = page.read_text()
    for name, table in (
        ("findings", finding_table(findings)),
        ("sweeps", cost_table(evidence)),
    ):
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, after = rest.partition(f"<!-- end of {name} -->")
        text = f"{before}<!-- {name} -->\n{table}<!-- end of {name} -->{after}"
    page.write_text(text)


if __name__ == "__main__":
    main()
