"""`archfit papers` at the command line."""

from tests_said import said


def test_one_item_is_answered_with_its_command() -> None:
    answer = said("papers", "figure", "1", "of", "Wies")
    assert answer.status == 0
    assert "archfit sweep wies-vocab --scale paper --dry-run" in answer.out
    assert len(answer.out.splitlines()) <= 12


def test_programs_get_every_item_with_its_keys() -> None:
    items = said("papers", "--json").document()["items"]
    keys = {"document", "authors", "items", "says", "command", "status", "ours", "figure"}
    assert isinstance(items, list)
    assert all(item.keys() == keys for item in items)
    assert len(items) > 36


def test_words_of_no_item_are_refused() -> None:
    assert "no item of the papers has the words 'qwerty'" in said("papers", "qwerty").refusal()
