"""Sweep files; the products are written out here by itertools, independently of the reader."""

import itertools
import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archfit.spec.architecture import gated_units
from archfit.spec.rates import auto_rate
from archfit.spec.run_options import RunOptions
from archfit.sweep.sweep import Corpus, Sweep
from archfit.sweep.sweep_file import MOST_CELLS, read_sweep_file

BYTES = Corpus(label="bytes", kind="text", vocab=257, hash="a" * 64, folder="")
BPE = Corpus(label="bpe-2000", kind="text", vocab=2000, hash="b" * 64, folder="")
GRID = "[[grid]]\ndepth = 3\n"


def sweep_of(folder: Path, text: str, *corpora: Corpus) -> Sweep:
    path = folder / "mine.toml"
    path.write_text(text)
    return read_sweep_file(path, corpora or (BYTES,), "float32")


def asked(corpus: Corpus, seed: int, **values: object) -> object:
    usual = {"precision": "float32", "learning_rate": "auto"}
    run = RunOptions(**usual | values)  # type: ignore[arg-type]  # any keys
    return run.spec(vocab=corpus.vocab, data_hash=corpus.hash, seed=seed)


def test_a_file_gives_the_products_and_pairs_that_it_writes(tmp_path: Path) -> None:
    sweep = sweep_of(
        tmp_path,
        """
        name = "depth on my data"
        question = '''Does
        depth pay?'''
        seeds = 2
        [base]
        heads = 2
        steps = 2000
        weight_decay = 0
        [[grid]]
        depth = [3, 6, 12]
        learning_rate = [1e-3, 0.002]
        width = "0.128K"
        [[list]]
        depth = [6, 12]
        width = [200, 144]
        embedding_inner = [16, 32]
        batch = 1e1
        """,
        BYTES,
        BPE,
    )
    base = {"heads": 2, "steps": 2000, "weight_decay": 0.0}
    grid = [
        asked(corpus, seed, depth=depth, learning_rate=rate, width=128, **base)
        for depth, rate, corpus, seed in itertools.product(
            (3, 6, 12), (0.001, 0.002), (BYTES, BPE), (0, 1)
        )
    ]
    pairs = [
        asked(corpus, seed, depth=depth, width=width, embedding_inner=inner, batch=10, **base)
        for (depth, width, inner), corpus, seed in itertools.product(
            ((6, 200, 16), (12, 144, 32)), (BYTES, BPE), (0, 1)
        )
    ]
    assert list(sweep.specs) == grid + pairs
    assert (sweep.name, sweep.question) == ("depth on my data", "Does depth pay?")
    assert [spec.hash for spec in sweep.specs] == [spec.hash for spec in grid + pairs]  # type: ignore[attr-defined]


keys = st.fixed_dictionaries(
    {},
    optional={
        "depth": st.lists(st.integers(1, 9), min_size=1, max_size=3),
        "width": st.lists(st.integers(1, 9).map(lambda n: 2 * n), min_size=1, max_size=3),
        "dropout": st.lists(st.sampled_from([0.0, 0.1]), min_size=1, max_size=2),
        "head": st.lists(st.sampled_from(["full", "tied", 7]), min_size=1, max_size=3),
    },
).filter(bool)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(grids=st.lists(keys, min_size=1, max_size=3), seeds=st.sets(st.integers(0, 9), min_size=1))
def test_any_grids_give_each_combination_once(
    tmp_path: Path, grids: list[dict[str, list[object]]], seeds: set[int]
) -> None:
    text = f"seeds = {sorted(seeds)}\n"
    expected: dict[object, None] = {}
    for grid in grids:
        text += "[[grid]]\n" + "".join(f"{key} = {values!r}\n" for key, values in grid.items())
        for row in itertools.product(*grid.values()):
            for seed in sorted(seeds):
                expected[asked(BYTES, seed, **dict(zip(grid, row, strict=True)))] = None
    assert sweep_of(tmp_path, text).specs == tuple(expected)


