"""A plan as a document: what comes first, and the keys that programs rely on."""

import json

import pytest

from archfit.advise.planner import make_plan
from archfit.report.document import Command
from archfit.report.plan_document import plan_document
from tests_plans import question


def test_the_shape_is_the_answer_unless_no_one_should_train_it() -> None:
    text = plan_document(make_plan(question(10**8)))
    assert "layers x width" in text.headline
    proteins = plan_document(make_plan(question(650_000_000, vocab=33)))
    assert proteins.headline.startswith("Bottleneck: a vocabulary of 33")
    assert proteins.sections[0].title == "Repairs, at the same budget"
    commands = [line for line in proteins.sections[0].sentences if isinstance(line, Command)]
    assert len(commands) == len(proteins.sections[0].sentences) // 2


def test_the_document_is_json_and_has_the_keys_of_the_contract() -> None:
    document = json.loads(json.dumps(plan_document(make_plan(question(10**8, vocab=257))).data))
    assert document.keys() >= {
        "recommended", "ideal", "bottleneck", "advisers", "repairs", "check", "warnings",
    }  # fmt: skip
    assert document["recommended"].keys() >= {
        "depth", "width", "heads", "head_dim", "vocab", "embedding_rank", "params",
    }  # fmt: skip
    recommended = document["recommended"]
    assert recommended["aspect_ratio"] == round(recommended["width"] / recommended["depth"], 2)
    assert document["recommended"]["params"].keys() >= {"blocks", "embedding", "total"}
    assert document["bottleneck"] == {"kind": "vocabulary", "limit": 257}
    assert document["ideal"]["depth"] == pytest.approx(126.17, abs=0.01)
    for advice in document["advisers"]:
        assert advice.keys() >= {"name", "depth", "width", "source", "in_range"}
