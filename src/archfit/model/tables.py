"""The tables where tokens, positions and predictions meet the width.

Shape letters: B batch, N positions, D width, R rows, I inner size, T tokens of a patch.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from archfit.spec import Factorised, Full

ROWS_MULTIPLE = 8  # rows of a bfloat16 product that tensor cores take without a slow path


class RowTable(nn.Module):
    """A (rows x width) matrix, or the product of a (rows x inner) and an (inner x width) one."""

    def __init__(self, rows: int, width: int, table: Full | Factorised) -> None:
        super().__init__()
        inner = table.inner if isinstance(table, Factorised) else width
        self.rows_RI = nn.Parameter(torch.empty(rows, inner))
        self.mix_ID = (
            nn.Parameter(torch.empty(inner, width)) if isinstance(table, Factorised) else None
        )

    def matrix(self) -> Float[Tensor, "R D"]:
        """The whole table, multiplied out in its own precision: a factor in bfloat16 would make
        a factorised table coarser than a full one."""
        if self.mix_ID is None:
            return self.rows_RI
        with torch.autocast(self.rows_RI.device.type, enabled=False):
            return self.rows_RI @ self.mix_ID

    def look_up(self, ids_BN: Int[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """The row of each id."""
        if self.mix_ID is None or len(self.rows_RI) <= ids_BN.numel():
            return F.embedding(ids_BN, self.matrix())
        with torch.autocast(self.rows_RI.device.type, enabled=False):
            return F.embedding(ids_BN, self.rows_RI) @ self.mix_ID

    def look_up_sums(self, ids_BNT: Int[Tensor, "B N T"]) -> Float[Tensor, "B N D"]:
        """The sum of the rows of each patch's ids, never stored one by one."""
        flat_BD = F.embedding_bag(ids_BNT.flatten(0, 1), self.matrix(), mode="sum")
        sums_BND: Tensor = flat_BD.unflatten(0, ids_BNT.shape[:2])
        return sums_BND

    def project(self, h_BND: Float[Tensor, "B N D"]) -> Float[Tensor, "B N R"]:
        """The product of each vector with every row: h times the transposed table."""
        rows_RI, in_BNI = self.rows_RI, h_BND
        if self.mix_ID is not None:
            in_BNI = F.linear(h_BND, self.mix_ID)
        surplus = -len(rows_RI) % ROWS_MULTIPLE if rows_RI.is_cuda else 0
        if not surplus:  # a slice that keeps everything would still copy the gradient
            return F.linear(in_BNI, rows_RI)
        return F.linear(in_BNI, F.pad(rows_RI, (0, 0, 0, surplus)))[..., :-surplus]
