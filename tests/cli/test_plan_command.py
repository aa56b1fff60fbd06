"""`archfit plan`, run as a user runs it."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archfit.cli.app import program
from archfit.spec.run_options import RunOptions
from tests_said import archfit, said, unwrapped

MOST_LINES = 12


def plan(*arguments: str) -> subprocess.CompletedProcess[str]:
    return archfit("plan", *arguments)


def answer(*arguments: str) -> dict[str, dict[str, object]]:
    done = plan(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_the_papers_example_comes_out_of_the_command() -> None:
    document = answer("--block-params", "1.3B", "--vocab", "50257")
    assert document["ideal"]["depth"] == pytest.approx(42.2, rel=5e-3)
    assert document["ideal"]["width"] == pytest.approx(1603, rel=5e-3)
    assert document["bottleneck"] is None


def test_a_patch_limits_the_rank_with_and_without_a_vocabulary() -> None:
    for more in ((), ("--vocab", "256")):
        document = answer("--params", "2B", "--patch", "16x16x3", *more)
        assert document["bottleneck"] == {"kind": "patch", "limit": 768}
        assert document["recommended"]["embedding_rank"] == 768


def test_prepared_data_bring_their_used_vocabulary_tokens_and_rank(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    archfit("data", "prepare", "--out", folder).check_returncode()
    document = answer("--params", "1B", "--data", folder)
    assert document["bottleneck"] == {"kind": "vocabulary", "limit": 80}
    assert folder in str(document["export"])
    assert "few data: 920,269 tokens, 0.0037 per parameter at" in " ".join(document["warnings"])
    training = document["training"]
    assert training["tokens"] == 4 * 920_269  # read four times, not 20 for each parameter
    assert training["tokens_per_param"] == pytest.approx(0.0036, rel=0.05)
    question = document["question"]
    assert (question["family"], question["used_vocab"]) == ("text", 80)
    assert document["expected_regret"]["unit"] == "bits per byte"
    lines = plan("--params", "1B", "--data", folder).stdout.splitlines()
    assert len(lines) <= MOST_LINES


BUDGETS = (
    "--params 100K",
    "--params 10M --family code",
    "--params 125M",
    "--params 1B --vocab 33",
    "--params 70B --family music",
    "--params 1e18",
    "--block-params 800K --vocab 2000",
    "--flops 1e21 --family any",
    "--flops 1e27 --objective masked --vocab 33",
    "--minutes 1 --gpu cpu --family DNA --vocab 5",
    "--minutes 10000 --gpu h200 --family DNA --vocab 5",
    "--bytes 16MB",
    "--bytes 1.5GB --weight-bits 8 --family protein --vocab 25",
    "--tokens 1B --family DNA --vocab 5",
    "--tokens 15T --max-depth 2",
    "--params 2B --patch 16x16x3",
)


@pytest.mark.parametrize("asked", BUDGETS)
def test_a_plan_is_at_most_twelve_lines_that_fit_a_terminal(asked: str) -> None:
    done = plan(*asked.split())
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.match(r"\d+ layers? of width \d+, [\d,]+ heads? of \d+ for ", lines[0])
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("asked", BUDGETS)
def test_people_and_programs_are_told_the_same(asked: str) -> None:
    text, document = unwrapped(plan(*asked.split(), "--why").stdout), answer(*asked.split())
    shape, regret = document["recommended"], document["expected_regret"]
    assert text.startswith(
        f"{shape['depth']} layer{'s' * (shape['depth'] != 1)} of width {shape['width']}, "
    )
    assert f"About {regret['value']:.3f} {regret['unit']} worse than the best depth" in text
    other = ({"bits per byte", "nats per token"} - {regret["unit"]}).pop()
    assert other not in text.partition(" Next ")[0]
    low, high = document["depth_range"]
    assert low <= shape["depth"] <= high  # type: ignore[operator]
    assert document["basis"]["source"] == "prior"
    total = shape["params"]["total"]  # type: ignore[index]
    assert f" {total:,} parameters" in text


@pytest.mark.parametrize(
    ("asked", "params"),
    [
        ("--params 10M", 10e6),
        ("--bytes 20MB", 10e6),
        ("--bytes 10MB --weight-bits 8", 10e6),
        ("--bytes 10MiB --weight-bits 8", 10.486e6),
        ("--tokens 50M", 10e6),
        ("--tokens 100M --tokens-per-param 40", 10e6),
        ("--flops 1.2e16", 10e6),
        ("--flops 6e15 --tokens-per-param 10", 10e6),
    ],
)
def test_budgets_of_every_kind_are_parameters_in_the_end(asked: str, params: float) -> None:
    document = answer(*asked.split())
    total = document["recommended"]["params"]["total"]  # type: ignore[index]
    assert total == pytest.approx(params, rel=0.06)


def test_minutes_buy_more_on_a_faster_machine_and_with_more_time() -> None:
    asked = [("1", "cpu"), ("10", "cpu"), ("10", "h200"), ("100", "h200")]
    sizes = [
        answer("--minutes", minutes, "--gpu", gpu)["recommended"]["params"]["total"]  # type: ignore[index]
        for minutes, gpu in asked
    ]
    assert sizes == sorted(set(sizes))


def test_the_usual_vocabulary_is_one_that_the_budget_can_carry() -> None:
    sizes = [answer("--params", params)["question"]["vocab"] for params in ("100K", "10M", "1B")]
    assert sizes[0] < sizes[1] < sizes[2] == 50257  # type: ignore[operator]
    patched = answer("--params", "10M", "--patch", "8x8x3")
    assert patched["question"]["vocab"] is None


def test_a_family_is_named_in_any_case_and_decides_the_basis() -> None:
    dna, named, none = (
        answer("--params", "1M", "--vocab", "8", *more)
        for more in (("--family", "dna"), ("--family", "DNA"), ("--family", "any"))
    )
    assert dna == named
    assert (dna["basis"]["family"], none["basis"]["family"]) == ("DNA", None)
    assert dna["basis"]["runs"] < none["basis"]["runs"]  # type: ignore[operator]
    assert none == answer("--params", "1M", "--vocab", "8")  # so few tokens are of no known family


def test_why_tells_what_others_advise_and_what_speaks_against_us() -> None:
    short, long = plan("--params", "125M"), plan("--params", "125M", "--why")
    for part in ("Kaplan 2020", "What speaks against", "learning rate", "The papers' law"):
        assert part not in short.stdout
        assert part in long.stdout
    assert "32 layers of width 46 were worse" in unwrapped(long.stdout)
    assert "archfit advise" in short.stdout
    assert "archfit export" in short.stdout


def test_the_next_command_names_the_data(tmp_path: Path) -> None:
    (tmp_path / "my notes.txt").write_text("the quick brown fox " * 500)
    asked = ("plan", "--params", "1M", "--data", "my notes.txt")
    said_of = unwrapped(archfit(*asked, cwd=tmp_path).stdout)
    assert "archfit advise 'my notes.txt' --params 1M " in said_of
    masked = plan("--params", "1M", "--vocab", "30", "--objective", "masked").stdout
    assert " advise " not in masked  # which measures causal networks alone


@pytest.mark.parametrize("asked", ["--block-params 10M", "--minutes 30 --gpu cpu", "--tokens 1M"])
def test_the_command_that_measures_is_one_that_works(asked: str, tmp_path: Path) -> None:
    """It is refused for its data, which is missing, and for nothing before."""
    lines = plan(*asked.split()).stdout.replace(" \\\n", "").splitlines()
    (line,) = [line.strip() for line in lines if " advise " in line]
    words = shlex.split(line.partition("#")[0])[1:]
    refusal = said(*words, cwd=tmp_path).refusal()
    assert "there is no file or folder 'YOUR-DATA'" in refusal


@pytest.mark.parametrize(
    "asked",
    [
        "--params 50M --rank 32 --vocab 9000 --tied --context 512 --multiple-of 32",
        "--flops 1e20 --patch 8x8x3 --vocab 256 --max-depth 40 --tokens-per-param 50",
        "--block-params 20M --patch 16 --tokens-per-param 7",
    ],
)
def test_the_command_of_a_repair_plans_the_shape_that_it_promises(asked: str) -> None:
    (repair,) = answer(*asked.split())["repairs"]
    assert isinstance(repair, dict)
    words = shlex.split(str(repair["command"]))
    assert words[:2] == ["archfit", "plan"]
    again = answer(*words[2:])
    shape = repair["shape"]
    assert again["bottleneck"] is None
    assert {key: again["recommended"][key] for key in shape} == shape


def test_the_command_of_the_export_writes_the_table_that_was_planned(tmp_path: Path) -> None:
    document = answer("--params", "5M", "--vocab", "900", "--rank", "16", "--tied")
    words = shlex.split(str(document["export"]))[1:]
    done = archfit(*words, "--json", cwd=tmp_path)
    config = json.loads((tmp_path / json.loads(done.stdout)["files"][0]).read_text())
    assert (config["word_embed_proj_dim"], config["tie_word_embeddings"]) == (16, True)


@pytest.mark.parametrize(("block", "objective"), [("llama", "causal"), ("gpt2", "masked")])
@pytest.mark.parametrize("more", [(), ("--tied",), ("--multiple-of", "10")])
def test_a_plan_counts_the_network_of_its_block(
    block: str, objective: str, more: tuple[str, ...]
) -> None:
    asked = ("--block", block, "--objective", objective, "--vocab", "900", "--context", "256")
    found = answer("--params", "5M", *asked, *more)["recommended"]
    names = ("depth", "width", "heads", "head_dim", "kv_heads", "feed_forward")
    sizes = {name: found[name] for name in names} if block == "llama" else {}
    options = RunOptions(
        **({name: found[name] for name in names[:4]} | sizes),  # type: ignore[arg-type]  # sizes
        precision="float32",
        context=256,
        block=block,
        objective=objective,
        head="tied" if more == ("--tied",) else "full",
    )
    assert found["params"]["total"] == options.architecture(900).params  # type: ignore[index]
    assert (found["block"], found["objective"]) == (block, objective)


def test_people_are_told_of_a_block_that_is_not_the_usual() -> None:
    asked = ("--params", "5M", "--vocab", "900", "--why")
    llama, masked = ("--block", "llama"), ("--objective", "masked")
    assert "Llama blocks: RMS norms, " in unwrapped(plan(*asked, *llama).stdout)
    assert "An encoder that fills in masked tokens" in unwrapped(plan(*asked, *masked).stdout)
    assert "Llama blocks" not in plan(*asked).stdout


def test_an_encoder_of_few_tokens_has_a_plan_and_no_repair_that_groups_them() -> None:
    document = answer("--params", "5M", "--vocab", "33", "--objective", "masked")
    assert document["bottleneck"] == {"kind": "vocabulary", "limit": 34}  # and the mask token
    assert {one["kind"] for one in document["repairs"]} == {"bpe", "k-mer"}  # type: ignore[index]


def test_commands_of_repairs_stand_on_a_line_of_their_own() -> None:
    told = plan("--block-params", "650M", "--vocab", "33", "--why").stdout
    lines = told.replace(" \\\n", "").splitlines()
    commands = [line.strip() for line in lines if line.startswith("    archfit ")]
    assert len(commands) == 2 + 3  # those that measure and export the plan, and of three repairs
    assert sum(" --out " in command for command in commands) == 4


def test_the_chart_is_written(tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    assert str(answer("--params", "125M", "--chart", str(file))["chart"]) == str(file)
    drawn = file.read_text()
    assert "depth (layers)" in drawn
    assert "recommended" in drawn


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no budget is given"),
        (("--params", "1M", "--flops", "1e18"), "--params and --flops are given"),
        (("--params", "0"), "buys nothing"),
        (("--params", "300"), "does not pay for one layer"),
        (("--params", "1e19"), "over 10^18"),
        (("--block-params", "1e400"), "1.00e+400 is over 10^18"),
        (("--flops", "1e400"), "over 10^18"),
        (("--params", "1M", "--rank", "100", "--vocab", "50257"), "does not pay for one layer"),
        (("--bytes", "16"), "does not pay for one layer"),
        (("--bytes", "a lot"), "'a lot' is not a size"),
        (("--bytes", "0"), "bytes=0 holds no network"),
        (("--params", "1M", "--tokens-per-param", "0"), "--tokens-per-param=0.0 is not in"),
        (("--params", "1M", "--data", "nowhere"), "there is no file or folder 'nowhere'"),
        (("--bytes", "1MB", "--weight-bits", "3"), "use one of 4, 8, 16, 32"),
        (("--tokens", "0"), "tokens=0 at 20 a parameter feed no network"),
        (("--minutes", "30"), "need a machine; name a machine that was timed"),
        (("--minutes", "30", "--gpu", "abacus"), "was not timed; use h200, cpu"),
        (("--minutes", "0", "--gpu", "cpu"), "minutes=0.0 is not in 0.01"),
        (("--minutes", "nan", "--gpu", "cpu"), "minutes=nan is not in"),
        (("--params", "1M", "--gpu", "cpu"), "says whose minutes; give --minutes, too"),
        (("--params", "1M", "--family", "tea"), "is no family of data that we know; use "),
        (("--block-params", "100", "--vocab", "33"), "does not pay for one layer"),
        (("--params", "1M", "--vocab", "1"), "vocab=1 is below 2"),
        (("--params", "1M", "--vocab", "9", "--tokenizer", "x"), "each give a vocabulary"),
        (("--params", "1M", "--patch", "16xx3"), "is not like 16x16x3"),
        (("--params", "1M", "--patch", "0x3"), "patch=0 is below 1"),
        (("--params", "1M", "--patch", "1x1x1x1x1"), "has 5 sides"),
        (("--params", "1M", "--rank", "-1"), "rank=-1 is below 1"),
        (("--params", "1M", "--max-depth", "0"), "--max-depth=0 is below 1"),
        (("--params", "1M", "--tokens-per-param", "nan"), "is not in (0, 10^6]"),
        (("--params", "1M", "--tokenizer", "missing.json"), "missing.json"),
        (("--params", "1M", "--chart", "plan.txt"), "ends in '.txt'"),
        (("--params", "many"), "is not a size"),
        (("--params", "1M", "--block", "t5"), "block='t5' is unknown; use one of gpt2, llama"),
        (("--params", "1M", "--objective", "x"), "use one of causal, masked"),
        (("--params", "1M", "--patch", "4", "--objective", "masked"), "hides single tokens"),
        (("--params", "1M", "--block", "llama", "--multiple-of", "7"), "--multiple-of=7 is odd"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(arguments: tuple[str, ...], words: str) -> None:
    done = plan(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_plan_needs_neither_torch_nor_scipy_nor_charts() -> None:
    code = (
        "import sys; sys.argv = ['archfit', 'plan', '--params', '1B', '--json'];"
        "from archfit.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'scipy', 'altair', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_help_explains_every_option() -> None:
    assert CliRunner().invoke(program(()), ["plan", "--help"]).exit_code == 0
