"""`archfit backtest`: what advice is worth, on data that it was not fitted to."""

from typing import Annotated

from archfit.advise.backtest import all_grids, backtest
from archfit.cli.options import AsJson, word
from archfit.cli.output import show
from archfit.fit.atlas import read_atlas
from archfit.report.backtest_document import backtest_document
from archfit.spec.errors import check_choice

GRID = word(f"One of {', '.join(all_grids())}; all if left out.", metavar="NAME")


def back_test(grid: Annotated[str | None, GRID] = None, as_json: AsJson = False) -> None:
    """Regret of rules, of the prior and of a ladder of small networks, on data left out."""
    if grid is not None:
        check_choice(all_grids(), grid=grid)
    tests = backtest(read_atlas(), all_grids() if grid is None else (grid,))
    show(backtest_document(tests), as_json=as_json)
