"""What the explorer answers, beside what the command line prints."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from archfit.advise.plan_request import PlanOptions
from archfit.advise.planner import make_plan
from archfit.cli.app import program
from archfit.report.explorer.api import (
    ADDRESS,
    DOCUMENTS,
    MOST_TEXT,
    NUMBER,
    READERS,
    Question,
    openapi_document,
)
from archfit.report.explorer.workers import TAKE_A_CONFIG, answer
from archfit.report.plan_document import plan_document
from tests_plans import question

CONFIGS = Path(__file__).parents[2] / "audit" / "configs"
EVIL = "<script>alert(1)</script>\"'&"


class Reply(NamedTuple):
    """What a client sees of an answer."""

    status: int
    media: str | None
    content: bytes


def answered(question: Question) -> Reply:
    reply = answer(question)
    return Reply(reply.status_code, reply.media_type, bytes(reply.body))


def asked(address: str, body: bytes = b"") -> Reply:
    parts = urlsplit(address)
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    return answered(Question(parts.path, query, body))


def printed(*words: str) -> str:
    done = CliRunner().invoke(program(words), list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def said(*words: str) -> str:
    """The sentence with which the command line refuses."""
    problem = CliRunner().invoke(program(words), list(words)).exception
    assert isinstance(problem, ValueError)
    return str(problem)


@pytest.mark.parametrize(
    ("address", "command"),
    [
        ("/api/plan?params=125M", "plan --params 125M"),
        ("/api/plan?block_params=100M&vocab=257", "plan --block-params 100M --vocab 257"),
        ("/api/plan?flops=1e19&rank=64&tied=true", "plan --flops 1e19 --rank 64 --tied"),
        ("/api/plan?params=2B&patch=16x16x3", "plan --params 2B --patch 16x16x3"),
        ("/api/plan?minutes=30&gpu=h200", "plan --minutes 30 --gpu h200"),
        ("/api/plan?bytes=16MiB&weight_bits=8", "plan --bytes 16MiB --weight-bits 8"),
        ("/api/plan?tokens=1B&family=code", "plan --tokens 1B --family code"),
        (
            "/api/plan?params=5M&family=any&block=llama&objective=masked",
            "plan --params 5M --family any --block llama --objective masked",
        ),
        (
            "/api/plan?params=1B&vocab=33&context=256&max_depth=64&multiple_of=32"
            "&tokens_per_param=5.5",
            "plan --params 1B --vocab 33 --context 256 --max-depth 64 --multiple-of 32 "
            "--tokens-per-param 5.5",
        ),
        (
            "/api/bounds?depth=12&width=768&heads=12&vocab=50257",
            "bounds --depth 12 --width 768 --heads 12 --vocab 50257",
        ),
        (
            "/api/bounds?depth=3&width=8&heads=2&head_dim=4&positions=40&rank=6&position_rank=2"
            "&residual=true",
            "bounds --depth 3 --width 8 --heads 2 --head-dim 4 --positions 40 --rank 6 "
            "--position-rank 2 --residual",
        ),
        ("/api/audit?name=albert-xxlarge-v1", "audit albert-xxlarge-v1"),
        ("/api/audit?name=T5-11B", "audit t5-11b"),
    ],
)
def test_the_api_answers_with_the_text_that_the_command_prints(address: str, command: str) -> None:
    reply = asked(address)
    assert (reply.status, reply.media) == (200, "application/json")
    assert reply.content.decode() == printed(*command.split(), "--json")
    check_reply(described(urlsplit(address).path, "get"), reply)


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("*.json")))
def test_a_pasted_config_is_audited_as_its_file_is(name: str) -> None:
    (theirs,) = json.loads(printed("audit", str(CONFIGS / name), "--json"))
    (ours,) = json.loads(asked("/api/audit", (CONFIGS / name).read_bytes()).content)
    assert ours | {"name": "", "origin": ""} == theirs | {"name": "", "origin": ""}


@pytest.mark.parametrize(
    ("address", "command"),
    [
        ("/api/plan", "plan"),
        ("/api/plan?params=1M&flops=1e15", "plan --params 1M --flops 1e15"),
        ("/api/plan?params=0", "plan --params 0"),
        ("/api/plan?params=1M&patch=axb", "plan --params 1M --patch axb"),
        ("/api/plan?params=1M&vocab=1", "plan --params 1M --vocab 1"),
        ("/api/plan?params=10&vocab=50257", "plan --params 10 --vocab 50257"),
        ("/api/plan?minutes=30", "plan --minutes 30"),
        ("/api/plan?minutes=30&gpu=abacus", "plan --minutes 30 --gpu abacus"),
        ("/api/plan?params=1M&gpu=h200", "plan --params 1M --gpu h200"),
        ("/api/plan?params=1M&family=tea", "plan --params 1M --family tea"),
        ("/api/plan?bytes=1MB&weight_bits=3", "plan --bytes 1MB --weight-bits 3"),
        ("/api/bounds?depth=0&width=8&heads=2", "bounds --depth 0 --width 8 --heads 2"),
        ("/api/bounds?depth=2&width=8&heads=9", "bounds --depth 2 --width 8 --heads 9"),
    ],
)
def test_a_bad_value_is_refused_in_the_sentence_of_the_command_line(
    address: str, command: str
) -> None:
    reply, told = asked(address), said(*command.split())
    told = re.sub(r"--([a-z-]+)=", lambda found: f"{found[1].replace('-', '_')}=", told)
    assert (reply.status, json.loads(reply.content)) == (400, {"error": told})


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/api/plan?params=many", "params: 'many' is not a size; write a whole number such as"),
        ("/api/plan?bytes=a lot", "bytes: 'a lot' is not a size; write bytes as in 500k, 16MB"),
        ("/api/plan?minutes=soon&gpu=cpu", "minutes: 'soon' is not a number"),
        ("/api/plan?params=1M&parms=2M", "'parms' is no parameter; use params, block_params"),
        ("/api/plan?params=1M&params=2M", "params is given twice; give it once"),
        (f"/api/plan?params={'9' * 401}", "params has 401 characters; use at most 400"),
        ("/api/plan?params=1M&tied=yes", "tied: 'yes' is neither true nor false"),
        ("/api/plan?params=1M&tokens_per_param=nan", "tokens_per_param: 'nan' is not a number"),
        ("/api/bounds?depth=2&width=8", "heads missing; as in depth=12&width=768&heads=12"),
        ("/api/audit?name=gtp2", "'gtp2' is not in the table of published models; the nearest"),
        ("/api/audit?name=../../etc/passwd", "is not in the table of published models"),
        ("/api/audit", "name missing; as in name=albert-xxlarge-v1"),
    ],
)
def test_a_request_that_no_command_could_say_is_told_what_to_send(
    address: str, sentence: str
) -> None:
    reply = asked(address)
    assert reply.status == 400
    assert sentence in json.loads(reply.content)["error"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "config.json is not JSON"),
        (b"[1]", "holds a JSON list, not an object"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"[" * 300_000, "nested too deeply"),
        (b'{"n_layer": ' + b"9" * 5000 + b"}", "a whole number of 5,000 digits"),
        (b"{}", "the config gives no width"),
        (b'{"n_embd": 1e999}', "is not a whole number"),
    ],
)
def test_a_hostile_config_is_refused_in_one_sentence(body: bytes, sentence: str) -> None:
    reply = asked("/api/audit", body)
    assert reply.status == 400
    assert sentence in json.loads(reply.content)["error"]
    assert len(reply.content) < 700


def test_a_depth_that_takes_long_is_refused_with_a_command_that_works() -> None:
    reply = asked("/api/bounds?depth=10001&width=8&heads=2&residual=true&positions=40")
    assert reply.status == 422
    sentence = json.loads(reply.content)["error"]
    command = sentence.partition("run archfit ")[2].split()
    assert json.loads(printed(*command))["inputs"]["depth"] == 10_001


def test_no_name_reads_a_file_or_a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command line would audit both of these."""
    config = (CONFIGS / "gpt2.json").read_text()
    snapshot = tmp_path / "hub" / "models--org--mine" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(config)
    (tmp_path / "config.json").write_text(config)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    assert json.loads(printed("audit", "config.json", "org/mine", "--json"))[1]["depth"] == 12
    for name in ("config.json", "org/mine", str(tmp_path)):
        assert asked(f"/api/audit?name={name}").status == 400
        assert asked(f"/audit?name={name}").status == 400


