"""Ranks of tables: dense linear algebra is the oracle, made tables of known rank the examples."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

import archfit.audit.embedding
from archfit.audit.checkpoint_file import read_header
from archfit.audit.embedding import EmbeddingSpectrum, find_embedding, measure_embedding
from tests_safetensors import write_shapes

Matrix = NDArray[np.float64]
NAME = "model.embed_tokens.weight"
STORED = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def random(*shape: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal(shape) / 50


def measured(folder: Path, tensors: dict[str, torch.Tensor]) -> EmbeddingSpectrum:
    path = folder / "x.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    return measure_embedding(find_embedding(read_header(path)))


def stored(matrix: Matrix, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.from_numpy(matrix).to(dtype)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows of eight columns at a time, so that small tables have many blocks."""
    monkeypatch.setattr(archfit.audit.embedding, "BLOCK_BYTES", 7 * 8 * 8)


@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.float32, marks=pytest.mark.slow), torch.bfloat16]
)
def test_a_table_of_30000_tokens_and_rank_64_is_measured_right(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    """Factors multiplied in float32, as a training program would; theirs are the true values."""
    left, right = stored(random(30_000, 64)), stored(random(64, 1024, seed=1))
    left[-100:] = 0
    spectrum = measured(tmp_path, {NAME: (left @ right).to(dtype)})
    assert (spectrum.rows, spectrum.width, spectrum.padded_rows) == (30_000, 1024, 100)
    assert spectrum.numerical_rank == 64
    assert spectrum.bytes_read == 30_000 * 1024 * dtype.itemsize
    thin = [np.linalg.qr(factor.double().numpy())[1] for factor in (left, right.T)]
    values = np.linalg.svd(thin[0] @ thin[1].T, compute_uv=False)
    np.testing.assert_allclose(spectrum.singular_values[:64], values, rtol=1e-4)


def of_singular_values(values: Matrix, shape: tuple[int, int]) -> Matrix:
    left, right = (np.linalg.qr(random(size, len(values)))[0] for size in shape)
    matrix: Matrix = left * values @ right.T
    return matrix


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("shape", [(200, 30), (30, 200), (64, 64), (500, 3)])
@pytest.mark.parametrize("lost", [0, 2])
def test_ranks_and_singular_values_are_those_of_numpy(
    dtype: torch.dtype, shape: tuple[int, int], lost: int, tmp_path: Path
) -> None:
    rank = min(shape) - lost
    table = stored(of_singular_values(np.geomspace(1, 0.03, rank), shape), dtype)
    spectrum = measured(tmp_path, {NAME: table})
    dense = table.to(torch.float64).numpy()
    values = np.linalg.svd(dense, compute_uv=False)
    np.testing.assert_allclose(spectrum.singular_values, values, rtol=1e-9, atol=1e-7)
    assert spectrum.numerical_rank == rank
    if dtype == torch.float64:
        assert np.linalg.matrix_rank(dense) == rank


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_singular_value_is_counted_down_to_two_millionths_of_the_largest(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    values = np.array([1, 1e-2, 1e-4, 3e-6, 1e-7])
    spectrum = measured(tmp_path, {NAME: stored(of_singular_values(values, (300, 40)), dtype)})
    assert spectrum.numerical_rank == 4
    assert spectrum.tolerance == pytest.approx(2e-6, rel=1e-3)


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize(("long_rows", "long_columns"), [(1, 1), (30, 1), (1, 30), (30, 30)])
def test_rounding_noise_stays_below_the_tolerance_that_epsilon_bounds(
    dtype: torch.dtype, long_rows: float, long_columns: float, tmp_path: Path
) -> None:
    """Also if a few rows and columns are far longer than the others."""
    exact = random(1000, 8) @ random(8, 100, seed=1)
    exact *= np.where(np.arange(100) % 50 == 7, long_columns, 1)
    exact *= np.where(np.arange(1000) % 300 == 9, long_rows, 1)[:, None]
    table = stored(exact, dtype)
    spectrum = measured(tmp_path, {NAME: table})
    noise = np.linalg.norm(table.double().numpy() - exact, 2)
    assert noise < spectrum.tolerance
    largest = spectrum.singular_values[0]
    step = 2.0**-25 * (1000**0.5 + 10) if dtype == torch.float16 else 0
    assert spectrum.tolerance <= max(torch.finfo(dtype).eps, 2e-6) * largest + step
    assert spectrum.numerical_rank == 8


def test_bfloat16_numbers_saved_as_float32_are_known_for_what_they_are(tmp_path: Path) -> None:
    exact = stored(random(2000, 16) @ random(16, 128, seed=1))
    rounded = exact.to(torch.bfloat16)
    narrow = measured(tmp_path, {NAME: rounded})
    wide = measured(tmp_path, {NAME: rounded.float()})
    assert (wide.numerical_rank, wide.tolerance) == (16, narrow.tolerance)


def test_an_identity_has_full_rank(tmp_path: Path) -> None:
    """Its ones need no digit at all, which is no reason to think them rounded to none."""
    spectrum = measured(tmp_path, {NAME: torch.eye(50)})
    assert (spectrum.numerical_rank, spectrum.stable_rank) == (50, 50)
    assert spectrum.effective_rank == pytest.approx(50)


def test_stable_and_effective_rank_follow_their_formulas(tmp_path: Path) -> None:
    sigma = np.array([4.0, 2.0, 1.0, 1.0])
    spectrum = measured(tmp_path, {NAME: stored(np.diag(sigma))})
    assert spectrum.stable_rank == pytest.approx(22 / 16)
    entropy = 0.5 * np.log(2) + 0.25 * np.log(4) + 2 * 0.125 * np.log(8)
    assert spectrum.effective_rank == pytest.approx(np.exp(entropy))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("tail", "padded"),
    [
        ([], 1),  # the zero row within the table
        ([0.0] * 20, 21),
        ([5.0], 1),  # one row is a token
        ([5.0] * 2, 3),
        ([5.0] * 30, 31),  # over several blocks
        ([5.0] * 30 + [6.0], 1),  # equal, but not at the end
        ([6.0] + [5.0] * 30, 31),
        ([5.0, 0.0, 5.0, 0.0], 5),  # zeros do not end a run
    ],
)
def test_rows_of_zeros_and_equal_rows_at_the_end_are_padding(
    tail: list[float], padded: int, tmp_path: Path
) -> None:
    table = np.concatenate([random(40, 8), np.outer(tail, np.arange(1, 9))])
    table[13] = 0
    spectrum = measured(tmp_path, {NAME: stored(table, torch.float64)})
    assert (spectrum.rows, spectrum.padded_rows) == (40 + len(tail), padded)
    kept = table[table.any(axis=1)]
    kept = kept[: len(table) - padded]
    values = np.linalg.svd(kept, compute_uv=False)
    np.testing.assert_allclose(spectrum.singular_values, values, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("inner", [5, 40])
@pytest.mark.parametrize(
    ("table", "widening", "inner_first"),
    [
        ("electra.embeddings.word_embeddings.weight", "electra.embeddings_project.weight", False),
        ("embedding.tokens.rows_RI", "embedding.tokens.mix_ID", True),
    ],
)
def test_a_factorised_table_is_measured_as_the_product(
    table: str, widening: str, inner_first: bool, inner: int, dtype: torch.dtype, tmp_path: Path
) -> None:
    rows, mix = stored(random(300, inner), dtype), stored(random(inner, 24, seed=1), dtype)
    rows[-3:] = 0
    tensors = {table: rows, widening: mix if inner_first else mix.T}
    spectrum = measured(tmp_path, tensors)
    values = np.linalg.svd(rows.double().numpy() @ mix.double().numpy(), compute_uv=False)
    assert (spectrum.rows, spectrum.width, spectrum.padded_rows) == (300, 24, 3)
    assert spectrum.numerical_rank == min(inner, 24)
    np.testing.assert_allclose(spectrum.singular_values, values[: min(inner, 24)], rtol=1e-9)


def test_a_factor_that_lost_rank_lowers_that_of_the_product(tmp_path: Path) -> None:
    mix = stored(random(24, 3) @ random(3, 10, seed=1), torch.bfloat16)
    tensors = {"wte.weight": stored(random(300, 10)), "embeddings_project.weight": mix}
    assert measured(tmp_path, tensors).numerical_rank == 3


def test_codebooks_are_measured_together(tmp_path: Path) -> None:
    tables = {f"embed_tokens.{n}.weight": stored(random(5, 30, seed=n)) for n in range(3)}
    assert measured(tmp_path, tables).numerical_rank == 15


def test_a_patch_projection_has_the_rank_of_its_flat_matrix(tmp_path: Path) -> None:
    weight = random(40, 2) @ random(2, 12, seed=1)
    weight[5] = 0  # a dead dimension of the width is no padding
    name = "vit.embeddings.patch_embeddings.projection.weight"
    spectrum = measured(tmp_path, {name: stored(weight.reshape(40, 3, 2, 2))})
    assert (spectrum.rows, spectrum.width, spectrum.numerical_rank) == (12, 40, 2)
    assert spectrum.padded_rows == 0


def test_a_chart_gets_at_most_512_points_from_the_first_to_the_last(tmp_path: Path) -> None:
    few = measured(tmp_path, {NAME: stored(random(30, 8))})
    assert [index for index, _ in few.points()] == list(range(1, 9))
    table = random(900, 700)
    many = measured(tmp_path, {NAME: stored(table, torch.float64)})
    np.testing.assert_allclose(many.singular_values, np.linalg.svd(table)[1], rtol=1e-9)
    points = many.points()
    assert (len(points), points[0][0], points[-1][0]) == (512, 1, 700)
    assert all(value == many.singular_values[index - 1] for index, value in points)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_table_that_is_not_finite_is_refused(bad: float, tmp_path: Path) -> None:
    table = stored(random(30, 8), torch.bfloat16)
    table[17, 3] = bad
    with pytest.raises(ValueError, match=f"'{NAME}' in .* holds NaN or infinity"):
        measured(tmp_path, {NAME: table})


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (torch.zeros(30, 8), "nothing but zeros, equal rows or numbers too small"),
        (torch.ones(30, 8), "nothing but zeros, equal rows or numbers too small"),
        (torch.zeros(3, 8), "nothing but zeros, equal rows or numbers too small"),
        (torch.ones(30, 8, dtype=torch.int8), "holds I8, and spectra are measured of BF16, F16"),
        (torch.eye(30, dtype=torch.float64) * 1e-200, "or numbers too small to square"),
        (torch.eye(30, dtype=torch.float64) * 1e200, "numbers too large to square"),
        (torch.zeros(2, 8193), "8,193 columns, .* take 1.1 GB; the limit is 8,192 columns"),
    ],
)
def test_a_table_without_a_spectrum_is_refused(
    table: torch.Tensor, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=sentence):
        measured(tmp_path, {NAME: table})


