"""The charts of the pages as Vega-Lite, each for a wide and for a narrow window.

Titles stand in the page, where they wrap and are read aloud; the drawings go without.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from archfit.audit.auditor import audit_model
from archfit.audit.zoo import known_shapes, zoo_models
from archfit.plan.planner import Plan
from archfit.report.bounds_chart import bounds_over_depth
from archfit.report.explorer.exchange import Asked
from archfit.report.explorer.forms import plan_from_page
from archfit.report.gallery_chart import gallery_chart
from archfit.report.plan_chart import NARROW_WIDTH, iso_parameter_chart
from archfit.theory.bounds import Shape

if TYPE_CHECKING:
    from archfit.report.document import Drawing

Json = dict[str, Any]  # of a grammar that others define

NARROW_BARS = 130  # pixels, beside the names of models


def shapes_chart(asked: Asked, *, is_narrow: bool) -> object:
    """All shapes of the budget's size."""
    plan = plan_from_page(asked.query)
    spec = _spec(iso_parameter_chart(plan, known_shapes(), is_narrow=is_narrow))
    return _document(spec, [spec])


def bounds_chart(asked: Asked, *, is_narrow: bool) -> object:
    """Bounds over depth around the shape of the plan."""
    spec = _spec(bounds_over_depth(shape_of(plan_from_page(asked.query))))
    if is_narrow:
        spec["columns"] = 1
        spec["spec"]["width"] = NARROW_WIDTH
        _move_legends(spec["spec"]["layer"], orient="bottom", direction="vertical")
    return _document(spec, [spec])


def models_chart(_asked: Asked, *, is_narrow: bool) -> object:
    """The published models of the gallery."""
    spec = _spec(gallery_chart([audit_model(model) for model in zoo_models()]))
    if not is_narrow:
        return _document(spec, [spec])
    shapes, ratios = spec["vconcat"]
    shapes["width"] = NARROW_WIDTH
    del shapes["title"]
    _move_legends(shapes["layer"], orient="bottom", columns=2)
    for bars in ratios["hconcat"]:
        bars["width"] = NARROW_BARS
        for layer in bars["layer"]:
            layer["encoding"]["x"]["axis"] = {"titleAnchor": "end"}
    shared = {key: spec[key] for key in ("config", "datasets") if key in spec}
    shared["config"]["legend"] = {
        "layout": {"bottom": {"anchor": "start", "direction": "vertical"}}
    }
    return _document(spec, [part | shared for part in (shapes, *ratios["hconcat"])])


CHARTS: dict[str, Callable[[Asked], object]] = {
    f"/chart/{layout}/{name}": partial(chart, is_narrow=layout == "narrow")
    for layout in ("wide", "narrow")
    for name, chart in (
        ("shapes", shapes_chart),
        ("bounds", bounds_chart),
        ("models", models_chart),
    )
}


def shape_of(plan: Plan) -> Shape:
    """The planned network as bounds are asked about it."""
    shape, question = plan.shape, plan.request
    network = Shape(depth=shape.depth, width=shape.width, heads=shape.heads)
    if question.patch is None:
        return replace(network, vocab=question.input_dimensions, rank=question.rank)
    limit = question.limit.limit
    return replace(network, rank=limit) if limit < shape.width else network


def _move_legends(layers: list[Json], **properties: object) -> None:
    for layer in layers:
        for channel in layer["encoding"].values():
            if isinstance(channel, dict) and channel.get("legend"):
                channel["legend"] |= properties


def _spec(chart: "Drawing") -> Json:
    spec: Json = chart.to_dict()
    del spec["$schema"]  # an address; the page names the grammar itself
    return spec


def _document(whole: Json, drawings: list[Json]) -> Json:
    """What a page needs to show the chart, as one drawing or as several."""
    title = whole.pop("title")
    return {
        "title": title["text"],
        "subtitle": title.get("subtitle", []),
        "description": whole["description"],
        "specs": drawings,
    }
