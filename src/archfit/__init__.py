"""Which Transformer architecture fits my data?

`archfit.plan(params="10M", data="corpus.txt")` answers in Python what `archfit plan` answers on the
command line; so do `advise`, `audit`, `measure`, `bounds`, `atlas` and `backtest`.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archfit.answers import atlas, backtest, bounds, measure, plan

__version__ = "0.2.0"
__all__ = ["atlas", "backtest", "bounds", "measure", "plan"]  # and ROOMS
ROOMS = ("advise", "audit")  # folders of the package that can be called


def __getattr__(name: str) -> Any:
    """A function, loaded when it is asked for: importing archfit costs nothing."""
    if name not in __all__ and name not in ROOMS:
        raise AttributeError(f"module 'archfit' has no attribute {name!r}")
    return import_module(f"archfit.{name}") if name in ROOMS else _function(name)


def __dir__() -> list[str]:
    """What there is to ask, for those who press the tab key."""
    return sorted({*globals(), *__all__, *ROOMS})


def _function(name: str) -> Any:
    return getattr(import_module("archfit.answers"), name)


class Room(ModuleType):
    """A folder of the package that is also a question: `archfit.audit("gpt2")`."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The answer of the function of this name in `archfit.answers`."""
        return _function(self.__name__.removeprefix("archfit."))(*args, **options)
