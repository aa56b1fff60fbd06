"""A factorised table is the full table that its factors multiply out to."""

import pytest
import torch

from archfit.model.tables import RowTable
from archfit.spec import Factorised, Full

ROWS, WIDTH = 12, 8


def _table(inner: int) -> RowTable:
    table = RowTable(ROWS, WIDTH, Factorised(inner=inner))
    generator = torch.Generator().manual_seed(inner)
    for weight in table.parameters():
        weight.data.normal_(generator=generator)
    return table


def _merged(table: RowTable) -> RowTable:
    assert table.mix_ID is not None
    full = RowTable(ROWS, WIDTH, Full())
    full.rows_RI.data.copy_(torch.einsum("ri,id->rd", table.rows_RI.data, table.mix_ID.data))
    return full


@pytest.mark.parametrize("inner", [3, 8, 20])
@pytest.mark.parametrize("positions", [2, 40])  # fewer ids than rows, and more
def test_both_ways_to_look_up_read_the_rows_of_the_product(inner: int, positions: int) -> None:
    table = _table(inner)
    ids_BN = torch.arange(2 * positions).reshape(2, positions) * 5 % ROWS
    expected_BND = _merged(table).rows_RI[ids_BN]
    torch.testing.assert_close(table.look_up(ids_BN), expected_BND, atol=1e-5, rtol=0)


def test_many_ids_are_looked_up_in_the_product_and_few_in_the_rows() -> None:
    """Either way the larger of two matrices is never multiplied."""
    table = _table(3)
    shapes = []
    for positions in (4, 40):
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: shapes.append(t.shape), lambda _: _
        ):
            table.look_up(torch.zeros(1, positions, dtype=torch.long))
    assert torch.Size([4, 3]) in shapes
    assert torch.Size([12, 3]) in shapes
    assert torch.Size([40, 3]) not in shapes


@pytest.mark.parametrize("inner", [3, 8, 20])
def test_sums_and_projections_are_those_of_the_product(inner: int) -> None:
    table = _table(inner)
    matrix_RD = _merged(table).rows_RI
    ids_BNT = torch.arange(2 * 3 * 4).reshape(2, 3, 4) * 7 % ROWS
    torch.testing.assert_close(
        table.look_up_sums(ids_BNT), matrix_RD[ids_BNT].sum(2), atol=1e-5, rtol=0
    )
    h_BND = torch.randn(2, 3, WIDTH, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(table.project(h_BND), h_BND @ matrix_RD.T, atol=1e-5, rtol=1e-5)


def test_the_product_is_not_rounded_under_autocast() -> None:
    table = _table(3)
    exact_RD = _merged(table).rows_RI
    few_BN, all_BN = torch.arange(4)[None], torch.arange(ROWS)[None]
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(table.look_up(few_BN)[0], exact_RD[:4], atol=1e-6, rtol=0)
        torch.testing.assert_close(table.look_up(all_BN)[0], exact_RD, atol=1e-6, rtol=0)
