"""Named sweeps: at `paper` exactly what the papers list, elsewhere what the question needs."""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from archfit.fit.atlas import size_of
from archfit.spec import Architecture, Factorised, Full, RunSpec
from archfit.spec.gpu_cost import gpu_seconds
from archfit.sweep.named import ATLAS, NAMED, counted_corpora, named_sweep, sweep_numbers
from archfit.sweep.sweep import (
    SCALES,
    Cell,
    Corpus,
    Scale,
    equal_total,
    ranks_below,
    recipe_of,
    seeded,
)

DNA = Corpus(label="dna", kind="fasta", vocab=6, hash="d" * 64, folder="")


def specs_of(name: str, scale: Scale, seeds: int = 1) -> tuple[RunSpec, ...]:
    corpora = counted_corpora(name, scale)
    return named_sweep(name, scale, corpora, seeds=range(seeds), changes={}).specs


def shapes_of(name: str, scale: Scale = "paper") -> list[Architecture]:
    return [spec.architecture for spec in specs_of(name, scale)]


def counts_and_sums(shapes: list[Architecture]) -> dict[tuple[int, int], tuple[int, int]]:
    """Number and sum of the widths, by vocabulary and depth: two digits that a typo changes."""
    widths = defaultdict(list)
    for shape in shapes:
        widths[shape.input.vocab, shape.depth].append(shape.width)
    return {key: (len(those), sum(those)) for key, those in widths.items()}


def test_levine_depth_has_the_139_published_networks() -> None:
    assert counts_and_sums(shapes_of("levine-depth")) == {
        (2000, 6): (21, 14316),
        (2000, 12): (25, 11294),
        (2000, 18): (19, 6616),
        (2000, 24): (26, 9408),
        (2000, 30): (14, 5660),
        (2000, 36): (14, 5840),
        (2000, 48): (20, 4960),
    }


def test_wies_vocab_has_the_97_published_networks() -> None:
    assert counts_and_sums(shapes_of("wies-vocab")) == {
        (257, 24): (13, 3288),
        (257, 48): (14, 2470),
        (500, 24): (13, 5864),
        (500, 48): (12, 3888),
        (2000, 24): (13, 6872),
        (2000, 48): (13, 4864),
        (50257, 24): (10, 6832),
        (50257, 48): (9, 4648),
    }


def test_wies_lowrank_caps_every_network_at_500() -> None:
    shapes = shapes_of("wies-lowrank")
    assert counts_and_sums(shapes) == {(2000, 24): (11, 5332), (2000, 48): (11, 3768)}
    assert {shape.embedding for shape in shapes} == {Factorised(inner=500)}


def test_wies_rank_has_eleven_widths_fourteen_ranks_and_three_full_position_tables() -> None:
    shapes = shapes_of("wies-rank")
    full = [shape.width for shape in shapes if shape.embedding == Full()]
    assert sorted(full) == [576, 592, 640, 668, 670, 672, 674, 676, 678, 680, 688]
    both = [shape for shape in shapes if shape.positions != Full()]
    assert all(shape.positions == shape.embedding and shape.width == 680 for shape in both)
    inner = sorted(
        shape.embedding.inner for shape in both if isinstance(shape.embedding, Factorised)
    )
    assert inner == [16, 32, 64, 96, 128, 256, 344, 400, 456, 512, 600, 680, 880, 1080]
    tokens_only = set(shapes) - set(both) - {s for s in shapes if s.embedding == Full()}
    assert {shape.embedding_rank for shape in tokens_only} == {16, 32, 64}
    assert len(shapes) == 28


