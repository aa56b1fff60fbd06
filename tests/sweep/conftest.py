"""One thread, as the workers have, and data that all tests of the room read."""

from collections.abc import Iterator

import pytest
import torch

from archfit.data.prepared import PreparedData
from tests_training import tiny_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return tiny_data(tmp_path_factory.mktemp("sweeps"))


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
