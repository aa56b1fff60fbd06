"""What an architecture, a run and a record are: frozen values with checks, JSON and hash."""

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
