"""Which bounds are listed for which shape, and that a wrong one would show."""

import random
from decimal import Decimal
from typing import Any

import pytest
from flint import arb, ctx

from archfit.report.theory_document import bounds_json, notes
from archfit.theory import quantity
from archfit.theory.bounds import bounds_report, lower_bounds, upper_bounds
from archfit.theory.counterexample import refute_for_shape
from archfit.theory.shape import Bound, Shape
from archfit.theory.shape import bound as bound_of


def _listed(**sizes: object) -> dict[str, Bound]:
    shape = Shape(**sizes)  # type: ignore[arg-type]  # names and sizes of the tests below
    return {bound.id: bound for bound in (*lower_bounds(shape, 1), *upper_bounds(shape))}


def _regime(**sizes: Any) -> str:
    """Where the depth stands, in words."""
    document: Any = bounds_json(bounds_report(Shape(**sizes), witness_tries=1))
    return str(document["regime"]["name"])


def test_continuous_inputs_have_the_papers_bounds_and_ours() -> None:
    listed = _listed(depth=4, width=12, heads=3)
    assert listed.keys() == {
        *(
            "nonzero",
            "monomial_witness",
            "lb_sphere",
            "lb_strong",
            "lb",
            "lb_relaxA",
            "lb_thm1_closed",
        ),
        *("lb_relaxB", "lb_thm2_closed", "ub_thm1", "ub_stat", "ub_thm2", "ub_thm2_closed"),
    } - {"lb_thm1_closed", "lb_thm2_closed"}  # d_x - H = 9 is odd


def test_an_even_difference_brings_the_closed_forms() -> None:
    assert _listed(depth=4, width=12, heads=4).keys() >= {"lb_thm1_closed", "lb_thm2_closed"}


def test_the_first_theorem_does_not_speak_of_residual_networks() -> None:
    listed = _listed(depth=4, width=12, heads=3, residual=True, positions=64)
    assert "ub_thm1" not in listed
    assert listed.keys() >= {
        *("ub_residual_recursion", "ub_residual_product_corrected", "ub_residual_thm4"),
        *("ub_residual_product_paper", "ub_residual_closed_paper", "ub_stat"),
    }
    inputs = {"L": 4, "d_x": 12, "H": 3, "N": 64}
    assert (
        listed["ub_residual_recursion"].exact == quantity("ub_residual_recursion", **inputs).value
    )


def test_the_monomial_witness_needs_a_width_of_positions_on_each_side() -> None:
    assert "monomial_witness" not in _listed(depth=3, width=6, heads=2, positions=11)
    assert "monomial_witness" in _listed(depth=3, width=6, heads=2, positions=12)


def test_the_vocabulary_bound_needs_the_vocabulary_of_lemma_6() -> None:
    inputs = {"L": 3, "d_x": 15, "H": 1, "r": 7}
    needed = quantity("lb_vocab_min_V", **inputs).value
    assert isinstance(needed, int)
    assert "lb_vocab" in _listed(depth=3, width=15, heads=1, rank=7, vocab=needed)
    assert "lb_vocab" not in _listed(depth=3, width=15, heads=1, rank=7, vocab=needed - 1)


def test_the_long_sequence_bound_needs_the_length_of_lemma_7() -> None:
    needed = quantity("lemma7_N", L=3, H=2, r=9).value
    shape = {"depth": 3, "width": 18, "heads": 2, "rank": 9, "vocab": 9}
    assert "lb_vocab_long" in _listed(**shape, positions=needed)
    assert "lb_vocab_long" not in _listed(**shape, positions=int(str(needed)) - 2)
    assert "lb_vocab_long" in _listed(**shape)


def test_token_counts_say_all_only_without_positions() -> None:
    shape = {"depth": 3, "width": 8, "heads": 2, "vocab": 5, "positions": 6}
    assert "ub_stat_vocab" in _listed(**shape)
    assert "ub_stat_vocab" not in _listed(**shape, position_rank=1)
    assert _listed(**shape, position_rank=1)["ub_fill"].exact == 5**3


def test_heads_of_one_dimension_have_no_halves_for_the_papers_witness() -> None:
    """Once printed 19 <= separation rank <= 16: the rank went in, the head size did not."""
    listed = _listed(depth=2, width=40, heads=1, head_dim=1, vocab=50)
    assert listed.keys().isdisjoint({"lb_vocab", "lb_vocab_long"})