@pytest.mark.parametrize(
    "address",
    [
        f"/?budget={EVIL}",
        f"/?of={EVIL}",
        f"/?vocab={EVIL}",
        f"/?{EVIL}=1",
        f"/audit?name={EVIL}",
        f"/audit?config={EVIL}",
        f"/audit?config=%7B%22n_embd%22%3A%22{EVIL}%22%7D",
        f"/gallery?find={EVIL}",
        f"/gallery?sort={EVIL}",
        f"/atlas?kind={EVIL}",
    ],
)
def test_whatever_a_page_shows_is_escaped(address: str) -> None:
    text = asked(address.replace("&", "%26")).content.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_model_type_that_is_markup_is_shown_as_text() -> None:
    config = {"model_type": EVIL, "n_embd": 8, "n_layer": 2, "n_head": 2, "architectures": [EVIL]}
    text = asked("/audit", json.dumps(config).encode()).content.decode()
    assert "<script>alert" not in text
    assert "layers \N{MULTIPLICATION SIGN} 8" in text


@pytest.mark.parametrize(
    "chart",
    [
        "wide/depths", "narrow/depths", "wide/bounds", "narrow/models", "wide/depth",
        "narrow/best-depth",
    ],
)  # fmt: skip
def test_charts_carry_their_words_and_only_their_data(chart: str) -> None:
    is_of_a_plan = chart.endswith(("/depths", "/bounds"))
    query = "?budget=100M&of=block_params&vocab=257" if is_of_a_plan else ""
    document = json.loads(asked(f"/chart/{chart}{query}").content)
    assert document["title"]
    assert document["description"]
    assert document["caption"]
    assert "http" not in json.dumps(document)
    assert "title" not in document["spec"]


