"""What the tokens say about the data: entropy, the rank of their co-occurrence, even samples.

The co-occurrence matrix P(i, j) is the share of neighbouring pairs with token i followed by j. Its
numerical rank at energy e is the least r whose r largest singular values hold the share e of the
sum of all squared. Two forms are given: P itself, where frequent tokens decide, and P divided by
sqrt(p_i q_j), where every token weighs the same; the largest singular value of that one is 1 and
belongs to independent tokens, so its rank counts that direction and then the energy of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archfit.data.vocabulary import Ids
from archfit.spec import lazy_numpy as np
from archfit.spec.lazy_numpy import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ENERGIES = (0.5, 0.9, 0.99, 0.999)
PAIRS_LOOKED_AT = 1 << 23
COUNTED_AT_ONCE = 1 << 17
STRETCHES = 64  # the pairs come from this many places, evenly spaced
DENSE_TOKENS = 4224  # up to this many tokens all singular values are computed
LARGEST_VALUES = 128  # beyond that, this many
SAMPLE_UNITS = 1 << 18  # values of a sample
ROUNDING = 1e-12  # less energy than this beyond independence is none


def counts_of(ids: Ids, bins: int) -> NDArray[np.int64]:
    """How often each id below `bins` occurs; in pieces that fit a cache, which is twice as fast."""
    counts = np.zeros(bins, np.int64)
    step = max(COUNTED_AT_ONCE, 4 * bins)
    for start in range(0, len(ids), step):
        counts += np.bincount(ids[start : start + step], minlength=bins)
    return counts


def unigram_entropy_bits(counts: NDArray[np.int64]) -> float:
    """Entropy of the token frequencies, -sum p log2 p."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def cooccurrence(ids: Ids) -> dict[str, Any]:
    """Ranks at `ENERGIES` of the matrix of neighbouring pairs in `ids`, or in stretches of it.

    `tokens` are those that occur; `chance_energy` is the share of the normalised energy that
    independent tokens would show too.
    """
    from scipy.sparse import diags_array

    matrix = pair_counts(ids)
    pairs, tokens = int(matrix.sum()), matrix.shape[0]
    shares = matrix / max(pairs, 1)
    with np.errstate(divide="ignore"):  # a token that starts or ends no pair has an empty row
        sums = (shares.sum(axis=axis) for axis in (1, 0))
        left, right = (diags_array(np.where(side > 0, side**-0.5, 0.0)) for side in sums)
    scaled = (left @ shares @ right).tocsr()
    excess = float((scaled.data**2).sum()) - 1
    excess = excess if excess > ROUNDING else 0.0
    chance = (tokens - 1) ** 2 / max(pairs, 1)
    return {
        "pairs": pairs,
        "tokens": tokens,
        "plain": _ranks(_singular_values(shares), float((shares.data**2).sum()), tokens),
        "normalised": _ranks(_singular_values(scaled)[1:], excess, tokens, counted=1),
        "chance_energy": min(1.0, chance / excess) if excess else 1.0,
    }


def pair_counts(ids: Ids) -> csr_array:
    """Counts of pairs (token, next token) among the tokens that occur, as a sparse matrix."""
    from scipy.sparse import coo_array

    stretches = [ids]
    if len(ids) > PAIRS_LOOKED_AT:  # parts of the stream that together are short enough
        length, step = PAIRS_LOOKED_AT // STRETCHES, len(ids) // STRETCHES
        stretches = [ids[start : start + length] for start in range(0, STRETCHES * step, step)]
    tokens = np.concatenate(stretches)
    place = np.cumsum(counts_of(tokens, int(tokens.max()) + 1) > 0) - 1
    size = int(place[-1]) + 1
    place = place.astype(np.int32 if size * size < 1 << 31 else np.int64)
    pairs = np.concatenate([place[part[:-1]] * size + place[part[1:]] for part in stretches])
    if size <= DENSE_TOKENS:
        return coo_array(counts_of(pairs, size * size).reshape(size, size)).tocsr()
    codes, times = np.unique(pairs, return_counts=True)
    return coo_array((times, np.divmod(codes, size)), shape=(size, size)).tocsr()


def _singular_values(matrix: csr_array) -> NDArray[np.float64]:
    """All singular values of a small matrix, the largest ones of a large one; largest first."""
    from scipy.sparse.linalg import svds

    if matrix.shape[0] <= DENSE_TOKENS:
        squares = np.linalg.eigvalsh((matrix.T @ matrix).toarray())
        return np.sqrt(np.maximum(squares, 0.0))[::-1]
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])  # meets every direction
    found = svds(matrix, k=LARGEST_VALUES, return_singular_vectors=False, v0=start)
    return np.sort(found)[::-1]


def _ranks(
    values: NDArray[np.float64], energy: float, tokens: int, counted: int = 0
) -> list[dict[str, Any]]:
    """The ranks at `ENERGIES` of singular values whose squares sum to `energy` with unseen ones.

    None is above `tokens`, even if rounding leaves the squares short of the energy. One that is
    not exact is a lower bound only.
    """
    held, ranks = np.cumsum(values**2), []
    for share in ENERGIES:
        rank = int(np.searchsorted(held, share * energy * (1 - 1e-9))) + 1 if energy else 0
        rank = min(rank, tokens - counted)
        ranks.append({"energy": share, "rank": counted + rank, "exact": rank <= len(values)})
    return ranks


class EvenSample:
    """Values chosen by a hash of their number, at most `SAMPLE_UNITS`, and the extremes of all.

    The hash is SplitMix64, so that no period of the data falls in step with it.
    """

    def __init__(self, dtype: str, columns: int) -> None:
        self._dtype, self._columns = dtype, columns
        self.values: NDArray[np.generic] = np.empty((0, columns), dtype)  # those kept, in order
        self._hashes = np.empty(0, np.uint64)  # of the numbers of the values kept
        self._seen, self._highest_hash = 0, (1 << 64) - 1
        self.lowest, self.highest = float("inf"), float("-inf")

    def add(self, content: bytes) -> None:
        """Keep the values whose number has a small hash; halve what is small when too many."""
        values = np.frombuffer(content, self._dtype).reshape(-1, self._columns)
        if not len(values):
            return
        self.lowest = min(self.lowest, float(values.min()))
        self.highest = max(self.highest, float(values.max()))
        numbers = np.arange(self._seen + 1, self._seen + len(values) + 1, dtype=np.uint64)
        self._seen += len(values)
        mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        hashes = mixed ^ (mixed >> np.uint64(31))
        small = hashes <= np.uint64(self._highest_hash)
        self.values = np.concatenate([self.values, values[small]])
        self._hashes = np.concatenate([self._hashes, hashes[small]])
        while len(self.values) > SAMPLE_UNITS:
            self._highest_hash >>= 1
            small = self._hashes <= np.uint64(self._highest_hash)
            self.values, self._hashes = self.values[small], self._hashes[small]
