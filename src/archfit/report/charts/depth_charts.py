"""Depths: what those of a plan are expected to lose, and what was trained, measured and scored."""

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from statistics import fmean

import altair

from archfit.advise.backtest import Backtest
from archfit.advise.ladder import LadderRun, knowledge
from archfit.advise.planner import Plan
from archfit.advise.prior import (
    CLEAR,
    CLOSE,
    DRAWS,
    LEAST_SIZE,
    DepthOutlook,
    Knowledge,
    family_prior,
)
from archfit.fit.best_depth import DepthCurve
from archfit.fit.cells import grouped
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.document import Layout, size_words, written
from archfit.spec import lazy_numpy as np

MARKS = ("recommended", "adviser, in its range", "adviser, outside it")
OURS = "archfit "  # how the names of our own rules begin
HIGHEST = 4.0  # of the expected loss of the recommended depth and 0.01, that the axis shows
POINTS = 60  # of a curve
SIZES = 9  # at which best depths are asked for on the way to a budget
MOST_ABOVE = 0.2  # of the best loss, shown beside it
APART = 1.02  # that points of one size stand apart, so that none hides another

Curves = Sequence[DepthCurve]
RuleDepths = Mapping[str, Mapping[int, float]]  # that others advise, by size


def depth_chart(plan: Plan, before: DepthOutlook | None, page: Layout) -> Panel:
    """Expected loss over depth, also `before` anything was measured; names are in tooltips."""
    outlook, (low, high) = plan.best.outlook, plan.depth_range
    scale = plan.best.level * plan.regret.close / CLOSE
    curve = [{"depth": d, "lost": scale * lost} for d, lost in outlook.regrets]
    least, last = curve[0]["depth"] / 1.1, curve[-1]["depth"] * 1.1
    named = [  # every adviser whose depth was looked at, and ours on top
        (advice.name, advice.depth, MARKS[1] if advice.in_range else MARKS[2])
        for advice in plan.advice[::-1]
        if advice.depth is not None and least <= advice.depth <= last
    ]
    points = [
        {"name": name, "depth": depth, "lost": scale * outlook.regret_at(depth), "mark": mark}
        for name, depth, mark in [*named, ("archfit", float(plan.shape.depth), MARKS[0])]
    ]
    ours = scale * outlook.regret_at(float(plan.shape.depth))
    most = max(HIGHEST * (plan.regret.expected + 0.01), 1.2 * ours)
    earlier = ((d, scale * lost) for d, lost in (before.regrets if before else ()))
    rows: dict[str, Rows] = {
        "band": [{"low": low / 1.02, "high": high * 1.02}],
        "before": [{"depth": d, "lost": lost} for d, lost in earlier if lost <= most],
        "curve": [row for row in curve if row["lost"] <= most],
        "points": points,
    }
    depths = look.log_ends([*look.numbers(curve, "depth"), plan.shape.depth])
    frame = Frame(depths, Ends(0, most), {"y": f"expected regret ({plan.regret.unit})"})
    return look.panel("plan-depth", rows, frame, page.for_panels(1), MARKS)


