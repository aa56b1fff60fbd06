"""What every command says to people: twelve lines of 80 columns, the answer first, nothing lost."""

import json
import re
import shlex
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archfit.cli import shared
from archfit.cli.app import COMMANDS
from archfit.cli.shared import WORDS
from archfit.report.document import Command, Document
from archfit.report.explorer import server
from archfit.report.terminal import COLUMNS, LINES, MORE, text_of
from recorded.world import write_world
from tests_said import archfit, unwrapped

TINY = (
    "--depth 1 --width 8 --heads 2 --context 12 --steps 4 --batch 4 --evaluation-sequences 3 "
    "--device cpu"
)
COMMAND_LINES = {  # and what stands in the first two lines of the answer
    "theory ub_stat L=3 d_x=4": r"ub_stat\(L=3, d_x=4\) = 31460",
    "theory": r"[Qq]uantities",
    "theory ub_thm2 L=3 d_x=4 --counterexample": r"ub_thm2\(L=3, d_x=4\) = ",
    "bounds --depth 12 --width 768 --heads 12": r"separation rank <= 3\^241373",
    "bounds --depth 6 --width 64 --heads 4 --vocab 33 --counterexample": r"separation rank",
    "measure --depth 2 --width 4 --heads 1 --positions 4": r"separation rank = 110",
    "measure --claim list": r"[Cc]laims",
    "measure --claim partition-symmetry": r"holds in all \d+ cases",
    "witness --depth 2 --width 4 --heads 1": r"separation rank 3 or more",
    "plan --params 10M": r"\d+ layers of width \d+, \d+ heads of \d+ for 10,000,000 param",
    "plan --params 300k --vocab 33 --block llama --objective causal": r"of width \d+, ",
    "plan --params 1M --data bytes": r"layers? of width \d+, ",
    "plan --params 1M --patch 16x16x3": r"layers? of width \d+, ",
    "advise words.txt --no-measure --out advice": r"of width \d+, .* tokens .* for 10,000,000",
    "audit gpt2": r"GPT-2: nothing found",
    "audit T5-11B": r"T5-11B: attention-bottleneck \(encoder, decoder\)",
    "audit gpt2 T5-11B configs/albert": r"Of 3 models: ",
    "audit --all": r"Of \d+ models: \d+ with attention-bottleneck",
    "audit checkpoint --weights": r"low-rank-embedding",
    "export --depth 2 --width 48 --heads 4 --out model": r"hf-gpt2: [\d,]+ parameters",
    "data prepare words.txt --out words": r"words: [\d,]+ tokens of text as ",
    "data prepare words.txt --out words --kind text": r"words: [\d,]+ tokens of text as ",
    "data inspect bytes": r"bytes: [\d,]+ tokens of bytes as bytes, \d+ of 257 in use",
    f"train --data bytes --out one {TINY}": r"Held-out loss \d\.\d+ nats per token \(\d\.\d+ bits",
    f"train --data bytes --out two --seeds 6 {TINY}": r"6 runs: held-out loss .* nats per token",
    f"train --data bytes --out tuned --tune {TINY}": r"3 runs: held-out loss .* nats per token",
    "sweep levine-depth --dry-run": r"levine-depth, smoke: 27 runs, about .* on one H200",
    "sweep train.toml --data bytes --out swept --device cpu": r"train: 2 runs, 2 done now",
    "sweep train.toml --data bytes --out slurm --slurm job.sh": r"job.sh: 8 tasks for 2 runs",
    "fit runs/wies-rank": r"redundant",
    "fit runs/levine-depth": r"[Dd]epth",
    "papers": r"\d+ items of the papers: \d+ proved",
    "papers figure 1 wies": r"Wies 2021, Figure 1",
    "fit --evidence": r"\d+ experiments on the papers' claims: \d+ confirmed, \d+ refuted",
    "fit --atlas": r"[\d,]+ runs on \d+ kinds of data: best depths of ",
    "report runs/wies-rank --out page.html": r"page.html: \d+ charts",
    "backtest --grid gadre": r"archfit plan is 0\.\d+ nats per token worse than the best depth",
    "serve --port 0": r"http://127\.0\.0\.1:\d+/",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the commands read."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    words = ["words.txt", "--kind", "bytes", "--heldout", "heldout.txt", "--out", "bytes"]
    assert archfit("data", "prepare", *words, cwd=folder).returncode == 0
    return folder


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Document]]:
    """The documents that the command shows."""
    documents: list[Document] = []

    def noting(document: Document, **manner: bool) -> str:
        documents.append(document)
        return text_of(document, **manner)

    def answering(listener: socket.socket, ready: Callable[[], None]) -> None:
        listener.close()
        ready()

    monkeypatch.setattr(shared, "text_of", noting)
    monkeypatch.setattr(server, "serve", answering)
    return documents  # type: ignore[return-value]  # pytest takes a value, too


