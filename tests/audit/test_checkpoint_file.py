"""Headers: the safetensors library is the oracle, on sound files and on broken ones."""

import json
import os
import random
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import archfit.audit.checkpoint_file
from archfit.audit.checkpoint_file import (
    DTYPE_BITS,
    MOST_HEADER_BYTES,
    read_checkpoint,
    read_header,
)
from tests_safetensors import ONE, write_raw, write_shapes

LONGEST_SECONDS, MOST_MEMORY = 1.0, 500 * 10**6
SOUND = {
    "__metadata__": {"format": "pt"},
    "a.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
    "nothing": {"dtype": "I64", "shape": [0, 7], "data_offsets": [32, 32]},
}


def refusal(path: Path) -> str:
    """What is said of a file that must be refused."""
    with pytest.raises(ValueError, match="is no sound safetensors file: ") as problem:
        read_header(path)
    return str(problem.value)


def entry(**changes: object) -> bytes:
    return json.dumps({"x": ONE | changes}).encode()


def test_names_dtypes_shapes_and_bytes_are_those_of_the_library(tmp_path: Path) -> None:
    arrays: dict[str, NDArray[Any]] = {
        "wte.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
        "half": np.ones((2, 2, 2), np.float16),
        "ids": np.array([7], np.int64),
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 5), np.uint8),
    }
    save_file(arrays, tmp_path / "m.safetensors", metadata={"format": "np"})
    tensors = read_header(tmp_path / "m.safetensors")
    content = (tmp_path / "m.safetensors").read_bytes()
    assert {tensor.name: tensor.shape for tensor in tensors} == {
        name: array.shape for name, array in arrays.items()
    }
    for tensor in tensors:
        assert content[tensor.start : tensor.end] == arrays[tensor.name].tobytes()
    with safe_open(tmp_path / "m.safetensors", framework="np") as file:
        assert {t.name: t.dtype for t in tensors} == {
            name: file.get_slice(name).get_dtype() for name in arrays
        }


@pytest.mark.parametrize("dtype", DTYPE_BITS)
def test_each_dtype_has_the_size_that_the_library_gives_it(dtype: str, tmp_path: Path) -> None:
    size = DTYPE_BITS[dtype]  # eight elements have as many bytes as one has bits
    header = entry(dtype=dtype, shape=[8], data_offsets=[0, size])
    path = write_raw(tmp_path / "x.safetensors", header, bytes(size))
    assert read_header(path)[0].elements == 8
    with safe_open(path, framework="np") as file:
        assert list(file.keys()) == ["x"]


@pytest.mark.parametrize(
    ("header", "data", "sentence"),
    [
        (b"", b"", "its header is not JSON"),
        (b"[]", b"", "holds a JSON list, not an object"),
        (b'{"x":', b"", "its header is not JSON"),
        (b'{"\xff":1}', b"", "not UTF-8"),
        (b'{"x":' + b"[" * 100_000, b"", "nested too deeply"),
        (b'{"x":' + b"9" * 5000 + b"}", b"", "a whole number of 5,000 digits"),
        (b'{"x":1,"x":1}', b"", "the key 'x' stands twice; keep one"),
        (b'{"x":1}', b"", "'x' lacks dtype, shape or data_offsets"),
        (b'{"__metadata__":{"a":1}}', b"", "must map words to words"),
        (b"{" + b"[]," * 1_000_001, b"", "brackets and commas, over the limit of 1,000,000"),
        (entry(dtype="F31"), bytes(4), "the dtype 'F31'; known are F4, "),
        (entry(dtype=["F32"]), bytes(4), "known are F4, "),
        (entry(shape=[-1]), bytes(4), "whole numbers from 0"),
        (entry(shape=[True]), bytes(4), "whole numbers from 0"),
        (entry(shape=[1.0]), bytes(4), "whole numbers from 0"),
        (entry(shape=4), bytes(4), "whole numbers from 0"),
        (entry(data_offsets=[0, 2, 4]), bytes(4), "two of them in data_offsets"),
        (entry(shape=[2**32, 2**32]), bytes(4), "over 2\\^63 elements"),
        (entry(shape=[2**40] * 9999), bytes(4), "over 2\\^63 elements"),
        (entry(shape=[2]), bytes(4), "lies at 0..4, but its shape and dtype need 8 bytes"),
        (entry(data_offsets=[4, 0]), bytes(4), "need 4 bytes"),
        (entry(), bytes(8), "leave a gap"),
        (entry(), bytes(3), "and the file's end at .* overlap"),
        (entry(data_offsets=[1, 5]), bytes(5), "the header up to byte .* leave a gap"),
        (json.dumps({"x": ONE, "y": ONE}).encode(), bytes(4), "'x' up to .* 'y' at .* overlap"),
    ],
)
def test_a_broken_header_is_refused_by_us_and_by_the_library(
    header: bytes, data: bytes, sentence: str, tmp_path: Path
) -> None:
    path = write_raw(tmp_path / "x.safetensors", header, data)
    with pytest.raises(ValueError, match=sentence) as problem:
        read_header(path)
    assert str(problem.value).startswith(f"{path} is no sound safetensors file: ")
    if "twice" not in sentence:  # the library takes the last of two
        with pytest.raises(SafetensorError), safe_open(path, framework="np"):
            pass


