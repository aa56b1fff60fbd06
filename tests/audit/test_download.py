"""`--download` against a server of this machine, and that nothing else ever asks one."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

from archfit.audit.targets import _fetch
from tests_safetensors import write_raw

CONFIG = {"model_type": "gpt2", "n_layer": 3, "n_embd": 8, "n_head": 2, "vocab_size": 30}
COMMIT = "0123456789abcdef" * 2 + "01234567"


class Hub:
    """A server that speaks as Hugging Face's does; it has one model, org/name."""

    def __init__(self, files: dict[str, bytes], sizes: dict[str, int]) -> None:
        self.files, self.sizes, self.asked = files, sizes, list[str]()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.asked.append(self.path)
                content, error = hub.answer(self.path.partition("?")[0])
                self.send_response(404 if error else 200)
                headers = {
                    "Content-Length": str(len(content)),
                    "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
                    "X-Repo-Commit": COMMIT,
                    **({"X-Error-Code": error} if error else {}),
                }
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            do_HEAD = do_GET

            def log_message(self, format: str, *given: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> tuple[bytes, str]:
        if path == "/api/models/org/name":
            listed = [
                {"rfilename": name, "size": self.sizes.get(name, len(content))}
                for name, content in self.files.items()
            ]
            about = {"id": "org/name", "sha": COMMIT, "siblings": listed}
            return json.dumps(about).encode(), ""
        start = "/org/name/resolve/main/"
        if path.startswith(start) and path.removeprefix(start) in self.files:
            return self.files[path.removeprefix(start)], ""
        return b"", "RepoNotFound"

    def downloads(self) -> set[str]:
        """Names of the files that were asked for."""
        return {path.rpartition("/")[2] for path in self.asked if "/resolve/" in path}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    header = {"wte.weight": {"dtype": "F32", "shape": [30, 8], "data_offsets": [0, 960]}}
    rows = np.eye(30, 8, dtype="<f4").tobytes()
    weights = write_raw(tmp_path / "x.safetensors", json.dumps(header).encode(), rows)
    files = {
        "config.json": json.dumps(CONFIG).encode(),
        "model.safetensors": weights.read_bytes(),
        "consolidated.safetensors": b"as large again",
        "onnx/model.safetensors": b"once more",
        "pytorch_model.bin": b"a pickle",
    }
    hub = Hub(files, {})
    Thread(target=hub.server.serve_forever, daemon=True).start()
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


def run(hub: Hub, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    names = {"HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    command = [sys.executable, "-m", "archfit", "audit", *words]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment | names, cwd=home
    )


def test_a_config_is_fetched_alone_and_found_offline_afterwards(hub: Hub, tmp_path: Path) -> None:
    done = run(hub, tmp_path, "org/name", "--download", "--json")
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)
    assert (document["name"], document["depth"], document["width"]) == ("org/name", 3, 8)
    assert hub.downloads() == {"config.json"}
    hub.asked.clear()
    again = run(hub, tmp_path, "org/name", "--json")
    assert json.loads(again.stdout) == [document]
    assert hub.asked == []


def test_weights_are_fetched_to_measure_them(hub: Hub, tmp_path: Path) -> None:
    done = run(hub, tmp_path, "org/name", "--download", "--weights", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["embedding_rank_measured"] == 8
    assert hub.downloads() == {"config.json", "model.safetensors"}
    assert not any("onnx" in path for path in hub.asked)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["org/name"], marks=pytest.mark.slow),
        ["org/name", "--weights"],
        pytest.param(["gpt2"], marks=pytest.mark.slow),
        pytest.param(["--all"], marks=pytest.mark.slow),
    ],
)
def test_nothing_is_asked_of_a_server_without_being_told_to(
    words: list[str], hub: Hub, tmp_path: Path
) -> None:
    done = run(hub, tmp_path, *words)
    assert hub.asked == []
    assert done.returncode == (2 if "org/name" in words else 0)
    if done.returncode:
        assert "not in the Hugging Face cache" in done.stderr
        assert "; --download fetches it from Hugging Face" in done.stderr


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("org/other", "org/other was not downloaded: 404"),
        ("org/x--y", "org/x--y was not downloaded: "),
    ],
)
def test_what_is_not_there_is_one_sentence(
    word: str, sentence: str, hub: Hub, tmp_path: Path
) -> None:
    done = run(hub, tmp_path, word, "--download")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr
    assert "; check its name, the network and the disk" in done.stderr


def test_weights_larger_than_the_disk_are_not_begun(hub: Hub, tmp_path: Path) -> None:
    hub.sizes["model.safetensors"] = 10**18
    done = run(hub, tmp_path, "org/name", "--download", "--weights")
    assert done.returncode == 2
    assert "bytes, and the disk has" in done.stderr
    assert hub.downloads() == set()


def test_a_model_that_just_fits_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [SimpleNamespace(rfilename="config.json", size=100)]
    api = SimpleNamespace(model_info=lambda *_, **__: SimpleNamespace(siblings=files))
    fetched: list[str] = []
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: api)
    monkeypatch.setattr(
        "huggingface_hub.hf_hub_download", lambda _, name, **__: fetched.append(name)
    )
    for free, ends in ((100, []), (99, ["no"])):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        with pytest.raises(ValueError, match="the disk has 99") if ends else nullcontext():
            _fetch("org/name", tmp_path, ("*.json",))
    assert fetched == ["config.json"]


def test_a_model_without_a_config_is_refused(hub: Hub, tmp_path: Path) -> None:
    del hub.files["config.json"]
    assert "it has no config.json; check" in run(hub, tmp_path, "org/name", "--download").stderr


def test_the_gallery_has_nothing_to_download(hub: Hub, tmp_path: Path) -> None:
    done = run(hub, tmp_path, "--all", "--download")
    assert (done.returncode, hub.asked) == (2, [])
    assert "--download fetches one model, and --all has none to fetch; name it" in done.stderr
