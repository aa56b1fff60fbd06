"""An advice as a document: one answer wherever it stands, and what was measured."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.advise.advice import Advice, decided
from archfit.advise.ladder import LadderRun
from archfit.advise.measure import Measured, VocabularyTrial
from archfit.advise.plan_request import PlanOptions
from archfit.advise.source import Source, prepared_source
from archfit.journey import write_config
from archfit.report.advice_document import advice_document
from archfit.report.document import WIDE, Document
from archfit.report.page import page_of
from archfit.report.terminal import text_of

COMMAND = "archfit advise small.fa --params 1M"
RUNS = tuple(
    LadderRun(size=size, depth=depth, seed=0, params=size, bits=2 + abs(depth - 4) / 50)
    for size in (250_000, 500_000)
    for depth in (2, 4, 8)
)


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory) -> Advice:
    folder = tmp_path_factory.mktemp("advice")
    draw = random.Random(0)
    (folder / "small.fa").write_text(
        "".join(f">{i}\n{''.join(draw.choices('ACDEFGHIKL', k=60))}\n" for i in range(200))
    )
    words = str(folder / "small.fa")
    source = Source(words=words, kind="", vocab=None, heldout=None, field=None)
    data = prepared_source(source, folder / "data", lambda *_: None)
    return decided(source, PlanOptions(params=10**6), data, "protein", Measured(runs=RUNS))


def told(advice: Advice) -> Document:
    return advice_document(advice, command=COMMAND)


@pytest.fixture(scope="module")
def page(advice: Advice) -> str:
    return page_of(told(advice))


def test_the_answer_is_one_in_headline_json_page_and_config(
    advice: Advice, page: str, tmp_path: Path
) -> None:
    document, shape = told(advice), advice.plan.shape
    data = json.loads(json.dumps(document.data))
    write_config(advice.plan, advice.data, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    found = {
        (one["depth"], one["width"], one["heads"], one["vocab"])
        for one in (data["recommended"], data["plan"]["recommended"])
    }
    found.add((config["n_layer"], config["n_embd"], config["n_head"], config["vocab_size"]))
    assert found == {(shape.depth, shape.width, shape.heads, advice.data.vocab)}
    words = (
        f"{shape.depth} {'layer' if shape.depth == 1 else 'layers'} of width {shape.width}, "
        f"{shape.heads} heads of {shape.head_dim}, "
        f"{advice.data.vocab} tokens"
    )
    assert document.headline.startswith(words)
    assert words in page


def test_what_was_measured_is_in_words_tables_and_json(advice: Advice) -> None:
    document = told(advice)
    text = text_of(document)
    basis = f"Based on {len(RUNS)} networks of up to 500k parameters, trained on your data."
    assert basis in text
    assert "Nothing was trained" not in text
    assert text.count("2.0000") >= 2
    data = document.data
    assert isinstance(data, dict)
    assert data["basis"]["source"] == "ladder"
    assert [(one["size"], one["depth"]) for one in data["ladder"]] == [
        (run.size, run.depth) for run in RUNS
    ]
    assert [figure.name for figure in document.figures] == ["ladder", "prior", "depths"]


def test_why_tells_the_prior_the_ladder_and_the_decision(advice: Advice) -> None:
    document = told(advice)
    (why,) = [part for part in document.sections if part.title == "Why this depth"]
    assert why.is_why
    before, *sizes, together = why.sentences
    assert before.startswith("Networks on other data say ")
    for sentence, size in zip(sizes, ("250k", "500k"), strict=True):
        assert sentence == (
            f"On your data, at {size} parameters, 4 was the best of 2, 4, 8 layers: "
            "2.000 bits per byte."
        )
    assert f"{advice.plan.best.outlook.depth:.1f} layers" in together
    assert [figure.title for figure in why.figures][-1] == "The decision"
    assert "before anything was measured" in why.figures[-1].caption
    dashed = why.figures[-1].chart(WIDE).to_dict()["layer"][1]
    assert dashed["mark"]["strokeDash"]


def test_without_runs_nothing_is_said_to_be_measured(advice: Advice) -> None:
    bare = decided(advice.source, PlanOptions(params=10**6), advice.data, "protein", Measured())
    document = told(bare)
    text = text_of(document)
    assert "Nothing was trained on your data" in text
    assert "Measured:" not in text
    assert [figure.name for figure in document.figures] == ["prior", "depths"]
    assert isinstance(document.data, dict)
    assert (document.data["basis"]["source"], document.data["ladder"]) == ("prior", [])


def test_vocabularies_that_were_tried_are_told_of_the_best_first(advice: Advice) -> None:
    trials = tuple(
        VocabularyTrial(label=label, vocab=vocab, depth=4, params=60_000, bits=bits)
        for label, vocab, bits in (("bpe 512", 512, 2.5), ("as given", 11, 2.75))
    )
    document = told(replace(advice, trials=trials, failures=("out of memory",)))
    text = " ".join(text_of(document).split())
    assert "bpe 512 was the best of 2 vocabularies: 2.500 bits per byte with 60k" in text
    assert "as given 2.750" in text
    assert "Your budget carries" not in text  # no more tokens than were tried
    smaller = tuple(replace(trial, vocab=2) for trial in trials)
    more = text_of(told(replace(advice, trials=smaller, runs=())), why=True)
    assert f"Your budget carries {advice.data.vocab} tokens (not tried)." in " ".join(more.split())
    assert "No depth was measured on your data: 0 tokens of bpe 512 are too few" in " ".join(
        more.split()
    )
    enough = tuple(replace(trial, train_tokens=10**6) for trial in trials)
    more = text_of(told(replace(advice, trials=enough, runs=())), why=True)
    assert "more --minutes-to-measure may do that" in " ".join(more.split())
    assert "Some runs failed: out of memory" in text
    assert isinstance(document.data, dict)
    assert [one["label"] for one in document.data["vocabularies"]] == ["bpe 512", "as given"]


def test_the_page_says_how_to_make_it_again_and_the_terminal_does_not(
    advice: Advice, page: str
) -> None:
    assert COMMAND in page
    assert COMMAND not in text_of(told(advice))
    assert "Which Transformer fits small.fa?" in page


def test_a_network_of_llamas_blocks_has_a_config_of_its_own(advice: Advice, tmp_path: Path) -> None:
    options = PlanOptions(params=10**6, block="llama")
    llama = decided(advice.source, options, advice.data, "protein", Measured())
    write_config(llama.plan, advice.data, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    shape = llama.plan.shape
    assert (config["model_type"], config["num_hidden_layers"]) == ("llama", shape.depth)
    assert (config["hidden_size"], config["num_attention_heads"]) == (shape.width, shape.heads)
