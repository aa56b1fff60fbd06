from hypothesis import example, given
from hypothesis import strategies as st

from archfit.spec.run_options import RunOptions
from archfit.sweep.sweep import at_size, block_size, nearest_width

sizes = st.integers(1, 3_000_000)
few = st.integers(1, 8)


@given(size=sizes, depth=few, heads=few, head_dim=st.integers(1, 64), multiple=st.integers(0, 4))
def test_the_nearest_width_is_the_nearest_of_all(
    size: int, depth: int, heads: int, head_dim: int, multiple: int
) -> None:
    def weights(width: int) -> int:
        return depth * (4 * width * heads * head_dim + 2 * multiple * width * width)

    found = nearest_width(weights, size, step=heads)
    widest = max(2000, size // (4 * depth * heads * head_dim) + 2 * heads)
    nearest = min(abs(weights(width) - size) for width in range(heads, widest, heads))
    assert found % heads == 0
    assert abs(weights(found) - size) == nearest


@given(size=st.integers(1000, 3_000_000), depth=few, heads=few)
@example(size=3978, depth=3, heads=1)  # as far from 10 as from 11
def test_blocks_of_gpt2_have_the_width_of_the_formula(size: int, depth: int, heads: int) -> None:
    options = RunOptions(precision="float32", heads=heads, depth=depth)
    found = at_size(options, size, block_size).width
    misses = [abs(12 * depth * width**2 - size) for width in range(heads, 1000, heads)]
    assert found % heads == 0
    assert abs(12 * depth * found**2 - size) == min(misses)
