"""Kills, disk faults, races, mutated files and hostile requests, drawn from one seed."""