def test_a_file_cut_off_after_its_header_was_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_file({NAME: stored(random(30, 8))}, path)
    embedding = find_embedding(read_header(path))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="became shorter while it was read"):
        measure_embedding(embedding)


def test_a_table_that_would_take_hours_to_read_is_refused(tmp_path: Path) -> None:
    path = write_shapes(tmp_path / "x.safetensors", {NAME: ("F32", [2**32, 2])})  # a hole
    with pytest.raises(ValueError, match="8,589,934,592 elements, over the limit of 4,294,967,296"):
        measure_embedding(find_embedding(read_header(path)))


def test_limits_of_size_hold_from_one_beyond_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archfit.audit.embedding, "WIDEST", 8)
    monkeypatch.setattr(archfit.audit.embedding, "MOST_ELEMENTS", 240)
    assert measured(tmp_path, {NAME: stored(random(30, 8))}).numerical_rank == 8
    with pytest.raises(ValueError, match=r"9 columns, .* the limit is 8 columns"):
        measured(tmp_path, {NAME: stored(random(10, 9))})
    with pytest.raises(ValueError, match="248 elements, over the limit of 240"):
        measured(tmp_path, {NAME: stored(random(31, 8))})
    factors = {"wte.weight": stored(random(20, 4)), "project_in.weight": stored(random(16, 4))}
    assert measured(tmp_path, factors).numerical_rank == 4  # 64 elements, the square of 8
    factors["project_in.weight"] = stored(random(17, 4))
    with pytest.raises(ValueError, match="has 68 elements, over the limit of 64"):
        measured(tmp_path, factors)


