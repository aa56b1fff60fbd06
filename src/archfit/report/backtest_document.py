"""What rules, the prior and a ladder lose on data left out, in words and a figure."""

from archfit.advise.backtest import ATLAS, PRIOR, UNSEEN, Backtest, RuleScore
from archfit.report.document import Document, Figure, Section, Table, counted, json_of, loaded


def backtest_document(tests: tuple[Backtest, ...]) -> Document:
    """A table a grid, best rule first."""
    first = tests[0]
    loses = f"{_number(_plan_score(first).mean)} {first.unit}"
    brief = Table.of(
        "grids",
        [(test, _plan_score(test), test.scores[0]) for test in tests],
        best=lambda row: "no rule is" if row[1] is row[2] else row[2].rule,
        less=lambda row: _more(row[2]),
    )
    return Document(
        title="What advice is worth",
        headline=f"On {first.grid}, archfit plan is {loses} worse than the best depth "
        f"(mean of {counted(len(first.settings), 'setting')} it has not seen)",
        sections=(
            Section.of("", brief),
            *(_section(test) for test in tests),
            Section.of_page("how-scored"),
        ),
        data={"grids": [_json(test) for test in tests]},
    )


def _plan_score(test: Backtest) -> RuleScore:
    return next(score for score in test.scores if score.rule == PRIOR)


def _section(test: Backtest) -> Section:
    families, settings = len({setting.family for setting in test.settings}), len(test.settings)
    kinds = f"{counted(families, 'set')} of networks"
    if test.grid in (ATLAS, UNSEEN):
        kinds = f"{counted(families, 'family', 'families')} of data"
    halves = (
        f"{test.in_halves} of them have enough seeds to choose the best depth on one half and "
        f"score it on the other; that depth itself is then {test.oracle:.4f} worse than the best."
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
    about = f"{counted(settings, 'setting')} of {kinds}, {test.unit}. {halves}"
    return Section.of(test.grid, about, table, figure, is_why=True)


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
