"""Draw the papers' figures from our runs, and write docs/papers.md: python docs/papers/write.py.

Each figure has the axes of the paper's; what the paper states in words or tables is drawn in grey.
`make evidence` calls it. With --png the figures are written as PNG, too, to look at.
"""

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import altair

from archfit.exact.measure import measure
from archfit.exact.prime_field import Arrays
from archfit.exact.rank_claims import claims
from archfit.fit.cells import CellResult, cells_of
from archfit.fit.evidence import evidence_records
from archfit.report.papers_document import our_number, paper_items, papers_table
from archfit.spec import Architecture

HERE = Path(__file__).parent
COLOURS = ["#14365e", "#b5241b", "#2e7d4f", "#6a3d9a", "#d08a2e", "#2f7fc1", "#555555"]
LAW = (5.039, 0.0555)  # Levine et al. 2020
SIZE, LOSS = "block parameters", "held-out loss (nats a token)"
Row = dict[str, object]


def rows_of(cells: Iterable[CellResult], series: str) -> list[Row]:
    """A row for each cell: its mean, and the least and greatest of its seeds."""
    return [
        {
            "x": cell.size, "y": cell.mean, "low": min(cell.losses), "high": max(cell.losses),
            "series": series, "shape": "",
        }
        for cell in cells
    ]  # fmt: skip


def trained(*sweeps: str) -> tuple[CellResult, ...]:
    """The cells of these sweeps, those at several rates at their best."""
    best: dict[tuple[Architecture, str], CellResult] = {}
    for cell in cells_of(evidence_records(*sweeps)):
        key = (cell.architecture, cell.data_hash)
        if key not in best or cell.mean < best[key].mean:
            best[key] = cell
    return tuple(best.values())


def panel(
    rows: Sequence[Row], title: str, grey: Sequence[Row] = (), x: str = SIZE
) -> altair.LayerChart:
    """Lines with points and seeds; `grey` are rules at `x`, or segments with `x2`, with words.

    What stands behind a colon of the title is a line of its own.
    """
    data = altair.Chart(altair.Data(values=list(rows)))
    order = list(dict.fromkeys(str(row["series"]) for row in rows))
    colour = altair.Color(
        "series:N", title=None, sort=order, legend=altair.Legend(orient="bottom", columns=4),
        scale=altair.Scale(domain=order, range=[COLOURS[at % 7] for at in range(len(order))]),
    )  # fmt: skip
    is_shaped = len({row["shape"] for row in rows}) > 1
    shapes = altair.Legend(orient="bottom") if is_shaped else None
    ends = [number for row in rows for number in (row["low"], row["high"])]
    bottom, top = min(ends), max(ends)  # type: ignore[type-var]  # numbers
    margin = 0.08 * (top - bottom)  # type: ignore[operator]
    short = altair.Axis(format="~s", labelOverlap="greedy", labelSeparation=6)
    scale = altair.Scale(type="log", nice=False, padding=12)
    across = altair.X("x:Q", title=x, scale=scale, axis=short)
    domain = altair.Scale(domain=[bottom - margin, top + margin], nice=False)  # type: ignore[operator]
    up = altair.Y("y:Q", title=LOSS, scale=domain)
    layers = [
        data.mark_line(opacity=0.8).encode(across, up, colour, detail="shape:N"),
        data.mark_rule(strokeWidth=1).encode(
            across, altair.Y("low:Q", scale=domain), altair.Y2("high:Q"), colour
        ),
        data.mark_point(filled=True, size=36).encode(
            across, up, colour, shape=altair.Shape("shape:N", title=None, legend=shapes)
        ),
    ]
    said = altair.Chart(altair.Data(values=[dict(row) for row in grey]))
    if grey and "x2" in grey[0]:
        layers.append(
            said.mark_rule(color="#888", strokeWidth=3, opacity=0.7).encode(across, up, x2="x2:Q")
        )
        layers.append(
            said.mark_text(color="#555", dy=-9, align="left", fontSize=10).encode(
                across, up, text="words:N"
            )
        )
    elif grey:
        layers.append(said.mark_rule(color="#888", strokeDash=[5, 3]).encode(across))
        words = said.mark_text(color="#555", angle=270, align="right", dy=-6, fontSize=10)
        layers.append(words.encode(across, y=altair.value(6), text="words:N"))
    first, *below = title.split(": ")
    above = altair.TitleParams(first, subtitle=below, fontSize=12, subtitleFontSize=11)
    return altair.layer(*layers, width=330, height=260, title=above)


