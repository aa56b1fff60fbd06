"""Run recorded command lines in this process, and compare what they answer with the recording.

Compared are the exit status, the JSON document, and the files that were written; not the prose.
Every recorded key must still be there with an equal value; new keys are welcome.
"""

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import runpy
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from recorded.world import write_world

FOLDER = Path(__file__).parent
BAD_INPUT = 2
TRAINING = {"train", "sweep", "advise"}  # groups whose numbers come out of float32
EXACT, LEARNT = 1e-9, 1e-6  # relative
# What another moment or machine changes: these keys, and keys in them, must be there.
FREE = {"seconds", "timing", "machine", "archfit"}
PINNED_JSON = {
    *("spec.json", "record.json", "sweep.json", "data.json", "advice.json"),
    *("config.json", "gpt_config.json", "tokenizer_config.json"),
}
PINNED_TEXT = {".yaml", ".yml", ".sh", ".toml", ".py"}
PINNED_BYTES = {".bin", ".txt"}
Json = dict[str, object]
NOISE = "noise"  # in place of a singular value


def commands() -> dict[str, list[str]]:
    """Command lines by group, as commands.txt lists them."""
    groups: dict[str, list[str]] = {}
    for line in (FOLDER / "commands.txt").read_text().splitlines():
        if line.startswith("["):
            lines = groups.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return groups


def recording(group: str) -> list[Json]:
    """What the commands of a group answered when they were captured."""
    lines = (FOLDER / f"{group}.jsonl").read_text().splitlines()
    return [_stripped(json.loads(line)) for line in lines]


def replayed(lines: list[str], folder: Path) -> Iterator[Json]:
    """Run one command after the other in `folder`, which is empty before; their answers."""
    write_world(folder)
    elsewhere = {"HF_HOME": str(folder / "hf"), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    with contextlib.chdir(folder), patch.dict(os.environ, elsewhere):
        for line in lines:
            before = _stamps(folder)
            status, out, err = run(shlex.split(line))
            names = sorted(name for name, at in _stamps(folder).items() if before.get(name) != at)
            files = {name: _content(folder / name) for name in names}
            answer: Json = {"command": line, "status": status, "files": files}
            if status == BAD_INPUT:
                answer["refusal"] = refusal(out, err)
            elif "--json" in line:
                answer["document"] = json.loads(out)
            yield _stripped(_without_place(answer, folder))


def run(words: list[str]) -> tuple[int, str, str]:
    """`archfit WORDS` in this process: its exit status, stdout and stderr."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    status: object = 0
    words_given = patch.object(sys, "argv", ["archfit", *words])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), words_given:
        try:
            runpy.run_module("archfit", run_name="__main__")
        except SystemExit as ended:
            status = ended.code
    for stream in (out, err):
        stream.seek(0)
    return (status if isinstance(status, int) else int(status is not None)), out.read(), err.read()


def refusal(out: str, err: str) -> str:
    """Whether bad input was answered as it should be: "one line", or what was wrong with it."""
    if out:
        return f"stdout is not empty: {out[:200]}"
    if "Traceback" in err or not err.startswith("archfit: ") or len(err.splitlines()) != 1:
        return f"stderr is not one line that begins with 'archfit: ': {err[-400:]}"
    return "one line"


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != ".lock":
            stat = path.stat()
            found[str(path.relative_to(folder))] = (stat.st_mtime_ns, stat.st_size)
    return found


def _content(path: Path) -> object:
    """What a recording keeps of a file: all that is the same on every machine."""
    if path.name in PINNED_JSON:
        return json.loads(path.read_text())
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        return {"columns": dict.fromkeys(header, True), "rows": len(rows)}
    if path.suffix in PINNED_TEXT:
        free = ("#", "export PYTHONPATH=")
        text = path.read_text().replace(sys.executable, "python")
        return [line for line in text.splitlines() if not line.startswith(free)]
    if path.suffix in PINNED_BYTES:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if path.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, framework="numpy") as tensors:
            return {name: tensors.get_slice(name).get_shape() for name in tensors.keys()}  # noqa: SIM118
    return None


def _without_place(value: Json, folder: Path) -> Json:
    text = json.dumps(value)
    for place in (folder, folder.resolve()):
        text = text.replace(json.dumps(str(place))[1:-1], "@")
    found: Json = json.loads(text)
    return found


def _stripped(value: Json) -> Json:
    """Without the values of FREE keys, at any depth, and without the noise of spectra."""

    def strip(part: object, free: bool) -> object:
        if isinstance(part, Mapping):
            if "singular_values" in part:
                part = _above_noise(part)
            return {key: strip(inner, free or key in FREE) for key, inner in part.items()}
        if isinstance(part, list) and not free:
            return [strip(inner, free) for inner in part]
        return None if free else part

    return {key: strip(part, False) for key, part in value.items()}


def _above_noise(spectrum: Mapping[str, Any]) -> Mapping[str, Any]:
    """Singular values below the tolerance it names are of this machine's linear algebra alone."""
    values = [
        each if each != NOISE and each["singular_value"] > spectrum["tolerance"] else NOISE
        for each in spectrum["singular_values"]
    ]
    rank = float(f"{spectrum['effective_rank']:.5g}")
    return {**spectrum, "singular_values": values, "effective_rank": rank}


def differences(recorded: object, found: object, tolerance: float, at: str = "") -> Iterator[str]:
    """Where `found` lacks what was recorded, or has another value there."""
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        for key, value in recorded.items():
            if key not in found:
                yield f"{at}.{key} is gone"
            else:
                yield from differences(value, found[key], tolerance, f"{at}.{key}")
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        for index, (old, new) in enumerate(zip(recorded, found, strict=True)):
            yield from differences(old, new, tolerance, f"{at}[{index}]")
    elif not _equal(recorded, found, tolerance):
        yield f"{at} was {json.dumps(recorded)[:300]}, is {json.dumps(found)[:300]}"


def _equal(recorded: object, found: object, tolerance: float) -> bool:
    if isinstance(recorded, float) and isinstance(found, (int, float)):
        return math.isclose(recorded, found, rel_tol=2 * tolerance, abs_tol=tolerance * 1e-3)
    return type(recorded) is type(found) and recorded == found
