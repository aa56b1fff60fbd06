"""Audits under their former names, until every room has moved to `auditor`."""

from archfit.audit.auditor import AuditResult as Audited
from archfit.audit.auditor import audit_json
from archfit.audit.auditor import audit_model as audited

__all__ = ["Audited", "audit_json", "audited"]
