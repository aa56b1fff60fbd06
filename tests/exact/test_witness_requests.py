"""What a kind takes, what it chooses itself, and what it refuses."""

import pytest

from archfit.exact.witness_kinds import KINDS, WitnessRequest, build_witness
from archfit.exact.witness_network import NetworkShape
from archfit.theory.witness_formula import Plan, grow_plan, monomial_witness

SIZES = {"depth": 3, "width": 6, "heads": 2}


def _inputs(kind: str, **sizes: int) -> dict[str, object]:
    """All that fixes the witness that is built."""
    request = WitnessRequest(kind=kind, **(SIZES | sizes))  # type: ignore[arg-type]  # plan is no size
    return dict(build_witness(request).inputs)


def _shape(positions: int) -> NetworkShape:
    return NetworkShape(**SIZES, positions=positions)


def test_sizes_left_out_are_the_smallest_that_do_and_the_largest_rank() -> None:
    four = SIZES | {"positions": 4}
    assert _inputs("base") == four
    assert _inputs("simplified") == four
    assert _inputs("sphere") == four | {"causal": False}
    chain = {"depth": 3, "width": 5, "heads": 5}
    assert _inputs("causal-chain", **chain) == chain | {"positions": 6, "chains": 1}
    convolution = {"embedding_rank": 6, "patch": 2, "channels": 3}
    assert _inputs("convolution") == four | convolution
    assert _inputs("vocabulary") == four | {"embedding_rank": 6, "vocab": 9}
    long = {"positions": 20, "embedding_rank": 7, "vocab": 5}
    assert _inputs("vocabulary-long") == SIZES | long
    assert _inputs("monomial").items() >= four.items()


def test_sizes_given_are_kept() -> None:
    given = _inputs("convolution", rank=4, patch=1, channels=5, positions=8)
    sizes = {"positions": 8, "embedding_rank": 4, "patch": 1, "channels": 5}
    assert given == SIZES | sizes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"width": 7}, r"heads=2 do not divide width=7.*; use width=8"),
        ({"positions": 5}, r"positions=5 is odd.*; use 6"),
        ({"depth": 0}, r"depth=0 is not in"),
        ({"depth": 61}, r"depth=61 is over the 60 layers .*; use depth <= 60"),
        ({"depth": 10**6, "width": 3 * 10**8, "heads": 10**8}, "is over the 60 layers"),
        ({"depth": 2, "width": 3 * 10**8, "heads": 10**8}, r"; use "),
    ],
)
def test_no_kind_takes_sizes_that_make_no_network(
    kind: str, sizes: dict[str, int], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        _inputs(kind, **sizes)


@pytest.mark.parametrize(
    ("kind", "sizes", "sentence"),
    [
        ("base", {"depth": 1}, "use depth >= 2"),
        ("simplified", {"depth": 1}, "use depth >= 2"),
        ("base", {"width": 8}, "heads of dimension 4, .*; use width=10, or the simplified kind"),
        ("base", {"width": 2}, "heads of dimension 1, .*; use width=6"),
        ("vocabulary", {"width": 8}, "heads of dimension 4"),
        ("simplified", {"heads": 6}, "use width=12, or the monomial kind"),
        ("vocabulary", {"rank": 3}, "leaves no coordinate .*; use 4 or more"),
        ("convolution", {"rank": 7}, "no more than width=6"),
        ("vocabulary-long", {"rank": 4}, "use embedding_rank >= 5"),
        ("vocabulary-long", {"rank": 9}, "; use 7 or less"),
        ("vocabulary-long", {"positions": 18}, "use positions=20 or more"),
        ("vocabulary", {"vocab": 8}, "use vocab=9"),
        ("vocabulary", {"vocab": 10**9}, "use vocab=9"),
        ("vocabulary-long", {"vocab": 4}, "use vocab=5"),
        ("convolution", {"patch": 4, "channels": 1}, "use channels=2"),
        ("convolution", {"patch": 10**6}, "6 are enough"),
        ("convolution", {"patch": 0}, "patch=0 is below 1"),
        ("monomial", {"positions": 2}, "use positions=4 or more"),
        ("monomial", {"entry": 2}, "entry=2 is not in 0..1"),
        ("monomial", {"width": 400, "heads": 400}, "multiplications .* for one entry"),
        ("simplified", {"positions": 2000}, "multiplications .* for one entry"),
        ("simplified", {"depth": 6, "width": 64}, r"of about 10\^\d+ rows .*use depth <= 2"),
        ("simplified", {"depth": 9, "width": 4}, "2188 rows .*use depth <= 8"),
        ("simplified", {"depth": 2, "width": 6000}, "use 2000 or fewer free coordinates"),
        ("simplified", {"depth": 3, "width": 2001, "heads": 1}, "use depth <= 2, or fewer free"),
        ("simplified", {"depth": 3, "width": 2002, "heads": 1}, "use 2000 or fewer free"),
        ("simplified", {"vocab": 5}, "takes no vocab; use --kind vocabulary or vocabulary-long"),
        ("base", {"entry": 0}, "takes no entry; use --kind monomial"),
        ("sphere", {"heads": 6}, "use width=12, or the monomial kind"),
        ("sphere", {"depth": 5, "width": 10}, "use less depth, less width or more heads"),
        ("causal-chain", {}, "heads=2 are fewer than the 5 that chains=1 take; use 5"),
        ("causal-chain", {"width": 8, "heads": 8, "chains": 2}, "use 9 of them or more"),
        ("causal-chain", {"width": 5, "heads": 5, "positions": 4}, "use 6 or more"),
        ("causal-chain", {"depth": 6, "width": 5, "heads": 5}, "use less depth or fewer chains"),
        ("causal-chain", {"depth": 2, "width": 9, "heads": 9, "chains": 2}, "use depth >= 3"),
        ("causal-chain", {"chains": 0}, "chains=0 is below 1"),
        ("sphere", {"chains": 2}, "takes no chains; use --kind causal-chain"),
        ("simplified", {"causal": True}, "takes no causal; use --kind sphere"),
        ("wide", {}, "kind='wide' is unknown; use one of base, simplified"),
    ],
)
def test_a_refusal_names_what_would_fit(kind: str, sizes: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _inputs(kind, **sizes)


def test_a_run_takes_projections_scores_and_their_sum() -> None:
    assert _shape(4).multiplications == 3 * (4 * 4 * 6 * 6 + 2 * 4 * 4 * 6)
    assert (_shape(10).side, _shape(10).head_dim) == (5, 3)


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ({"depth": 60, "width": 2, "heads": 2, "positions": 4}, True),  # of width 2: rank 1
        ({"depth": 8, "width": 4, "heads": 2}, True),  # 3^6 + 1 = 730 rows
        ({"depth": 2, "width": 30, "heads": 10, "positions": 2500}, False),
        ({"depth": 2, "width": 10, "heads": 1, "positions": 696}, True),
        ({"depth": 2, "width": 10, "heads": 1, "positions": 698}, False),
    ],
)
def test_what_fits_is_taken_and_a_little_more_is_not(sizes: dict[str, int], fits: bool) -> None:
    """One run may take 20,000,000 multiplications: 40 N (20 + N) here."""
    kind = "monomial" if sizes["width"] == sizes["heads"] else "simplified"
    if fits:
        _inputs(kind, **sizes)
    else:
        with pytest.raises(ValueError, match="for one entry of the matrix, over the 20,000,000"):
            _inputs(kind, **sizes)


