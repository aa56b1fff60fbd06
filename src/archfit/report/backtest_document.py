"""What rules, the prior and a ladder lose on data left out, in words and a figure."""

from archfit.advise.backtest import ATLAS, PRIOR, UNSEEN, Backtest, RuleScore
from archfit.report.document import Document, Figure, Section, Table, json_of, loaded

UNITS = {"bits per byte or symbol": "bits", "nats per token": "nats"}


def backtest_document(tests: tuple[Backtest, ...]) -> Document:
    """A table a grid, best rule first."""
    return Document(
        title="What advice is worth",
        headline="; ".join(_headline(test) for test in tests),
        sections=(*(_section(test) for test in tests), Section.of_page("how-scored")),
        data={"grids": [_json(test) for test in tests]},
    )


def _headline(test: Backtest) -> str:
    best, unit = test.scores[0], UNITS[test.unit]
    prior = next(score for score in test.scores if score.rule == PRIOR)
    said = f"{test.grid}: plan loses {_number(prior.mean)} {unit}"
    less = -(best.more.value or 0)
    if best is prior or less <= 0:
        return f"{said}, no rule less"
    doubt = "" if best.more.is_below(0) else ", not beyond doubt"
    return f"{said}, {best.rule} {less:.4f} less where both are scored{doubt}"


def _section(test: Backtest) -> Section:
    families, settings = len({setting.family for setting in test.settings}), len(test.settings)
    one, many = ("family", "families") if test.grid in (ATLAS, UNSEEN) else ("set", "sets")
    of = "data" if test.grid in (ATLAS, UNSEEN) else "networks"
    kinds = f"{one if families == 1 else many} of {of}"
    halves = (
        f"{test.in_halves} of them have seeds enough to choose the best depth on one half and "
        f"score it on the other, where it loses {test.oracle:.4f} itself."
        if test.oracle is not None
        else "All are scored by one curve, against its own best."
    )
    table = Table.of(
        "regret",
        test.scores,
        title=f"Regret on {test.grid}",
        interval=lambda score: (
            "" if None in (score.low, score.high) else f"{score.low:.4f} to {score.high:.4f}"
        ),
        more=_more,
        held=_held,
        settings=lambda _: settings,
    )
    means = (f"{score.rule} {_number(score.mean)}" for score in test.scores)
    figure = Figure.of(
        "regret-{grid}",
        f"Mean regret on {test.grid}: {', '.join(means)}",
        lambda page: loaded("depth_charts").regret_chart(test, page),
        grid=test.grid,
    )
    about = f"{settings} settings of {families} {kinds}, {test.unit}. {halves}"
    return Section.of(test.grid, about, table, figure)


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:.4f}"


def _more(score: RuleScore) -> str:
    """In the settings in which both are scored."""
    more = score.more
    if more.value is None or score.rule == PRIOR:
        return ""
    half = "" if more.high is None else f" ± {more.high - more.value:.4f}"
    return f"{more.value:+.4f}{half}"


def _held(score: RuleScore) -> str:
    """How often "at most" held, with its interval over families."""
    share = score.covered
    if share.value is None:
        return ""
    interval = "" if share.low is None else f" ({share.low:.0%} to {share.high:.0%})"
    return f"{share.value:.0%}{interval}"


def _json(test: Backtest) -> dict[str, object]:
    rules = [
        json_of(
            "rule",
            score,
            more_than_prior=score.more.row("mean"),
            all_picks=[json_of("pick", pick) for pick in score.picks],
        )
        for score in test.scores
    ]
    return json_of("grid", test, scored_settings=len(test.settings), rules=rules)
