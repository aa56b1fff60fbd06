"""`archfit advise`: the whole journey, run as a user runs it."""

import json
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archfit.spec.files import read_records
from tests_said import Said, said, unwrapped
from tests_sweeps import wait_until

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
KEYS = {
    *("data", "recommended", "depth_range", "expected_regret", "basis", "warnings", "runner_up"),
    *("vocabularies", "ladder", "failures", "plan", "export", "report"),
}
# The sizes of the ladder, so small that a rung takes seconds.
SMALL: dict[str, object] = {
    "ladder.SIZES": (15_000,),
    "measure.SIZES": (15_000,),
    "ladder.LEAST_SIZE": 15_000,
    "measure.TRIAL_SIZES": (8_000,),
}


def advise(*arguments: str | Path, cwd: Path | None = None) -> Said:
    return said("advise", *arguments, cwd=cwd)


def proteins(count: int) -> str:
    """Sequences of three repeated motifs, so that there is something to learn."""
    draw = random.Random(0)
    motifs = ["".join(draw.choices(LETTERS, k=12)) for _ in range(3)]
    return "".join(
        f">{number}\n{''.join(draw.choice(motifs) for _ in range(12))}\n" for number in range(count)
    )


@dataclass(frozen=True)
class Advised:
    """What the command made."""

    said: Said
    out: Path
    words: tuple[str, ...]

    @property
    def document(self) -> dict[str, Any]:
        return self.said.document()

    @property
    def page(self) -> str:
        return (self.out / "report.html").read_text()

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "model" / "config.json").read_text())
        return found

    @property
    def records(self) -> dict[str, bytes]:
        """Every run, by its place."""
        found = sorted((self.out / "ladder").glob("*/record.json"))
        return {str(path): path.read_bytes() for path in found}


def check_one_answer(advised: Advised) -> None:
    """The shape is one wherever it stands: in JSON, in the page and in the config."""
    document, config = advised.document, advised.config
    shape = document["recommended"]
    answer = [shape[name] for name in ("depth", "width", "heads", "vocab")]
    assert answer == [config[name] for name in ("n_layer", "n_embd", "n_head", "vocab_size")]
    planned = document["plan"]["recommended"]
    assert answer == [planned[name] for name in ("depth", "width", "heads", "vocab")]
    assert document["data"]["vocab"] == shape["vocab"]
    headline = re.search(r'<p class="answer">(.*?)</p>', advised.page)
    assert headline is not None
    numbers = re.match(
        r"(\d+) layers? of width (\d+), (\d+) heads? of (\d+), ([\d,]+) tokens", headline[1]
    )
    assert numbers is not None
    depth, width, heads, head_dim, vocab = (int(n.replace(",", "")) for n in numbers.groups())
    assert [depth, width, heads, vocab] == answer
    assert heads * head_dim == width


@pytest.fixture(scope="module")
def unmeasured(tmp_path_factory: pytest.TempPathFactory) -> Advised:
    """The sample, at a size for which a BPE is made."""
    folder = tmp_path_factory.mktemp("unmeasured")
    words = ("--params", "1M", "--no-measure", "--out", str(folder / "out"), "--json")
    return Advised(advise(*words), folder / "out", words)


def test_without_measuring_the_sample_has_an_answer_a_page_and_a_config(
    unmeasured: Advised,
) -> None:
    document = unmeasured.document
    assert set(document) == KEYS
    check_one_answer(unmeasured)
    assert (document["ladder"], document["vocabularies"]) == ([], [])
    assert document["basis"]["source"] == "prior"
    assert (document["data"]["kind"], document["basis"]["family"]) == ("text", "text")
    low, high = document["depth_range"]
    assert low <= document["recommended"]["depth"] <= high
    for file in (*document["export"]["files"], document["report"]["file"]):
        assert Path(file).is_file()
    assert {Path(file).name for file in document["export"]["files"]} >= {
        *("config.json", "tokenizer.json"),
    }
    assert json.loads((unmeasured.out / "advice.json").read_text())["runs"] == []
    assert unmeasured.records == {}


def test_the_report_answers_first_and_has_every_chart(unmeasured: Advised) -> None:
    page = unmeasured.page
    assert "Which Transformer fits the English sample?" in page
    text = page[page.index("<body>") : page.index('id="charts"')]
    order = [
        text.index(words) for words in ('class="answer"', "worse than the best depth", "<h2>Depths")
    ]
    assert order == sorted(order)
    names = [one["name"] for one in unmeasured.document["report"]["figures"]]
    assert names == ["prior", "depths"]
    for name in names:
        assert f'id="{name}" tabindex="0" role="img" aria-label="' in text
        assert (unmeasured.out / f"report-{name}.png").stat().st_size > 5000


