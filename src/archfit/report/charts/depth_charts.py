"""Depths: what those of a plan are expected to lose, and what was trained, measured and scored."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import altair

from archfit.advise.backtest import Backtest
from archfit.advise.ladder import LadderRun, knowledge
from archfit.advise.planner import Plan
from archfit.advise.prior import CLEAR, CLOSE, DRAWS, DepthOutlook, Knowledge, family_prior
from archfit.advise.prior_runs import LEAST_SIZE
from archfit.fit.atlas import size_words
from archfit.fit.best_depth import DepthCurve
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.document import Layout
from archfit.spec import lazy_numpy as np

MARKS = ("recommended", "adviser, in its range", "adviser, outside it")
OURS = "archfit "  # how the names of our own rules begin
HIGHEST = 4.0  # of the expected loss of the recommended depth and 0.01, that the axis shows
POINTS = 60  # of a curve
SIZES = 9  # at which best depths are asked for on the way to a budget


def depth_chart(plan: Plan, page: Layout, before: DepthOutlook | None = None) -> Panel:
    """Expected loss over depth, also `before` anything was measured; names are in tooltips."""
    outlook = plan.best.outlook
    scale = plan.best.level * plan.regret.close / CLOSE
    curve: list[Row] = [{"depth": d, "lost": scale * lost} for d, lost in outlook.regrets]
    least, last = float(curve[0]["depth"]) / 1.1, float(curve[-1]["depth"]) * 1.1
    named = [("archfit", float(plan.shape.depth), MARKS[0])]
    named += [  # every adviser whose depth was looked at
        (advice.name, advice.depth, MARKS[1] if advice.in_range else MARKS[2])
        for advice in plan.advice
        if advice.depth is not None and least <= advice.depth <= last
    ]
    points: list[Row] = [
        {"name": name, "depth": depth, "lost": scale * outlook.regret_at(depth), "mark": mark}
        for name, depth, mark in named
    ]
    most = max(HIGHEST * (plan.regret.expected + 0.01), 1.2 * float(points[0]["lost"]))
    low, high = plan.depth_range
    earlier = ((d, scale * lost) for d, lost in (before.regrets if before else ()))
    rows: dict[str, Rows] = {
        "band": [{"low": low / 1.02, "high": high * 1.02}],
        "before": [{"depth": d, "lost": lost} for d, lost in earlier if lost <= most],
        "curve": [row for row in curve if float(row["lost"]) <= most],
        "points": points[::-1],  # ours on top
    }
    depths = look.log_ends([*look.numbers(curve, "depth"), plan.shape.depth])
    unit = {"y": f"expected regret ({plan.regret.unit})"}
    frame = Frame(depths, Ends(0, most), unit)
    return look.panel("plan-depth", rows, frame, page.for_panels(1), MARKS)


def ladder_chart(runs: Sequence[LadderRun], prior: Knowledge, page: Layout) -> Panel:
    """Bits per byte over depth, a curve a size; points are means over seeds, the best marked."""
    known, sizes = knowledge(prior, runs), sorted({run.size for run in runs})
    means: list[Row] = []
    curves: list[Row] = []
    bests: list[Row] = []
    for size in sizes:
        own = [run for run in runs if run.size == size]
        losses: dict[float, list[float]] = defaultdict(list)
        for run in own:
            losses[run.depth].append(run.bits)
        some: list[Row] = [
            {"size": size_words(size), "depth": depth, "bits": sum(each) / len(each)}
            for depth, each in sorted(losses.items())
        ]
        means += some
        bests.append(min(some, key=lambda row: float(row["bits"])))
        # Over depth as all that is known has it, at the level of these runs.
        depths = [float(run.depth) for run in own]
        grid = np.geomspace(min(depths), max(depths), POINTS)
        training = known.training(own[0].tokens_per_param)
        draws = known.posterior.draws(own[0].size, np.array([*grid, *depths]), DRAWS, training)
        drawn = draws.mean(axis=0)
        bits = np.exp(drawn[:POINTS] + np.mean([math.log(r.bits) for r in own] - drawn[POINTS:]))
        curve = zip(map(float, grid), map(float, bits), strict=True)
        curves += [{"size": size_words(size), "depth": depth, "bits": bit} for depth, bit in curve]
    rows: dict[str, Rows] = {"means": means, "curves": curves, "bests": bests}
    shown = look.ends(look.numbers(means + curves, "bits"))
    frame = Frame(look.log_ticks(look.numbers(means, "depth")), shown)
    return look.panel("ladder", rows, frame, page.for_panels(1), [*map(size_words, sizes)])


def prior_chart(plan: Plan, runs: Sequence[LadderRun], page: Layout) -> Panel:
    """The depth of least expected loss over size, and the depths that are expected to lose hardly
    more: by what other data say, and with these runs."""
    prior = family_prior(plan.request.family, plan.request.block)
    known = {"other data": prior}
    known |= {"with your data": knowledge(prior, runs)} if runs else {}
    size, deepest = plan.best.size, plan.best.outlook.regrets[-1][0]
    rows: list[Row] = []
    for name, each in known.items():
        for at in np.geomspace(min(LEAST_SIZE, size), max(LEAST_SIZE, size), SIZES):
            found = each.outlook(float(at), deepest, plan.request.trained_tokens(float(at)))
            near = [d for d, lost in found.regrets if lost <= found.expected_regret + CLEAR]
            ends: Row = {"low": near[0], "depth": found.depth, "high": near[-1]}
            rows.append({"known": name, "params": float(at), **ends})
    chosen: Row = {"known": MARKS[0], "params": size, "depth": float(plan.shape.depth)}
    depths = look.log_ends([*look.numbers(rows, "low", "high"), plan.shape.depth])
    frame = Frame(look.log_ends(look.numbers(rows, "params")), depths)
    drawn: dict[str, Rows] = {"depths": rows, "chosen": [chosen]}
    return look.panel("prior", drawn, frame, page.for_panels(1), [MARKS[0], *known])


def regret_chart(test: Backtest, page: Layout) -> Panel:
    """What each rule loses in a back-test: means, and behind them a point for each family."""
    means: list[Row] = []
    families: list[Row] = []
    for score in test.scores:
        if score.mean is None:
            continue
        low, high = (score.mean if end is None else end for end in (score.low, score.high))
        colour = look.COLOURS[1] if score.rule.startswith(OURS) else look.COLOURS[0]
        row: Row = {"row": score.rule, "regret": score.mean, "low": low, "high": high}
        means.append(row | {"colour": colour})
        lost: dict[str, list[float]] = defaultdict(list)
        for pick in score.picks:
            if pick.regret is not None:
                lost[pick.setting.family].append(pick.regret)
        families += [
            {"row": score.rule, "regret": sum(each) / len(each), "family": family}
            for family, each in lost.items()
        ]
    shown = look.ends([*look.numbers(means, "low", "high"), *look.numbers(families, "regret")])
    frame = Frame(shown, [str(row["row"]) for row in means], {"x": f"regret ({test.unit})"})
    return look.panel("regret", {"means": means, "families": families}, frame, page.for_panels(1))


Curves = Sequence[DepthCurve]
RuleDepths = Mapping[str, Mapping[int, float]]  # that others advise, by size

MOST_ABOVE = 0.2  # of the best loss, shown beside it
APART = 1.02  # that points of one size stand apart, so that none hides another


def kind_chart(curves: Curves, unit: str, page: Layout) -> altair.ConcatChart:
    """Loss over depth, a line a size; beside it the same above the best of its size."""
    layout = page.for_panels(2)
    titles = {f"held-out loss (bits per {unit})": False, "more than the best": True}
    panels = [_kind_panel(curves, title, layout, above=above) for title, above in titles.items()]
    return look.side_by_side(panels, layout)


def _kind_panel(curves: Curves, title: str, layout: Layout, *, above: bool) -> Panel:
    lines: list[Row] = []
    points: list[Row] = []
    bests: list[Row] = []
    names = [size_words(curve.size) for curve in curves]
    for name, curve in zip(names, curves, strict=True):
        base = curve.least if above else 0.0
        step = max(1, len(curve.depths) // POINTS)
        grid = zip(curve.depths[::step], curve.losses[::step], strict=True)
        lines += [{"size": name, "depth": float(d), "bits": float(b) - base} for d, b in grid]
        points += [
            {"size": name, "depth": p.depth, "bits": curve.brought(p) - base, "runs": len(p.losses)}
            for p in curve.points
        ]
        bests.append(_best_row(curve, {"size": name, "bits": curve.least - base}))
    depths = sorted({p.depth for curve in curves for p in curve.points})
    losses = look.ends([*look.numbers(lines, "bits"), *look.numbers(points, "bits")])
    if above:
        most = MOST_ABOVE * min(curve.least for curve in curves)
        losses = losses._replace(high=min(losses.high, most))
        lines, points = ([r for r in rows if float(r["bits"]) <= most] for rows in (lines, points))
    shown = look.log_ends([*depths, *look.numbers(bests, "low", "high")])
    rows = {"lines": lines, "points": points, "bests": bests}
    frame = Frame(shown._replace(ticks=tuple(depths)), losses, {"y": title})
    return look.panel("atlas-depth", rows, frame, layout, names)


def _best_row(curve: DepthCurve, row: Row) -> Row:
    """The best depth with its interval, which ends with the grid where it is open."""
    low, high = float(curve.depths[0]), float(curve.depths[-1])
    best = curve.best
    return row | {
        "depth": best.value or low,
        "low": low if best.low is None else best.low,
        "high": high if best.high is None else best.high,
    }


def best_depth_chart(
    families: Mapping[str, Mapping[str, Curves]], rules: RuleDepths, page: Layout
) -> altair.ConcatChart:
    """Best depth over size, a panel a family of data; in each the rules of others."""
    every = [curve for kinds in families.values() for own in kinds.values() for curve in own]
    shown = look.log_ends(look.numbers((_best_row(one, {}) for one in every), "low", "high"))
    sizes, layout = look.log_ends(float(one.size) for one in every), page.for_panels(len(families))
    lines: list[list[Row]] = [
        [
            {"rule": rule, "params": size, "depth": depth}
            for size, depth in depths.items()
            if shown.low <= depth <= shown.high
        ]
        for rule, depths in rules.items()
    ]
    drawn = [line for line in lines if line]
    rows: dict[str, Rows] = {
        "rules": [row for line in drawn for row in line],
        # a point of each line to put its name at: each at another size, since lines meet
        "names": [line[(1 + at) % len(line)] for at, line in enumerate(drawn)],
    }
    panels = []
    for family, kinds in families.items():
        rows["bests"] = [
            _best_row(curve, {"kind": kind, "params": curve.size * APART**at})
            for at, (kind, curves) in enumerate(kinds.items())
            for curve in curves
        ]
        frame = Frame(sizes, shown, {"series": family})
        panels.append(look.panel("atlas-best", rows, frame, layout, list(kinds), family))
    chart: altair.ConcatChart = altair.concat(*panels, columns=layout.columns).resolve_scale(
        color="independent", shape="independent"
    )
    return chart


def variant_chart(kinds: Mapping[str, Mapping[str, Curves]], page: Layout) -> altair.ConcatChart:
    """The least loss over size, a panel a kind of data, a line a variant: a vocabulary, a rank."""
    names = list(dict.fromkeys(name for variants in kinds.values() for name in variants))

    def panel(variants: tuple[str, Mapping[str, Curves]], layout: Layout) -> Panel:
        rows: list[Row] = [
            {"variant": name, "params": c.size, "bits": c.least, "depth": c.best.value or 0}
            for name, curves in variants[1].items()
            for c in curves
        ]
        sizes, bits = (look.numbers(rows, field) for field in ("params", "bits"))
        frame = Frame(look.log_ends(sizes), look.ends(bits))
        return look.panel("atlas-variants", {"bests": rows}, frame, layout, names, variants[0])

    return look.panel_for_each(panel, list(kinds.items()), page)
