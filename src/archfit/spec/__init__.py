"""What an architecture, a run and a record are: frozen values, their checks, their JSON, their hash."""
