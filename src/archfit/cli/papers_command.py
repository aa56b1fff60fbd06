"""`archfit papers`: which command is a theorem, figure, table or claim of the papers."""

from archfit.cli.options import with_words
from archfit.cli.output import show
from archfit.report.papers_document import papers_document


@with_words("papers")
def papers(words: list[str] | None = None) -> None:
    """Which command is a theorem, figure or table of the papers, its status and our number."""
    show(papers_document(words or ()))
