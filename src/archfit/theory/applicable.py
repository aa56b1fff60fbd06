"""Which bounds apply to which shape."""

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal

from archfit.theory.bound import Bound, bound, real, whole
from archfit.theory.counterexample import grow_plan
from archfit.theory.shape import Shape

_LARGEST_VOCAB_LOG3 = 30  # no vocabulary has 3^30 tokens
_WITNESS_HEADS = 8  # enough to matter, few enough to cost milliseconds


def lower_bounds(shape: Shape, witness_tries: int) -> Iterator[Bound]:
    """Every lower bound whose conditions the shape meets; the last resort is that y is not 0."""
    yield Bound(
        id="nonzero",
        side="lower",
        log3=Decimal(0),
        exact=1,
        status="proved",
        status_line="proved",
        source="a function that is not zero",
    )
    if shape.vocab is not None:
        yield from _vocabulary_lower_bounds(shape)
        return
    L, (h, b) = shape.depth, shape.blocks
    r = shape.embedding_rank
    if shape.positions is None or shape.positions >= 2 * shape.width:
        yield _best_monomial_witness(shape, witness_tries)
    if L < 2 or b < 2 or r < 2:
        return
    network = {"L": L, "d_x": h * b, "H": h}
    yield bound("lower", "lb_strong", network | {"r": r})
    if shape.is_rank_limited:
        usable = min(r, h + _halves(shape))
        if usable - h >= 2:
            yield bound("lower", "lb_vocab", {"L": L, "d_x": shape.width, "H": h, "r": usable})
        return
    yield from _paper_lower_bounds(h * b - h, network)


def _paper_lower_bounds(free: int, network: dict[str, int]) -> Iterator[Bound]:
    """The lower bound of Levine et al. and its relaxations, where `free` = d_x - H allows them."""
    if free >= 2:
        yield bound("lower", "lb", network)
        yield bound("lower", "lb_relaxA", network)
    if free >= 2 and free % 2 == 0:
        yield bound("lower", "lb_thm1_closed", network)
    if free >= 4:
        yield bound("lower", "lb_relaxB", network)
    if free >= 4 and free % 2 == 0:
        yield bound("lower", "lb_thm2_closed", network)


def _halves(shape: Shape) -> int:
    """Coordinates in the two halves of all heads of the papers' witness, 2 h floor((b - 1) / 2).

    An embedding of rank r reaches h constants and these; more rank adds nothing to the witness.
    """
    h, b = shape.blocks
    return 2 * h * ((b - 1) // 2)


def _vocabulary_lower_bounds(shape: Shape) -> Iterator[Bound]:
    """Those whose conditions on vocabulary and length this shape meets."""
    assert shape.vocab is not None
    L, h = shape.depth, shape.blocks[0]
    if L < 2:
        return
    r = min(shape.embedding_rank, h + _halves(shape))
    network = {"L": L, "d_x": shape.width, "H": h, "r": r}
    if r - h >= 2 and _has_enough_tokens(shape.vocab, network):
        yield bound("lower", "lb_vocab", network)
    r = min(shape.embedding_rank, h + 1 + _halves(shape))
    if r - h >= 3 and _is_long_enough(shape, L, h, r):
        yield bound("lower", "lb_vocab_long", {"L": L, "H": h, "r": r})


def _has_enough_tokens(vocab: int, network: dict[str, int]) -> bool:
    """Whether lemma 6 is met; the number of tokens it asks for may be astronomic."""
    if real("lb_vocab_log3", network) > _LARGEST_VOCAB_LOG3:
        return False
    return vocab >= whole("lb_vocab_min_V", network)


def _is_long_enough(shape: Shape, L: int, h: int, r: int) -> bool:
    """Whether lemma 7 is met; where its search is too long, we claim nothing."""
    if shape.positions is None:
        return True
    try:
        return shape.positions >= whole("lemma7_N", {"L": L, "H": h, "r": r})
    except ValueError:
        return False


def upper_bounds(shape: Shape) -> Iterator[Bound]:
    """Every upper bound that speaks of the shape, the disputed ones among them."""
    L, d, r, r_e = shape.depth, shape.width, shape.embedding_rank, shape.position_rank
    if not shape.residual:
        d_a = {} if shape.head_dim is None else {"d_a": shape.head_dim}
        yield bound("upper", "ub_thm1", {"L": L, "d_x": d, "H": shape.heads} | d_a)
    yield from _statistics_upper_bounds(shape)
    yield bound("upper", "ub_residual_thm4" if shape.residual else "ub_thm2", {"L": L, "d_x": d})
    if shape.is_rank_limited or shape.vocab is not None:
        yield bound("upper", "ub_vocab_statement", {"L": L, "r": r, "r_e": r_e})
        yield bound("upper", "ub_vocab_proof", {"L": L, "r": r, "r_e": r_e})
    elif d < 3**L and not shape.residual:
        yield bound("upper", "ub_thm2_closed", {"L": L, "d_x": d})
    if shape.residual and shape.positions is not None and shape.heads <= d:
        network = {"L": L, "d_x": d, "H": shape.heads, "N": shape.positions}
        yield bound("upper", "ub_residual_recursion", network)
        yield bound("upper", "ub_residual_product_corrected", network)
        yield bound("upper", "ub_residual_product_paper", network)
        yield bound("upper", "ub_residual_closed_paper", network)


def _statistics_upper_bounds(shape: Shape) -> Iterator[Bound]:
    """ub_stat of the dimensions the inputs can use; positions widen a low rank again."""
    L, d, r, r_e = shape.depth, shape.width, shape.embedding_rank, shape.position_rank
    if shape.is_rank_limited and r_e > 0:
        yield bound("upper", "ub_stat_pos", {"L": L, "r": r, "r_e": r_e})
        used = d
    else:
        used = r
    yield bound("upper", "ub_stat", {"L": L, "d_x": used}, log_name="ub_stat_simple_log3")
    if shape.vocab is not None and r_e == 0:
        yield _worst_split(shape, "ub_stat_vocab", {"L": L, "V": shape.vocab, "r": r})
    elif shape.positions is not None and shape.positions // 2 < used:
        with suppress(ValueError):  # a sum too long for this depth: ub_stat stands
            yield _worst_split(shape, "ub_stat_N", {"L": L, "d_x": used})
    if shape.vocab is not None and shape.positions is not None:
        yield bound("upper", "ub_fill", {"V": shape.vocab, "N": shape.positions})


def _worst_split(shape: Shape, name: str, inputs: dict[str, int]) -> Bound:
    """The bound for a balanced partition; of an odd length the output may have either side."""
    if shape.positions is None:
        return bound("upper", name, inputs)
    half, rest = shape.positions // 2, shape.positions - shape.positions // 2
    found = [
        bound("upper", name, inputs | {"n_P": inside, "n_Q": shape.positions - inside})
        for inside in {half, rest}
    ]
    return max(found, key=lambda bound: bound.log3)


def _best_monomial_witness(shape: Shape, tries: int) -> Bound:
    heads = min(shape.heads, shape.embedding_rank, _WITNESS_HEADS)
    plans = [grow_plan(shape.depth, heads, seed=seed) for seed in range(tries)]
    inputs = {"L": shape.depth, "d_x": shape.width, "H": heads}
    found = [
        bound("lower", "monomial_witness", {"plan": plan, "entry": entry} | inputs)
        for plan, entry in plans
    ]
    return max(found, key=lambda bound: bound.log3)