def beside(panels: Sequence[altair.LayerChart]) -> altair.ConcatChart:
    """Panels in a row, each with its own legend."""
    chart: altair.ConcatChart = altair.concat(*panels, columns=3).resolve_scale(
        color="independent", shape="independent", x="independent", y="independent"
    )
    return chart


def at_width(width: float, depth: int, words: str) -> Row:
    """A rule at the size at which a network of this depth is so wide."""
    return {"x": 12 * depth * width**2, "words": words}


def by_depth(cells: Iterable[CellResult]) -> list[Row]:
    """A series for each depth."""
    groups = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.architecture.depth, cell.size)):
        groups[cell.architecture.depth].append(cell)
    return [
        row
        for depth, own in groups.items()
        for row in rows_of(own, f"{depth} layer{'s' if depth > 1 else ''}")
    ]


def depth_panels(
    cells: Sequence[CellResult], vocab: int, cap: int | None, title: str
) -> list[altair.LayerChart]:
    """Depths at equal size for one vocabulary and rank; a rule where the shallow is so wide."""
    own = [
        c
        for c in cells
        if c.architecture.input.vocab == vocab and c.architecture.embedding.inner_size == cap
    ]
    if not own:
        return []
    depth, limit = min(c.architecture.depth for c in own), cap or vocab
    sizes = [c.size for c in own]
    rule = at_width(limit, depth, f"width {limit} at {depth} layers")
    inside = min(sizes) <= rule["x"] <= max(sizes)  # type: ignore[operator]
    return [
        panel(
            by_depth(own),
            title if inside else f"{title}: width {limit} lies outside of these sizes",
            [rule] if inside else [],
        )
    ]


def figure_1() -> altair.ConcatChart:
    """The papers' cells of V = 257 and 500 where they are trained; then 6 and 12, and 2 and 8."""
    panels = []
    for name, vocab, title in (
        ("figure-one-257", 257, "V = 257, the paper's cells"),
        ("figure-one-500", 500, "V = 500, the paper's cells"),
    ):
        panels += depth_panels(trained(name), vocab, None, title) if evidence_records(name) else []
    fair = trained("fair-depth", "fair-depth-third")
    for vocab in (257, 500, 2000):
        panels += depth_panels(fair, vocab, None, f"V = {vocab}, rates of their own")
    for vocab in (257, 2000):
        panels += depth_panels(trained("wies-vocab"), vocab, None, f"V = {vocab}, CompleteP")
    return beside(panels)


def figure_2() -> altair.ConcatChart:
    """Widths against ranks; a grey segment from each rank 16 to the size that the paper states."""
    panels = []
    for names, title in (
        (("rank-long",), "12 layers, 200M tokens"),
        (("wies-rank",), "6 layers, 33M tokens"),
    ):
        cells = trained(*names)
        if not cells:
            continue
        full = [c for c in cells if not c.architecture.embedding.inner_size]
        capped = [
            c
            for c in cells
            if c.architecture.embedding.inner_size and c.architecture.positions.inner_size
        ]
        capped = [c for c in capped if c.architecture.embedding_rank < c.architecture.width]
        rows = rows_of(sorted(full, key=lambda c: c.size), "width falls")
        whole = max(full, key=lambda c: c.size).architecture
        tables = whole.params - whole.block_params
        for row, cell in zip(rows, sorted(full, key=lambda c: c.size), strict=True):
            row["x"] = cell.architecture.params
        ranks = rows_of(sorted(capped, key=lambda c: c.architecture.embedding_rank), "rank falls")
        for row, cell in zip(
            ranks, sorted(capped, key=lambda c: c.architecture.embedding_rank), strict=True
        ):
            row["x"] = cell.architecture.params
        low = next(c for c in capped if c.architecture.embedding_rank == 16)
        size = low.architecture.params
        grey = [
            {
                "x": size - 0.25 * low.size,
                "x2": size,
                "y": low.mean,
                "words": "paper: 25 %",
            }
        ]
        panels.append(
            panel(
                rows + ranks,
                f"{title}: embeddings of {tables / 1e6:.1f}M at full width",
                grey,
                x="parameters",
            )
        )
    return beside(panels)


