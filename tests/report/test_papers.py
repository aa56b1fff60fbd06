"""Every numbered item of the four documents has a command, a status and a number."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archfit.advise.redundancy import attention_redundancy, rank_redundancy
from archfit.cli.app import program
from archfit.fit.evidence_points import shipped_findings
from archfit.report.papers_document import (
    NOT_RUN,
    our_number,
    paper_items,
    papers_document,
)
from archfit.report.terminal import text_of

DOCS = Path(__file__).parents[2] / "docs"


def numbered(kind: str, last: int) -> set[str]:
    return {f"{kind} {number}" for number in range(1, last + 1)}


# Read from the documents themselves, item by item, before the table was written.
NUMBERED = {
    "000": numbered("Lemma", 8) | numbered("Theorem", 4) | numbered("Claim", 3)
    | numbered("Table", 2) | {"Corollary 1", "Figure 1", "Proposition 1"},
    "001": numbered("Lemma", 6) | numbered("Theorem", 4) | numbered("Claim", 4)
    | numbered("Corollary", 3) | {"Table 1", "Figure 1"},
    "002": numbered("Lemma", 8) | numbered("Theorem", 4) | numbered("Corollary", 2)
    | numbered("Figure", 7) | numbered("Table", 5) | {"Claim 1"},
}  # fmt: skip
CLAIMS = {
    "000": {"Appendix D: the law"},
    "001": {"Abstract: the threshold"},
    "002": {
        "Section 5.1", "Section 5.2.1", "Section 5.2.2", "Section 5.3", "Section C.4",
        "Section 4.2.1: ALBERT", "Section 5.1: ESM-1b", "Section 4.2.3: T5",
        "Section 4.2.2: images", "Section 6: ViT-Huge", "Section 6: 1T parameters",
    },
    "004": {
        "Theorem 1 with coefficients", "Theorem 2 with coefficients", "Regime transition point",
        "Residual connections", "Small real networks",
    },
}  # fmt: skip
STATUSES = {
    *("proved", "derived", "disputed", "measured", "trained", "listed", "audited", "counted"),
    "not ours",
}


def test_no_numbered_item_is_missing_and_none_is_made_up() -> None:
    for document in ("000", "001", "002", "004"):
        listed = [
            name for item in paper_items() if item.document == document for name in item.items
        ]
        assert set(listed) == NUMBERED.get(document, set()) | CLAIMS[document]
        assert len(listed) == len(set(listed))
    assert {item.status for item in paper_items()} == STATUSES


def test_every_figure_of_the_papers_is_redrawn() -> None:
    for item in paper_items():
        has_figure = any(name.startswith("Figure") for name in item.items)
        assert bool(item.figure) >= has_figure
        if item.figure:
            assert (DOCS / "papers" / f"{item.figure}.svg").is_file()


@pytest.mark.parametrize("command", sorted({item.command for item in paper_items()}))
def test_every_command_runs(command: str) -> None:
    program_name, *words = shlex.split(command)
    assert program_name == "archfit"
    done = CliRunner().invoke(program(words), words)
    assert done.exit_code == 0, done.output
    assert done.output


def test_the_page_is_what_the_table_and_the_records_say() -> None:
    papers_page = runpy.run_path(str(DOCS / "papers" / "write.py"))["papers_page"]
    assert (DOCS / "papers.md").read_text() == papers_page()


def test_every_place_of_a_finding_has_one_or_will() -> None:
    findings = shipped_findings()  # another test compares them with the records
    to_come = ("fair-", "figure-one-", "rank-long")
    for item in paper_items():
        for id_, what in re.findall(r"\{([a-z][^}/]*)/?([^}]*)\}", item.ours):
            assert id_ in findings or id_.startswith(to_come), id_
            named = {one["what"] for one in findings[id_]["measures"]} if id_ in findings else {}
            assert not what or not named or what in named
        assert "{" not in our_number(item)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("figure 1 of wies", "Wies 2021, Figure 1, Section 5.2.1"),
        ("Which command is table 5 of Wies?", "Wies 2021, Table 5"),
        ("5.2.2", "Wies 2021, Figure 3, Section 5.2.2"),
        ("000 table 2", "Levine 2020, Table 2"),
        ("ALBERT", "Wies 2021, Section 4.2.1: ALBERT"),
    ],
)
def test_words_find_their_item(words: str, name: str) -> None:
    document = papers_document(words.split())
    assert document.headline.startswith(name)
    assert len(text_of(document, why=False).splitlines()) <= 12


def test_words_that_are_in_no_name_are_looked_for_in_what_items_say() -> None:
    assert "Levine preprint, Corollary 1" in papers_document(["2e17"]).headline


@pytest.mark.parametrize("words", [[], ["wies"], ["theorem"], ["figure"]])
def test_an_answer_has_at_most_12_lines_and_why_has_all(words: list[str]) -> None:
    document = papers_document(words)
    assert len(text_of(document, why=False).splitlines()) <= 12
    told = text_of(document, why=True)
    for item in document.data["items"]:  # type: ignore[index]
        assert item["command"] in told


def test_nonsense_is_refused_with_a_way_out() -> None:
    with pytest.raises(ValueError, match="no item of the papers has the words 'qwerty'"):
        papers_document(["qwerty"])


def test_numbers_that_the_table_writes_out_are_those_of_the_audit() -> None:
    written = {item.items[0]: item.ours for item in paper_items()}
    albert = str(rank_redundancy(128, 4096, 12))
    assert written["Section 4.2.1: ALBERT"].startswith(albert)
    if NOT_RUN not in written["Section 4.2.3: T5"]:
        three, eleven = (attention_redundancy(ratio, 24, like_t5=True) for ratio in (4, 16))
        assert three.low <= 0.2 < 0.3 <= three.high
        assert eleven.low <= 0.4 < 0.5 <= eleven.high


def test_the_papers_printed_numbers_come_out() -> None:
    ours = {item.name: our_number(item) for item in paper_items()}
    assert ours["Levine preprint, Table 1"].startswith("5, 6, 7, 8, 9;")
    two, three = map(float, ours["Levine preprint, Corollary 1"].split(" and "))
    assert [two, three] == [pytest.approx(2e17, rel=0.3), pytest.approx(2e5, rel=0.03)]
