"""`archfit fit`, `report`, `backtest` and `papers`: what runs say, and of what."""

from collections.abc import Sequence
from pathlib import Path

from archfit import answers
from archfit.advise.backtest import ALL_GRIDS
from archfit.cli.shared import MANNER, show, with_words
from archfit.fit.atlas import Atlas, read_atlas, with_own
from archfit.fit.fitted import fitted, read_folders
from archfit.report.atlas_document import atlas_document
from archfit.report.document import Document
from archfit.report.fit_document import Origin, fit_document, page_document, sweep_report
from archfit.report.page import check_page_file, save_report, version_line
from archfit.report.papers_document import evidence_document, papers_document
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.files import ADVICE, SWEEP
from archfit.sweep.folder import read_sweep


@with_words("fit")
def fit(folders: list[Path] | None = None, evidence: bool = False, atlas: bool = False) -> None:
    """What trained runs say: which depth wins, what a low rank costs, with 90 % intervals."""
    if atlas and not evidence:
        return show(atlas_document(_atlas(folders or [])))
    if evidence == bool(folders or atlas):
        nothing = "neither folders nor --evidence is"
        raise refusal("fit-what", what="folders and --evidence are both" if evidence else nothing)
    if evidence:
        from archfit.fit.evidence import read_evidence
        from archfit.fit.paper_findings import all_findings

        document = evidence_document(read_evidence(), all_findings(), rows=MANNER.get().as_json)
    else:
        document = fit_document(fitted(*read_folders(folders or [])))
    return show(document)


def _atlas(folders: Sequence[Path]) -> Atlas:
    """What ships, and somebody's own sweeps of depths, each under its kind or else its folder's
    name."""
    atlas = read_atlas()
    for folder in folders:
        (records, _), origin = read_folders([folder]), _origin(folder)
        atlas = with_own(atlas, origin.kind or folder.resolve().name, records, origin.labels)
    refuse_if(not atlas.runs, "fit-no-atlas")
    return atlas


@with_words("report")
def report(out: Path, folders: list[Path] | None = None, atlas: bool = False) -> None:
    """The same as one HTML page: conclusions, figures, tables."""
    check_page_file(out)
    document = atlas_document(_atlas(folders or [])) if atlas else _report(folders or [], out)
    show(page_document(out, save_report(document, out)))


def _report(folders: list[Path], out: Path) -> Document:
    """The page of an advice, or of folders of runs."""
    refuse_if(not folders, "report-nothing")
    advices = [folder for folder in folders if (folder / ADVICE).is_file()]
    if advices:
        refuse_if(len(folders) > 1, "report-advice", folder=advices[0])
        from archfit.advise.advice import read_advice
        from archfit.report.advice_document import advice_document

        advice, stored = read_advice(advices[0])
        return advice_document(advice, command=stored.command)
    records, is_one_source = read_folders(folders)
    fits, origins = fitted(records, is_one_source), [_origin(folder) for folder in folders]
    return sweep_report(fits, records, origins, out.name, version_line())


def _origin(folder: Path) -> Origin:
    """What the folder's sweep says of itself."""
    if not (folder / SWEEP).exists():
        return Origin(folder=str(folder), labels={})
    sweep = read_sweep(folder / SWEEP)
    same = {name: getattr(sweep, name) for name in ("name", "scale", "question", "kind")}
    labels = {place.hash: place.label for place in sweep.data}
    return Origin(folder=str(folder), labels=labels, planned=len(sweep.specs), **same)


@with_words("backtest", grids=ALL_GRIDS)
def back_test(grid: str | None = None) -> None:
    """How much loss plan, advise and published rules cost on data that they have not seen."""
    show(answers.backtest(grid).document)


@with_words("papers")
def papers(words: list[str] | None = None) -> None:
    """Each theorem, figure and table of the two papers: its command, and what we got."""
    show(papers_document(words or ()))
