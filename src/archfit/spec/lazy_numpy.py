"""numpy, loaded when something of it is first used: a command that needs none starts at once.

Where types need it: `if TYPE_CHECKING: import numpy as np`, and this module in the `else`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """What numpy has under this name, kept here so that it is looked up once."""
    import numpy

    found = getattr(numpy, name)
    globals()[name] = found
    return found
