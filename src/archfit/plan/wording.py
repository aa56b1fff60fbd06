"""Sentences about a plan that every place that shows one says in the same words."""

from archfit.plan.advisers import Advice
from archfit.plan.planner import Plan


def bottleneck_sentence(plan: Plan) -> str:
    """What caps the rank of the input, and what that does to the shape; empty without one."""
    limit = plan.bottleneck
    if limit is None:
        return ""
    return (
        f"a {limit.kind} of {limit.limit:,} caps the rank of the input, and text of this size "
        f"would use a width of {plan.text_shape.width:,.0f}. The law asks for "
        f"{plan.ideal.depth:,.0f} layers."
    )


def effect_sentence(plan: Plan) -> str:
    """What the shape is expected to gain over a text-shaped one of its size."""
    effect = plan.effect
    text = f"{effect.against.depth:,.1f} x {effect.against.width:,.0f}"
    if effect.saved is not None:
        return (
            f"a text-shaped network ({text}) of this size could do without {effect.saved} of its "
            f"parameters ({effect.saved.basis}; {effect.source})"
        )
    assert effect.loss_percent is not None
    low, high = effect.loss_percent
    return f"{low:g} to {high:g} % of loss ({effect.source})"


def named_shape(advice: Advice) -> str:
    """Depth and width, or a band of depths, or nothing."""
    if advice.depth is not None and advice.width is not None:
        return f"{advice.depth:,.1f} x {advice.width:,.0f}"
    if advice.depths is not None:
        return f"{advice.depths[0]:,.0f} to {advice.depths[1]:,.0f} layers"
    return ""
