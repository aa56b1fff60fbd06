import json
import shutil
from pathlib import Path

import pytest

from archfit.data.prepare import prepare
from archfit.data.prepared import open_prepared
from archfit.data.sources import DataSettings


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(
        "sample", tmp_path_factory.mktemp("d") / "data", DataSettings(kind="bytes")
    ).data.folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "data")
    return tmp_path / "data"


def test_a_complete_folder_opens_and_verifies(copy: Path) -> None:
    data = open_prepared(copy)
    data.verify()
    assert data.vocab == 257
    assert len(data.data_hash) == 64


@pytest.mark.parametrize("name", ["train.bin", "heldout.bin", "tokenizer.json", "data.json"])
def test_a_missing_file_is_noticed(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(ValueError, match=r"not usable|not a prepared data set"):
        open_prepared(copy)


def test_a_shortened_file_is_noticed(copy: Path) -> None:
    (copy / "train.bin").write_bytes((copy / "train.bin").read_bytes()[:-2])
    with pytest.raises(
        ValueError, match=r"train\.bin does not hold 920269 tokens; prepare it again"
    ):
        open_prepared(copy)


def test_a_changed_byte_is_noticed_by_verify(copy: Path) -> None:
    content = bytearray((copy / "train.bin").read_bytes())
    content[1000] ^= 1
    (copy / "train.bin").write_bytes(content)
    with pytest.raises(ValueError, match=r"data/train\.bin is not what was written"):
        open_prepared(copy).verify()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 99}, r"data\.json is not of format 1"),
        ({"dtype": "float32"}, "dtype 'float32' is neither uint16 nor uint32"),
        ({"train": {}}, r"data\.json has no train\.tokens"),
    ],
)
def test_a_description_of_something_else_is_refused(
    copy: Path, change: dict[str, object], sentence: str
) -> None:
    description = json.loads((copy / "data.json").read_text())
    (copy / "data.json").write_text(json.dumps(description | change))
    with pytest.raises(ValueError, match=sentence):
        open_prepared(copy)


def test_a_description_in_pieces_is_refused(copy: Path) -> None:
    (copy / "data.json").write_text((copy / "data.json").read_text()[:100])
    with pytest.raises(ValueError, match=r"data\.json is not JSON"):
        open_prepared(copy)


def test_the_sample_decodes_to_the_works_it_holds(made: Path) -> None:
    train, heldout = (open_prepared(made).decode(side) for side in ("train", "heldout"))
    assert len(train) == len(heldout) == 3
    assert b"Alice" in train[1]
    assert b"Sir Walter Elliot, of Kellynch Hall" in train[0]
