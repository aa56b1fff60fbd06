"""The files of a run under a former name; import them from `files`."""

from archfit.spec.files import (
    CHECKPOINTS,
    LOCK,
    LOG,
    RECORD,
    SPEC,
    discard_checkpoints,
    is_done,
    is_held,
    read_record,
    read_records,
)
from archfit.spec.files import LARGEST_RECORD as LARGEST_JSON

__all__ = [
    "CHECKPOINTS",
    "LARGEST_JSON",
    "LOCK",
    "LOG",
    "RECORD",
    "SPEC",
    "discard_checkpoints",
    "is_done",
    "is_held",
    "read_record",
    "read_records",
]
