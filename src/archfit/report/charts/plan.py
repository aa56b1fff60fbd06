"""What each depth of a plan's size is expected to lose, what a ladder measured, and back-tests."""

import math
from collections.abc import Sequence
from dataclasses import replace

from archfit.advise.backtest import Backtest
from archfit.advise.ladder import LadderRun
from archfit.advise.planner import Plan
from archfit.fit.atlas import size_words
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.document import Layout

WIDTH, NARROW_WIDTH = 620, 270  # pixels
MARKS = ("recommended", "adviser, in its range", "adviser, outside it")
OURS = "archfit: "  # how the names of our own rules begin
HIGHEST = 4.0  # of the expected loss of the recommended depth and 0.01, that the axis shows


def depth_chart(plan: Plan, page: Layout) -> Panel:
    """Expected loss over depth; names are in tooltips."""
    outlook = plan.best.outlook
    scale = plan.regret.expected / outlook.expected_regret if outlook.expected_regret else 1.0
    curve: list[Row] = [{"depth": d, "lost": scale * lost} for d, lost in outlook.regrets]
    most = HIGHEST * (plan.regret.expected + 0.01)
    low, high = plan.depth_range
    rows: dict[str, Rows] = {
        "band": [{"low": low / 1.02, "high": high * 1.02}],
        "curve": curve,
        "points": _points(plan, curve)[::-1],  # ours on top
    }
    depths = Ends(outlook.regrets[0][0], max(2.0, outlook.regrets[-1][0]))
    unit = {"y": f"expected loss against the best ({plan.regret.unit})"}
    room = replace(page, width=NARROW_WIDTH if page.columns == 1 else WIDTH)
    title = f"Depths of {plan.params.total:,} parameters"
    return look.panel("plan-depth", rows, Frame(depths, Ends(0, most), unit), room, title=title)


def _points(plan: Plan, curve: list[Row]) -> list[Row]:
    """Ours, and every adviser whose depth was looked at."""
    named = [("archfit", float(plan.shape.depth), MARKS[0])] + [
        (advice.name, advice.depth, MARKS[1] if advice.in_range else MARKS[2])
        for advice in plan.advice
        if advice.depth is not None
    ]
    ends = float(curve[0]["depth"]), float(curve[-1]["depth"])

    def lost(depth: float) -> float:
        nearest = min(curve, key=lambda row: abs(math.log(float(row["depth"]) / depth)))
        return float(nearest["lost"])

    return [
        {"name": name, "depth": depth, "lost": lost(depth), "mark": mark}
        for name, depth, mark in named
        if ends[0] / 1.1 <= depth <= ends[1] * 1.1
    ]


def ladder_chart(runs: Sequence[LadderRun], sizes: Sequence[int], layout: Layout) -> Panel:
    """Bits per byte over depth, a line a size; seeds are their mean."""
    losses: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        losses.setdefault((run.size, run.depth), []).append(run.bits)
    rows: list[Row] = [
        {"size": size_words(size), "depth": float(depth), "bits": sum(some) / len(some)}
        for (size, depth), some in sorted(losses.items())
    ]
    depths, bits = (look.numbers(rows, field) for field in ("depth", "bits"))
    frame = Frame(look.log_ticks(depths), look.ends(bits))
    names = [size_words(size) for size in sizes]
    return look.panel("ladder", {"means": rows}, frame, layout.for_panels(1), names)


def regret_chart(test: Backtest, page: Layout) -> Panel:
    """What each rule loses in a back-test: means, and behind them a point for each family."""
    scored = [score for score in test.scores if score.mean is not None]
    means: list[Row] = []
    families: list[Row] = []
    for score in scored:
        mean = score.mean or 0.0
        means.append(
            {
                "row": score.rule,
                "regret": mean,
                "low": mean if score.low is None else score.low,
                "high": mean if score.high is None else score.high,
                "colour": look.COLOURS[1] if score.rule.startswith(OURS) else look.COLOURS[0],
            }
        )
        lost: dict[str, list[float]] = {}
        for pick in score.picks:
            if pick.regret is not None:
                lost.setdefault(pick.setting.family, []).append(pick.regret)
        families += [
            {"row": score.rule, "regret": sum(each) / len(each), "family": family}
            for family, each in lost.items()
        ]
    shown = look.ends([*look.numbers(means, "low", "high"), *look.numbers(families, "regret")])
    frame = Frame(shown, [score.rule for score in scored], {"x": f"regret ({test.unit})"})
    return look.panel("regret", {"means": means, "families": families}, frame, page.for_panels(1))
