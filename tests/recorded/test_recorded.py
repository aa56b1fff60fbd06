"""Recorded command lines answer as they did when they were recorded; see README.md here."""

from pathlib import Path

import pytest

from recorded.replay import EXACT, LEARNT, TRAINING, commands, differences, recording, replayed

COMMANDS = commands()
SLOW: set[str] = set()


@pytest.mark.parametrize(
    "group",
    [pytest.param(group, marks=[pytest.mark.slow] * (group in SLOW)) for group in COMMANDS],
)
def test_commands_answer_as_recorded(group: str, tmp_path: Path) -> None:
    tolerance = LEARNT if group in TRAINING else EXACT
    recorded, wrong = recording(group), []
    assert [answer["command"] for answer in recorded] == COMMANDS[group], "capture this group anew"
    for old, new in zip(recorded, replayed(COMMANDS[group], tmp_path), strict=True):
        found = [*differences(old, new, tolerance), *_more_files(old, new)]
        wrong += [f"archfit {old['command']}\n    {line}" for line in found[:20]]
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong])


def _more_files(old: dict[str, object], new: dict[str, object]) -> list[str]:
    before, now = old["files"], new["files"]
    assert isinstance(before, dict)
    assert isinstance(now, dict)
    return [f"wrote {name}, which it did not before" for name in now.keys() - before.keys()]


def test_all_commands_and_many_refusals_are_recorded() -> None:
    answers = [answer for group in COMMANDS for answer in recording(group)]
    verbs = {str(answer["command"]).split()[0] for answer in answers}
    assert verbs == {
        *("advise", "audit", "bounds", "data", "export", "fit", "measure", "plan"),
        *("report", "serve", "sweep", "theory", "train", "witness"),
    }
    assert len(answers) >= 100
    refused = [answer for answer in answers if answer["status"] == 2]
    assert len(refused) >= 25
    assert {answer["refusal"] for answer in refused} == {"one line"}
