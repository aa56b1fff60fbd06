"""A run of ours as an audit sees it: all sizes are in its spec."""

from archfit.audit.model import InputMap, Model, Parameters, Stack
from archfit.spec import Architecture, Factorised, Patches, Tied


def model_from_architecture(architecture: Architecture, *, name: str, origin: str) -> Model:
    """The model that an architecture of ours describes; nothing is missing or assumed."""
    hidden = architecture.feed_forward_multiple * architecture.width
    stack = Stack(
        role="decoder",
        depth=architecture.depth,
        width=architecture.width,
        heads=architecture.heads,
        head_dim=architecture.head_dim,
        kv_heads=architecture.heads,
        feed_forward=hidden or None,  # the analysed network has none
        block_weights=architecture.block_params,
        distinct_blocks=architecture.depth,
    )
    return Model(
        name=name,
        origin=origin,
        family="archfit",
        modality=None,
        stacks=(stack,),
        input=_input_map(architecture),
        is_tied=isinstance(architecture.head, Tied),
        parameters=Parameters(
            blocks=architecture.params_without_embeddings,
            embedding=architecture.embedding_params,
            total=architecture.params,
        ),
        published_params=None,
        assumed=(),
        missing=(),
        notes=(),
    )


def _input_map(architecture: Architecture) -> InputMap:
    """A patch is one linear map of its tokens, one-hot or scalar: as many rows as dimensions."""
    is_patch = isinstance(architecture.input, Patches)
    is_factorised = isinstance(architecture.embedding, Factorised)
    dimensions = architecture.input.dimensions
    return InputMap(
        kind="factorised_lookup" if is_factorised else "linear_patch" if is_patch else "lookup",
        vocab=None if is_patch and not is_factorised else dimensions,
        vocab_real=None,
        inner=architecture.embedding.inner
        if isinstance(architecture.embedding, Factorised)
        else None,
        dimensions=dimensions if is_patch else None,
    )
