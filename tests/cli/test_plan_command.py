"""`archfit plan`, run as a user runs it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archfit.cli.app import program
from archfit.spec.run_options import RunOptions
from tests_said import archfit


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
    assert folder in str(document["check"]["command"])
    assert "tokens for training" in " ".join(document["warnings"])


def test_people_see_repairs_first_where_the_depth_is_absurd_and_the_shape_first_elsewhere() -> None:
    proteins = plan("--block-params", "650M", "--vocab", "33").stdout
    assert proteins.startswith("Bottleneck: a vocabulary of 33")
    assert proteins.index("Repairs") < proteins.index("128 layers x width")
    text = plan("--params", "125M").stdout
    assert text.startswith("23 layers x width 512, 8 heads of 64")
    for part in ("Kaplan 2020", "Evidence against us", "archfit sweep", "archfit export"):
        assert part in text


@pytest.mark.parametrize(
    ("asked", "share", "basis", "ours"),
    [
        (
            "--params 1M --vocab 25",
            "22% to 55%",
            "between measurements of archfit",
            "19 % (12 to 24) at ratio 0.125",
        ),
        (
            "--params 125M --vocab 257",
            "0% to 9%",
            "archfit's and the paper's measurements",
            "at most 5 % at ratio 0.5",
        ),
    ],
)
def test_people_and_programs_are_told_whose_measurements_the_effect_rests_on(
    asked: str, share: str, basis: str, ours: str
) -> None:
    source = f"archfit's own runs (6 layers, width 256, English): {ours}; rank 16 wastes"
    papers = "Wies et al. 2021, 5.1 (12 layers): about 25 % at ratio 0.0235"
    said = plan(*asked.split()).stdout
    assert f"could do without {share} of its parameters ({basis}; {source}" in said
    assert papers in said
    effect = answer(*asked.split())["expected_effect"]
    saved = effect["params_saved"]
    assert isinstance(saved, dict)
    assert f"{saved['low']:.0%} to {saved['high']:.0%}" == share
    assert saved["basis"] == basis
    assert str(effect["source"]).startswith(source)
    assert str(effect["source"]).endswith(papers)


def test_our_own_runs_are_among_the_advisers_and_the_evidence_against_us() -> None:
    document = json.loads(plan("--block-params", "800K", "--vocab", "2000", "--json").stdout)
    (ours,) = [one for one in document["advisers"] if one["name"] == "archfit's own runs"]
    assert ours["depths"] == [2.0, 4.0]
    assert ours["in_range"]
    assert "archfit's own runs found 2 to 4 layers" in " ".join(document["warnings"])
    assert "32 layers of width 46 were worse" in " ".join(document["evidence_against"])
    said = plan("--params", "125M").stdout
    assert "archfit's own runs: no best depth: outside of the sizes and kinds of text" in said
    assert "32 layers of width 46 were worse" in said


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
    asked = ("--params", "5M", "--vocab", "900")
    assert "blocks of Llama: RMS norms, " in plan(*asked, "--block", "llama").stdout
    assert "an encoder that fills in masked" in plan(*asked, "--objective", "masked").stdout
    assert "blocks of Llama" not in plan(*asked).stdout


def test_a_bottleneck_that_nothing_repairs_says_so() -> None:
    assert "No repair that we know of" in plan("--params", "1e18").stdout


def test_commands_of_repairs_stand_on_a_line_of_their_own() -> None:
    lines = plan("--block-params", "650M", "--vocab", "33").stdout.splitlines()
    commands = [line.strip() for line in lines if line.startswith("    archfit ")]
    assert len(commands) == 3 + 2  # those that test and export the plan
    assert all(" --out " in command for command in commands)


def test_the_chart_is_written(tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    assert str(answer("--params", "125M", "--chart", str(file))["chart"]) == str(file)
    assert "GPT-2" in file.read_text() or "RoBERTa" in file.read_text()


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
        (("--params", "1M", "--rank", "100"), "does not pay for one layer"),
        (("--block-params", "100", "--vocab", "33"), "does not pay for one layer"),
        (("--params", "1M", "--vocab", "1"), "vocab=1 is below 2"),
        (("--params", "1M", "--vocab", "9", "--tokenizer", "x"), "each give a vocabulary"),
        (("--params", "1M", "--patch", "16xx3"), "is not like 16x16x3"),
        (("--params", "1M", "--patch", "0x3"), "patch=0 is below 1"),
        (("--params", "1M", "--patch", "1x1x1x1x1"), "has 5 sides"),
        (("--params", "1M", "--rank", "-1"), "rank=-1 is below 1"),
        (("--params", "1M", "--max-depth", "0"), "max_depth=0 is below 1"),
        (("--params", "1M", "--tokens-per-param", "nan"), "is not in (0, 10^6]"),
        (("--params", "1M", "--tokenizer", "missing.json"), "missing.json"),
        (("--params", "1M", "--data", "missing"), "not a prepared data set"),
        (("--params", "1M", "--chart", "plan.txt"), "ends in '.txt'"),
        (("--params", "many"), "is not a size"),
        (("--params", "1M", "--block", "t5"), "block='t5' is unknown; use one of gpt2, llama"),
        (("--params", "1M", "--objective", "x"), "use one of causal, masked"),
        (("--params", "1M", "--patch", "4", "--objective", "masked"), "hides single tokens"),
        (("--params", "1M", "--block", "llama", "--multiple-of", "7"), "multiple_of=7 is odd"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(arguments: tuple[str, ...], words: str) -> None:
    done = plan(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_plan_needs_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; sys.argv = ['archfit', 'plan', '--params', '1B', '--json'];"
        "from archfit.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'numpy', 'scipy', 'altair'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_help_explains_every_option() -> None:
    assert CliRunner().invoke(program(()), ["plan", "--help"]).exit_code == 0
