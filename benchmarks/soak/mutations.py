"""Mutated files for every reader: a sentence or an answer, and nothing else.

Readers are called through the command line's own `main`, in copies of a warm process that take one
input after the other. Inputs that once made a reader fail are in corpus/READER and always tried.
"""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archfit.spec import loads
from archfit.spec.record import RunRecord
from soak.jobs import World
from soak.kills import Tally
from soak.processes import ALLOWED, HANGS_AFTER, TRACEBACK, run_here
from soak.readers import READERS, Reader

CORPUS = Path(__file__).parent / "corpus"
BATCH = 100  # inputs of one process
MOST_MEMORY = 3 << 30  # bytes that such a process may take
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, 10**13, 10**40, 1.5, 1e308, float("nan"), float("inf"), "",
    "x", "257", "\u202e\x1b[31m", "\ud800", [], {}, [[]], [{}], [None], "a" * 5000, "../../x",
)  # fmt: skip
PIECES = (
    b"",
    b"\0",
    b"\xff",
    b"\n",
    b"{}",
    b"[]",
    b'"',
    b"9" * 400,
    b"1e999",
    b"NaN",
    b"-",
    b"\x1b[2J",
)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Another content: bits, pieces, or values of its JSON."""
    if chance.random() < 0.5:
        try:
            document = json.loads(content)
            for _ in range(chance.randint(1, 3)):
                document = _other_value(document, chance)
            return json.dumps(document).encode(errors="surrogatepass")
        except (ValueError, RecursionError):
            pass
    spoilt = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(spoilt) + 1)
        length = chance.choice((0, 1, 4, 100, 1000, len(spoilt)))
        noise = bytes(chance.randrange(256) for _ in range(min(length, 4)))
        flipped = bytes(byte ^ 1 << chance.randrange(8) for byte in spoilt[at : at + 1])
        others = (chance.choice(PIECES), b"", noise, flipped, bytes(spoilt[:length]))
        spoilt[at : at + chance.choice((len(flipped), length))] = chance.choice(others)
    return bytes(spoilt)


def _other_value(document: Any, chance: random.Random) -> Any:
    """The document with one leaf or part replaced, renamed or left out."""
    if not isinstance(document, dict | list) or not document or chance.random() < 0.1:
        return chance.choice(VALUES)
    key = chance.choice(list(document) if isinstance(document, dict) else range(len(document)))
    if chance.random() < 0.15:
        del document[key]
    elif isinstance(document, dict) and chance.random() < 0.1:
        document[f"{key}x"] = document.pop(key)
    else:
        document[key] = _other_value(document[key], chance)
    return document


def mutate_all(
    world: World, count: int, chance: random.Random, tally: Tally, keep: Path | None
) -> None:
    """The corpus, then `count` mutated inputs over all readers."""
    total = sum(reader.weight for reader in READERS)
    for reader in READERS:
        known = [file.read_bytes() for file in sorted((CORPUS / reader.name).glob("*"))]
        seeds, wanted = reader.seeds(world), -(-count * reader.weight // total)
        inputs = known + [mutated(chance.choice(seeds), chance) for _ in range(wanted)]
        place = world.folder.parent / f"mutated-{reader.name}"
        place.mkdir()
        for start in range(0, len(inputs), BATCH):
            for content, problem in _batch(reader, world, place, inputs[start : start + BATCH]):
                tally.trials[f"mutated input: {reader.name}"] += 1
                tally.check(f"mutated input: {reader.name}", problem)
                if problem and keep is not None:
                    name = hashlib.sha256(content).hexdigest()[:16]
                    (keep / reader.name).mkdir(parents=True, exist_ok=True)
                    (keep / reader.name / name).write_bytes(content)
        shutil.rmtree(place, ignore_errors=True)


def _batch(
    reader: Reader, world: World, place: Path, inputs: list[bytes]
) -> Iterator[tuple[bytes, str]]:
    """Each input and what went wrong with it; a process that dies goes on after the culprit."""
    at = 0
    while at < len(inputs):
        answers, tell = os.pipe()
        process = os.fork()
        if not process:
            os.setsid()
            os.close(answers)
            _try_all(reader, world, place, inputs[at:], tell)
        os.close(tell)
        with os.fdopen(answers, "rb") as lines:
            for line in lines:
                yield inputs[at], json.loads(line)
                at += 1
        _, code = os.waitpid(process, 0)
        if at < len(inputs) or code:
            status = os.waitstatus_to_exitcode(code)
            yield inputs[min(at, len(inputs) - 1)], f"the process died ({status})"
            at += 1


def _try_all(reader: Reader, world: World, place: Path, inputs: list[bytes], tell: int) -> None:
    """Read each input in turn and tell what went wrong; never returns."""
    said = place / "said"
    signal.signal(signal.SIGALRM, _hang)
    for handle in (1, 2):
        os.dup2(os.open(said, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644), handle)
    for content in inputs:
        shutil.rmtree(place / "work", ignore_errors=True)
        (place / "work").mkdir()
        for name in reader.beside(world):
            _copied(Path(name), place / "work" / Path(name).name)
        target = next((place / "work").glob(reader.file), place / "work" / reader.file)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        os.truncate(said, 0)
        problem = _tried(reader, world, place / "work", said)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MOST_MEMORY:
            problem = problem or "took over 3 GiB"
        os.write(tell, json.dumps(problem).encode() + b"\n")
        if problem == "took over 3 GiB":
            os._exit(1)
    os._exit(0)


def _hang(*_: object) -> None:
    """A command that hangs ends its process, whatever it catches."""
    os._exit(99)


def _copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def _tried(reader: Reader, world: World, work: Path, said: Path) -> str:
    signal.alarm(int(HANGS_AFTER))
    status = run_here(reader.words(world, work))
    sys.stdout.flush()
    sys.stderr.flush()
    signal.alarm(0)
    words = said.read_text(errors="replace")
    if status == TRACEBACK or "Traceback" in words:
        return f"a traceback: {words[-400:]}"
    if status not in ALLOWED:
        return f"status {status}"
    if reader.is_guarded and status == 0:
        (found,) = work.glob("stopped/*/record.json")
        (expected,) = Path(world.trained).glob("*/record.json")
        records = (loads(RunRecord, path.read_text()) for path in (found, expected))
        if not next(records).same_result(next(records)):
            return "another record"
    return ""
