"""What an architecture, a run and a record are: frozen values with checks, JSON and hash."""
