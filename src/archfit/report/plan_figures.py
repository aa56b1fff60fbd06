"""The charts of a plan as figures of a page."""

from functools import partial
from typing import TYPE_CHECKING

from archfit.audit.zoo import known_shapes
from archfit.plan.planner import Plan
from archfit.report.bounds_chart import bounds_over_depth
from archfit.report.plan_chart import iso_parameter_chart
from archfit.report.sweep_look import Figure, Layout
from archfit.theory.shape import Shape

if TYPE_CHECKING:
    from archfit.report.chart_file import Drawing


def iso_parameter_figure(plan: Plan) -> Figure:
    """All shapes of the plan's size, with ours, others' and known models."""
    shape, named = plan.shape, [one for one in plan.advice if one.depth is not None]
    return Figure(
        name="shapes",
        title="All shapes of this size",
        caption="Every adviser at the same number of block parameters, and published models of "
        "about this size. Where the rank of the input is dotted, width beyond it is wasted.",
        description=f"Depth against width: recommended {shape.depth} x {shape.width}; "
        + "; ".join(f"{one.name} {one.depth:.1f} x {one.width:.0f}" for one in named if one.width)
        + ".",
        drawn=partial(_iso_parameter, plan),
    )


def bounds_figure(plan: Plan) -> Figure:
    """Bounds on what a network of the plan's width can tell apart, over depth."""
    shape = Shape(
        depth=plan.shape.depth,
        width=plan.shape.width,
        heads=plan.shape.heads,
        rank=plan.embedding_rank,
    )
    return Figure(
        name="bounds",
        title="What depth can add",
        caption="Bounds on the separation rank of the analysed network: no mask, linear attention. "
        "Where the upper bound bends, more depth adds less than more width.",
        description=f"Lower and upper bounds over depth for networks of width {shape.width} and "
        f"others, with embedding rank {shape.rank}.",
        drawn=partial(_bounds, shape),
    )


def _iso_parameter(plan: Plan, layout: Layout) -> "Drawing":
    return iso_parameter_chart(plan, known_shapes(), is_narrow=layout.columns == 1)


def _bounds(shape: Shape, layout: Layout) -> "Drawing":
    return bounds_over_depth(shape, columns=layout.columns, width=min(330, layout.width))
