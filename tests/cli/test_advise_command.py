"""`archfit advise`: the whole journey, run as a user runs it, on a source of kilobytes."""

import json
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from archfit.spec.files import read_records
from tests_said import Said, said
from tests_sweeps import wait_until

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def archfit(*arguments: str | Path, cwd: Path | None = None) -> Said:
    return said(*arguments, cwd=cwd)


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
    source: Path
    command: tuple[str, ...]

    @property
    def document(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = json.loads(self.said.out)
        return found

    @property
    def check(self) -> Path:
        return Path(str(self.document["check"]["folder"]))


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Advised:
    folder = tmp_path_factory.mktemp("advise")
    (folder / "small.fa").write_text(proteins(300))
    command = (
        *("advise", str(folder / "small.fa"), "--params", "60K", "--check", "--minutes", "0.1"),
        *("--max-depth", "4", "--context", "16", "--seeds", "2", "--device", "cpu"),
        *("--out", str(folder / "out"), "--json"),
    )
    return Advised(archfit(*command), folder / "out", folder / "small.fa", command)


def test_the_document_has_the_whole_journey(advised: Advised) -> None:
    assert (advised.said.status, advised.said.err) == (0, "")
    document = advised.document
    assert set(document) == {"data", "plan", "check", "export", "report"}
    assert document["data"]["kind"] == "fasta"
    letters = set(advised.source.read_text()) & set(LETTERS)
    limit = len(letters) + 1  # and a row that ends sequences
    assert document["plan"]["bottleneck"] == {"kind": "vocabulary", "limit": limit}
    check = document["check"]
    assert check["status"] in ("held", "refuted", "undecided")
    networks = check["networks"]
    assert isinstance(networks, list)
    assert sum(one["difference"] is None for one in networks) == 1
    assert networks == sorted(networks, key=lambda one: one["bits_per_byte"])
    assert {"kmer-2"} <= {one["name"] for one in networks}


def test_the_check_is_real_there_is_a_record_for_every_run_it_speaks_of(advised: Advised) -> None:
    records = read_records(advised.check)
    assert len(records) == advised.document["check"]["runs"]
    by_shape: dict[tuple[int, int], list[float]] = {}
    for record in records:
        shape = record.spec.architecture
        key = shape.depth, shape.params
        by_shape.setdefault(key, []).append(record.evaluations[-1].heldout_bits_per_byte)
    for one in advised.document["check"]["networks"]:  # type: ignore[attr-defined]  # a list
        losses = by_shape[one["depth"], one["params"]]
        assert one["bits_per_byte"] == pytest.approx(sum(losses) / len(losses))


def test_the_same_command_trains_nothing_again_and_says_the_same(advised: Advised) -> None:
    before = {path: path.stat().st_mtime_ns for path in advised.check.glob("*/record.json")}
    again = archfit(*advised.command)
    assert json.loads(again.out) == advised.document
    assert before == {path: path.stat().st_mtime_ns for path in advised.check.glob("*/record.json")}


def test_the_report_answers_first_and_has_every_chart(advised: Advised) -> None:
    page = (advised.out / "report.html").read_text()
    text = page[page.index("<body>") : page.index('id="charts"')]
    order = [text.index(words) for words in ('class="answer"', 'class="verdict', "<h2>Why")]
    assert order == sorted(order)
    names = ["check", "learning-curves", "shapes", "bounds", "cooccurrence"]
    found = [one["name"] for one in advised.document["report"]["figures"]]  # type: ignore[attr-defined]
    assert [name for name in found if name in names] == names
    for name in found:
        assert f'id="{name}" role="img" aria-label="' in text
        assert (advised.out / f"report-{name}.png").stat().st_size > 5000


@pytest.mark.slow  # the drawing of all charts once more
def test_the_report_can_be_written_again(advised: Advised, tmp_path: Path) -> None:
    page = (advised.out / "report.html").read_text()
    found = advised.document["report"]["figures"]
    said = archfit("report", advised.out, "--out", tmp_path / "report.html", "--json")
    assert len(said.document()["figures"]) == len(found)  # type: ignore[arg-type]
    assert (tmp_path / "report.html").read_text() == page


@pytest.mark.slow  # a check of its own
def test_killed_at_a_run_the_same_command_keeps_what_was_done(
    advised: Advised, tmp_path: Path
) -> None:
    command = [word.replace(str(advised.out), str(tmp_path / "out")) for word in advised.command]
    runner = subprocess.Popen(
        [sys.executable, "-m", "archfit", *command], stdout=subprocess.DEVNULL
    )
    wait_until(lambda: len(list(tmp_path.glob("out/check-*/*/record.json"))) >= 2, "two runs done")
    runner.kill()
    runner.wait()
    done = {path: path.read_bytes() for path in tmp_path.glob("out/check-*/*/record.json")}
    document = json.loads(archfit(*command).out)
    assert done == {path: path.read_bytes() for path in done}
    assert document["check"]["runs"] == 2 * len(document["check"]["networks"])
    assert len(done) < document["check"]["runs"]


def test_the_commands_that_repair_the_data_work(advised: Advised, tmp_path: Path) -> None:
    repairs = advised.document["plan"]["repairs"]
    assert isinstance(repairs, list)
    prepared = next(one["command"] for one in repairs if one["kind"] == "k-mer")
    assert prepared.startswith(f"archfit data prepare {advised.source}")
    said = archfit(*prepared.split()[1:], "--json", cwd=tmp_path)
    assert said.document()["vocab"] > 250  # type: ignore[operator]


def test_the_config_is_that_of_the_plan(advised: Advised) -> None:
    config = json.loads((advised.out / "model" / "config.json").read_text())
    shape = advised.document["plan"]["recommended"]
    assert (config["n_layer"], config["n_embd"]) == (shape["depth"], shape["width"])  # type: ignore[index]


def test_without_a_check_the_sample_is_advised_on_at_once(tmp_path: Path) -> None:
    said = archfit("advise", "--params", "1M", cwd=tmp_path)
    assert (said.status, said.err) == (0, "")
    assert "layers of width" in said.out.splitlines()[0]
    assert "Not checked on your data: add --check" in said.out
    page = (tmp_path / "advice-sample" / "report.html").read_text()
    assert "Which Transformer fits the English sample?" in page
    assert archfit("advise", "--params", "1M", "--vocab", "300", cwd=tmp_path).refusal() == (
        "archfit: advice-sample holds the advice on other data or settings; use another --out\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "kind", "way_out"),
    [
        (
            "a.fa",
            "Call me Ishmael. " * 40,
            "",
            "looks like text, and was read as fasta: try --kind",
        ),
        ("a.txt", "\udcff\udcfe\udc80" * 50, "", "no UTF-8 text, and was read as text: try --kind"),
        ("a.csv", ">s\nMKV\n" * 40, "", "looks like sequences in FASTA, and was read as series"),
    ],
)
def test_a_source_that_cannot_be_read_is_said_with_the_kind_that_might_work(
    tmp_path: Path, name: str, content: str, kind: str, way_out: str
) -> None:
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    more = ("--kind", kind) if kind else ()
    refusal = archfit("advise", name, "--params", "1M", *more, cwd=tmp_path).refusal()
    assert way_out in refusal
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_cannot_be_is_refused_before_anything_is_prepared(tmp_path: Path) -> None:
    refusal = archfit("advise", "--minutes", "0", "--check", cwd=tmp_path).refusal()
    assert "minutes=0" in refusal
    refusal = archfit("advise", "--params", "0", cwd=tmp_path).refusal()
    assert "params=0 buys nothing" in refusal
    refusal = archfit("advise", "--check", "--device", "abacus", cwd=tmp_path).refusal()
    assert "device='abacus' is unknown" in refusal
    refusal = archfit("advise", "missing.txt", cwd=tmp_path).refusal()
    assert "there is no file or folder 'missing.txt'" in refusal
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_could_be_drawn_nothing_is_trained(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['altair'] = None; sys.argv = ['archfit', 'advise', '--check']; "
        "from archfit.cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    refusal = Said(status=done.returncode, out=done.stdout, err=done.stderr).refusal()
    assert "altair is missing, which draws the report" in refusal
    assert list(tmp_path.iterdir()) == []