def test_theory_is_drawn_only_where_it_is_asked_for() -> None:
    page = asked("/").content.decode()
    folded = page[page.index("<details>\n<summary>Theory") :].partition("</details>")[0]
    assert 'data-chart="bounds"' in folded
    assert page.count('data-chart="bounds"') == 1
    assert [figure.name for figure in plan_document(make_plan(question())).figures] == ["depths"]


def test_a_page_without_a_query_is_a_plan_of_125m() -> None:
    document = json.loads(asked("/api/plan?params=125M").content)
    shape = document["recommended"]
    text = asked("/").content.decode()
    assert f"{shape['depth']} layers \N{MULTIPLICATION SIGN} {shape['width']:,}" in text
    assert f"{shape['params']['total']:,} parameters" in text


def test_a_page_says_why_in_the_words_of_the_command() -> None:
    words = " ".join(printed("plan", "--params", "10M", "--vocab", "33", "--why").split())
    page = html.unescape(asked("/?budget=10M&vocab=33").content.decode())
    for start, end in (
        ("About", "worse than the best depth"),
        ("Based on", "of all kinds."),
        ("A vocabulary of 33 is below", "a bottleneck"),
    ):
        sentence = words[words.index(start) :].partition(end)[0] + end
        assert sentence in words
        assert sentence in page
    assert "Other inputs for the same budget" in page


def test_an_audit_begins_with_its_verdict() -> None:
    verdict = printed("audit", "prot-bert", "--quiet").strip()
    assert "nothing found" in verdict
    page = html.unescape(asked("/audit?name=prot-bert").content.decode())
    assert f'<p class="lead">{" ".join(verdict.split())}</p>' in page


@pytest.mark.parametrize(
    ("page", "api"),
    [
        ("budget=16MB&of=bytes", "bytes=16MB"),
        ("budget=1B&of=tokens", "tokens=1B"),
        ("budget=1e19&of=flops&vocab=257", "flops=1e19&vocab=257"),
    ],
)
def test_a_page_has_the_shape_of_the_api_for_every_kind_of_budget(page: str, api: str) -> None:
    shape = json.loads(asked(f"/api/plan?{api}").content)["recommended"]
    text = asked(f"/?{page}").content.decode()
    assert f"{shape['depth']} layers \N{MULTIPLICATION SIGN} {shape['width']:,}" in text


def test_the_gallery_sorts_and_finds() -> None:
    text = asked("/gallery?find=albert&sort=width&down=true").content.decode()
    names = [line.partition(">ALBERT-")[2].partition("<")[0] for line in text.splitlines()]
    assert next(name for name in names if name) == "xxlarge-v1"
    assert "ESM-2" not in text.partition("All models")[2]


def test_the_atlas_shows_the_kind_that_is_asked_for() -> None:
    text = asked("/atlas?kind=proteins").content.decode()
    assert "<option selected>proteins</option>" in text
    assert "UniProtKB" in text
    assert "Best depth" in text
    drawing = json.loads(asked("/chart/wide/depth?kind=proteins").content)
    assert drawing["description"].startswith("Loss over depth of proteins.")
    assert asked("/atlas?kind=none").status == 400


OPENAPI = openapi_document()
SCHEMAS = OPENAPI["components"]["schemas"]
SIZE_PATTERN, BYTES_PATTERN = (SCHEMAS[name]["pattern"] for name in ("size", "bytes"))
GOOD_SIZES = st.sampled_from(["1", "2", "64", "257", "50257", "1M", "125M", "1e9", "1.3B"])
SIZES = GOOD_SIZES | st.from_regex(SIZE_PATTERN.replace("$", r"\Z"), fullmatch=True) | st.text()


