"""What rules, the prior and a ladder lose on data left out, in words and a figure."""

from collections.abc import Iterator
from statistics import fmean

from archfit.advise.backtest import ATLAS, LADDER, PRIOR, UNSEEN, Backtest, RuleScore
from archfit.report.document import (
    Document,
    Figure,
    Section,
    Table,
    Template,
    counted,
    json_of,
    loaded,
    written,
)
from archfit.spec.estimate import Estimate

SURE = 0.9  # how often a limit of 90 % should hold


def backtest_document(tests: tuple[Backtest, ...]) -> Document:
    """A table a grid, best rule first."""
    about = written("sections")["grids"]
    brief = Table.of(
        "grids",
        [(test, _score(test, PRIOR), _competitor(test)) for test in tests],
        about=lambda row: about["brief"].get(row[0].grid, "yours"),
        unit=lambda row: row[0].unit.split()[0],
        less=lambda row: (
            _interval(row[2].more)
            or f"{row[2].more.value:+.4f} ({_families(row[0]).partition(' of')[0]})"
        ),
    )
    return Document(
        title="What advice is worth",
        headline=_headline(tests[0]),
        sections=(
            Section.of("", brief),
            Section.of(
                "",
                about["minus"],
                *(_unseen(test) for test in tests if test.grid == UNSEEN),
                *(_advised(test) for test in tests if test.grid == ATLAS),
            ),
            *(_section(test) for test in tests),
            Section.of_page("how-scored"),
        ),
        data={"grids": [_json(test) for test in tests]},
    )


def _headline(test: Backtest) -> str:
    return (
        f"archfit plan is {_score(test, PRIOR).mean:.4f} {test.unit} worse than the best depth: "
        f"mean over {_families(test)} that it has not seen ({test.grid}, "
        f"{counted(len(test.settings), 'setting')})"
    )


def _families(test: Backtest) -> str:
    number = len({each.family for each in test.settings})
    if test.grid in (ATLAS, UNSEEN):
        return f"{counted(number, 'family', 'families')} of data"
    return f"{counted(number, 'set')} of networks"


def _score(test: Backtest, rule: str) -> RuleScore:
    return next(score for score in test.scores if score.rule == rule)


def _competitor(test: Backtest) -> RuleScore:
    """The best rule of others."""
    return next(score for score in test.scores if score.rule not in (PRIOR, LADDER))


def _unseen(test: Backtest) -> str:
    """What `plan` loses on each family of the data that nothing was fitted to."""
    lost = (
        f"{fmean(_lost(_score(test, PRIOR), family).values()):.4f} on {family}"
        for family in sorted({setting.family for setting in test.settings})
    )
    return f"{test.grid}, which nothing was fitted to: plan loses {', '.join(lost)}."


def _advised(test: Backtest) -> str:
    """What `advise` gains over `plan`, in the same settings."""
    score = _score(test, LADDER)
    return f"{LADDER} minus plan: {_more(score)} in {counted(score.scored, 'setting')}."


def _section(test: Backtest) -> Section:
    settings, about = len(test.settings), written("sections")["grids"]
    scored = [score for score in test.scores if score.scored]
    table = Table.of(
        "regret",
        scored,
        title=f"Regret on {test.grid}",
        interval=lambda score: (
            "" if None in (score.low, score.high) else f"{score.low:.4f} to {score.high:.4f}"
        ),
        more=_more,
        held=_held,
        settings=lambda _: settings,
    )
    families = {setting.family for setting in test.settings if test.grid in (ATLAS, UNSEEN)}
    by_family = Table.of(
        "families",
        sorted(families),
        count=lambda family: sum(setting.family == family for setting in test.settings),
        plan=lambda family: fmean(_lost(_score(test, PRIOR), family).values()),
        advise=lambda family: _more_on(test, family, LADDER),
        other=lambda family: _more_on(test, family, _competitor(test).rule),
    )
    means = (f"{score.rule} {score.mean:.4f}" for score in scored)
    figure = Figure.of(
        "regret-{grid}",
        f"Mean regret on {test.grid}: {', '.join(means)}",
        lambda page: loaded("depth_charts").regret_chart(test, page),
        grid=test.grid,
    )
    what = about["long"].get(test.grid, "Your own data.")
    count = f"{counted(settings, 'setting')} of {_families(test)}, in {test.unit}."
    return Section.of(
        test.grid,
        f"{what} {count}",
        *_notes(test),
        table,
        *[by_family] * bool(families),
        figure,
        is_why=True,
    )


def _lost(score: RuleScore, family: str) -> dict[tuple[str, int], float]:
    """What a rule loses on a family, by data and size, where it is scored."""
    return {
        (pick.setting.name, pick.setting.size): pick.regret
        for pick in score.picks
        if pick.setting.family == family and pick.regret is not None
    }


def _more_on(test: Backtest, family: str, rule: str) -> str:
    """What it loses more than `plan` on a family in the settings in which both are scored."""
    plan, other = (_lost(_score(test, name), family) for name in (PRIOR, rule))
    more = [lost - plan[setting] for setting, lost in other.items() if setting in plan]
    return f"{fmean(more):+.4f} ({len(more)})" if more else ""


def _notes(test: Backtest) -> Iterator[str]:
    """How the best depth was found, and what is to be known of the table."""
    prior = _score(test, PRIOR)
    if test.oracle is None:
        yield written("sections")["grids"]["curve"]
    else:
        both = [
            p.regret for p in prior.picks if len(p.setting.halves) == 2 and p.regret is not None
        ]
        yield (
            f"Noise floor: in {test.in_halves} of these settings the best depth was chosen on one "
            f"half of the seeds and scored on the other; it loses {test.oracle:.4f} there itself, "
            f"and plan {fmean(both):.4f} in the same settings."
        )
    if prior.covered.value is not None and prior.covered.value < SURE:
        yield f"What plan calls its 90 % limit held in {_held(prior)} of the settings: too few."
    if missing := [score.rule for score in test.scores if not score.scored]:
        yield f"Not scored, since their depths were not trained: {', '.join(missing)}."


def _interval(more: Estimate) -> str:
    return Template().format("{0.low:+.4f} to {0.high:+.4f}", more) if more.is_bounded else ""


def _more(score: RuleScore) -> str:
    """What it loses more than `plan` in the settings in which both are scored."""
    if score.more.value is None or score.rule == PRIOR:
        return ""
    interval = _interval(score.more)
    return f"{score.more.value:+.4f}" + (f" ({interval})" if interval else "")


def _held(score: RuleScore) -> str:
    """How often the limit held, with its interval over families."""
    share = score.covered.rising(lambda part: 100 * part)
    if share.value is None:
        return ""
    interval = (
        Template().format(" ({0.low:.0f} to {0.high:.0f})", share) if share.is_bounded else ""
    )
    return f"{share.value:.0f} %{interval}"


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
