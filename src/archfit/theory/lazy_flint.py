"""python-flint, loaded when something of it is first used; integers alone are counted without it.

`from archfit.theory import lazy_flint as flint` has its types.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flint import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """What flint has under this name."""
        if name.startswith("__"):  # whoever imports from here asks for __path__
            raise AttributeError(name)
        import flint

        return getattr(flint, name)