def operations() -> Iterator[tuple[str, str, dict[str, object]]]:
    paths = OPENAPI["paths"]
    assert isinstance(paths, dict)
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield path, method, operation


def described(path: str, method: str) -> dict[str, object]:
    return next(one for at, how, one in operations() if (at, how) == (path, method))


def check_reply(operation: dict[str, object], reply: Reply) -> None:
    """That its status is described, and that its document is as described."""
    responses = operation["responses"]
    assert isinstance(responses, dict)
    response = responses[str(reply.status)]
    if "$ref" in response:
        response = OPENAPI["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema = response["content"]["application/json"]["schema"] | {
        "components": OPENAPI["components"]
    }
    jsonschema.validate(json.loads(reply.content), schema, cls=jsonschema.Draft202012Validator)


@settings(max_examples=60)
@given(data=st.data())
def test_every_answer_is_as_the_description_says(data: st.DataObject) -> None:
    path, method, operation = data.draw(st.sampled_from(list(operations())[:-1]))
    parameters = operation["parameters"]
    assert isinstance(parameters, list)
    query = []
    for parameter in parameters:
        if parameter["required"] or data.draw(st.integers(0, 3)) == 0:
            text = data.draw(st.just(parameter["example"]) | SIZES)
            query.append((parameter["name"], text))
    body = b""
    if method == "post":
        sizes = st.integers(-1, 10**13) | st.none() | st.text(max_size=5)
        keys = st.sampled_from(["model_type", "n_embd", "n_layer", "n_head", "vocab_size", "width"])
        body = json.dumps(data.draw(st.dictionaries(keys, sizes))).encode()
    check_reply(operation, answered(Question(path, tuple(query), body)))


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("*.json")))
def test_the_audit_of_a_real_config_is_as_described(name: str) -> None:
    reply = asked("/api/audit", (CONFIGS / name).read_bytes())
    assert reply.status == 200
    check_reply(described("/api/audit", "post"), reply)


def test_the_description_names_every_address_and_parameter_that_is_answered() -> None:
    named = {(path, method) for path, method, _ in operations()}
    answered = {(path, "get") for path in DOCUMENTS} | {(ADDRESS, "get")}
    answered |= {(path, "post") for path in TAKE_A_CONFIG if path in DOCUMENTS}
    assert named == answered
    for path, method, operation in operations():
        parameters = operation.get("parameters", [])
        assert isinstance(parameters, list)
        if method == "get" and parameters:
            sentence = json.loads(asked(f"{path}?unknown=1").content)["error"]
            names = [parameter["name"] for parameter in parameters]
            assert sentence == f"'unknown' is no parameter; use {', '.join(names)}"


def test_every_kind_of_parameter_is_read_and_described_with_its_limit() -> None:
    named = {
        parameter["schema"]["$ref"].rpartition("/")[2]
        for _, _, operation in operations()
        for parameter in operation.get("parameters", ())  # type: ignore[attr-defined]
    }
    assert named == set(READERS)
    limits = {schema["maxLength"] for name in named if "maxLength" in (schema := SCHEMAS[name])}
    assert limits == {MOST_TEXT}


def test_the_description_names_every_option_of_a_plan() -> None:
    parameters = described("/api/plan", "get")["parameters"]
    assert isinstance(parameters, list)
    assert [one["name"] for one in parameters] == [one.name for one in fields(PlanOptions)]


@settings(max_examples=30)
@given(st.from_regex(SIZE_PATTERN.replace("$", r"\Z"), fullmatch=True))
def test_a_size_of_the_described_pattern_is_refused_for_no_other_reason(text: str) -> None:
    """It is no whole number, or names no network: never that it is no size."""
    reply = asked(f"/api/plan?params={text.replace('+', '%2B')}")
    assert "is not a size" not in reply.content.decode()


@settings(max_examples=30)
@given(st.from_regex(BYTES_PATTERN.replace("$", r"\Z"), fullmatch=True))
def test_bytes_of_the_described_pattern_are_refused_for_no_other_reason(text: str) -> None:
    reply = asked(f"/api/plan?bytes={text.replace('+', '%2B')}")
    assert "is not a size" not in reply.content.decode()


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_every_number_that_json_writes_is_read(number: float) -> None:
    assert NUMBER.fullmatch(json.dumps(number))
