"""`archfit report`: a sweep or an advice on one page."""

from pathlib import Path
from typing import Annotated

import typer

from archfit.advise.page import advice_report
from archfit.advise.stored import read_advice
from archfit.cli.output import print_json
from archfit.cli.version import version_line
from archfit.fit.fitted import fitted
from archfit.fit.reading import read_folders
from archfit.report.advice_page import write_advice
from archfit.report.chart_file import check_chart_file
from archfit.report.page_file import check_report_file
from archfit.report.provenance import Origin
from archfit.report.sweep_page import write_report
from archfit.spec.files import ADVICE
from archfit.sweep.folder import SWEEP, read_sweep


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", help="Folders of runs on the same data, or of one advice."),
    ],
    out: Annotated[Path, typer.Option(help="The page, FILE.html; its charts go beside it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """One page with what runs say: conclusions, figures with intervals, tables."""
    check_report_file(out)
    check_chart_file(out)
    advices = [folder for folder in folders if (folder / ADVICE).is_file()]
    if advices and len(folders) > 1:
        raise ValueError(
            f"{advices[0]} is an advice, which has a page of its own; give it alone, or the folder "
            "of its check"
        )
    written = _advice(advices[0], out) if advices else _sweeps(folders, out)
    if as_json:
        return print_json(
            {
                "file": str(out),
                "figures": [
                    {"name": name, "files": [str(path) for path in paths]}
                    for name, paths in written.items()
                ],
            }
        )
    typer.echo(f"{out}: {len(written)} figures, each also as SVG and PNG beside it")
    for name in written:
        typer.echo(f"  {name}")
    return None


def _advice(folder: Path, out: Path) -> dict[str, list[Path]]:
    advice, data, plan, check = read_advice(folder)
    page = advice_report(
        advice.wish, data, plan, check, command=advice.command, version=version_line()
    )
    return write_advice(page, out)


def _sweeps(folders: list[Path], out: Path) -> dict[str, list[Path]]:
    records = read_folders(folders)
    origins = [_origin(folder) for folder in folders]
    return write_report(fitted(records), records, origins, out, version_line())


def _origin(folder: Path) -> Origin:
    """What the folder's sweep says of itself."""
    if not (folder / SWEEP).exists():
        return Origin(folder=str(folder), name="", scale="", question="", labels={}, planned=0)
    sweep = read_sweep(folder / SWEEP)
    return Origin(
        folder=str(folder),
        name=sweep.name,
        scale=sweep.scale,
        question=sweep.question,
        labels={place.hash: place.label for place in sweep.data},
        planned=len(sweep.specs),
    )