def test_what_is_left_out_is_usual(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, "[[grid]]\nwidth = [64, 256]\n", BYTES, BPE)
    assert sweep.name == "mine"
    assert sweep.question == ""
    assert sweep.data == (BYTES, BPE)
    assert [(spec.data_hash, spec.seed) for spec in sweep.specs] == [
        (BYTES.hash, 0),
        (BPE.hash, 0),
    ] * 2
    assert {spec.recipe.precision for spec in sweep.specs} == {"float32"}
    assert [spec.recipe.peak_learning_rate for spec in sweep.specs[::2]] == [
        auto_rate("gpt2", width=width, batch_tokens=16 * 128) for width in (64, 256)
    ]


@pytest.mark.parametrize(
    ("said", "rule"),
    [('learning_rate_rule = "standard"', "standard"), ("learning_rate = 0.001", "standard"),
     ('attention = "linear"', "standard"), ("", "fan-in")],
)  # fmt: skip
def test_rates_are_automatic_unless_the_file_says_which(
    tmp_path: Path, said: str, rule: str
) -> None:
    (spec,) = sweep_of(tmp_path, GRID + said).specs
    assert spec.recipe.learning_rate_rule == rule


def test_the_file_has_the_last_word_on_precision(tmp_path: Path) -> None:
    text = '[base]\nprecision = "bfloat16"\n' + GRID
    (spec,) = sweep_of(tmp_path, text).specs
    assert spec.recipe.precision == "bfloat16"


def test_a_grid_overrides_the_base(tmp_path: Path) -> None:
    text = "[base]\ndepth = 2\nwidth = 32\n[[grid]]\ndepth = 3\nsteps = [9]\n[[list]]\nwidth = 48\n"
    shapes = [spec.architecture for spec in sweep_of(tmp_path, text).specs]
    assert [(shape.depth, shape.width) for shape in shapes] == [(3, 32), (2, 48)]


def test_data_names_data_sets(tmp_path: Path) -> None:
    grid = '[[grid]]\ndata = ["bpe-2000", "bytes"]\ndepth = [1, 2]\n'
    found = [
        (s.data_hash, s.architecture.depth) for s in sweep_of(tmp_path, grid, BYTES, BPE).specs
    ]
    hashes = (BPE.hash, BYTES.hash)
    assert found == list(itertools.product(hashes, (1, 2)))
    pairs = '[[list]]\ndata = ["bpe-2000", "bytes"]\ndepth = [1, 2]\n'
    found = [
        (s.data_hash, s.architecture.depth) for s in sweep_of(tmp_path, pairs, BYTES, BPE).specs
    ]
    assert found == list(zip(hashes, (1, 2), strict=True))
    only = sweep_of(tmp_path, '[base]\ndata = "bytes"\n' + GRID, BYTES, BPE)
    assert only.data == (BYTES,)


def test_a_cell_asked_for_twice_counts_once(tmp_path: Path) -> None:
    text = "seeds = [3, 3]\n[[grid]]\ndepth = [3, 3]\n[[list]]\ndepth = 3\nwidth = 64\n"
    assert sweep_of(tmp_path, text).specs == (asked(BYTES, 3, depth=3),)


MATCHED = """
[base]
width = 8
[[grid]]
match = "block_params"
block_params = [1_000_000, "2M"]
depth = [3, 6, 12]
heads = [1, 4]
"""