def test_the_report_can_be_written_again(unmeasured: Advised, tmp_path: Path) -> None:
    again = said("report", unmeasured.out, "--out", tmp_path / "report.html", "--json")
    assert len(again.document()["figures"]) == 2  # type: ignore[arg-type]
    assert (tmp_path / "report.html").read_text() == unmeasured.page


def test_people_are_told_the_answer_in_a_few_lines_and_why_if_they_ask(
    unmeasured: Advised,
) -> None:
    words, config = [word for word in unmeasured.words if word != "--json"], unmeasured.config
    told = advise(*words)
    assert unmeasured.config == config  # the same question has the same answer
    assert (told.status, told.err) == (0, "")
    lines = told.out.splitlines()
    shape = unmeasured.document["recommended"]
    assert lines[0].startswith(f"{shape['depth']} layers of width {shape['width']}, ")
    assert f"{shape['vocab']:,} tokens" in unwrapped(told.out)
    assert f"The report: {unmeasured.out / 'report.html'}; the config: " in unwrapped(told.out)
    train = (
        f"python {unmeasured.out / 'model' / 'train.py'} {unmeasured.document['data']['folder']}"
    )
    assert len(lines) <= 12
    title, why = "What speaks against this", advise(*words, "--why").out
    assert train in unwrapped(why.replace("\\\n", ""))  # long names leave no room for it above
    assert title not in told.out
    assert title in why
    assert "Nothing was trained on your data" in why


def test_another_question_about_the_same_data_is_answered_in_place(
    unmeasured: Advised, tmp_path: Path
) -> None:
    """The folder keeps its data; what is advised is replaced."""
    shutil.copytree(unmeasured.out, out := tmp_path / "out")
    before = (out / "data" / "train.bin").stat().st_mtime_ns
    words = ("--params", "1M", "--block", "llama", "--no-measure", "--out", str(out), "--json")
    asked = Advised(advise(*words), out, words)
    assert asked.config["model_type"] == "llama"
    shape = asked.document["recommended"]
    assert asked.config["num_hidden_layers"] == shape["depth"]
    assert asked.config["intermediate_size"] == shape["feed_forward"]
    assert (out / "data" / "train.bin").stat().st_mtime_ns == before


def test_other_settings_of_the_data_want_another_folder(unmeasured: Advised) -> None:
    refusal = advise(*unmeasured.words, "--vocab", "300").refusal()
    assert "holds the advice on other data or settings; use another --out" in refusal


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Advised:
    """Six seconds to measure: too few for a rung, and no reason to fail."""
    folder = tmp_path_factory.mktemp("measured")
    words = (
        *("--params", "250k", "--vocab", "257", "--minutes-to-measure", "0.1", "--device", "cpu"),
        *("--out", str(folder / "out"), "--json"),
    )
    return Advised(advise(*words), folder / "out", words)


def test_the_shortest_measuring_ends_with_or_without_runs(measured: Advised) -> None:
    document = measured.document
    assert set(document) == KEYS
    check_one_answer(measured)
    assert document["failures"] == []
    source = "ladder" if document["ladder"] else "prior"
    assert document["basis"]["source"] == source


def test_measuring_goes_on_where_it_was_and_keeps_every_record(measured: Advised) -> None:
    before = measured.records
    again = Advised(advise(*measured.words), measured.out, measured.words)
    check_one_answer(again)
    assert {place: again.records[place] for place in before} == before
    assert len(again.document["ladder"]) >= len(measured.document["ladder"])


def test_minutes_are_of_this_machine_where_none_is_named(measured: Advised) -> None:
    words = ("--minutes", "1", *measured.words[2:])
    try:
        document = Advised(advise(*words), measured.out, words).document
        assert document["plan"]["question"]["budget"] == "--minutes 1"
        assert 10**4 < document["recommended"]["params"]["total"] < 10**7
        assert re.search(r'class="answer">[^<]* for 1 minute on ', measured.page)
    finally:
        advise(*measured.words)


@pytest.fixture
def small_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(f"archfit.advise.{name}", value)


