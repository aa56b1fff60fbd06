"""The reader of JSON under its former name, until every room imports it from `spec`."""

from archfit.spec.bounded_json import parse_object

__all__ = ["parse_object"]