def test_a_length_that_the_file_cannot_have_is_named(tmp_path: Path) -> None:
    path = write_raw(tmp_path / "x.safetensors", b"{}", length=2**63)
    assert "a header of 9,223,372,036,854,775,808 bytes does not fit its 10 bytes" in refusal(path)
    (tmp_path / "short.safetensors").write_bytes(b"\x02\x00")
    assert "it has 2 bytes, too few for a header" in refusal(tmp_path / "short.safetensors")


def test_a_header_over_the_limit_is_never_read(tmp_path: Path) -> None:
    path = write_raw(tmp_path / "x.safetensors", b"{}", length=MOST_HEADER_BYTES + 1)
    os.truncate(path, 10**9)
    tracemalloc.start()
    assert "over the limit of 16,000,000; split the model into shards" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


@pytest.mark.slow
def test_the_largest_header_allowed_stays_within_the_memory(tmp_path: Path) -> None:
    """One character beyond latin-1 makes Python's text four times as large."""
    keys = ",".join(f'"{number:x}":0' for number in range(900_000))
    header = (
        '{"ä":"\U0001f600' + " " * (MOST_HEADER_BYTES - len(keys) - 20) + '",' + keys + "}"
    ).encode()
    path = write_raw(tmp_path / "x.safetensors", header)
    tracemalloc.start()
    assert "lacks dtype" in refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("name", ["a." * 600, "\x1b[31mred.weight", "two\nlines.weight"])
def test_a_name_that_cannot_be_shown_is_refused(name: str, tmp_path: Path) -> None:
    path = write_raw(tmp_path / "x.safetensors", json.dumps({name: ONE}).encode(), b"\0" * 4)
    said = refusal(path)
    assert "over 1000 characters long or holds control characters; rename the tensor" in said
    assert said.isprintable()


def test_a_name_of_1000_characters_is_just_short_enough(tmp_path: Path) -> None:
    for length, is_sound in ((1000, True), (1001, False)):
        header = json.dumps({"x" * length: ONE}).encode()
        path = write_raw(tmp_path / "x.safetensors", header, b"\0" * 4)
        assert (our_refusal(path) == "") == is_sound


def test_the_largest_shape_has_2_to_63_elements_less_one(tmp_path: Path) -> None:
    wide = entry(dtype="U8", shape=[0, 2**63 - 1], data_offsets=[0, 0])  # no elements after all
    assert read_header(write_raw(tmp_path / "x.safetensors", wide))[0].elements == 0
    for size, sentence in ((2**63 - 1, "need 9.22337203685478e"), (2**63, "over 2^63 elements")):
        path = write_raw(tmp_path / "y.safetensors", entry(dtype="U8", shape=[size]), bytes(4))
        assert sentence in refusal(path)


def test_half_a_character_is_refused_and_a_whole_one_is_not(tmp_path: Path) -> None:
    header = json.dumps({"\U0001f600": ONE}).encode()  # written as two halves
    assert b"\\ud83d\\ude00" in header
    assert len(read_header(write_raw(tmp_path / "x.safetensors", header, b"\0" * 4))) == 1
    path = write_raw(tmp_path / "y.safetensors", header.replace(b"\\ude00", b""), b"\0" * 4)
    assert "holds half a character ('\\ud83d'); write it again" in refusal(path)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.safetensors")
    assert "it is a pipe or a device; give a regular file" in refusal(tmp_path / "x.safetensors")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "a.pt", "A.PTH", "b.ckpt", "c.pkl"])