def small_words(folder: Path) -> tuple[str, ...]:
    (folder / "small.fa").write_text(proteins(1500))
    return (
        *(str(folder / "small.fa"), "--params", "60K", "--context", "16", "--max-depth", "8"),
        *("--device", "cpu", "--minutes-to-measure", "0.5", "--out", str(folder / "out"), "--json"),
    )


@pytest.mark.slow  # networks are trained for half a minute
@pytest.mark.usefixtures("small_ladder")
def test_what_a_ladder_measures_is_real_decides_and_is_shown(tmp_path: Path) -> None:
    words = small_words(tmp_path)
    advised = Advised(advise(*words), tmp_path / "out", words)
    document = advised.document
    check_one_answer(advised)
    assert document["basis"]["source"] == "ladder"
    assert document["basis"]["runs"] == len(document["ladder"]) >= 3
    losses = {
        (record.spec.architecture.depth, record.spec.architecture.params, record.spec.seed): (
            record.evaluations[-1].heldout_bits_per_byte
        )
        for record in read_records(tmp_path / "out" / "ladder")
    }
    for run in document["ladder"]:
        assert run["bits"] == pytest.approx(losses[run["depth"], run["params"], run["seed"]])
    assert [one["name"] for one in document["report"]["figures"]] == ["ladder", "prior", "depths"]
    again = said("report", tmp_path / "out", "--out", tmp_path / "again.html")
    assert again.status == 0
    assert (tmp_path / "again.html").read_text() == advised.page


@pytest.mark.slow  # networks are trained for half a minute, twice
def test_killed_at_a_run_the_same_command_keeps_what_was_done(tmp_path: Path) -> None:
    words = small_words(tmp_path)
    patches = "; ".join(
        f"import archfit.advise.{name.split('.')[0]}; archfit.advise.{name} = {value}"
        for name, value in SMALL.items()
    )
    code = f"{patches}; from archfit.cli.app import main; main()"
    command = [sys.executable, "-c", code, "advise", *words]
    runner = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    records = Advised(Said(status=0, out="", err=""), tmp_path / "out", words)
    wait_until(lambda: len(records.records) >= 2, "two runs done")
    runner.kill()
    runner.wait()
    done = records.records
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    document = json.loads(again.stdout)
    assert {place: records.records[place] for place in done} == done
    assert len(document["ladder"]) >= 3


