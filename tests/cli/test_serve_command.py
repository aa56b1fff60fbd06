"""`archfit serve`: how it starts, and what it says when it cannot."""

import socket

import pytest
from typer.testing import CliRunner

from archfit.cli import app
from archfit.cli.app import program


def refused(*words: str) -> str:
    problem = CliRunner().invoke(program(["serve"]), ["serve", *words]).exception
    assert isinstance(problem, ValueError)
    return str(problem)


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refused("--port", str(port))
    assert sentence == (
        f"port {port} of 127.0.0.1 cannot be had (Address already in use); use another --port, or "
        "--port 0 for a free one"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--port", "70000"), "port=70000 is not in 0..65535; 0 takes a free one"),
        (("--host", "256.1.1.1"), "host '256.1.1.1' is no address of this machine"),
        (("--host", "x" * 300), "is no address of this machine; use 127.0.0.1"),
    ],
)
def test_an_address_that_is_none_is_one_sentence(words: tuple[str, str], sentence: str) -> None:
    said = refused(*words)
    assert sentence in said
    assert not said.startswith("-")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "NEEDED_TO_SERVE", ("starlette", "a_library_nobody_has"))
    assert refused() == "archfit serve needs a_library_nobody_has; pip install 'archfit[serve]'"
