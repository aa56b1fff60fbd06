"""All findings, in the order of the questions."""

from archfit.evidence.attention import attention_findings
from archfit.evidence.crossings import lowrank_findings, vocabulary_findings
from archfit.evidence.depth import (
    best_depth_findings,
    law_finding,
    length_finding,
    rule_finding,
)
from archfit.evidence.finding import Finding
from archfit.evidence.modalities import again_finding, modality_findings
from archfit.evidence.positions import position_findings
from archfit.evidence.rank import rank_findings, side_finding
from archfit.evidence.records import Evidence


def all_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Recomputed from the records: a few seconds, no GPU."""
    found = (
        *rank_findings(evidence),
        *vocabulary_findings(evidence),
        *lowrank_findings(evidence),
        *attention_findings(evidence),
        *position_findings(evidence),
        *best_depth_findings(evidence),
        law_finding(evidence),
        rule_finding(evidence),
        length_finding(evidence),
        side_finding(evidence),
        *modality_findings(evidence),
        again_finding(evidence),
    )
    return tuple(sorted(found, key=lambda finding: finding.question))