@pytest.mark.parametrize(
    ("name", "content", "way_out"),
    [
        ("a.fa", "Call me Ishmael. " * 40, "looks like text, and was read as fasta: try --kind"),
        ("a.txt", "\udcff\udcfe\udc80" * 50, "no UTF-8 text, and was read as text: try --kind"),
        ("a.csv", ">s\nMKV\n" * 40, "looks like sequences in FASTA, and was read as series"),
        ("a.txt", "hi\n", "is too small (3 bytes of content) to hold out 5 % of it"),
        ("a.txt", "", "is empty: it holds no document of kind text"),
    ],
)
def test_a_source_that_cannot_be_read_is_said_with_a_way_out(
    tmp_path: Path, name: str, content: str, way_out: str
) -> None:
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert way_out in advise(name, "--params", "1M", cwd=tmp_path).refusal()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_source_of_a_few_kilobytes_is_answered_and_said_to_be_too_small(tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = ["".join(draw.choices("abcdefgh ", k=60)) for _ in range(60)]
    (tmp_path / "notes.txt").write_text("\n".join(lines))
    words = ("notes.txt", "--params", "250k", "--minutes-to-measure", "0.1", "--why")
    told = advise(*words, cwd=tmp_path)
    assert (told.status, told.err) == (0, "")
    assert re.search(r"they suit about [\d,]+ parameters", unwrapped(told.out))
    assert "Nothing was trained on your data" in told.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--minutes 10",
            "is the time of the training that you plan; say how long to measure",
        ),
        ("--minutes 10 --gpu h200", "by --minutes-to-measure M, or --no-measure"),
        ("--minutes 10 --no-measure", "need a machine"),
        ("--minutes 10 --gpu abacus --no-measure", "was not timed; use h200, cpu"),
        ("--gpu h200 --no-measure", "says whose minutes; give --minutes, too"),
        ("--minutes-to-measure 1 --no-measure", "--minutes-to-measure and --no-measure are given"),
        ("--minutes-to-measure 0", "--minutes-to-measure=0.0 is not in 0.1"),
        ("--minutes-to-measure nan", "--minutes-to-measure=nan is not in 0.1"),
        ("--family tea", "is no family of data that we know; use "),
        ("--device abacus", "device='abacus' is unknown"),
        ("--workers 0", "workers=0 is below 1"),
        ("--params 0", "params=0 buys nothing"),
        ("--params 1M --flops 1e18", "--params and --flops are given"),
        ("--bytes none", "'none' is not a size"),
        ("--block t5", "block='t5' is unknown"),
        ("missing.txt", "there is no file or folder 'missing.txt'"),
        ("--check", "No such option: --check"),
        ("--seeds 3", "No such option: --seeds"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_prepared(
    tmp_path: Path, words: str, sentence: str
) -> None:
    assert sentence in advise(*words.split(), cwd=tmp_path).refusal()
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_is_not_there_is_missed_before_anything_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    words = ("--params", "250k", "--device", "cuda", "--minutes-to-measure", "0.1")
    assert "device='cuda' is not on this machine" in advise(*words, cwd=tmp_path).refusal()
    assert list(tmp_path.iterdir()) == []


def test_a_budget_below_its_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.fa").write_text(proteins(40))
    words = ("small.fa", "--params", "5k", "--context", "2048", "--no-measure")
    assert "does not pay for one layer" in advise(*words, cwd=tmp_path).refusal()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.fa"]


@pytest.mark.parametrize("files", [3, 101])  # 101 are too many for data.json to name
def test_a_folder_of_source_code_is_advised_by_code(files: int, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for number in range(files):
        text = "\n".join(f"def f{n}(x):\n    return x + {n * number}" for n in range(20))
        (tmp_path / "src" / f"part{number}.py").write_text(text)
    (tmp_path / "src" / "notes.toml").write_text("a = 1\n")
    words = ("plan", "--params", "1M", "--data")
    found: Any = said(*words, "src", "--json", cwd=tmp_path).document()
    assert found["question"]["family"] == "code"
    said("data", "prepare", "src", "--out", "made", cwd=tmp_path)
    again: Any = said(*words, "made", "--json", cwd=tmp_path).document()
    assert again["question"]["family"] == "code"
    commands = [repair["command"] for repair in again["repairs"]]
    assert not any(" files" in command for command in commands)  # which is no name of a source


def test_a_budget_below_the_tables_of_the_data_leaves_no_folder(tmp_path: Path) -> None:
    """Two tokens would be paid for, and 22 are not: that is known once the data are read."""
    (tmp_path / "small.fa").write_text(proteins(40))
    words = ("small.fa", "--params", "3900", "--context", "16", "--no-measure", "--out", "out")
    refusal = advise(*words, cwd=tmp_path).refusal()
    assert "does not pay for one layer of width 16; use a larger budget (" in refusal
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.fa"]
    assert "--rank" not in refusal  # which advise does not have


@pytest.mark.parametrize("name", ["report.html", "model/weights.bin"])
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / name).parent.mkdir(parents=True)
    (tmp_path / "out" / name).write_text("mine")
    refusal = advise("--params", "1M", "--no-measure", "--out", tmp_path / "out").refusal()
    assert f"holds {name.split('/')[0]} and no advice" in refusal
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert found == [tmp_path / "out" / name]


def test_where_nothing_can_be_drawn_there_is_advice_without_a_page(tmp_path: Path) -> None:
    (tmp_path / "small.fa").write_text(proteins(100))
    words = ["advise", "small.fa", "--params", "60K", "--no-measure", "--out", "found"]
    code = (
        f"import sys; sys.modules['altair'] = None; sys.argv = {['archfit', *words]}; "
        "from archfit.cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "No report is drawn: pip install altair" in done.stdout
    found = tmp_path / "found"
    assert not (found / "report.html").exists()
    assert (found / "model" / "config.json").exists()
    drawn = said("report", found, "--out", tmp_path / "page.html")
    assert drawn.status == 0
    assert (tmp_path / "page.html").exists()


def test_where_nothing_can_be_trained_the_atlas_answers(tmp_path: Path) -> None:
    (tmp_path / "small.fa").write_text(proteins(100))
    code = (
        "import sys; sys.modules['torch'] = None; "
        "sys.argv = ['archfit', 'advise', 'small.fa', '--params', '60K', '--json']; "
        "from archfit.cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "torch is missing, so nothing is measured and the atlas answers" in done.stderr
    assert json.loads(done.stdout)["basis"]["source"] == "prior"