@pytest.mark.parametrize(
    ("dtype", "epsilon", "step"),
    [
        (torch.float64, 2.0**-52, 0.0),
        (torch.float32, 2.0**-23, 2.0**-149),
        (torch.float16, 2.0**-10, 2.0**-24),
        (torch.bfloat16, 2.0**-7, 2.0**-133),
    ],
)
def test_the_tolerance_is_the_formula_that_the_docstring_gives(
    dtype: torch.dtype, epsilon: float, step: float, tmp_path: Path
) -> None:
    """u (longest row + longest column) + s (sqrt m + sqrt n), or two millionths of the largest."""
    table = stored(random(90, 40), dtype)
    dense = table.double().numpy()
    row, column = (np.linalg.norm(dense, axis=axis).max() for axis in (1, 0))
    rounding = epsilon / 2 * (row + column) + step / 2 * (90**0.5 + 40**0.5)
    largest = np.linalg.norm(dense, 2)
    expected = max(rounding, 2e-6 * largest)
    assert measured(tmp_path, {NAME: table}).tolerance == pytest.approx(expected, rel=1e-9)


def test_rounding_near_zero_has_a_step_of_its_own(tmp_path: Path) -> None:
    """Numbers that float16 can barely hold: the step is as large as they are."""
    table = stored(random(90, 40) * 2.0**-18, torch.float16)
    spectrum = measured(tmp_path, {NAME: table})
    assert spectrum.tolerance > 2.0**-25 * (90**0.5 + 40**0.5)
    assert spectrum.numerical_rank < 40