def test_small_heads_in_wide_streams_keep_lower_below_upper() -> None:
    chance = random.Random(0)
    for _ in range(40):
        width = chance.randint(2, 2000)
        shape = Shape(
            depth=chance.randint(2, 5),
            width=width,
            heads=chance.randint(1, 3) if width > 2 else 1,
            head_dim=chance.randint(1, 4),
            vocab=chance.choice((None, chance.randint(2, 5000))),
            rank=chance.randint(1, width),
            positions=chance.choice((None, chance.randint(2, 9))),
        )
        report = bounds_report(shape, witness_tries=1)
        assert report.lower.log3 <= report.upper.log3, shape


def test_an_odd_length_is_bounded_by_the_worse_of_its_two_splits() -> None:
    worse = max(int(str(quantity("ub_stat_N", L=3, d_x=6, n_P=p, n_Q=3 - p).value)) for p in (1, 2))
    assert _listed(depth=3, width=6, heads=1, positions=3)["ub_stat_N"].exact == worse == 83_181


def test_exact_values_too_long_to_show_leave_the_logarithm() -> None:
    listed = _listed(depth=3, width=200_000, heads=8)
    assert listed["ub_thm2"].exact is None
    assert listed["ub_thm2"].log3 == quantity("ub_thm2_log3", L=3, d_x=200_000).value


def test_many_positions_in_a_wider_stream_cost_no_memory() -> None:
    listed = _listed(depth=2, width=10**9, heads=1, positions=10**9)
    assert listed["ub_stat_N"].exact is not None


@pytest.mark.parametrize(
    ("depth", "name"),
    [(3, "below log3"), (4, "past log3"), (8, "past log3"), (9, "past 8.6, up to which")],
)
def test_regimes_change_at_log3_of_width_and_at_the_corrected_threshold(
    depth: int, name: str
) -> None:
    """81 = 3^4, and 2 * 81^2 lies between 3^8 and 3^9."""
    assert _regime(depth=depth, width=81, heads=1).startswith(name)
    assert _regime(depth=3, width=28, heads=1).startswith("below log3")
    assert _regime(depth=3, width=27, heads=1).startswith("past log3")


def test_under_a_mask_the_upper_bound_bends_at_four_times_the_statistics() -> None:
    """Two heads of 2 in a width of 4 show 8 numbers of a prefix: 27 < 32 < 81."""
    names = {depth: _regime(depth=depth, width=4, heads=2, causal=True) for depth in (3, 4)}
    assert names[3].startswith("past log3")
    assert "its logarithm grows with the square of depth" in names[4]


def test_the_regime_of_a_limited_rank_is_that_of_the_rank() -> None:
    report = bounds_report(Shape(depth=4, width=768, heads=12, rank=9))
    assert report.regime.paper_threshold == 2


@pytest.mark.parametrize(
    ("sizes", "slope", "log_name", "inputs"),
    [
        ({}, 78, "ub_stat_simple_log3", {"L": 5, "d_x": 12}),
        ({"vocab": 20}, 19, "ub_stat_vocab_log3", {"L": 5, "V": 20, "r": 12}),
        ({"rank": 3, "position_rank": 2}, 12, "ub_stat_pos_log3", {"L": 5, "r": 3, "r_e": 2}),
    ],
)
def test_saturation_is_the_bound_over_its_slope(
    sizes: dict[str, int], slope: int, log_name: str, inputs: dict[str, int]
) -> None:
    report = bounds_report(Shape(depth=5, width=12, heads=3, **sizes))  # type: ignore[arg-type]
    log = quantity(log_name, **inputs).value
    assert isinstance(log, Decimal)
    assert abs(report.saturation - log / (slope * 5)) < Decimal("1e-15")


@pytest.mark.parametrize(
    ("width", "heads", "head_dim", "blocks"),
    [
        (12, 3, None, (3, 4)),
        (13, 3, None, (3, 4)),
        (12, 3, 2, (3, 2)),
        (12, 9, 5, (3, 4)),  # three blocks of 4 leave 9 free coordinates, two of 5 only 8
        (4, 1, 9, (1, 4)),
        (4, 3, 9, (1, 4)),  # one head as wide as the network leaves 3, two of 2 only 2
    ],
)
def test_the_network_inside_fits_and_wastes_least(
    width: int, heads: int, head_dim: int | None, blocks: tuple[int, int]
) -> None:
    assert Shape(depth=2, width=width, heads=heads, head_dim=head_dim).blocks == blocks


