"""Depth and width of published models, to draw beside a plan."""

Known = tuple[str, int, int]  # name, depth, width


def known_shapes() -> list[Known]:
    """Published decoders and encoders; an encoder-decoder is two stacks, not one deep one."""
    from archfit.audit.zoo import zoo_models

    stacks = [(model.name, model.stacks) for model in zoo_models() if len(model.stacks) == 1]
    return [
        (name, stack.depth, stack.width) for name, (stack,) in stacks if stack.depth is not None
    ]
