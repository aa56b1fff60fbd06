"""The shipped records as folders of runs: `archfit fit` says of each what the evidence says."""

import runpy
from pathlib import Path

import pytest

from archfit.fit.evidence import evidence_fits, read_evidence
from archfit.fit.fitted import fitted, read_folders
from archfit.report.conclusions import conclusions

NAMES = [sweep.name for sweep in read_evidence().shipped]
REPEATED = [sweep.name for sweep in read_evidence().shipped if sweep.is_repeated]
MIXED = ("again-dna", "repairs-dna", "repairs-music", "repairs-proteins", "wies-vocab")
SCRIPT = Path(__file__).parents[2] / "docs" / "evidence" / "unpack.py"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unpacked")
    runpy.run_path(str(SCRIPT))["main"](out)
    return out


def test_every_sweep_has_its_folder(folders: Path) -> None:
    assert sorted(folder.name for folder in folders.iterdir()) == sorted(NAMES)
    assert len(NAMES) >= 15


@pytest.mark.parametrize("name", REPEATED)
def test_a_folder_is_fitted_and_says_what_the_evidence_does(folders: Path, name: str) -> None:
    assert fitted(*read_folders([folders / name])) == evidence_fits(name)


@pytest.mark.parametrize("name", MIXED)
def test_without_its_sweep_each_data_set_is_fitted_on_its_own(
    folders: Path, name: str, tmp_path: Path
) -> None:
    for run in (folders / name).iterdir():
        if run.is_dir():
            (tmp_path / run.name).symlink_to(run)
    fits = fitted(*read_folders([tmp_path]))
    assert len(fits.data_hashes) == 2
    assert fits.crossings == evidence_fits(name).crossings
    assert "were fitted each on their own and not compared" in conclusions(fits)[-1]