def test_wies_attention_has_the_ratios_and_heads_of_table_5() -> None:
    shapes = shapes_of("wies-attention")
    ratios = Counter((shape.attention_ratio, shape.depth, shape.heads) for shape in shapes)
    assert ratios == {
        (1, 18, 12): 4, (1, 24, 12): 3, (2, 12, 12): 2, (2, 18, 18): 1, (2, 24, 24): 1,
        (4, 12, 12): 2, (4, 18, 12): 2, (4, 24, 12): 2, (8, 12, 12): 2, (8, 18, 12): 2,
        (8, 24, 12): 2, (16, 12, 24): 2,
    }  # fmt: skip
    widths = sum(shape.width for shape in shapes)
    assert (len(shapes), widths) == (25, 7608)


def test_wies_attention_has_the_papers_sizes() -> None:
    """ "Sizes ranging between 30M and 70M" (section 5.3): two groups, and ratio 1 across both."""
    shapes = shapes_of("wies-attention")
    wide = sorted(shape.block_params for shape in shapes if shape.attention_ratio > 1)
    assert len(wide) == 18
    assert (wide[0], wide[7]) == (47_775_744, 49_766_400)
    assert (wide[8], wide[17]) == (63_700_992, 67_744_512)
    plain = [shape.block_params for shape in shapes if shape.attention_ratio == 1]
    assert (min(plain), max(plain)) == (27_993_600, 66_355_200)


