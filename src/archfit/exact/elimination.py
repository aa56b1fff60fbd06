"""The rank of a matrix modulo a prime, by elimination whose work is matrix products.

Columns are taken in panels. The pivots of a panel are sought in its first rows, on the host: nearly
always they hold enough. All rows are then cleared of them by one product, A - (A_c B^-1) A_r with B
the block of pivot rows r and pivot columns c, and the pivot rows leave the matrix. Inside a panel
halves are treated the same way, down to a few columns. One algorithm for numpy and torch.
"""

from dataclasses import dataclass

from archfit.exact.prime_field import Array, Arrays, PrimeField, Residues
from archfit.spec import lazy_numpy as np

NARROW = 8  # columns that are eliminated one by one
SPARE = 8  # rows beyond the number of columns in which pivots are sought first
WIDEST_PANEL = 192


@dataclass(frozen=True, slots=True)
class _Pivots:
    """A block with an inverse, as large as any in its columns."""

    rows: list[int]
    columns: list[int]
    inverse: Array


def modular_rank(field: PrimeField, matrix: Array) -> int:
    """The rank of a matrix of residues, which is used up."""
    if matrix.shape[0] < matrix.shape[1]:
        matrix = field.arrays.copy(matrix.T)  # panels are cheaper the fewer columns there are
    rank, panel = 0, min(WIDEST_PANEL, field.longest_sum)
    for first in range(0, matrix.shape[1], panel):
        if not len(matrix):
            break
        wide = matrix[:, first : first + panel]
        found = _pivots(field, field.arrays.copy(wide))
        if found.rows:
            _clear(field, matrix[:, first + panel :], wide, found)
            matrix = _without(matrix, found.rows)
        rank += len(found.rows)
    return rank


def residue_rank(matrix: Residues, prime: int) -> int:
    """The rank of a matrix of whole numbers modulo a prime, found on the host."""
    field = PrimeField(prime=prime, arrays=Arrays())
    return modular_rank(field, field.reduced(field.arrays.array(matrix)))


def modular_inverse(field: PrimeField, matrix: Array) -> Array:
    """The inverse of a square matrix that has one; the matrix is used up."""
    found = _pivots(field, matrix)
    inverse = field.arrays.zeros(*matrix.shape)
    for column, row in zip(found.columns, found.inverse, strict=True):
        inverse[column, found.rows] = row
    return inverse


def _pivots(field: PrimeField, panel: Array) -> _Pivots:
    """The pivots of a panel, which is used up."""
    width = panel.shape[1]
    if len(panel) > width + SPARE:  # a few rows, on the host: small steps on a GPU take longer
        host = Arrays()
        top = host.copy(field.arrays.numpy(panel[: width + SPARE]))
        found = _pivots(PrimeField(prime=field.prime, arrays=host), top)
        if len(found.rows) == width:
            return _Pivots(found.rows, found.columns, field.arrays.array(found.inverse))
    if width <= NARROW:
        return _narrow_pivots(field, panel)
    return _pivots_by_halves(field, panel)


def _pivots_by_halves(field: PrimeField, panel: Array) -> _Pivots:
    half = panel.shape[1] // 2
    left, right = panel[:, :half], panel[:, half:]
    first = _pivots(field, field.arrays.copy(left))
    if not first.rows:
        found = _pivots(field, right)
        return _Pivots(found.rows, [half + column for column in found.columns], found.inverse)
    before = field.arrays.copy(right[first.rows])
    _clear(field, right, left, first)
    gone = set(first.rows)  # now zero: the next pivots are in the other rows
    others = [row for row in range(len(panel)) if row not in gone]
    second = _pivots(field, right[others])
    if not second.rows:
        return first
    more_rows = [others[row] for row in second.rows]
    b = before[:, second.columns]
    c = left[more_rows][:, first.columns]
    return _Pivots(
        first.rows + more_rows,
        first.columns + [half + column for column in second.columns],
        _joined_inverse(field, first.inverse, second.inverse, b, c),
    )


def _clear(field: PrimeField, rest: Array, panel: Array, found: _Pivots) -> None:
    """Subtract multiples of the pivot rows, in place: `rest` stands right of the panel.

    The pivot rows themselves become zero.
    """
    if not rest.shape[1]:
        return
    pivot_rows = field.arrays.copy(rest[found.rows])
    # A few rows at a time: what is made of them is still in the cache when it is reduced.
    rows = max(16, field.arrays.cached_numbers // rest.shape[1])

    def clear(first: int) -> None:
        some = slice(first, first + rows)
        factors = field.matmul(panel[some][:, found.columns], found.inverse)
        field.subtract_product(rest[some], factors, pivot_rows)

    for _ in field.arrays.each(clear, range(0, len(rest), rows)):
        pass


def _joined_inverse(field: PrimeField, a: Array, s: Array, b: Array, c: Array) -> Array:
    """The inverse of ((A, b), (c, D)) from a = A^-1 and s = (D - c A^-1 b)^-1."""
    ca, ab_s = field.matmul(c, a), field.matmul(field.matmul(a, b), s)
    size, half = len(a) + len(s), len(a)
    result = field.arrays.zeros(size, size)
    result[:half, :half] = field.reduced(a + field.matmul(ab_s, ca))
    result[:half, half:] = -ab_s
    result[half:, :half] = -field.matmul(s, ca)
    result[half:, half:] = s
    return result


def _narrow_pivots(field: PrimeField, panel: Array) -> _Pivots:
    """The same for a few columns, one after the other, in whole numbers on the host."""
    p, values = field.prime, field.arrays.numpy(panel).astype(np.int64) % field.prime
    original, rows, columns = values.copy(), [], []
    for column in range(values.shape[1]):
        row = int((values[:, column] != 0).argmax())
        if values[row, column]:
            factors = values[:, column, None] * pow(int(values[row, column]), -1, p) % p
            rest = values[:, column + 1 :]
            rest[:] = (rest - factors * rest[row]) % p
            values[row] = 0
            rows.append(row)
            columns.append(column)
    size = len(rows)
    both = np.hstack([original[rows][:, columns], np.eye(size, dtype=np.int64)])
    for index in range(size):  # Gauss and Jordan; pivots were found in this order
        both[index] = both[index] * pow(int(both[index, index]), -1, p) % p
        factors = both[:, index, None] * (np.arange(size) != index)[:, None]
        both = (both - factors * both[index]) % p
    return _Pivots(rows, columns, field.reduced(field.arrays.array(both[:, size:])))


def _without(matrix: Array, rows: list[int]) -> Array:
    """The matrix without these rows: rows of its end move into their places."""
    kept = len(matrix) - len(rows)
    gone = set(rows)
    holes = [row for row in rows if row < kept]
    fillers = [row for row in range(kept, len(matrix)) if row not in gone]
    if holes:
        matrix[holes] = matrix[fillers]
    return matrix[:kept]
