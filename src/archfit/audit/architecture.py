"""A model of archfit's own: nothing is missing, and the spec has counted it."""

from collections.abc import Mapping

from archfit.audit.model import InputMap, Model, Parameters, Stack
from archfit.spec import Architecture, Factorised, RunSpec, Tied, Tokens, from_json

_OF_A_RUN = {"architecture", "data_hash"}
_OF_AN_ARCHITECTURE = {"feed_forward_multiple", "embedding", "input"}


def model_from_architecture(architecture: Architecture, *, name: str, origin: str) -> Model:
    """The model that an architecture describes."""
    stack = Stack(
        role="decoder",
        depth=architecture.depth,
        width=architecture.width,
        heads=architecture.heads,
        head_dim=architecture.head_dim,
        kv_heads=architecture.heads,
        feed_forward=architecture.feed_forward_multiple * architecture.width or None,
        block_weights=architecture.block_params,
        distinct_blocks=architecture.depth,
    )
    counts = Parameters(
        blocks=architecture.params_without_embeddings,
        embedding=architecture.embedding_params,
        total=architecture.params,
    )
    return Model(
        name=name,
        origin=origin,
        family="archfit",
        modality=None,
        stacks=(stack,),
        input=_input_map(architecture),
        is_tied=isinstance(architecture.head, Tied),
        parameters=counts,
        published_params=None,
        assumed=(),
        missing=(),
        doubtful=(),
        notes=(),
    )


def is_own(document: Mapping[str, object]) -> bool:
    """Whether a document is the spec of a run, or an architecture, as archfit writes them."""
    return document.keys() >= _OF_A_RUN or document.keys() >= _OF_AN_ARCHITECTURE


def own_architecture(document: Mapping[str, object]) -> Architecture:
    """The architecture in such a document."""
    try:
        if "architecture" in document:
            return from_json(RunSpec, dict(document)).architecture
        return from_json(Architecture, dict(document))
    except RecursionError as problem:
        raise ValueError("this spec is nested too deeply to be one") from problem


def _input_map(architecture: Architecture) -> InputMap:
    table, source = architecture.embedding, architecture.input
    inner = table.inner if isinstance(table, Factorised) else None
    if isinstance(source, Tokens):
        return InputMap(
            kind="lookup" if inner is None else "factorised_lookup",
            vocab=source.vocab,
            vocab_real=None,
            inner=inner,
            dimensions=None,
        )
    return InputMap(
        kind="linear_patch", vocab=None, vocab_real=None, inner=inner, dimensions=source.dimensions
    )