def ladder_chart(runs: Sequence[LadderRun], prior: Knowledge, page: Layout) -> Panel:
    """Bits per byte over depth, a curve a size; points are means over seeds, the best marked."""
    known = knowledge(prior, runs)
    means: list[Row] = []
    curves: list[Row] = []
    bests: list[Row] = []
    names = {size: size_words(size) for size in sorted({run.size for run in runs})}
    for size, name in names.items():
        own = [run for run in runs if run.size == size]
        some = [
            {"size": name, "depth": depth, "bits": fmean(run.bits for run in each)}
            for depth, each in sorted(grouped(own, lambda run: run.depth).items())
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
        curves += [{"size": name, "depth": depth, "bits": bit} for depth, bit in curve]
    shown = look.ends(look.numbers(means + curves, "bits"))
    frame = Frame(look.log_ticks(look.numbers(means, "depth")), shown)
    rows = {"means": means, "curves": curves, "bests": bests}
    return look.panel("ladder", rows, frame, page.for_panels(1), [*names.values()])


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
            ends = {"low": near[0], "depth": found.depth, "high": near[-1]}
            rows.append({"known": name, "params": float(at), **ends})
    chosen = {"known": MARKS[0], "params": size, "depth": float(plan.shape.depth)}
    depths = look.log_ends([*look.numbers(rows, "low", "high"), plan.shape.depth])
    frame = Frame(look.log_ends(look.numbers(rows, "params")), depths)
    drawn: dict[str, Rows] = {"depths": rows, "chosen": [chosen]}
    return look.panel("prior", drawn, frame, page.for_panels(1), [MARKS[0], *known])


def regret_chart(test: Backtest, page: Layout) -> Panel:
    """What each rule loses in a back-test: means, and behind them a point for each family."""
    means: list[Row] = []
    families: list[Row] = []
    for score in (each for each in test.scores if each.mean is not None):
        low, high = (score.mean if end is None else end for end in (score.low, score.high))
        theirs, ours, *_ = written("charts")["usual"]["colours"]
        colour = ours if score.rule.startswith(OURS) else theirs
        row = {"row": score.rule, "regret": score.mean, "low": low, "high": high}
        means.append(row | {"colour": colour})
        known = [(p.setting.family, p.regret) for p in score.picks if p.regret is not None]
        families += [
            {"row": score.rule, "regret": fmean(lost for _, lost in each), "family": family}
            for family, each in grouped(known, itemgetter(0)).items()
        ]
    shown = look.ends([*look.numbers(means, "low", "high"), *look.numbers(families, "regret")])
    frame = Frame(shown, [row["row"] for row in means], {"x": f"regret ({test.unit})"})
    return look.panel("regret", {"means": means, "families": families}, frame, page.for_panels(1))


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
            for p in (*curve.points, *curve.failed)
        ]
        bests.append({"size": name, "bits": curve.least - base} | _best_row(curve))
    depths = sorted({p.depth for curve in curves for p in curve.points})
    losses = look.ends([*look.numbers(lines, "bits"), *look.numbers(points, "bits")])
    if above:
        most = MOST_ABOVE * min(curve.least for curve in curves)
        losses = losses._replace(high=min(losses.high, most))
        lines, points = ([r for r in rows if r["bits"] <= most] for rows in (lines, points))
    shown = look.log_ends([*depths, *look.numbers(bests, "low", "high")])
    rows = {"lines": lines, "points": points, "bests": bests}
    frame = Frame(shown._replace(ticks=tuple(depths)), losses, {"y": title})
    return look.panel("atlas-depth", rows, frame, layout, names)


def _best_row(curve: DepthCurve) -> dict[str, float]:
    """The best depth with its interval, which ends with the grid where it is open."""
    low, high = float(curve.depths[0]), float(curve.depths[-1])
    best = curve.best
    return {
        "depth": best.value or low,
        "low": low if best.low is None else best.low,
        "high": high if best.high is None else best.high,
    }


def best_depth_chart(
    families: Mapping[str, Mapping[str, Curves]], rules: RuleDepths, page: Layout
) -> altair.ConcatChart:
    """Best depth over size, a panel a family of data; in each the rules of others."""
    every = [curve for kinds in families.values() for own in kinds.values() for curve in own]
    shown = look.log_ends(look.numbers(map(_best_row, every), "low", "high"))
    sizes, layout = look.log_ends(float(one.size) for one in every), page.for_panels(len(families))
    drawn: list[list[Row]] = []
    for rule, depths in rules.items():
        inside = {at: depth for at, depth in depths.items() if shown.low <= depth <= shown.high}
        if inside:
            drawn.append([{"rule": rule, "params": at, "depth": d} for at, d in inside.items()])
    # a point of each line to put its name at: each at another size, since lines meet
    names = [line[(1 + at) % len(line)] for at, line in enumerate(drawn)]
    panels = []
    for family, kinds in families.items():
        bests: list[Row] = [
            {"kind": kind, "params": curve.size * APART**at, **_best_row(curve)}
            for at, (kind, curves) in enumerate(kinds.items())
            for curve in curves
        ]
        rows = {"rules": [row for line in drawn for row in line], "names": names, "bests": bests}
        frame = Frame(sizes, shown, {"series": family})
        panels.append(look.panel("atlas-best", rows, frame, layout, list(kinds), family))
    return look.side_by_side(panels, layout, legends="independent")


def variant_chart(kinds: Mapping[str, Mapping[str, Curves]], page: Layout) -> altair.ConcatChart:
    """The least loss over size, a panel a kind of data, a line a variant: a vocabulary, a rank."""
    names = list(dict.fromkeys(name for variants in kinds.values() for name in variants))
    layout, panels = page.for_panels(len(kinds)), []
    for kind, variants in kinds.items():
        rows = [
            {"variant": name, "params": c.size, "bits": c.least, "depth": c.best.value or 0}
            for name, curves in variants.items()
            for c in curves
        ]
        sizes, bits = look.numbers(rows, "params"), look.numbers(rows, "bits")
        frame = Frame(look.log_ends(sizes), look.ends(bits))
        panels.append(look.panel("atlas-variants", {"bests": rows}, frame, layout, names, kind))
    return look.side_by_side(panels, layout)
