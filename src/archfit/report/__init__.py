"""Charts and pages, from theory, records, fits, plans and audits."""
