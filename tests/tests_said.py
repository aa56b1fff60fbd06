"""What a command said, as tests of several commands look at it."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """How the program ended and what it said."""

    status: object
    out: str
    err: str

    def refusal(self) -> str:
        """Its one sentence."""
        assert (self.status, self.out) == (2, "")
        assert self.err.count("\n") == 1, self.err
        return self.err

    def document(self) -> dict[str, object]:
        """Its JSON."""
        assert (self.status, self.err) == (0, "")
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document