def figure_3() -> altair.ConcatChart:
    """Capped ranks of 6 and 12 layers where trained, then of 2 and 8."""
    panels = []
    for cap in (32, 64, 128):
        panels += depth_panels(
            trained("fair-depth", "fair-depth-third"), 2000, cap, f"rank {cap}, rates of their own"
        )
    for cap in (16, 64):
        panels += depth_panels(trained("wies-lowrank"), 2000, cap, f"rank {cap}, CompleteP")
    return beside(panels)


def attention_panels(*, every_depth: bool) -> altair.ConcatChart:
    """Loss over size by ratio; baselines are lines, wide ratios points at the largest size."""
    named = {
        "wies-attention": "hidden units go with attention, as in the paper",
        "wide-attention": "hidden units of 4 widths (ours)",
    }
    panels = []
    for cells, title in ((trained(name), title) for name, title in named.items()):
        ratios = {ratio: [c for c in cells if _ratio(c) == ratio] for ratio in (1, 2, 4, 8, 16)}
        if not cells:
            continue
        if every_depth:
            panels.append(panel(_every_depth(ratios), title))
            continue
        rows = [row for at, own in ratios.items() for row in rows_of(_best(own), f"ratio {at}")]
        largest, grey = max(c.size for c in cells), []
        for ratio, share in ((4, 0.25), (16, 0.45)):
            lowest, words = min(c.mean for c in ratios[ratio]), f"paper: {share:.0%}"
            grey.append({"x": (1 - share) * largest, "x2": largest, "y": lowest, "words": words})
        panels.append(panel(rows, title, grey))
    return beside(panels)


def _ratio(cell: CellResult) -> int:
    return round(cell.architecture.attention_ratio)


def _best(cells: Iterable[CellResult]) -> list[CellResult]:
    """At each size, to a fifth of an e-fold, the best depth."""
    groups: list[list[CellResult]] = []
    for cell in sorted(cells, key=lambda cell: cell.size):
        if not groups or cell.log_size > groups[-1][0].log_size + 0.2:
            groups.append([])
        groups[-1].append(cell)
    return [min(group, key=lambda cell: cell.mean) for group in groups]


def _every_depth(ratios: dict[int, list[CellResult]]) -> list[Row]:
    """A series a ratio, a shape a depth."""
    return [
        row | {"shape": f"{depth} layers"}
        for ratio, cells in ratios.items()
        for depth in sorted({c.architecture.depth for c in cells})
        for row in rows_of(
            sorted((c for c in cells if c.architecture.depth == depth), key=lambda c: c.size),
            f"ratio {ratio}",
        )
    ]


def figure_5() -> altair.ConcatChart:
    """V = 2000 alone."""
    panels = depth_panels(
        trained("fair-depth", "fair-depth-third"), 2000, None, "V = 2000, rates of their own"
    )
    return beside(panels + depth_panels(trained("wies-vocab"), 2000, None, "V = 2000, CompleteP"))


def figure_7() -> altair.ConcatChart:
    """Loss over ranks of positions and of the vocabulary."""
    rows: list[Row] = []
    cells = trained("wies-positions")
    width = cells[0].architecture.width
    for series, table in (
        ("rank of positions", "positions"),
        ("rank of the vocabulary", "embedding"),
    ):
        other = "embedding" if table == "positions" else "positions"
        own = [
            c
            for c in cells
            if getattr(c.architecture, table).inner_size
            and not getattr(c.architecture, other).inner_size
        ]
        own.sort(key=lambda c: getattr(c.architecture, table).inner_size)
        for row, cell in zip(rows_of(own, series), own, strict=True):
            rows.append(row | {"x": getattr(cell.architecture, table).inner_size})
    (full,) = (
        c
        for c in cells
        if not c.architecture.positions.inner_size and not c.architecture.embedding.inner_size
    )
    rows += [row | {"x": width} for row in rows_of([full], "full embeddings")]
    grey: list[Row] = [
        {"x": width / 8, "words": "64 of 512"},
        {"x": width / 4, "words": "128 of 512"},
    ]
    return beside([panel(rows, f"6 x {width}, 512 positions", grey, x="rank")])


