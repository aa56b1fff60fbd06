"""What rules, the prior and a ladder lose on data left out, in words and a figure."""

from collections.abc import Iterator
from statistics import fmean

from archfit.advise.backtest import ATLAS, LADDER, PRIOR, UNSEEN, Backtest, RuleScore
from archfit.report.document import Document, Figure, Section, Table, json_of, said, written

SURE = 0.9  # how often a limit of 90 % should hold


def backtest_document(tests: tuple[Backtest, ...]) -> Document:
    """A table a grid, best rule first."""
    about, first = written("sections")["grids"], tests[0]
    brief = Table.of(
        "grids",
        [(test, _score(test, PRIOR), _competitor(test)) for test in tests],
        about=lambda row: about["brief"].get(row[0].grid, "yours"),
        unit=lambda row: row[0].unit.split()[0],
        less=lambda row: (
            said("backtest.interval", row[2].more)
            or f"{row[2].more.value:+.4f} ({_families(row[0]).partition(' of')[0]})"
        ),
    )
    score = _score(first, PRIOR)
    unseen = (test for test in tests if test.grid == UNSEEN)
    advised = (_score(test, LADDER) for test in tests if test.grid == ATLAS)
    return Document(
        title="What advice is worth",
        headline=said("backtest.headline", first, score=score, **_sizes(first)),
        sections=(
            Section.of(brief),
            Section.of(
                about["minus"],
                *(said("backtest.unseen", test, lost=_lost_by_family(test)) for test in unseen),
                *(said("backtest.advised", each, more=_more(each)) for each in advised),
            ),
            *(_section(test) for test in tests),
            Section.of_page("how-scored"),
        ),
        data={"grids": [json_of("grid", test) for test in tests]},
    )


def _families(test: Backtest) -> str:
    number = len({each.family for each in test.settings})
    if test.grid in (ATLAS, UNSEEN):
        return f"{number:,} famil{'y' if number == 1 else 'ies'} of data"
    return said("backtest.sets", number)


def _sizes(test: Backtest) -> dict[str, object]:
    """How much it is scored on."""
    return {"settings": len(test.settings), "families": _families(test)}


def _score(test: Backtest, rule: str) -> RuleScore:
    return next(score for score in test.scores if score.rule == rule)


def _competitor(test: Backtest) -> RuleScore:
    """The best rule of others."""
    return next(score for score in test.scores if score.rule not in (PRIOR, LADDER))


def _lost_by_family(test: Backtest) -> list[str]:
    """What `plan` loses on each family of the data."""
    return [
        f"{fmean(_lost(_score(test, PRIOR), family).values()):.4f} on {family}"
        for family in sorted({setting.family for setting in test.settings})
    ]


def _section(test: Backtest) -> Section:
    about, scored = written("sections")["grids"], [each for each in test.scores if each.scored]
    table = Table.of(
        "regret",
        scored,
        title=f"Regret on {test.grid}",
        more=_more,
        held=_held,
        settings=lambda _: len(test.settings),
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
    means = [f"{score.rule} {score.mean:.4f}" for score in scored]
    described, grid = said("backtest.figure", test, means=means), test.grid
    what = about["long"].get(grid, "Your own data.")
    return Section.of(
        said("backtest.counted", test, what=what, **_sizes(test)),
        *_notes(test),
        table,
        by_family,
        Figure.of("regret-{grid}", described, test, grid=grid),
        title=grid,
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
        halved = (pick for pick in prior.picks if len(pick.setting.halves) == 2)
        plan = fmean(pick.regret for pick in halved if pick.regret is not None)
        yield said("backtest.floor", test, plan=plan)
    if prior.covered.value is not None and prior.covered.value < SURE:
        yield said("backtest.held", _held(prior))
    if missing := [score.rule for score in test.scores if not score.scored]:
        yield said("backtest.unscored", missing)


def _more(score: RuleScore) -> str:
    """What it loses more than `plan` in the settings in which both are scored."""
    if score.more.value is None or score.rule == PRIOR:
        return ""
    interval = said("backtest.interval", score.more)
    return f"{score.more.value:+.4f}" + (f" ({interval})" if interval else "")


def _held(score: RuleScore) -> str:
    """How often the limit held, with its interval over families."""
    interval = said("backtest.share-interval", score.covered.rising(lambda part: 100 * part))
    return said("backtest.share", score.covered, interval=interval)
