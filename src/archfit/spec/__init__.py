"""What an architecture, a run and a record are: frozen values with checks, JSON and hash.

Each is loaded when it is asked for: commands that need few of them start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archfit.spec.architecture import Architecture
    from archfit.spec.codec import canonical_json, from_json, loads, to_json
    from archfit.spec.files import load_file, open_regular, write_whole
    from archfit.spec.parts import Factorised, Full, Linear, Patches, Rotary, Softmax, Tied, Tokens
    from archfit.spec.record import Evaluation, FullContext, Machine, RunRecord, Stretch, Timing
    from archfit.spec.run import Recipe, RunSpec
    from archfit.spec.run_options import standard_architecture

__all__ = ["Architecture", "canonical_json", "from_json", "loads", "to_json", "write_whole"]
__all__ += ["Factorised", "Full", "Linear", "Patches", "Rotary", "Softmax", "Tied", "Tokens"]
__all__ += ["Evaluation", "FullContext", "Machine", "Recipe", "RunRecord", "RunSpec", "Stretch"]
__all__ += ["Timing", "load_file", "open_regular", "standard_architecture"]
HOMES = ("architecture", "codec", "files", "parts", "record", "run", "run_options")


def __getattr__(name: str) -> Any:
    """What the first of its modules that has this name has; kept, so that it is looked up once."""
    for home in HOMES if name in __all__ else ():
        found = getattr(import_module(f"archfit.spec.{home}"), name, None)
        if found is not None:
            return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