def test_the_list_below_has_every_command() -> None:
    lines = [line.split() for line in COMMAND_LINES]
    assert {" ".join(words[: 1 + (words[0] == "data")]) for words in lines} == set(COMMANDS)


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_people_get_the_answer_in_twelve_lines(
    line: str, world: Path, told: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    done = archfit(*shlex.split(line), cwd=world)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= LINES, done.stdout
    assert max(map(len, lines)) <= COLUMNS, done.stdout
    assert re.search(COMMAND_LINES[line], unwrapped(" ".join(lines[:2]))), done.stdout
    (document,) = told
    json.dumps(document.data, allow_nan=False)
    _is_complete(document)
    _is_brief(document, done.stdout)


def _is_complete(document: Document) -> None:
    """Every sentence and every word of a table stands in what --why prints."""
    everything = unwrapped(text_of(document, why=True))
    folded = everything.replace(" \\ ", " ")
    assert unwrapped(document.headline) in everything
    for section in document.sections:
        if section.is_detail:
            continue
        for sentence in (section.title, *section.sentences):
            if isinstance(sentence, Command):  # what is said behind it may be left out
                assert unwrapped(sentence.partition("  #")[0]) in folded
            else:
                assert unwrapped(sentence) in everything
        for table in section.tables:
            for cell in (word for row in table.narrowed().rows for word in row):
                assert all(word in everything for word in cell.split())
    assert MORE not in everything


def _is_brief(document: Document, text: str) -> None:
    """What is shown is a part of all; where something is left out it says so, and not elsewhere."""
    everything, shown = text_of(document, why=True).splitlines(), text.splitlines()
    assert set(shown) - {MORE} <= set(everything)
    assert (MORE in shown) == (len(everything) > len(set(shown) - {MORE}))
    assert text_of(document, why=True, quiet=True) == "\n".join(
        shown[: text_of(document, quiet=True).count("\n") + 1]
    )


def test_help_has_the_commands_in_three_groups_in_the_order_of_their_use() -> None:
    told = archfit("--help").stdout.partition("-h  ")[2]
    listed = re.findall(
        r"^\W+([a-z]+(?= {2,}\w)|Advice|Data and training|Theory)", told, re.MULTILINE
    )
    wanted: dict[str, None] = {}
    for verb in COMMANDS:
        wanted |= dict.fromkeys((WORDS[verb]["panel"], verb.split()[0]))
    assert listed == [*wanted]


@pytest.mark.parametrize("verb", COMMANDS)
def test_help_has_examples_whose_options_it_names_and_no_types_of_flags(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = archfit(*verb.split(), "--help").stdout
    assert "<bool>" not in told
    options, _, listed = told.partition("Examples:")
    examples = [line.strip() for line in listed.splitlines() if line.strip()]
    assert examples
    for example in examples:
        assert example.startswith(f"archfit {verb}")
        named = [word for word in shlex.split(example) if word.startswith("--")]
        assert all(f"{option} " in options for option in named), example