def test_wies_positions_has_ten_position_ranks_and_nine_vocabulary_ranks() -> None:
    shapes = shapes_of("wies-positions")
    assert {(s.depth, s.width, s.context, s.input.vocab) for s in shapes} == {(12, 512, 512, 2000)}
    positions = [s.position_rank for s in shapes if s.positions != Full()]
    tokens = [s.embedding_rank for s in shapes if s.embedding != Full()]
    assert sorted(positions) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert sorted(tokens) == [2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert len(shapes) == 19


def test_repeats_has_three_runs_of_eleven_networks_and_five_of_eight() -> None:
    runs = Counter(spec.architecture for spec in specs_of("repeats", "paper", seeds=5))
    # 12 layers of width 680 stand in both papers, under two recipes.
    recipes = Counter(
        (spec.architecture, spec.recipe.dropout) for spec in specs_of("repeats", "paper", seeds=5)
    )
    assert Counter(recipes.values()) == {3: 11, 5: 8}
    assert sum(runs.values()) == 73
    assert {shape.input.vocab for shape in runs} == {257, 500, 2000, 50257}


@pytest.mark.parametrize("name", sorted({*NAMED} - {*ATLAS}))  # nobody's paper
def test_the_paper_scale_has_the_published_steps_and_batch(name: str) -> None:
    for spec in specs_of(name, "paper"):
        recipe = spec.recipe
        assert (recipe.steps, recipe.batch_sequences) == (1_000_000, 512)
        assert (recipe.warmup_steps, recipe.peak_learning_rate) == (12_000, 1.6e-3)
        assert spec.architecture.context == (512 if name == "wies-positions" else 128)
    adam = {spec.recipe.weight_decay for spec in specs_of(name, "paper")}
    assert adam == ({0.0} if name == "levine-depth" else {0.0, 0.01} & adam)


@pytest.mark.parametrize("name", NAMED)
def test_small_takes_less_than_a_quarter_of_an_hour_of_one_gpu(name: str) -> None:
    seeds = sweep_numbers(name, "small")["seeds"]
    specs = specs_of(name, "small", seeds)
    assert seeds >= (1 if name in ATLAS else 3)
    assert sum(1.3 * gpu_seconds(spec) for spec in specs) < 15 * 60


@pytest.mark.parametrize("name", NAMED)
def test_medium_takes_at_most_a_day_of_one_gpu_with_12_24_or_48_layers(name: str) -> None:
    specs = specs_of(name, "medium", sweep_numbers(name, "medium")["seeds"])
    assert sum(gpu_seconds(spec) for spec in specs) < 12 * 3600
    assert {spec.architecture.depth for spec in specs} & {12, 24, 48}


def test_the_papers_sweeps_at_medium_are_about_one_gpu_day() -> None:
    names = [name for name in NAMED if name.startswith(("levine", "wies", "repeats"))]
    specs = [
        spec
        for name in names
        for spec in specs_of(name, "medium", sweep_numbers(name, "medium")["seeds"])
    ]
    assert 0.8 < sum(gpu_seconds(spec) for spec in specs) / 86_400 < 1.3


@pytest.mark.parametrize("name", NAMED)
def test_smoke_trains_on_any_machine(name: str) -> None:
    assert {spec.recipe.precision for spec in specs_of(name, "smoke")} == {"float32"}


@pytest.mark.parametrize("scale", ["smoke", "small"])
@pytest.mark.parametrize("name", ["levine-depth", "wies-vocab", "wies-lowrank"])
def test_pairs_of_depths_have_equal_sizes(name: str, scale: Scale) -> None:
    """Each size of a family has a partner at every other depth, within the grain of heads."""
    families = defaultdict(list)
    for shape in shapes_of(name, scale):
        families[shape.input.vocab, shape.embedding, shape.depth].append(shape.block_params)
    for (vocab, table, _), sizes in families.items():
        for (other_vocab, other_table, _), others in families.items():
            if (vocab, table) == (other_vocab, other_table):
                for one, other in zip(sorted(sizes), sorted(others), strict=True):
                    assert one == pytest.approx(other, rel=0.06)


@pytest.mark.parametrize("scale", SCALES)
def test_attention_ratios_are_compared_at_one_size(scale: Scale) -> None:
    shapes = shapes_of("wies-attention", scale)
    wide = [shape.block_params for shape in shapes if shape.attention_ratio > 1]
    assert all(shape.feed_forward == 4 * shape.heads * shape.head_dim for shape in shapes)
    if scale != "paper":
        assert max(wide) / min(wide) < (1.25 if scale == "smoke" else 1.03)


@pytest.mark.parametrize("scale", SCALES)
def test_repairs_have_equally_many_parameters(scale: Scale) -> None:
    shapes = shapes_of("repairs", scale)
    totals = [shape.params for shape in shapes]
    assert max(totals) / min(totals) < {"smoke": 1.06, "small": 1.04}.get(scale, 1.03)
    kinds = {(shape.input.vocab, shape.input.tokens_per_position) for shape in shapes}
    assert kinds == {(257, 1), (257, 2), (257, 4), (2000, 1)}
    assert len({shape.depth for shape in shapes}) == 3


@pytest.mark.parametrize("scale", ["smoke", "small"])
@pytest.mark.parametrize("name", ["wies-rank", "input-or-output-rank", "wies-positions"])
def test_ranks_keep_below_a_very_small_vocabulary(name: str, scale: Scale) -> None:
    made = named_sweep(name, scale, [DNA], seeds=[0], changes={})
    capped = {
        spec.architecture.embedding.inner
        for spec in made.specs
        if isinstance(spec.architecture.embedding, Factorised)
    }
    widths = {spec.architecture.width for spec in made.specs}
    assert {rank for rank in capped if rank < min(widths)} <= {1, 2, 4}
    assert {1, 2, 4} & capped


def test_no_ranks_are_made_up_where_none_are_asked_for() -> None:
    assert ranks_below(100, ()) == ()
    assert ranks_below(6, (8, 16)) == (1, 2)
    assert ranks_below(20, (8, 16, 32)) == (8, 16)


def test_all_cells_of_a_seed_come_before_the_next_the_costliest_first() -> None:
    cells = [
        Cell(corpus=DNA, options=replace(recipe_of("smoke"), depth=depth)) for depth in (1, 3, 2)
    ]
    specs = seeded(cells, [4, 9])
    assert [spec.seed for spec in specs] == [4, 4, 4, 9, 9, 9]
    assert [spec.architecture.depth for spec in specs] == [3, 2, 1, 3, 2, 1]


@pytest.mark.parametrize("vocab", [6, 257, 2000])
@pytest.mark.parametrize("patch", [None, 2, 4])
def test_equal_total_finds_the_nearest_width(vocab: int, patch: int | None) -> None:
    """Against a search through all widths."""
    options = replace(recipe_of("small"), depth=5, patch=patch)
    for params in (60_000, 1_000_000):
        found = equal_total(options, vocab=vocab, params=params).architecture(vocab).params
        totals = [replace(options, width=w).architecture(vocab).params for w in range(2, 400, 2)]
        assert abs(found - params) == min(abs(total - params) for total in totals)


def test_a_rule_that_the_user_sets_holds_for_every_cell() -> None:
    corpora = counted_corpora("repeats", "paper")
    made = named_sweep(
        "repeats", "paper", corpora, seeds=[0], changes={"learning_rate_rule": "completep"}
    )
    assert {spec.recipe.learning_rate_rule for spec in made.specs} == {"completep"}


@pytest.mark.parametrize("scale", SCALES)
def test_depths_at_one_size_have_nearly_that_size(scale: Scale) -> None:
    shapes = [spec.architecture for spec in specs_of("best-depth", scale)]
    sizes = {"smoke": 55_296, "small": 800_000, "medium": 12_000_000, "paper": 30_000_000}
    size = sizes[scale]
    assert all(shape.block_params == pytest.approx(size, rel=0.025) for shape in shapes)
    assert len({shape.depth for shape in shapes}) == len(shapes) >= 3


@pytest.mark.parametrize("scale", SCALES)
def test_the_atlas_compares_depths_at_equal_totals_and_tokens_a_parameter(scale: Scale) -> None:
    specs, numbers = specs_of("atlas", scale), sweep_numbers("atlas", scale)
    sizes, depths = defaultdict(set), defaultdict(set)
    for spec in specs:
        shape, recipe = spec.architecture, spec.recipe
        size = min(numbers["sizes"], key=lambda size: abs(math.log(size / shape.params)))
        assert shape.params == pytest.approx(size, rel=0.08)
        assert spec.training_tokens / size == pytest.approx(numbers["tokens_a_parameter"], rel=0.01)
        assert recipe.steps >= 400  # a power of two of rows is within 1.41 of what gives 600
        assert recipe.evaluation_steps == recipe.steps // 10
        assert recipe.learning_rate_rule == "fan-in"
        sizes[shape.input.vocab].add(size)
        depths[shape.input.vocab, size].add(shape.depth)
        if shape.input.vocab > 257:
            assert 2 * shape.block_params >= shape.params
    assert sizes[257] == set(numbers["sizes"])
    assert all(len(found) >= 3 for (vocab, _), found in depths.items() if vocab == 257)
    if scale == "small":
        assert all(len(found) >= 7 for (vocab, _), found in depths.items() if vocab == 257)


def test_parts_of_the_atlas_differ_from_it_in_one_thing() -> None:
    def shapes(name: str) -> set[object]:
        return {(s.architecture.block, s.architecture.context) for s in specs_of(name, "small")}

    assert shapes("atlas") == shapes("atlas-tokens") == shapes("atlas-ranks") == {("gpt2", 256)}
    assert shapes("atlas-llama") == {("llama", 256)}
    assert shapes("atlas-context") == {("gpt2", 1024)}
    longer = {
        round(spec.training_tokens / size_of(spec)) for spec in specs_of("atlas-tokens", "small")
    }
    assert longer == {60}
    ranks = {spec.architecture.embedding_rank for spec in specs_of("atlas-ranks", "small")}
    assert ranks == {8, 16, 32, 64}


def test_large_sizes_of_the_atlas_have_one_seed() -> None:
    seeds = Counter(spec.architecture for spec in specs_of("atlas", "small", seeds=2))
    assert {shape.params > 900_000: runs for shape, runs in seeds.items()} == {True: 1, False: 2}
