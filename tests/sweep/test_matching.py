from hypothesis import given
from hypothesis import strategies as st

from archfit.sweep.matching import width_beside, width_for

sizes = st.integers(1, 3_000_000)
few = st.integers(1, 8)


@given(size=sizes, depth=few, heads=few, multiple=st.integers(0, 4))
def test_the_width_is_the_nearest_of_all_multiples_of_the_heads(
    size: int, depth: int, heads: int, multiple: int
) -> None:
    def miss(width: int) -> int:
        attention, feed_forward = 4 * width * width, 2 * multiple * width * width
        return abs(depth * (attention + feed_forward) - size)

    found = width_for(size, depth=depth, heads=heads, multiple=multiple)
    assert found % heads == 0
    assert miss(found) == min(miss(width) for width in range(heads, 1000, heads))


@given(size=sizes, depth=few, heads=few, head_dim=st.integers(1, 64), multiple=st.integers(0, 4))
def test_beside_heads_of_fixed_size_it_is_the_nearest_of_all_widths(
    size: int, depth: int, heads: int, head_dim: int, multiple: int
) -> None:
    def miss(width: int) -> int:
        attention = 4 * width * heads * head_dim
        return abs(depth * (attention + 2 * multiple * width * width) - size)

    found = width_beside(size, depth=depth, heads=heads, head_dim=head_dim, multiple=multiple)
    widest = max(2000, size // (4 * depth * heads * head_dim) + 2) if not multiple else 2000
    assert miss(found) == min(map(miss, range(1, widest)))