def test_matching_finds_the_nearest_width(tmp_path: Path) -> None:
    specs = sweep_of(tmp_path, MATCHED).specs
    shapes = [spec.architecture for spec in specs]
    rows = itertools.product((10**6, 2 * 10**6), (3, 6, 12), (1, 4))
    expected = [
        min(range(heads, 1000, heads), key=lambda width: abs(12 * depth * width**2 - size))
        for size, depth, heads in rows
    ]
    assert [shape.width for shape in shapes] == expected
    assert {shape.head_dim * shape.heads == shape.width for shape in shapes} == {True}
    rates = [spec.recipe.peak_learning_rate for spec in specs]
    assert rates == [auto_rate("gpt2", width=width, batch_tokens=16 * 128) for width in expected]


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ("head_dim = 64\n", lambda d, depth: depth * (4 * d * 2 * 64 + 8 * d * d)),
        ('attention = "linear"\n', lambda d, depth: depth * 4 * d * d),
        ("feed_forward_multiple = 2\n", lambda d, depth: depth * 8 * d * d),
        ("feed_forward = 300\n", lambda d, depth: depth * (4 * d * d + 600 * d)),
        ('feed_forward = "attention"\n', lambda d, depth: depth * 12 * d * d),
        (
            'block = "llama"\nkv_heads = 1\n',
            lambda d, depth: depth * (3 * d * d + 3 * d * gated_units(d)),
        ),
    ],
)
def test_matching_counts_the_blocks_as_they_are(tmp_path: Path, more: str, size: object) -> None:
    text = '[[list]]\nmatch = "block_params"\nblock_params = 1e6\ndepth = [2, 9]\n' + more
    for spec in sweep_of(tmp_path, text).specs:
        shape = spec.architecture
        assert shape.block_params == size(shape.width, shape.depth)  # type: ignore[operator]
        assert abs(shape.block_params - 10**6) == min(
            abs(size(width, shape.depth) - 10**6)  # type: ignore[operator]
            for width in range(4, 2000, 1 if "head_dim" in more else 4 if "llama" in more else 2)
        )