def test_many_equal_rows_that_are_not_the_end_are_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archfit.audit.embedding, "BLOCK_BYTES", 3 * 8 * 8)
    table = np.concatenate([random(4, 8), np.ones((20, 8)), random(4, 8, seed=1)])
    spectrum = measured(tmp_path, {NAME: stored(table, torch.float64)})
    assert spectrum.padded_rows == 0
    values = np.linalg.svd(table, compute_uv=False)
    np.testing.assert_allclose(spectrum.singular_values, values, rtol=1e-6)


@pytest.mark.parametrize(
    ("bits", "digits"), [(0, 7), (7, 7), (8, 10), (10, 10), (11, 23), (22, 23), (23, 23)]
)
def test_numbers_that_a_narrower_type_holds_are_taken_for_rounded_to_it(
    bits: int, digits: int, tmp_path: Path
) -> None:
    """1 + 2^-bits needs so many bits after its leading one; the longest row and column are 2."""
    table = torch.diag(torch.tensor([2.0, 1 + 2.0**-bits] if bits else [2.0, 1.0]))
    expected = max(2.0 ** -(digits + 1) * 4 + 2.0**-150 * 2 * 2**0.5, 2e-6 * 2)
    assert measured(tmp_path, {NAME: table}).tolerance == pytest.approx(expected)
