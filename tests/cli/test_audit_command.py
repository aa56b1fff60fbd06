"""`archfit audit`, run as a user runs it."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests_said import archfit, unwrapped

CONFIGS = Path(__file__).parents[1] / "audit" / "configs"


def audit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return archfit("audit", *arguments)


def answer(*arguments: str) -> list[dict[str, object]]:
    done = audit(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert isinstance(document, list)
    return document


def test_names_and_configs_are_audited_together() -> None:
    gpt2, gemma = answer("gpt2", str(CONFIGS / "gemma-3-4b-it.json"))
    assert (gpt2["name"], gpt2["depth"], gpt2["width"], gpt2["params"]) == (
        "GPT-2", 12, 768, 124_439_808,
    )  # fmt: skip
    assert (gemma["heads"], gemma["head_dim"]) == (8, 256)
    assert any("head_dim=256" in line for line in gemma["assumed"])  # type: ignore[attr-defined]


RANK_PAPER = (
    "(5.1, 12 layers) found about 25 % of the parameters redundant where the rank is 2.35 %"
)
BOTH = "archfit's and the paper's measurements"
WIDE_PAPER = (
    "(5.3, 12 to 24 layers, 30M to 70M parameters) found about 25 % at 4 times the width and"
)


@pytest.mark.parametrize(
    ("name", "share", "basis", "ours", "papers"),
    [
        (
            "albert-xxlarge-v1",
            "18 to 30 %",
            "between measurements of the paper",
            "(6 layers, width 256, English): at least 75 % at 3.12 %",
            RANK_PAPER,
        ),
        ("t5-3b", "20 to 47 %", BOTH, "45 % (42 to 47) at 4 times", WIDE_PAPER),
        ("t5-11b", "40 to 81 %", BOTH, "layers of 4 attentions): ", WIDE_PAPER),
        (
            "qwen3-0.6b",
            "3 to 25 %",
            BOTH,
            "(3 and 6 layers, 2.65M, English, feed-forward layers of 4 widths): 20 % (14 to 25) at",
            WIDE_PAPER,
        ),
    ],
)
def test_people_and_programs_are_told_whose_measurements_a_share_rests_on(
    name: str, share: str, basis: str, ours: str, papers: str
) -> None:
    assert f": {share} redundant parameters" in unwrapped(audit(name).stdout)
    (row,) = answer(name)
    findings = row["findings"]
    assert isinstance(findings, list)
    assert findings[0]["redundancy"]["basis"] == basis
    why = unwrapped(audit(name, "--why").stdout)
    assert "archfit's own runs" in why
    for words in (ours, f"Wies et al. 2021 {papers}"):
        assert words in why
        assert words in findings[0]["evidence"]


def test_every_finding_has_its_fact_and_fix_in_the_answer(tmp_path: Path) -> None:
    """Also the second; what they rest on is told to those who ask why."""
    config = tmp_path / "config.json"
    shape = {"hidden_size": 1664, "num_hidden_layers": 3, "num_attention_heads": 26}
    config.write_text(json.dumps({"model_type": "llama", "head_dim": 128, "vocab_size": 50257,
                                  "intermediate_size": 6656, **shape}))  # fmt: skip
    said = audit(str(config)).stdout
    (row,) = answer(str(config))
    findings = row["findings"]
    assert isinstance(findings, list)
    assert [found["id"] for found in findings] == ["attention-bottleneck", "too-shallow"]
    for found in findings:
        fact, _, reason = found["evidence"].partition(". ")
        assert f"{fact}. Fix: {found['fix']}." in unwrapped(said)
        assert reason not in unwrapped(said)


def test_a_shallow_network_is_judged_by_our_own_curve(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    shape = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4}
    table = {"embedding_size": 32, "vocab_size": 30000, "intermediate_size": 1024}
    config.write_text(json.dumps({"model_type": "albert", **shape, **table}))
    (row,) = answer(str(config))
    findings = row["findings"]
    assert isinstance(findings, list)
    share = findings[0]["redundancy"]
    assert share == {"low": 0.119, "high": 0.339, "basis": "measured by archfit"}


def test_the_gallery_has_every_model_with_the_keys_of_the_contract() -> None:
    rows = answer("--all")
    assert len(rows) == 169
    for row in rows:
        assert row.keys() >= {
            "name", "depth", "width", "heads", "head_dim", "attention_ratio", "vocab",
            "embedding_rank_limit", "embedding_rank_measured", "rank_ratio", "params", "findings",
        }  # fmt: skip


def test_the_gallery_is_sorted_as_asked_with_the_unknown_last() -> None:
    ratios = [row["attention_ratio"] for row in answer("--all", "--sort", "attention-ratio")]
    known = [ratio for ratio in ratios if ratio is not None]
    assert known == sorted(known)  # type: ignore[type-var]
    assert ratios[len(known) :] == [None] * (len(ratios) - len(known))
    assert None in ratios


def test_a_linter_fails_on_what_it_is_told_and_on_nothing_else() -> None:
    config = str(CONFIGS / "albert-xxlarge-v1.json")
    caught = audit(config, "--fail-on", "low-rank-embedding")
    assert caught.returncode == 1
    assert "albert-xxlarge-v1: low-rank-embedding" in caught.stderr
    assert audit(config, "--fail-on", "patch-bottleneck").returncode == 0
    assert audit(config, "--fail-on", "any").returncode == 1
    assert audit(str(CONFIGS / "gpt-neox-20b.json"), "--fail-on", "any").returncode == 0


def test_nothing_found_says_what_could_not_be_judged() -> None:
    missing = "sizes are missing to judge "
    assert f"{missing}the rank of the input" in unwrapped(audit("chinchilla-70b").stdout)
    assert f"{missing}attention" in unwrapped(audit("sparse-transformer-cifar10").stdout)
    assert "nothing found: a good depth" in audit("gpt2-xl").stdout


def test_a_made_checkpoint_of_known_rank_is_measured_right(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    thin = rng.standard_normal((29_900, 64)), rng.standard_normal((64, 1024))
    table = np.concatenate([thin[0] @ thin[1], np.zeros((100, 1024))]).astype(np.float32)
    blocks = {f"h.{at}.mlp.c_fc.weight": np.zeros((1024, 8), np.float32) for at in range(3)}
    save_file({"wte.weight": table, **blocks}, tmp_path / "model.safetensors")
    chart = tmp_path / "spectrum.svg"
    (row,) = answer(str(tmp_path), "--weights", "--chart", str(chart))
    assert row["embedding_rank_measured"] == 64
    assert row["rank_ratio"] == 64 / 1024
    spectrum = row["spectrum"]
    assert isinstance(spectrum, dict)
    assert (spectrum["rows"], spectrum["padded_rows"]) == (30_000, 100)
    assert spectrum["bytes_read"] == table.nbytes
    findings = row["findings"]
    assert isinstance(findings, list)
    assert findings[0]["id"] == "low-rank-embedding"
    assert chart.read_text().startswith("<svg")


def test_a_run_of_ours_is_audited_with_its_weights(tmp_path: Path) -> None:
    train = [
        "train", "--out", str(tmp_path), "--steps", "1",
        "--depth", "1", "--width", "16", "--heads", "1", "--context", "8", "--batch", "1",
        "--embedding-inner", "4", "--evaluation-sequences", "1", "--json",
    ]  # fmt: skip
    done = archfit(*train)
    (row,) = answer(json.loads(done.stdout)["folder"], "--weights")
    assert (row["width"], row["embedding_rank_limit"]) == (16, 4)
    assert row["embedding_rank_measured"] == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no target given"),
        (("--all", "gpt2"), "--all and targets given"),
        (("--all", "--weights"), "--all has none"),
        (("gpt2", "--weights"), "is a row of the built-in table"),
        (("gpt22",), "close are"),
        (("gpt2", "--fail-on", "bad"), "--fail-on='bad' is unknown; use one of low-rank"),
        (("--all", "--sort", "colour"), "is unknown"),
        (("gpt2", "--chart", "x.svg"), "add --all or --weights"),
        (("--all", "--chart", "x.txt"), "ends in '.txt'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(arguments: tuple[str, ...], words: str) -> None:
    done = audit(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", b"{", "JSON"),
        ("config.json", b"[" * 10**5, "nested"),
        ("config.json", b'{"hidden_size": ' + b"9" * 10**5 + b"}", ""),
        ("config.json", b'{"hidden_size": 64}', "num_hidden_layers"),
        ("config.json", b'{"hidden_size": "64", "num_hidden_layers": 2}', "hidden_size"),
        ("model.bin", b"\x80\x02", "safetensors"),
        ("model.safetensors", b"\xff" * 64, "model.safetensors"),
    ],
)
def test_broken_and_hostile_files_are_refused_in_one_sentence(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    done = audit(str(tmp_path / name))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