REFUSED = [
    (GRID + "wdith = 3", 3, "'wdith' is no key of a [[grid]]; the nearest is width"),
    (GRID + "embedding-inner = 3", 3, "'embedding-inner' is no key of a [[grid]]; the nearest is "
     "embedding_inner"),
    (GRID + "zzz = 3", 3, "'zzz' is no key of a [[grid]]; use one of attention, batch, beta1,"),
    (GRID + "seeds = 3", 3, "'seeds' is no key of a [[grid]]; put it before the first table"),
    ("nmae = 'a'\n" + GRID, 1, "'nmae' is no key of a sweep file; the nearest is name"),
    ("heads = 2\n" + GRID, 1, "'heads' is no key of a sweep file but of a run; put it into"),
    ("[base]\nmatch = 'x'\n" + GRID, 2, "'match' is no key of [base]; put it into a [[grid]] or"),
    ("base.wdith = 2\n" + GRID, 1, "'wdith' is no key of [base]; the nearest is width"),
    ("[base]\ndepth = [2]\n" + GRID, 2, "depth is a list, and all cells share [base]; move it to"),
    ("base = 3\n" + GRID, 1, "base is 3, not a table; write [base]"),
    ("[grid]\ndepth = 3", 1, "grid is one table; write [[grid]], as often as you like"),
    ("list = [1]\n" + GRID, 1, "list is a list of 1; write [[list]], as often as you like"),
    (GRID + "\n[[grid]]\n# depth = 3\n", 4, "this [[grid]] is empty; give it a key such as"),
    (GRID + "width = []", 3, "width is an empty list; give at least one value"),
    ("[[grid]]\ndepth = [3,\n\n'x']", 4, "depth='x' is not a size; write a whole number such as"),
    ("[[grid]]\ndepth = '1.5'", 2, "depth='1.5' is not a whole number; the nearest is 2"),
    ("[[grid]]\ndepth = 1.5", 2, 'depth=1.5 is not a whole number; write one, such as 12 or "2M"'),
    ("[[grid]]\ndepth = true", 2, "depth=True is not a whole number; write one,"),
    ("[[grid]]\ndepth = nan", 2, "depth=nan is not a whole number"),
    ("[[grid]]\ndepth = -inf", 2, "depth=-inf is not a whole number"),
    ("[[grid]]\ndepth = 2024-02-03", 2, "depth=datetime.date(2024, 2, 3) is not a whole number"),
    ("[[grid]]\ndepth = [[3]]", 2, "depth=a list of 1 is not a whole number"),
    ("[[grid]]\ndepth.x = 3", 2, "depth=an object of 1 keys is not a whole number"),
    ("[[grid]]\ndepth = 0", 2, "depth=0 is below 1; use 1 or more"),
    ("[[grid]]\ndepth = 10_000_000_000_000", 2, "depth=10000000000000 is over 10^12, more"),
    (f"[[grid]]\ndepth = 0x{'f' * 9999}", 2, "depth=a number above 10^40 is over 10^12"),
    ("[[grid]]\ndropout = nan", 2, "dropout=nan is not a number up to 10^12; write one, such as"),
    ("[[grid]]\ndropout = '0.1'", 2, "dropout='0.1' is not a number; write one, such as 0.001"),
    ("[[grid]]\ndropout = [0.1, 2]", 2, "dropout=2.0 is not in 0..0.95; the nearest is 0.95"),
    ("[[grid]]\nattention = 3", 2, "attention=3 is not a word; write one in quotes, such as"),
    ("[[grid]]\nattention = 'soft'", 2, "attention='soft' is unknown; use one of softmax, linear,"),
    ("[[grid]]\nfeed_forward = 'x'", 2, "feed_forward='x' is unknown; use attention, or a number"),
    ("[[grid]]\nqk_norm = 1", 2, "qk_norm=1 is neither true nor false; write one of them"),
    ("[base]\nblock = 'llama'\n[[grid]]\nkv_heads = 3", 4, "kv_heads=3 does not divide heads=2"),
    ("[[grid]]\nblock = 'gpt2'\nqk_norm = true", 3, "qk_norm=True is not in GPT-2's block; use"),
    ("[[grid]]\nhead = 'x'", 2, "head='x' is unknown; use full, tied, or an inner size"),
    ("[[grid]]\nwidth = [64, 65]", 2, "width=65 is not a multiple of heads=2, so head_dim would"),
    ("[base]\nheads = 3\n[[grid]]\ndepth = 2", 2, "width=64 is not a multiple of heads=3"),
    ("[base]\nheads = 3\n[[grid]]\ndepth = 2\nwidth = 64", 5, "width=64 is not a multiple of"),
    ("[[grid]]\ndepth = 1\npatch = 0", 3, "patch=0 is below 1; use 1 or more"),
    ("[[grid]]\npatch = 2\npatch_encoding = 'x'", 3, "patch_encoding='x' is unknown; use one of"),
    ("[[grid]]\nembedding_inner = 9\nhead = 0", 3, "head=0 is below 1; use 1 or more"),
    ("[[grid]]\nposition_inner = 0\nembedding_inner = 9", 2, "position_inner=0 is below 1"),
    ("[[grid]]\nbatch = 0", 2, "batch=0 is below 1; use 1 or more"),
    ("[[grid]]\nevaluate_every = 0", 2, "evaluate_every=0 is below 1"),
    ("[[grid]]\nsteps = 10\nwarmup = 20", 3, "warmup=20 exceeds steps=10, so the peak is never"),
    ("[base]\nwarmup = 9\n[[grid]]\nsteps = 5", 2, "warmup=9 exceeds steps=5, so the peak is"),
    ("[base]\nsteps = 5\n[[grid]]\nwarmup = 9", 4, "warmup=9 exceeds steps=5, so the peak is"),
    ("[[grid]]\nembedding_inner = 0\nposition_inner = 0", 2, "embedding_inner=0 is below 1"),
    ("[[grid]]\npatch_encoding = 'scalar'\nhead = 'tied'\npatch = 4", 3, "head='tied' needs"),
    ("[[grid]]\nlearning_rate = 11", 2, "learning_rate=11.0 is not in 0..10; the nearest is 10"),
    ("[[list]]\ndepth = [1, 2]\nheads = 2\nwidth = [8]", 4, "width has 1 values and depth 2, but "
     "the lists of a [[list]] go together item by item; make them equally long, or use a [[grid]]"),
    ("[[list]]\ndata = 'x'", 2, "data='x' is none of the data sets; use one of bytes"),
    ("seeds = 0\n" + GRID, 1, "seeds=0 gives no runs; use 1 or more"),
    ("seeds = []\n" + GRID, 1, "seeds=a list of 0 gives no runs; use 1 or more"),
    ("seeds = [1,\n-1]\n" + GRID, 2, "seeds=-1 is below 0; use 0 or more"),
    ("seeds = 'a'\n" + GRID, 1, "seeds='a' is not a size"),
    ("name = 3\n" + GRID, 1, "name=3 is no text; write some"),
    ("name = '\\u001b'\n".replace("'", '"') + GRID, 1, "name='\\x1b' is no text"),
    ("question = ' '\n" + GRID, 1, "question=' ' is no text"),
    ("[[grid]]\nblock_params = 3", 2, 'this says no size to match; write match = "block_params"'),
    ("[[grid]]\nmatch = 'params'", 2, "match='params' says no size to match; write match ="),
    ("[[grid]]\nmatch = ['block_params']", 2, "this says no size to match; write match ="),
    ("[[grid]]\nmatch = 'block_params'", 2, "match without a size; add one, such as block_params"),
    ("[[grid]]\nmatch = 'block_params'\nblock_params = 9\nwidth = 3", 4,
     "width cannot be given where match finds it; leave one out"),
    ("[[grid]]\nmatch = 'block_params'\nblock_params = 0", 3, "block_params=0 is below 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "sentence"), REFUSED)
def test_a_refusal_is_one_sentence_with_file_and_line(
    tmp_path: Path, text: str, line: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"^mine\.toml line") as caught:
        sweep_of(tmp_path, text)
    assert str(caught.value).startswith(f"mine.toml line {line}: {sentence}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def matched(size: int) -> str:
    return f'[[grid]]\nheads = 20\ndepth = 2\nmatch = "block_params"\nblock_params = {size}\n'


def test_a_size_may_be_missed_by_a_twentieth(tmp_path: Path) -> None:
    """Width 20 has 2 * 12 * 20^2 = 9,600 weights, and 9,600 / 1.05 is 9,142.9."""
    for size in (9_143, 9_600, 10_105):
        (spec,) = sweep_of(tmp_path, matched(size)).specs
        assert spec.architecture.block_params == 9_600
    with pytest.raises(ValueError, match="mine") as caught:
        sweep_of(tmp_path, matched(9_142))
    assert str(caught.value) == (
        "mine.toml line 5: block_params=9142 cannot be met at depth=2 with heads=20: the nearest "
        "width, 20, has 9,600 block weights, 5.0% more where 5% are allowed; use "
        "block_params = 9600, another depth or other heads"
    )
    with pytest.raises(ValueError, match=r"9,600 block weights, 5\.\d% fewer"):
        sweep_of(tmp_path, matched(10_106))


@pytest.mark.parametrize("text", ["", "name = 'a'\n[base]\ndepth = 3", "grid = []", "# [[grid]]"])
def test_a_file_without_cells_is_told_what_to_add(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"^mine\.toml has no cells; add a \[\[grid\]\] or a"):
        sweep_of(tmp_path, text)


def test_too_many_cells_are_counted_and_not_built(tmp_path: Path) -> None:
    values = "".join(f"{key} = [{'1,' * 99}]\n" for key in ("depth", "steps", "batch", "context"))
    started = time.process_time()
    with pytest.raises(ValueError, match=r"line 3: up to here the sweep has 96,059,602 cells"):
        sweep_of(tmp_path, f"{GRID}[[grid]]\n{values}")
    with pytest.raises(ValueError, match=r"1,000,000,000 cells .* more than 10,000; use shorter"):
        sweep_of(tmp_path, f"seeds = 1_000_000_000\n{GRID}")
    assert time.process_time() - started < 1


def test_seeds_and_data_sets_count_as_cells(tmp_path: Path) -> None:
    half = MOST_CELLS // 2
    assert len(sweep_of(tmp_path, f"seeds = {half}\n{GRID}", BYTES, BPE).specs) == MOST_CELLS
    with pytest.raises(ValueError, match="the sweep has 10,002 cells"):
        sweep_of(tmp_path, f"seeds = {half + 1}\n{GRID}", BYTES, BPE)


def test_without_data_there_is_nothing_to_train_on(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GRID)
    with pytest.raises(ValueError, match=r"^mine\.toml has no data to train on; give at least one"):
        read_sweep_file(tmp_path / "mine.toml", (), "float32")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a = \n", r"^mine\.toml is not TOML: Invalid value \(at line 1, column 5\); correct"),
        (b"[[grid]]\ndepth = 3\ndepth = 4\n", r"is not TOML: Cannot overwrite .*line 3"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "is nested too deeply; a sweep file has lists in"),
        (b"a = " + b"{b=" * 5000, "is nested too deeply"),
        (b"[[grid]]\ndepth = " + b"9" * 5000, "holds a number of thousands of digits; write one"),
        (b"\xff\xfe[\x00", r"line 1 is not UTF-8 \(byte 0xff\); write it as text"),
        (b"\n# \xc3(", "line 2 is not UTF-8"),
        (os.urandom(1000) + b"\xff", "is not UTF-8|is not TOML"),
        (b"#" * 10**6 + b"#", "is no sweep file: it has over 1,000,000 bytes; write grids in"),
        (b"\n" + b"a." * 499_000 + b"a = 1", "line 2: a key of over 16 parts joined by dots means"),
    ],
)  # fmt: skip
def test_hostile_files_are_refused_in_one_sentence(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    started = time.process_time()
    with pytest.raises(ValueError, match=sentence) as caught:
        read_sweep_file(path, (BYTES,), "float32")
    assert str(caught.value).startswith("mine.toml ")
    assert len(str(caught.value)) < 300
    assert time.process_time() - started < 20


def test_a_file_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "mine.toml", "wb") as file:
        file.truncate(1 << 43)  # 8 TB of nothing, which take no space
    with pytest.raises(ValueError, match="is no sweep file: it has over 1,000,000 bytes"):
        read_sweep_file(tmp_path / "mine.toml", (BYTES,), "float32")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.toml")
    with pytest.raises(ValueError, match=r"^mine\.toml is no sweep file: it is a pipe or a device"):
        read_sweep_file(tmp_path / "mine.toml", (BYTES,), "float32")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    key=st.sampled_from(
        ["depth", "head", "dropout", "attention", "data", "match", "seeds", "wide"]
    ),
    value=st.recursive(
        st.sampled_from(
            ["1", "0", "-1", "1e999", "nan", "'x'", "true", "07:32:00", "0xfff", "2.5", '"\\u0000"']
        ),
        lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        max_leaves=6,
    ),
    table=st.sampled_from(["", "[base]\n", "[[grid]]\n", "[[list]]\n"]),
)
def test_any_value_gives_a_sweep_or_a_sentence_with_a_line(
    tmp_path: Path, key: str, value: str, table: str
) -> None:
    text = f"{table}{key} = {value}\n" + ("" if "[[" in table else GRID)
    try:
        said = "" if sweep_of(tmp_path, text).specs else "nothing"
    except ValueError as problem:
        said = str(problem)
    assert not said or said.startswith("mine.toml line ")
