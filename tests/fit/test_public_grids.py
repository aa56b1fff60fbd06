"""The public grids say what their papers print."""

import pytest

from archfit.fit.atlas import SOURCES, public_networks


def test_all_grids_are_there_and_cited() -> None:
    networks = public_networks()
    counts = {name: sum(network.grid == name for network in networks) for name in SOURCES}
    assert counts["gemstones"] == 1169
    assert counts["gadre"] == 435
    assert counts["archai"] > 1000
    assert sum(counts.values()) == len(networks)
    assert all("github.com" in source and "MIT" in source for source in SOURCES.values())


def test_a_run_of_gemstones_is_what_its_repository_says() -> None:
    """The first row of wandb_dfs: 1024 x 28 after 10B tokens."""
    first = next(n for n in public_networks() if (n.width, n.depth) == (1024, 28))
    assert (first.grid, first.params, first.tokens) == ("gemstones", 543_482_880, 10_003_415_040)
    assert first.loss == pytest.approx(3.1010556221)


def test_shapes_of_gemstones_are_those_of_the_paper() -> None:
    """22 shapes from 256 x 80 to 3072 x 12."""
    shapes = {(n.width, n.depth) for n in public_networks() if n.grid == "gemstones"}
    assert len(shapes) == 22
    assert {(256, 80), (3072, 12)} <= shapes


def test_losses_and_sizes_are_plausible() -> None:
    for network in public_networks():
        assert 1 < network.loss < 12
        assert network.params > 0
        assert network.depth > 0