@pytest.mark.parametrize(("vocab", "fits"), [(9, True), (20_000, True), (20_001, False)])
def test_a_vocabulary_may_have_copies_up_to_twenty_thousand(vocab: int, fits: bool) -> None:
    if fits:
        _inputs("vocabulary", vocab=vocab)
    else:
        with pytest.raises(ValueError, match=r"vocab=20001 is not in 9\.\.20000"):
            _inputs("vocabulary", vocab=vocab)


@pytest.mark.parametrize(("channels", "fits"), [(3, True), (1000, True), (1001, False), (2, False)])
def test_a_patch_may_hold_two_thousand_numbers(channels: int, fits: bool) -> None:
    if fits:
        _inputs("convolution", patch=2, channels=channels)
    else:
        with pytest.raises(ValueError, match="patch=2 with channels="):
            _inputs("convolution", patch=2, channels=channels)


def test_the_largest_ranks_of_an_embedding_are_taken() -> None:
    _inputs("convolution", rank=6)
    _inputs("vocabulary-long", rank=7)
    with pytest.raises(ValueError, match="embedding_rank=9 is over 7, which fills width=6"):
        _inputs("vocabulary-long", rank=9)


@pytest.mark.parametrize(("heads", "tries"), [(8, 20), (9, 1)])
def test_the_best_of_twenty_plans_is_taken_for_few_heads(heads: int, tries: int) -> None:
    inputs = _inputs("monomial", depth=2, width=heads, heads=heads)
    grown = [grow_plan(2, heads, seed=seed) for seed in range(tries)]
    ranks = [int(monomial_witness(2, heads, heads, plan, entry)) for plan, entry in grown]
    plan, entry = inputs["plan"], inputs["entry"]
    assert int(monomial_witness(2, heads, heads, plan, entry)) == max(ranks)  # type: ignore[arg-type]  # as built


def test_a_given_plan_is_read_at_entry_zero_unless_another_is_asked_for() -> None:
    plan: Plan = (((0, 1), (1, 1)),)
    for entry in (None, 0, 1):
        request = WitnessRequest(kind="monomial", **SIZES, plan=plan, entry=entry)  # type: ignore[arg-type]  # sizes
        found = build_witness(request)
        assert (found.inputs["plan"], found.inputs["entry"], found.entry) == (
            plan,
            entry or 0,
            entry or 0,
        )
