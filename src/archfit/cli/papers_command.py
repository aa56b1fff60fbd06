"""`archfit papers`: the command for each theorem, figure, table and claim of the papers."""

from archfit.cli.options import with_words
from archfit.cli.output import show
from archfit.report.papers_document import papers_document


@with_words("papers")
def papers(words: list[str] | None = None) -> None:
    """Each theorem, figure and table of the two papers: its command, and what we got."""
    show(papers_document(words or ()))