def law_figure(*, with_law: bool) -> altair.ConcatChart:
    """Loss over size by depth, with the law's crossings or without."""
    grey = [
        at_width(math.exp(LAW[0] + LAW[1] * depth), depth, f"law: {depth} and {2 * depth}")
        for depth in (1, 2, 4)
        if with_law
    ]
    return beside(
        [panel(by_depth(trained("levine-depth")), "V = 2000, 33M tokens, CompleteP", grey)]
    )


def residual_figure() -> altair.LayerChart:
    """Exact ranks with and without residual connections."""
    (claim,) = (claim for claim in claims() if claim.name == "residuals")
    rows = []
    for experiment in (one for group in claim.groups for one in group):
        tokens = f", {experiment.vocab} tokens" if experiment.vocab else ""
        rows.append(
            {
                "network": f"{experiment.depth} x {experiment.width}, "
                f"heads {experiment.heads}{tokens}",
                "rank": measure(experiment, Arrays(), progress=lambda *_: None).rank,
                "kind": "residual" if experiment.residual else "plain",
            }
        )
    data = altair.Chart(altair.Data(values=rows))
    bars = data.mark_bar().encode(
        altair.X("rank:Q", title="separation rank, exact"),
        altair.Y("network:N", title=None, axis=altair.Axis(labelLimit=240, minExtent=150)),
        altair.Color("kind:N", title=None, scale=altair.Scale(range=COLOURS[:2])),
        yOffset="kind:N",
    )
    numbers = data.mark_text(align="left", dx=3).encode(
        altair.X("rank:Q"), altair.Y("network:N"), text="rank:Q", yOffset="kind:N"
    )
    return altair.layer(bars, numbers, width=420, height=220)


FIGURES = {
    "levine-preprint-figure-1": lambda: law_figure(with_law=False),
    "levine-table-1": lambda: law_figure(with_law=True),
    "levine-figure-1": residual_figure,
    "wies-figure-1": figure_1,
    "wies-figure-2": figure_2,
    "wies-figure-3": figure_3,
    "wies-figure-4": lambda: attention_panels(every_depth=False),
    "wies-figure-5": figure_5,
    "wies-figure-6": lambda: attention_panels(every_depth=True),
    "wies-figure-7": figure_7,
}


def papers_page() -> str:
    """docs/papers.md: all items in tables, with the figures that are redrawn."""
    table = papers_table()
    lines = ["# The papers, item by item", "", *table["page"]["intro"].strip().splitlines(), ""]
    for document, authors in table["documents"].items():
        lines += [f"## {authors}", ""]
        lines += ["| item | says | command | status | ours |", "|---|---|---|---|---|"]
        own = [item for item in paper_items() if item.document == document]
        for item in own:
            cells = (", ".join(item.items), item.says, f"`{item.command}`", item.status)
            lines.append(f"| {' | '.join((*cells, our_number(item)))} |")
        for item in (item for item in own if item.figure):
            said = table["page"]["figures"][item.figure]
            caption = f"*{table['short'][document]}, {item.items[0]}. {said}*"
            lines += ["", f"![{item.name}](papers/{item.figure}.svg)", "", caption]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


OF_ONE_SEED = {  # sweeps that docs/evidence has no figure of: the paper's own shows them
    "figure-one-257": "wies-figure-1",
    "figure-one-500": "wies-figure-1",
    "rank-long": "wies-figure-2",
}


def main(endings: Sequence[str]) -> None:
    """All figures and the page."""
    for name, drawn in FIGURES.items():
        chart = drawn().configure_axis(grid=True, gridColor="#eee").configure_view(stroke="#ccc")
        for ending in endings:
            chart.save(str(HERE / f"{name}.{ending}"), ppi=110)
        for sweep in (sweep for sweep, figure in OF_ONE_SEED.items() if figure == name):
            if evidence_records(sweep):
                chart.save(str(HERE.parent / "evidence" / f"{sweep}.svg"))
    (HERE.parent / "papers.md").write_text(papers_page())


if __name__ == "__main__":
    main(("svg", "png") if "--png" in sys.argv else ("svg",))