def test_a_pickle_is_told_by_its_name_and_never_opened(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"can run any code.*safetensors\.torch\.save_file"):
        read_checkpoint(tmp_path / name)  # it is not even there


@pytest.mark.parametrize("magic", [b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9"])
def test_a_pickle_with_another_name_is_told_by_its_first_bytes(
    magic: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(magic + b"\x01" * 100)
    assert "pickled checkpoint" in refusal(path)


def test_a_length_that_looks_like_a_pickle_is_a_length(tmp_path: Path) -> None:
    """640 is 0x280, whose first bytes are those of a pickle."""
    path = write_raw(tmp_path / "x.safetensors", entry().ljust(640), bytes(4))
    assert path.read_bytes().startswith(b"\x80\x02")
    assert read_header(path)[0].name == "x"


# ---- shards


def write_shards(folder: Path) -> Path:
    write_shapes(folder / "s-1.safetensors", {"a": ("F32", [2, 2]), "b": ("F32", [3])})
    write_shapes(folder / "s-2.safetensors", {"c": ("BF16", [5])})
    return write_index(folder, {"a": "s-1.safetensors", "c": "s-2.safetensors"})


def write_index(folder: Path, weight_map: object) -> Path:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return path


def test_shards_that_link_to_one_large_header_are_refused_at_once(tmp_path: Path) -> None:
    names = [f"s-{number}.safetensors" for number in range(1000)]
    write_raw(tmp_path / names[0], b"{" + b" " * 50_000 + b"}")
    for name in names[1:]:
        (tmp_path / name).symlink_to(names[0])
    path = write_index(tmp_path, {name: name for name in names})
    with pytest.raises(ValueError, match="headers of 50,002,000 bytes together, over the limit"):
        read_checkpoint(path)


def test_headers_of_shards_may_have_32_million_bytes_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_shards(tmp_path)
    headers = [(tmp_path / f"s-{n}.safetensors").read_bytes()[:8] for n in (1, 2)]
    total = sum(int.from_bytes(header, "little") for header in headers)
    monkeypatch.setattr(archfit.audit.checkpoint_file, "MOST_HEADER_BYTES_OF_ALL", total)
    monkeypatch.setattr(archfit.audit.checkpoint_file, "MOST_SHARDS", 2)
    assert len(read_checkpoint(path)) == 2
    monkeypatch.setattr(archfit.audit.checkpoint_file, "MOST_HEADER_BYTES_OF_ALL", total - 1)
    with pytest.raises(ValueError, match=f"headers of {total} bytes together"):
        read_checkpoint(path)
    monkeypatch.setattr(archfit.audit.checkpoint_file, "MOST_SHARDS", 1)
    with pytest.raises(ValueError, match="names 2 files, over the limit of 1"):
        read_checkpoint(path)


@pytest.mark.slow
def test_a_mixture_of_90000_tensors_is_read(tmp_path: Path) -> None:
    shards = [f"model-0000{shard}-of-00002.safetensors" for shard in (1, 2)]
    names = [f"model.layers.{n % 60}.mlp.experts.{n // 60}.down_proj.weight" for n in range(90_000)]
    weight_map = {name: shards[at % 2] for at, name in enumerate(names)}
    for shard in shards:
        mine = [name for name in names if weight_map[name] == shard]
        header = {name: ONE | {"shape": [0], "data_offsets": [0, 0]} for name in mine}
        write_raw(tmp_path / shard, json.dumps(header).encode())
    path = write_index(tmp_path, weight_map)
    assert len(read_checkpoint(path)) == 90_000


def test_an_index_of_over_32_megabytes_is_not_read(tmp_path: Path) -> None:
    path = write_index(tmp_path, {})
    path.write_bytes(b" " * 32_000_001)
    with pytest.raises(ValueError, match="has over 32,000,000 bytes"):
        read_checkpoint(path)


def test_a_shard_may_have_the_longest_name_that_file_systems_take(tmp_path: Path) -> None:
    name = "s" * (255 - len(".safetensors")) + ".safetensors"
    write_shapes(tmp_path / name, {"a": ("F32", [2])})
    assert len(read_checkpoint(write_index(tmp_path, {"a": name}))) == 1
    with pytest.raises(ValueError, match=r"a shard is a \.safetensors file"):
        read_checkpoint(write_index(tmp_path, {"a": f"s{name}"}))


def test_an_index_gives_the_tensors_it_names_with_their_files(tmp_path: Path) -> None:
    found = read_checkpoint(write_shards(tmp_path))
    assert [(t.name, t.file.name, t.shape) for t in found] == [
        ("a", "s-1.safetensors", (2, 2)),
        ("c", "s-2.safetensors", (5,)),
    ]


@pytest.mark.parametrize(
    "shard",
    [
        *("../s-1.safetensors", "/etc/passwd", "x/s-1.safetensors", "..", "s-1.bin", ".", ""),
        *("a\\b.safetensors", "\x00.safetensors", "C:s.safetensors", "é" * 200 + ".safetensors"),
        *(7, None),
    ],
)
def test_an_index_cannot_lead_out_of_its_folder(shard: object, tmp_path: Path) -> None:
    write_shards(tmp_path)
    path = write_index(tmp_path, {"a": shard})
    with pytest.raises(ValueError, match=r"a shard is a \.safetensors file in the folder of the"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("weight_map", "sentence"),
    [
        ({"a": "s-9.safetensors"}, "names s-9.safetensors, which is not beside it; copy it there"),
        ({"a": "s-2.safetensors"}, "says that 'a' is in s-2.safetensors, but it is not"),
        ({}, "has no weight_map from tensors to files"),
        ([], "has no weight_map from tensors to files"),
        ({str(n): f"{n}.safetensors" for n in range(2001)}, "names 2,001 files, over the limit"),
    ],
)
def test_an_index_that_does_not_fit_its_shards_is_refused(
    weight_map: object, sentence: str, tmp_path: Path
) -> None:
    write_shards(tmp_path)
    path = write_index(tmp_path, weight_map)
    with pytest.raises(ValueError, match=sentence):
        read_checkpoint(path)


# ---- mutations

TOKENS = (b"[", b"{", b'"', b"-", b"9" * 30, b"1e999", b"NaN", b"\xff", b"null", b"0", b",", b"]")
DATA = 32  # bytes after the header


def mutated(chance: random.Random) -> bytes:
    """A sound file after a few changes; the length of its header mostly fits what came out."""
    header = json.dumps(SOUND).encode()
    content = bytearray(len(header).to_bytes(8, "little") + header + bytes(DATA))
    for _ in range(chance.randint(1, 4)):
        change(content, chance)
    if chance.random() < 0.7 and len(content) >= 8 + DATA:
        content[:8] = (len(content) - 8 - DATA).to_bytes(8, "little")
    return bytes(content)


def change(content: bytearray, chance: random.Random) -> None:
    """Cut, copy, overwrite or insert, in place."""
    at = chance.randrange(len(content))
    end = at + chance.randint(1, 12)
    action = chance.randrange(4)
    if action == 0:
        content[at:end] = b"0"
    elif action == 1:
        content[at:at] = content[at:end] * chance.randint(1, 50)
    elif action == 2:
        content[at] = chance.randrange(256)
    else:
        content[at:at] = chance.choice(TOKENS) * chance.choice([1, 2, 5000])


def our_refusal(path: Path) -> str:
    """What we say of it, empty if we take it."""
    try:
        read_header(path)
    except ValueError as problem:
        return str(problem)
    return ""


def library_accepts(path: Path) -> bool:
    try:
        with safe_open(path, framework="np"):
            return True
    except SafetensorError:
        return False


def check_mutations(folder: Path, seeds: range) -> int:
    """How many mutated files are sound; a refusal is one sentence, in time, in little memory.

    We take what the library takes, save names that stand twice, or are no names to show.
    """
    sound, path = 0, folder / "x.safetensors"
    tracemalloc.start()
    for seed in seeds:
        path.write_bytes(mutated(random.Random(seed)))
        start = time.perf_counter()
        said = our_refusal(path)
        assert time.perf_counter() - start < LONGEST_SECONDS, seed
        assert said.isprintable(), seed
        assert len(said) < 600, seed
        is_ours = "stands twice" in said or "rename the tensor" in said
        assert (not said) == library_accepts(path) or is_ours, (seed, said)
        sound += not said
    assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    tracemalloc.stop()
    return sound


def test_of_200_mutated_files_we_take_those_that_the_library_takes(tmp_path: Path) -> None:
    assert check_mutations(tmp_path, range(200)) > 2


@pytest.mark.slow
def test_of_2000_mutated_files_we_take_those_that_the_library_takes(tmp_path: Path) -> None:
    assert check_mutations(tmp_path, range(10_000, 12_000)) > 20
