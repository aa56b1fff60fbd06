"""Which stored tensors carry the input into the network: a token table or a linear map.

The rule, where several names fit: a token table before a map of patches or features (a model of
text that also sees is audited as a model of text); then the name that comes first in the lists
below; then a table that is not a decoder's; then the one with most rows. A table of one row is
passed over: no model reads one token (Decision Transformers store an unused one).
"""

from dataclasses import dataclass

from archfit.audit.bounded_json import shown
from archfit.audit.model import InputKind
from archfit.audit.safetensors_header import StoredTensor

TOKEN_TABLES = (  # last parts of the name, the surest first
    "shared.weight",  # T5, BART: one table for encoder and decoder
    "embedding.tokens.rows_RI",  # archfit
    "embed_tokens.weight",  # Llama, Qwen, Gemma, OPT, ESM, Whisper's decoder
    "wte.weight",  # GPT-2, GPT-J, MPT, litgpt
    "word_embeddings.weight",  # BERT, ALBERT, ELECTRA, BLOOM, Falcon, Megatron
    "embed_in.weight",  # GPT-NeoX
    "tok_embeddings.weight",  # the original Llama, ModernBERT
    "token_embd.weight",  # names of llama.cpp
    "token_embedding.weight",  # CLIP
    "token_embeddings.weight",
    "word_embedding.weight",  # XLNet
    "word_embed.weight",
    "tok_emb.weight",
    "token_emb.weight",
    "embed.W_E",  # TransformerLens
    "embeddings.weight",  # XLM, RWKV
    "embedding.weight",
)
LINEAR_MAPS: dict[str, InputKind] = {  # stored (width, inputs...)
    "patch_embeddings.projection.weight": "linear_patch",  # ViT, DeiT, BEiT
    "patch_embeddings.weight": "linear_patch",
    "patch_embedding.weight": "linear_patch",  # CLIP, SigLIP
    "patch_embed.proj.weight": "linear_patch",  # timm
    "feature_projection.projection.weight": "linear_on_conv_features",  # wav2vec2, HuBERT
}
WIDENING_MAPS = (  # from the inner size of a factorised table; stored (width, inner)
    "embedding_hidden_mapping_in.weight",  # ALBERT
    "embeddings_project.weight",  # ELECTRA
    "project_in.weight",  # OPT-350m
)
ROWS, MIX = "rows_RI", "mix_ID"  # archfit; mix_ID is stored (inner, width)


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingTensors:
    """The tensors whose product maps an input to a vector of the network's width.

    A bias of the maps is left out: it shifts all inputs alike.
    """

    kind: InputKind
    tables: tuple[StoredTensor, ...]  # (rows, inner); several if a position sums over codebooks;
    # one (width, inputs...) for a linear map
    widening: tuple[StoredTensor, ...]  # one for a factorised table, else empty

    @property
    def names(self) -> tuple[str, ...]:
        """Of all tensors, for the reader to check the choice."""
        return tuple(tensor.name for tensor in (*self.tables, *self.widening))

    @property
    def is_table(self) -> bool:
        """Whether rows belong to tokens; those of a linear map belong to the width."""
        return self.kind in ("lookup", "factorised_lookup", "sum_of_lookups")

    @property
    def rows(self) -> int:
        """Tokens of all tables, or dimensions of a patch, feature or state."""
        if self.is_table:
            return sum(table.shape[0] for table in self.tables)
        return self.tables[0].elements // max(1, self.tables[0].shape[0])

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


def find_embedding(tensors: tuple[StoredTensor, ...]) -> EmbeddingTensors:
    """The tensors that carry the input, by their names and shapes; a sentence if none do."""
    tables = [tensor for tensor in tensors if _is_token_table(tensor)]
    if tables:
        best = min(tables, key=_preference)
        return _with_widening(best, _codebooks(best, tables), tensors)
    for ending, kind in LINEAR_MAPS.items():
        for tensor in tensors:
            if _ends_in(tensor.name, ending) and len(tensor.shape) >= 2 and tensor.elements:
                return EmbeddingTensors(kind=kind, tables=(tensor,), widening=())
    raise ValueError(_nothing_found(tensors))


def _is_token_table(tensor: StoredTensor) -> bool:
    is_matrix = len(tensor.shape) == 2 and tensor.shape[0] > 1 and tensor.shape[1] > 0
    return is_matrix and _table_ending(tensor.name) < len(TOKEN_TABLES)


def _table_ending(name: str) -> int:
    """Which of TOKEN_TABLES it ends in; their number if in none."""
    plain = _without_codebook(name)
    fits = (at for at, ending in enumerate(TOKEN_TABLES) if _ends_in(plain, ending))
    return next(fits, len(TOKEN_TABLES))


def _preference(tensor: StoredTensor) -> tuple[int, bool, int, str]:
    is_decoders = "decoder" in tensor.name.split(".")
    return _table_ending(tensor.name), is_decoders, -tensor.shape[0], tensor.name


def _codebooks(best: StoredTensor, tables: list[StoredTensor]) -> tuple[StoredTensor, ...]:
    """All tables named like the best but for a number: MusicGen's embed_tokens.0 to .3."""
    plain = _without_codebook(best.name)
    if plain == best.name:
        return (best,)
    alike = [table for table in tables if _without_codebook(table.name) == plain]
    return tuple(table for table in alike if table.shape[1] == best.shape[1])


def _without_codebook(name: str) -> str:
    *front, number, last = ["", "", *name.split(".")]
    return ".".join([*front[2:], last]) if number.isdecimal() else name


def _with_widening(
    best: StoredTensor, tables: tuple[StoredTensor, ...], tensors: tuple[StoredTensor, ...]
) -> EmbeddingTensors:
    widening = tuple(tensor for tensor in tensors if _widens(tensor, best))[:1]
    kind: InputKind = "sum_of_lookups" if len(tables) > 1 else "lookup"
    if widening:
        kind = "factorised_lookup"
    return EmbeddingTensors(kind=kind, tables=tables, widening=widening)


def _widens(tensor: StoredTensor, table: StoredTensor) -> bool:
    if len(tensor.shape) != 2 or not tensor.elements:
        return False
    if table.name.endswith(ROWS):
        is_named = tensor.name == table.name.removesuffix(ROWS) + MIX
        return is_named and tensor.shape[0] == table.shape[1]
    is_named = any(_ends_in(tensor.name, ending) for ending in WIDENING_MAPS)
    return is_named and tensor.shape[1] == table.shape[1]


def _ends_in(name: str, ending: str) -> bool:
    return f".{name}".endswith(f".{ending}")


def _nothing_found(tensors: tuple[StoredTensor, ...]) -> str:
    matrices = [tensor for tensor in tensors if len(tensor.shape) == 2]
    largest = sorted(matrices, key=lambda tensor: -tensor.shape[0])[:3]
    listed = ", ".join(
        f"{shown(tensor.name)} ({tensor.shape[0]:,} x {tensor.shape[1]:,})" for tensor in largest
    )
    place = f" of {tensors[0].file}" if tensors else ""
    return (
        f"none of {len(tensors):,} tensors{place} has the name of a token table or patch "
        "projection (embed_tokens.weight, wte.weight, ...); the matrices with most rows are "
        f"{listed or 'none at all'}: rename the table"
    )
