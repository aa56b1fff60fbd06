"""numpy, loaded when something of it is first used: a command that needs none starts at once.

`from archfit.spec import lazy_numpy as np` has the types of numpy, and those who write
`from __future__ import annotations` may take `NDArray` from here, too.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import *  # noqa: F403
    from numpy.typing import NDArray as NDArray
else:
    NDArray = Any  # stands in annotations alone, which nobody evaluates

    def __getattr__(name: str) -> Any:
        """What numpy has under this name, kept here so that it is looked up once."""
        if name.startswith("__"):  # whoever imports from here asks for __path__
            raise AttributeError(name)
        import numpy

        found = getattr(numpy, name)
        globals()[name] = found
        return found
