from pathlib import Path

import pytest

from archfit.data.hugging_face import dataset_documents
from archfit.data.settings import Settings
from archfit.data.unpack import Ledger

TEXT = Settings(kind="text")
ROWS = {"text": ["one", "", "twö"], "label": [0, 1, 2]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import datasets

    folder = tmp_path_factory.mktemp("hf")
    train = datasets.Dataset.from_dict(ROWS)
    datasets.DatasetDict({"train": train, "test": train.select([2])}).save_to_disk(folder / "both")
    train.save_to_disk(folder / "single")
    (folder / "plain").mkdir()
    train.to_json(folder / "plain" / "train.jsonl")
    return folder


@pytest.mark.parametrize("name", ["both", "single", "both:train", "both:default:train"])
def test_rows_of_a_saved_data_set_are_documents(name: str, saved: Path, ledger: Ledger) -> None:
    found = list(dataset_documents(f"hf:{saved}/{name}", TEXT, ledger))
    assert found == [b"one", "twö".encode()]
    assert [file.bytes for file in ledger.files.values()] == [7]


def test_another_split_and_field(saved: Path, ledger: Ledger) -> None:
    assert list(dataset_documents(f"hf:{saved}/both:test", TEXT, ledger)) == ["twö".encode()]
    with pytest.raises(ValueError, match=r"no split 'validation' but train, test"):
        list(dataset_documents(f"hf:{saved}/both:validation", TEXT, ledger))
    with pytest.raises(ValueError, match="no column 'body' but 'text', 'label'"):
        list(dataset_documents(f"hf:{saved}/both", Settings(kind="text", field="body"), ledger))


def test_a_folder_of_data_files(
    saved: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    found = list(dataset_documents(f"hf:{saved}/plain", TEXT, ledger))
    assert found == [b"one", "twö".encode()]


def test_what_is_not_there_is_not_fetched(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"cannot be loaded offline .* give a folder"):
        list(dataset_documents("hf:nobody/nothing", TEXT, ledger))
    with pytest.raises(ValueError, match="is not hf:NAME"):
        list(dataset_documents("hf:", TEXT, ledger))
