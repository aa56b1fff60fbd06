"""The figure of a back-test: what each rule loses, a row a rule."""

from archfit.advise.backtest import Backtest
from archfit.report.charts import look
from archfit.report.charts.look import Axes, Panel, Row, layered
from archfit.report.document import Layout

ROW = 34  # pixels
OURS = "archfit: "


def regret_chart(test: Backtest, page: Layout) -> Panel:
    """Means with intervals, and behind them a point for each family."""
    layout = page.for_panels(1)
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
    shown = [*look.numbers(means, "low", "high"), *look.numbers(families, "regret")]
    axes = Axes(
        look.linear_x("regret", f"regret ({test.unit})", look.ends(shown)),
        look.rows_y([score.rule for score in scored]),
    )
    colour = {"color": look.COLOUR_OF_ROW}
    return layered(
        axes.rule("x", 0.0),
        axes.points(families, {}, "row:N family:N regret:Q", size=14, color=look.LIGHT_GREY),
        axes.intervals(means, colour, strokeWidth=2),
        axes.points(means, colour, "row:N regret:Q low:Q high:Q", shape="diamond", size=80),
        size=(layout.width, ROW * len(scored)),
    )
