"""Every upper bound on the separation rank of one architecture, the disputed ones among them."""

from collections.abc import Iterator
from contextlib import suppress

from archfit.theory.shape import Bound, Shape, bound


def upper_bounds(shape: Shape) -> Iterator[Bound]:
    """Every upper bound that speaks of the shape, the disputed ones among them."""
    L, d, r, r_e = shape.depth, shape.width, shape.embedding_rank, shape.position_rank
    if shape.vocab is not None and shape.positions is not None:
        yield bound("ub_fill", V=shape.vocab, N=shape.positions)
    if shape.causal:
        yield _causal_upper_bound(shape)
        return
    if not shape.residual:
        d_a = {} if shape.head_dim is None else {"d_a": shape.head_dim}
        yield bound("ub_thm1", L=L, d_x=d, H=shape.heads, **d_a)
    yield from _statistics_upper_bounds(shape)
    yield bound("ub_residual_thm4" if shape.residual else "ub_thm2", L=L, d_x=d)
    if shape.is_rank_limited or shape.vocab is not None:
        yield bound("ub_vocab_statement", L=L, r=r, r_e=r_e)
        yield bound("ub_vocab_proof", L=L, r=r, r_e=r_e)
    elif d < 3**L and not shape.residual:
        yield bound("ub_thm2_closed", L=L, d_x=d)
    if shape.residual and shape.heads <= d:
        network = {"L": L, "d_x": d, "H": shape.heads}
        yield bound("ub_residual_doubled", **network)
        forms = ("recursion", "product_corrected", "product_paper", "closed_paper")
        for form in forms if shape.positions is not None else ():
            yield bound(f"ub_residual_{form}", **network, N=shape.positions)


def _statistics_upper_bounds(shape: Shape) -> Iterator[Bound]:
    """ub_stat of the dimensions the inputs can use; positions widen a low rank again."""
    L, d, r, r_e = shape.depth, shape.width, shape.embedding_rank, shape.position_rank
    used = r
    if shape.is_rank_limited and r_e > 0:
        yield bound("ub_stat_pos", L=L, r=r, r_e=r_e)
        used = d
    yield bound("ub_stat", L=L, d_x=used)
    if shape.vocab is not None and r_e == 0:
        yield _worst_split(shape, "ub_stat_vocab", L=L, V=shape.vocab, r=r)
    elif shape.positions is not None and shape.positions // 2 < used:
        with suppress(ValueError):  # a sum too long for this depth: ub_stat stands
            yield _worst_split(shape, "ub_stat_N", L=L, d_x=used)
    if L == 3 and shape.heads == 1 and not shape.residual:
        yield bound("ub_stat_one_head_depth3", d_x=used)


def _causal_upper_bound(shape: Shape) -> Bound:
    """The best for these segments; tokens are also vectors, and positions add to their rank."""
    given: dict[str, object] = {"L": shape.depth, "d_x": shape.width, "H": shape.heads}
    given |= {"d_a": shape.head_dim, "r": shape.reached_rank, "residual": shape.residual}
    name = "ub_causal_segments"
    if len(shape.segments) == 2:
        name, ((_, before), (_, after)) = "ub_causal_prefix", shape.segments
        given |= {"n_A": before, "n_B": after}
    else:
        given["segments"] = list(shape.segments)
    vocabs = {None, None if shape.position_rank else shape.vocab}
    found = [bound(name, **given, V=vocab) for vocab in vocabs]
    return min(found, key=lambda found: found.log3)


def _worst_split(shape: Shape, name: str, **inputs: int) -> Bound:
    """The bound for a balanced partition; of an odd length the output may have either side."""
    if shape.positions is None:
        return bound(name, **inputs)
    N, half = shape.positions, shape.positions // 2
    found = [bound(name, n_P=n, n_Q=N - n, **inputs) for n in {half, N - half}]
    return max(found, key=lambda found: found.log3)