@pytest.mark.parametrize(("inside", "outside"), [(3, 4), (4, 3), (2, 2)])
def test_logarithms_of_fillings_are_those_of_the_counts(inside: int, outside: int) -> None:
    inputs = {"L": 9, "V": 30, "r": 20, "n_P": inside, "n_Q": outside}
    exact = quantity("ub_stat_vocab", **inputs).value
    log = quantity("ub_stat_vocab_log3", **inputs).value
    assert isinstance(log, Decimal)
    assert abs(3 ** float(log) / int(str(exact)) - 1) < 1e-12


def test_the_cut_sum_of_layer_factors_holds_the_whole_sum() -> None:
    from archfit.theory.continuous_bounds import _cubed_layer_factors

    with ctx.workprec(20):
        ball = _cubed_layer_factors(60)
    with ctx.workprec(400):
        whole = sum((arb(layer).log() * 3 ** (60 - layer + 1) for layer in range(2, 61)), arb(0))
        assert ball.contains(whole)
        assert not (ball - whole).contains(1e30)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"vocab": 50, "positions": 17}, "it holds here|sequences of any length"),
        ({"vocab": 50, "positions": 16, "position_rank": 1}, "it holds here"),
        ({"vocab": 50, "positions": 10**6}, "sequences of any length"),
        ({"vocab": 36}, "no witness is known for a vocabulary of only 36|it holds here"),
    ],
)
def test_a_vocabulary_is_not_refuted_by_a_witness_for_vectors(
    sizes: dict[str, int], sentence: str
) -> None:
    report = bounds_report(Shape(depth=12, width=8, heads=8, **sizes))  # type: ignore[arg-type]
    verdict = refute_for_shape(report)
    assert not verdict.refuted
    assert any(part in verdict.reason for part in sentence.split("|"))


def test_a_large_vocabulary_is_refuted_for_long_sequences() -> None:
    report = bounds_report(Shape(depth=12, width=8, heads=8, vocab=50))
    verdict = refute_for_shape(report)
    assert verdict.refuted
    assert "long enough sequences" in verdict.reason


def test_positions_raise_the_formula_that_must_be_passed() -> None:
    report = bounds_report(Shape(depth=12, width=8, heads=8, rank=6, position_rank=3))
    formula = quantity("ub_vocab_statement_log3", L=12, r=6, r_e=3).value
    assert refute_for_shape(report).formula_log3 == formula


def test_few_heads_cannot_refute_what_many_can() -> None:
    assert refute_for_shape(bounds_report(Shape(depth=8, width=6, heads=6))).refuted
    assert not refute_for_shape(bounds_report(Shape(depth=8, width=6, heads=1))).refuted


@pytest.mark.parametrize("position_rank", [1001, 127_550_367])
def test_a_high_rank_of_positions_is_bounded_without_writing_its_powers_out(
    position_rank: int,
) -> None:
    """The formula's denominator is r_e^r_e, however small its value."""
    report = bounds_report(
        Shape(depth=2, width=3, heads=3, vocab=7_220_345, position_rank=position_rank)
    )
    formula = next(bound for bound in report.bounds if bound.id == "ub_vocab_proof")
    log = quantity("ub_vocab_proof_log3", L=2, r=3, r_e=position_rank).value
    assert (formula.exact, formula.log3) == (None, log)


PAPERS = ("lb", "lb_relaxA", "lb_thm1_closed", "lb_relaxB", "lb_thm2_closed")


@pytest.mark.parametrize(
    ("width", "listed"),
    [(2, ""), (3, "lb lb_relaxA lb_thm1_closed"), (4, "lb lb_relaxA"), (5, " ".join(PAPERS))],
)
def test_the_papers_lower_bounds_need_free_coordinates(width: int, listed: str) -> None:
    """d_x - H = 1, 2, 3, 4: relaxations need two or four, closed forms an even number."""
    found = _listed(depth=3, width=width, heads=1)
    assert [name for name in found if name in PAPERS] == listed.split()


@pytest.mark.parametrize("depth", [1, 2])
def test_the_papers_lower_bounds_need_two_layers(depth: int) -> None:
    assert ("lb" in _listed(depth=depth, width=9, heads=1)) == (depth == 2)
    vocabulary = _listed(depth=depth, width=9, heads=1, vocab=10**6)
    assert ("lb_vocab" in vocabulary) == (depth == 2)


@pytest.mark.parametrize(("width", "is_deep"), [(8, True), (9, False)])
def test_the_closed_form_is_for_widths_below_three_to_the_depth(width: int, is_deep: bool) -> None:
    assert ("ub_thm2_closed" in _listed(depth=2, width=width, heads=1)) == is_deep
    assert "ub_thm2_closed" not in _listed(depth=2, width=width, heads=1, residual=True)


