"""What an architecture, a run and a record are: frozen values with checks, JSON and hash."""

from archfit.spec.architecture import Architecture, standard_architecture
from archfit.spec.attention import Attention, Linear, Softmax
from archfit.spec.codec import canonical_json, from_json, loads, to_json
from archfit.spec.files import flush_folder, load_file, open_regular, write_whole
from archfit.spec.inputs import Input, Patches, Tokens
from archfit.spec.record import Evaluation, FullContext, Machine, RunRecord, Timing
from archfit.spec.run import Recipe, RunSpec
from archfit.spec.tables import Factorised, Full, Head, Table, Tied

__all__ = [
    "Architecture",
    "Attention",
    "Evaluation",
    "Factorised",
    "Full",
    "FullContext",
    "Head",
    "Input",
    "Linear",
    "Machine",
    "Patches",
    "Recipe",
    "RunRecord",
    "RunSpec",
    "Softmax",
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
