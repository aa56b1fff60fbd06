"""What runs say, as a document: its tables hold the fit's numbers, its commands can be pasted."""

from archfit.fit.fitted import fitted
from archfit.report.fit_document import Origin, commands, fit_document, printable, sweep_report
from archfit.report.terminal import text_of
from tests_curves import DATA
from tests_reports import depth_runs


def test_tables_hold_the_numbers_of_the_fit() -> None:
    records = depth_runs()
    origin = Origin(folder="runs", labels={DATA: "mine"})
    document = sweep_report(fitted(records), records, [origin], "it.html", "archfit 0")
    tables = {table.title: table for section in document.sections for table in section.tables}
    (row,) = tables["Depths at equal size"].rows
    assert row[:5] == ("6 and 12", "full", "mine", "deeper wins above", "3.02M")
    assert len(tables["All networks"].rows) == 10
    assert "Redundancy" not in tables
    assert tables["Data"].rows == (("mine", "2,000", DATA, str(len(records))),)


def test_a_terminal_has_the_conclusions_and_no_table_of_all_cells() -> None:
    text = text_of(fit_document(fitted(depth_runs())))
    assert "Depth 12 overtakes depth 6 at " in text
    assert "seeds needed" not in text
    assert "All networks" not in text


def test_words_from_files_are_cut_and_hold_nothing_that_cannot_be_drawn() -> None:
    assert printable("a\x00b\n", 10) == "a�b�"
    assert printable("x" * 50, 40) == "x" * 39 + "…"


def test_commands_can_be_pasted_whatever_the_folder_is_called() -> None:
    origin = Origin(
        folder="a b; rm -rf x", name="n", scale="smoke", question="", labels={}, planned=1
    )
    assert commands([origin], "r.html") == [
        "archfit sweep 'a b; rm -rf x/sweep.json' --out 'a b; rm -rf x'",
        "archfit report 'a b; rm -rf x' --out r.html",
    ]
