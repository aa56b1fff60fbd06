"""What an architecture, a run and a record are: frozen values with checks, JSON and hash."""

from archfit.spec.architecture import Architecture, standard_architecture
from archfit.spec.codec import canonical_json, from_json, loads, to_json
from archfit.spec.errors import InvalidValue
from archfit.spec.estimate import Estimate
from archfit.spec.files import flush_folder, load_file, open_regular, write_whole
from archfit.spec.parts import (
    Attention,
    Factorised,
    Full,
    Head,
    Input,
    Linear,
    Patches,
    Positions,
    Rotary,
    Softmax,
    Table,
    Tied,
    Tokens,
)
from archfit.spec.record import Evaluation, FullContext, Machine, RunRecord, Stretch, Timing
from archfit.spec.run import Recipe, RunSpec

__all__ = [
    "Architecture",
    "Attention",
    "Estimate",
    "Evaluation",
    "Factorised",
    "Full",
    "FullContext",
    "Head",
    "Input",
    "InvalidValue",
    "Linear",
    "Machine",
    "Patches",
    "Positions",
    "Recipe",
    "Rotary",
    "RunRecord",
    "RunSpec",
    "Softmax",
    "Stretch",
    "Table",
    "Tied",
    "Timing",
    "Tokens",
    "canonical_json",
    "flush_folder",
    "from_json",
    "load_file",
    "loads",
    "open_regular",
    "standard_architecture",
    "to_json",
    "write_whole",
]