@pytest.mark.parametrize(("positions", "is_short"), [(11, True), (12, False)])
def test_sides_shorter_than_the_width_have_a_bound_of_their_own(
    positions: int, is_short: bool
) -> None:
    listed = _listed(depth=2, width=6, heads=1, positions=positions)
    assert ("ub_stat_N" in listed) == is_short


def test_short_sides_have_their_bound_where_the_rank_is_below_the_number_of_heads() -> None:
    assert "ub_stat_N" in _listed(depth=2, width=8, heads=6, rank=4, positions=6)


def test_residual_bounds_of_the_papers_need_heads_that_fit() -> None:
    shape = {"depth": 2, "width": 4, "residual": True, "positions": 9, "head_dim": 1}
    assert "ub_residual_recursion" in _listed(**shape, heads=4)
    assert "ub_residual_recursion" not in _listed(**shape, heads=5)


@pytest.mark.parametrize(("width", "is_shown"), [(1000, True), (1001, False)])
def test_fractions_over_powers_of_a_wide_width_are_not_written_out(
    width: int, is_shown: bool
) -> None:
    assert (_listed(depth=1, width=width, heads=1)["ub_thm2"].exact is not None) == is_shown


def _filled(positions: int) -> Bound:
    return bound_of("ub_fill", Shape(depth=1, width=1, heads=1, vocab=3**20, positions=positions))


def test_exact_values_end_where_python_stops_reading_integers() -> None:
    """V^(N/2) is shown while its log3 is below 9,000."""
    shown = _filled(2 * 449)
    hidden = _filled(2 * 450)
    assert (shown.log3, shown.exact) == (Decimal(8980), 3**8980)
    assert (hidden.log3, hidden.exact) == (Decimal(9000), None)


def test_a_hidden_statistics_bound_is_called_simple() -> None:
    assert "ub_stat_simple" in _listed(depth=40, width=2000, heads=8)
    assert "ub_stat" in _listed(depth=3, width=20, heads=8)


def test_the_witness_uses_eight_heads_at_most() -> None:
    eight, nine = (
        _listed(depth=4, width=9, heads=heads, head_dim=1)["monomial_witness"].exact
        for heads in (8, 9)
    )
    seven = _listed(depth=4, width=9, heads=7, head_dim=1)["monomial_witness"].exact
    assert seven != eight == nine


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"positions": 8}, []),
        ({}, ["upper bounds hold for every length"]),
        ({"positions": 8, "vocab": 5}, ["lower bounds for a vocabulary need"]),
        ({"residual": True}, ["upper bounds hold", "the papers' bounds for residual networks"]),
        ({"residual": True, "positions": 8}, []),
        ({"heads": 5, "positions": 8}, ["heads=5 does not divide width=12"]),
        ({"heads": 5, "head_dim": 2, "positions": 8}, []),
    ],
)
def test_notes_are_about_what_the_shape_leaves_open(
    sizes: dict[str, int], words: list[str]
) -> None:
    found = notes(Shape(**({"depth": 3, "width": 12, "heads": 3} | sizes)))  # type: ignore[arg-type]
    assert len(found) == len(words)
    assert all(note.startswith(word) for note, word in zip(found, words, strict=True))


@pytest.mark.parametrize("vocab", [36, 37])
def test_a_vocabulary_can_be_refuted_from_one_token_more_than_moments(vocab: int) -> None:
    """A width of 8 has 36 second moments."""
    verdict = refute_for_shape(bounds_report(Shape(depth=14, width=8, heads=8, vocab=vocab)))
    assert verdict.refuted == (vocab == 37)


@pytest.mark.parametrize("positions", [11, 12])
def test_the_witness_refutes_from_twice_the_width_on(positions: int) -> None:
    shape = Shape(depth=8, width=6, heads=6, positions=positions)
    assert refute_for_shape(bounds_report(shape)).refuted == (positions == 12)


def test_the_last_resort_is_that_the_output_is_not_zero() -> None:
    """A rank of 1, whose logarithm is 0; one token of any number has nothing better."""
    report = bounds_report(Shape(depth=1, width=4, heads=1, vocab=2))
    assert (report.lower.id, report.lower.log3, report.lower.exact) == ("nonzero", Decimal(0), 1)
    assert (report.lower.status, report.lower.status_line) == ("proved", "proved")
