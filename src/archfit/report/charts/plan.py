"""The iso-parameter curve: all shapes of one size, with ours, others' and known models.

Points crowd together, so their names stand in a list at the right, each with a line to its point.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import altair

from archfit.plan.law import WEIGHTS, law_width
from archfit.plan.planner import Plan
from archfit.report.charts.look import Axes, Ends, Panel, Row, log_scale, rows_of, series_channels

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
class PlanFrame:
    """What the axes show."""

    widths: Ends
    depths: Ends

    def pixel(self, point: Row) -> tuple[float, float]:
        """Where a point lies, from the upper left corner."""
        x = _share(float(point["width"]), self.widths) * WIDTH
        return x, (1 - _share(float(point["depth"]), self.depths)) * HEIGHT

    @property
    def axes(self) -> Axes:
        """Both logarithmic."""
        return Axes(
            altair.X("width:Q", title="width", scale=log_scale(*self.widths)),
            altair.Y("depth:Q", title="depth (layers)", scale=log_scale(*self.depths)),
        )


def _share(value: float, ends: Ends) -> float:
    """Where a value lies between the ends of a logarithmic axis, from 0 to 1."""
    return math.log(value / ends[0]) / math.log(ends[1] / ends[0])


def iso_parameter_chart(plan: Plan, known: Iterable[Known], *, is_narrow: bool = False) -> Panel:
    """Depth against width, both logarithmic; `known` are published models of any size.

    A narrow one has no room for the list of names: tooltips have them.
    """
    points = [*_points(plan), *_known_points(plan, known)]
    widths = [float(point["width"]) for point in points] + [plan.ideal.width]
    depths = [float(point["depth"]) for point in points] + [plan.ideal.depth]
    frame = PlanFrame(
        widths=(min(widths) / 1.2, max(widths) * 1.2), depths=(min(depths) / 1.4, max(depths) * 1.4)
    )
    axes, labels = frame.axes, _labels(points, frame)
    columns = 1 if is_narrow else 3
    legend = altair.Legend(title=None, orient="bottom", columns=columns, labelLimit=300)
    marks = series_channels("mark", MARKS, legend, shape=SHAPES, color=COLOURS)
    size = f"{_short(plan.allowed.block_params)} block parameters"
    return altair.layer(
        axes.lines(_curve(plan, frame), {}, strokeDash=[1, 0], color="#333333"),
        axes.lines(_law(frame), {}, strokeDash=[6, 3], color="#2f7fc1"),
        axes.rule("x", *([float(plan.request.limit.limit)] if plan.bottleneck else [])),
        *(() if is_narrow else (_leaders(labels),)),
        axes.points(points[::-1], marks, "name:N depth:Q width:Q mark:N", size=90),  # ours on top
        *(() if is_narrow else (_names(labels),)),
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


def _short(count: float) -> str:
    """As 125M or 1.3B."""
    size, letter = next((size, letter) for size, letter in SIZES if count >= size)
    return f"{count / size:,.4g}{letter}" if count < 1e15 else f"{count / size:,.0f}{letter}"


def _curve(plan: Plan, frame: PlanFrame) -> list[Row]:
    """All shapes of the plan's size inside the frame, in even steps of the width's logarithm."""
    least, most = frame.widths
    widths = [least * (most / least) ** (step / POINTS) for step in range(POINTS + 1)]
    block_params = plan.allowed.block_params
    rows: list[Row] = [{"width": w, "depth": block_params / (WEIGHTS * w**2)} for w in widths]
    return [row for row in rows if frame.depths[0] <= float(row["depth"]) <= frame.depths[1]]


def _law(frame: PlanFrame) -> list[Row]:
    """The part of the law inside the frame, in even steps of the logarithm of the depth."""
    least, most = frame.depths[0], min(frame.depths[1], DEEPEST_ON_LAW)
    steps = 4 * POINTS
    depths = [least * (most / least) ** (step / steps) for step in range(steps + 1)]
    rows: list[Row] = [{"width": law_width(depth), "depth": depth} for depth in depths]
    return [row for row in rows if frame.widths[0] <= float(row["width"]) <= frame.widths[1]]


def _labels(points: list[Row], frame: PlanFrame) -> list[Row]:
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


def _leaders(labels: list[Row]) -> altair.Chart:
    """A thin line from each point to its name, in pixels."""
    rows: list[Row] = [
        {"name": str(label["name"]), "at": at, "x": x, "y": y}
        for label in labels
        for at, x, y in ((0, label["x"], label["y"]), (1, WIDTH + 12.0, label["label_y"]))
    ]
    pixels = Axes(altair.X("x:Q", scale=None, axis=None), altair.Y("y:Q", scale=None, axis=None))
    order = {"detail": "name:N", "order": "at:Q"}
    return pixels.lines(rows, order, color="#bbbbbb", strokeWidth=0.7)


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
