"""The iso-parameter curve: all shapes of one size, with ours, others' and known models.

Points crowd together, so their names stand in a list at the right, each with a line to its point.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import altair

from archfit.plan.law import WEIGHTS, law_width
from archfit.plan.planner import Plan
from archfit.report.charts.look import Row, rows_of

Known = tuple[str, int, int]  # name, depth, width

WIDTH, HEIGHT = 560, 460  # pixels
NARROW_WIDTH = 270  # on a phone, held upright
LINE = 15  # pixels from one name to the next
POINTS = 120
DEEPEST_ON_LAW = 250.0  # layers: 10^18 parameters without a bottleneck have 212
SIZES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"), (1.0, ""))
NEAR = 2.0  # known models within this factor of the size are shown
MOST_KNOWN = 8
MARKS = ("recommended", "repair", "adviser, in its range", "adviser, outside it", "known model")
SHAPES = ("diamond", "square", "circle", "circle", "triangle-up")
COLOURS = ("#b5241b", "#d08a2e", "#14365e", "#8aa9c9", "#777777")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Frame:
    """What the axes show."""

    widths: tuple[float, float]
    depths: tuple[float, float]

    def pixel(self, point: Row) -> tuple[float, float]:
        """Where a point lies, from the upper left corner."""
        x = _share(float(point["width"]), self.widths) * WIDTH
        return x, (1 - _share(float(point["depth"]), self.depths)) * HEIGHT


def iso_parameter_chart(
    plan: Plan, known: Iterable[Known], *, is_narrow: bool = False
) -> altair.LayerChart | altair.FacetChart:
    """Depth against width, both logarithmic; `known` are published models of any size.

    A narrow one has no room for the list of names: tooltips have them.
    """
    points = [*_points(plan), *_known_points(plan, known)]
    frame = _frame(plan, points)
    labels = _labels(points, frame)
    layers = (
        _line(list(_curve(plan, frame)), [1, 0], "#333333", frame),
        _line(list(_law(frame)), [6, 3], "#2f7fc1", frame),
        _limit(plan, frame),
        *(() if is_narrow else (_leaders(labels),)),
        _marks(points, frame, legend_columns=1 if is_narrow else 3),
        *(() if is_narrow else (_names(labels),)),
    )
    size = f"{_short(plan.allowed.block_params)} block parameters"
    return altair.layer(
        *layers,
        width=NARROW_WIDTH if is_narrow else WIDTH,
        height=HEIGHT,
        title=altair.TitleParams(
            f"Shapes of {size}, for {plan.request.budget}",
            subtitle=[
                "Solid: all shapes of this size. Dashed: the law ln(width) = 5.039 + 0.0555 depth.",
                f"Rank limit of the input: {plan.request.limit.limit:,}"
                + (" (dotted)." if plan.bottleneck else ", no bottleneck."),
            ],
            anchor="start",
        ),
        description=f"Depth against width at {size}; recommended: {plan.shape.depth} layers of "
        f"width {plan.shape.width}",
    )


def _frame(plan: Plan, points: list[Row]) -> _Frame:
    widths = [float(point["width"]) for point in points] + [plan.ideal.width]
    depths = [float(point["depth"]) for point in points] + [plan.ideal.depth]
    return _Frame(
        widths=(min(widths) / 1.2, max(widths) * 1.2), depths=(min(depths) / 1.4, max(depths) * 1.4)
    )


def _short(count: float) -> str:
    """As 125M or 1.3B."""
    size, letter = next((size, letter) for size, letter in SIZES if count >= size)
    return f"{count / size:,.4g}{letter}" if count < 1e15 else f"{count / size:,.0f}{letter}"


def _share(value: float, ends: tuple[float, float]) -> float:
    """Where a value lies between the ends of a logarithmic axis, from 0 to 1."""
    return math.log(value / ends[0]) / math.log(ends[1] / ends[0])


def _curve(plan: Plan, frame: _Frame) -> Iterator[Row]:
    least, most = frame.widths
    for step in range(POINTS + 1):
        width = least * (most / least) ** (step / POINTS)
        depth = plan.allowed.block_params / (WEIGHTS * width**2)
        if frame.depths[0] <= depth <= frame.depths[1]:
            yield {"width": width, "depth": depth}


def _law(frame: _Frame) -> Iterator[Row]:
    """The part of the law inside the frame, in even steps of the logarithm of the depth."""
    least, most = frame.depths[0], min(frame.depths[1], DEEPEST_ON_LAW)
    for step in range(4 * POINTS + 1):
        depth = least * (most / least) ** (step / (4 * POINTS))
        width = law_width(depth)
        if frame.widths[0] <= width <= frame.widths[1]:
            yield {"width": width, "depth": depth}


def _labels(points: list[Row], frame: _Frame) -> list[Row]:
    """A line of the list for each point, in the order of their depths, never one on another."""
    ordered = sorted(points, key=lambda point: frame.pixel(point)[1])
    height = max(HEIGHT, LINE * len(ordered))
    labels: list[Row] = []
    for place, point in enumerate(ordered):
        x, y = frame.pixel(point)
        above = float(labels[-1]["label_y"]) + LINE if labels else 0.0
        below = height - LINE * (len(ordered) - 1 - place)  # room for those that follow
        labels.append(point | {"x": x, "y": y, "label_y": min(max(above, y), below)})
    return labels


def _points(plan: Plan) -> Iterator[Row]:
    """Ours, the repaired shapes, and every adviser that names a shape."""
    yield _point("archfit", plan.shape.depth, plan.shape.width, MARKS[0])
    for repair in plan.repairs:
        yield _point(repair.kind, repair.shape.depth, repair.shape.width, MARKS[1])
    for advice in plan.advice:
        if advice.depth is not None and advice.width is not None:
            mark = MARKS[2] if advice.in_range else MARKS[3]
            yield _point(advice.name, advice.depth, advice.width, mark)


def _known_points(plan: Plan, known: Iterable[Known]) -> list[Row]:
    """The models nearest in size, one for each shape."""

    def distance(model: Known) -> float:
        _, depth, width = model
        return abs(math.log(WEIGHTS * depth * width**2 / plan.allowed.block_params))

    shapes = {(depth, width): (name, depth, width) for name, depth, width in known}
    near = sorted(shapes.values(), key=distance)[:MOST_KNOWN]
    return [_point(*model, MARKS[4]) for model in near if distance(model) < math.log(NEAR)]


def _point(name: str, depth: float, width: float, mark: str) -> Row:
    return {"name": name, "depth": float(depth), "width": float(width), "mark": mark}


def _line(rows: list[Row], dash: list[int], colour: str, frame: _Frame) -> altair.Chart:
    line: altair.Chart = (
        rows_of(rows).mark_line(strokeDash=dash, color=colour).encode(**_axes(frame))
    )
    return line


def _limit(plan: Plan, frame: _Frame) -> altair.Chart:
    limit = float(plan.request.limit.limit)
    rows: list[Row] = [{"width": limit}] if plan.bottleneck else []
    rule: altair.Chart = (
        rows_of(rows).mark_rule(strokeDash=[1, 3], color="#555555").encode(x=_axes(frame)["x"])
    )
    return rule


def _marks(points: list[Row], frame: _Frame, *, legend_columns: int) -> altair.Chart:
    legend = altair.Legend(title=None, orient="bottom", columns=legend_columns, labelLimit=300)
    marks: altair.Chart = (
        rows_of(points[::-1])  # ours on top
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            **_axes(frame),
            shape=altair.Shape(
                "mark:N", scale=altair.Scale(domain=MARKS, range=SHAPES), legend=legend
            ),
            color=altair.Color(
                "mark:N", scale=altair.Scale(domain=MARKS, range=COLOURS), legend=legend
            ),
            tooltip=["name:N", "depth:Q", "width:Q", "mark:N"],
        )
    )
    return marks


def _leaders(labels: list[Row]) -> altair.Chart:
    """A thin line from each point to its name, in pixels."""
    rows = [
        {"name": str(label["name"]), "at": at, "x": x, "y": y}
        for label in labels
        for at, x, y in (
            (0, label["x"], label["y"]),
            (1, WIDTH + 12.0, label["label_y"]),
        )
    ]
    lines: altair.Chart = (
        rows_of(rows)
        .mark_line(color="#bbbbbb", strokeWidth=0.7)
        .encode(
            x=altair.X("x:Q", scale=None, axis=None),
            y=altair.Y("y:Q", scale=None, axis=None),
            detail="name:N",
            order="at:Q",
        )
    )
    return lines


def _names(labels: list[Row]) -> altair.Chart:
    names: altair.Chart = (
        rows_of(labels)
        .transform_calculate(
            words="datum.name + ': ' + format(datum.depth, ',.3~r') + ' x ' + "
            "format(datum.width, ',.0f')"
        )
        .mark_text(align="left", baseline="middle", fontSize=10, color="#222222")
        .encode(
            x=altair.value(WIDTH + 15),
            y=altair.Y("label_y:Q", scale=None, axis=None),
            text="words:N",
        )
    )
    return names


def _axes(frame: _Frame) -> "dict[str, altair.X | altair.Y]":
    def scale(ends: tuple[float, float]) -> altair.Scale:
        return altair.Scale(type="log", nice=False, domain=list(ends))

    return {
        "x": altair.X("width:Q", title="width", scale=scale(frame.widths)),
        "y": altair.Y("depth:Q", title="depth (layers)", scale=scale(frame.depths)),
    }
