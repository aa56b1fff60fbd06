"""The explorer: pages and an API for plans, bounds and audits, served on this machine."""
