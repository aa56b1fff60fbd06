"""What a format is, and what an export in it holds."""

from collections.abc import Callable
from dataclasses import dataclass

from archfit.export.shape import ExportShape


@dataclass(frozen=True, kw_only=True, slots=True)
class Params:
    """What the tool will build, every weight, bias and scale counted."""

    blocks: int  # blocks and the last norm: all that is not a table
    embedding: int  # tokens, positions, head, and what projects them to the width

    @property
    def total(self) -> int:
        """All parameters."""
        return self.blocks + self.embedding

    def as_json(self) -> dict[str, int]:
        """The three numbers."""
        return {"blocks": self.blocks, "embedding": self.embedding, "total": self.total}


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """How one tool writes down a network."""

    name: str
    obstacles: Callable[[ExportShape], tuple[str, ...]]  # why it cannot express a shape
    params: Callable[[ExportShape], Params]
    files: Callable[[ExportShape], dict[str, str]]  # their content by name
    notes: Callable[[ExportShape], tuple[str, ...]]  # what differs from the network asked for


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """The content of the files, what the tool will build of them, and what to know."""

    format: str
    files: dict[str, str]
    params: Params
    notes: tuple[str, ...]
