"""Which stored tensors carry the input into the network: a token table or a linear map.

The rule, where several names fit: a token table before a map of patches or features (a model of
text that also sees is audited as a model of text); then the name that comes first in the lists of
`families.toml`; then a table that is not a decoder's; then the one with most rows. A table of one
row is passed over: no model reads one token (Decision Transformers store an unused one).
"""

from dataclasses import dataclass

from archfit.audit.checkpoint_file import StoredTensor, Tensors
from archfit.audit.families import knowledge, tensor_names
from archfit.audit.model import TABLES, InputKind
from archfit.spec.errors import brief

ROWS, MIX = "rows_RI", "mix_ID"  # archfit; mix_ID is stored (inner, width)


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingTensors:
    """The tensors whose product maps an input to a vector of the network's width.

    A bias of the maps is left out: it shifts all inputs alike.
    """

    kind: InputKind
    tables: Tensors  # (rows, inner); several if a position sums over codebooks; one
    # (width, inputs...) for a linear map
    widening: Tensors = ()  # one for a factorised table, else empty

    @property
    def names(self) -> tuple[str, ...]:
        """Of all tensors, for the reader to check the choice."""
        return tuple(tensor.name for tensor in (*self.tables, *self.widening))

    @property
    def is_table(self) -> bool:
        """Whether rows belong to tokens; those of a linear map belong to the width."""
        return self.kind in TABLES

    @property
    def stored_columns(self) -> int:
        """Columns of the tables as stored, all axes after the first made one."""
        return self.tables[0].elements // max(1, self.tables[0].shape[0])

    @property
    def rows(self) -> int:
        """Tokens of all tables, or dimensions of a patch, feature or state."""
        if self.is_table:
            return sum(table.shape[0] for table in self.tables)
        return self.stored_columns

    @property
    def inner(self) -> int:
        """Columns of the tables; the width, unless a map widens them."""
        return self.tables[0].shape[1] if self.is_table else self.tables[0].shape[0]

    @property
    def width(self) -> int:
        """Size of the vectors that come out."""
        if not self.widening:
            return self.inner
        return self.widening[0].shape[1 if self.is_widening_stored_inner_first else 0]

    @property
    def is_widening_stored_inner_first(self) -> bool:
        """Whether it is archfit's (inner, width), and not a linear layer's (width, inner)."""
        return bool(self.widening) and self.widening[0].name.endswith(MIX)


def find_embedding(tensors: Tensors) -> EmbeddingTensors:
    """The tensors that carry the input, by their names and shapes; a sentence if none do."""
    names = tensor_names("token_tables")
    matrices = [tensor for tensor in tensors if len(tensor.shape) == 2]
    filled = [tensor for tensor in matrices if tensor.shape[0] > 1 and tensor.shape[1] > 0]
    if tables := [t for t in filled if ends_in(_without_codebook(t.name), names)]:
        best = min(tables, key=_preference)
        alike = _codebooks(best, tables)
        widening = tuple(tensor for tensor in tensors if _widens(tensor, best))[:1]
        plain: InputKind = "sum_of_lookups" if len(alike) > 1 else "lookup"
        kind = "factorised_lookup" if widening else plain
        return EmbeddingTensors(kind=kind, tables=alike, widening=widening)
    for ending, kind in knowledge()["tensors"]["linear_maps"].items():
        for tensor in tensors:
            if ends_in(tensor.name, (ending,)) and len(tensor.shape) >= 2 and tensor.elements:
                return EmbeddingTensors(kind=kind, tables=(tensor,))
    largest = sorted(matrices, key=lambda tensor: -tensor.shape[0])[:3]
    listed = ", ".join(f"{brief(t.name)} ({t.shape[0]:,} x {t.shape[1]:,})" for t in largest)
    place = f" of {tensors[0].file}" if tensors else ""
    raise ValueError(
        f"none of {len(tensors):,} tensors{place} has the name of a token table or patch "
        "projection (embed_tokens.weight, wte.weight, ...); the matrices with most rows are "
        f"{listed or 'none at all'}: rename the table"
    )


def ends_in(name: str, endings: tuple[str, ...]) -> bool:
    """Whether the last parts of a tensor's name are one of the endings."""
    return any(f".{name}".endswith(f".{ending}") for ending in endings)


def _preference(tensor: StoredTensor) -> tuple[int, bool, int, str]:
    plain = _without_codebook(tensor.name)
    fits = (at for at, end in enumerate(tensor_names("token_tables")) if ends_in(plain, (end,)))
    return next(fits), "decoder" in tensor.name.split("."), -tensor.shape[0], tensor.name


def _codebooks(best: StoredTensor, tables: list[StoredTensor]) -> Tensors:
    """All tables named like the best but for a number: MusicGen's embed_tokens.0 to .3."""
    plain = _without_codebook(best.name)
    if plain == best.name:
        return (best,)
    alike = [table for table in tables if _without_codebook(table.name) == plain]
    return tuple(table for table in alike if table.shape[1] == best.shape[1])


def _without_codebook(name: str) -> str:
    *front, number, last = ["", "", *name.split(".")]
    return ".".join([*front[2:], last]) if number.isdecimal() else name


def _widens(tensor: StoredTensor, table: StoredTensor) -> bool:
    if len(tensor.shape) != 2 or not tensor.elements:
        return False
    if table.name.endswith(ROWS):
        is_named = tensor.name == table.name.removesuffix(ROWS) + MIX
        return is_named and tensor.shape[0] == table.shape[1]
    is_named = ends_in(tensor.name, tensor_names("widening_maps"))
    return is_named and tensor.shape[1] == table.shape[1]
