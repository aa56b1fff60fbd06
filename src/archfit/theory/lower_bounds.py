"""Every lower bound on the separation rank of one architecture whose conditions it meets."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

from archfit.theory.causal_chains import most_chains
from archfit.theory.shape import Bound, Shape, bound
from archfit.theory.vocabulary_bounds import (
    positions_needed,
    vocabulary_lower_bound,
    vocabulary_needed,
)
from archfit.theory.witness_formula import grow_plan

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
    if shape.causal:
        yield from _causal_lower_bounds(shape)
    elif shape.vocab is not None:
        yield from _vocabulary_lower_bounds(shape, shape.vocab)
    else:
        yield from _continuous_lower_bounds(shape, witness_tries)


def _causal_lower_bounds(shape: Shape) -> Iterator[Bound]:
    if shape.vocab is not None or shape.depth < 2:
        return
    net = replace(shape.masked, embedding_rank=shape.embedding_rank)
    if len(shape.segments) == 2 and (chains := most_chains(net)):
        yield bound("lb_causal_chain", L=shape.depth, chains=chains)
    yield from _sphere_lower_bounds(shape, "lb_sphere")


def _sphere_lower_bounds(shape: Shape, *names: str) -> Iterator[Bound]:
    """Those by witnesses that need heads of two coordinates."""
    (h, b), r = shape.blocks, shape.embedding_rank
    if shape.depth > 1 and b > 1 and r > 1:
        yield from (bound(name, L=shape.depth, d_x=h * b, H=h, r=r) for name in names)


def _continuous_lower_bounds(shape: Shape, witness_tries: int) -> Iterator[Bound]:
    L, (h, b), r = shape.depth, shape.blocks, shape.embedding_rank
    if shape.positions is None or shape.positions >= 2 * shape.width:
        heads = min(shape.heads, r, _WITNESS_HEADS)
        plans = [grow_plan(L, heads, seed=seed) for seed in range(witness_tries)]
        network = {"L": L, "d_x": shape.width, "H": heads}
        found = [bound("monomial_witness", plan=plan, entry=at, **network) for plan, at in plans]
        yield max(found, key=lambda one: one.log3)
    yield from _sphere_lower_bounds(shape, "lb_sphere", "lb_strong")
    if L < 2 or b < 2 or r < 2:
        return
    if shape.is_rank_limited:
        usable = min(r, h + _halves(shape))
        if usable - h >= 2:
            yield bound("lb_vocab", L=L, d_x=shape.width, H=h, r=usable)
        return
    # The lower bound of Levine et al. and its relaxations, where d_x - H allows them.
    free = h * b - h
    needs = {"lb": 2, "lb_relaxA": 2, "lb_thm1_closed": 2, "lb_relaxB": 4, "lb_thm2_closed": 4}
    for name, least in needs.items():
        if free >= least and (free % 2 == 0 or "closed" not in name):
            yield bound(name, L=L, d_x=h * b, H=h)


def _halves(shape: Shape) -> int:
    """Coordinates in the two halves of all heads of the papers' witness, 2 h floor((b - 1) / 2).

    An embedding of rank r reaches h constants and these; more rank adds nothing to the witness.
    """
    h, b = shape.blocks
    return 2 * h * ((b - 1) // 2)


def _vocabulary_lower_bounds(shape: Shape, vocab: int) -> Iterator[Bound]:
    """Those whose conditions on vocabulary and length this shape meets."""
    L, d, h = shape.depth, shape.width, shape.blocks[0]
    if L < 2:
        return
    r = min(shape.embedding_rank, h + _halves(shape))
    # The tokens that lemma 6 asks for are written out only where they are not astronomic.
    is_counted = r - h >= 2 and vocabulary_lower_bound.log3(L, d, h, r) <= _LARGEST_VOCAB_LOG3
    if is_counted and vocab >= vocabulary_needed(L, d, h, r):
        yield bound("lb_vocab", L=L, d_x=d, H=h, r=r)
    r = min(shape.embedding_rank, h + 1 + _halves(shape))
    with suppress(ValueError):  # the search of lemma 7 is too long: we claim nothing
        if r - h >= 3 and (shape.positions is None or shape.positions >= positions_needed(L, h, r)):
            yield bound("lb_vocab_long", L=L, H=h, r=r)
