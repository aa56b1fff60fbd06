"""The sweeps that have a name: the papers' experiments and our own, at four scales.

Questions, sizes, vocabularies and seeds stand in resources/named_sweeps.toml; here is how cells
follow from them. At `paper` most cells are those that the papers list, one by one.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

from archfit.spec.packed import packed_table
from archfit.spec.run_options import RunOptions
from archfit.sweep import sweep
from archfit.sweep.sweep import NAMED_SWEEPS, Cell, Corpus, Scale, Sweep, equal_total, recipe_of

BYTES = 257  # the vocabulary of bytes and a separator
PAPERS_VOCAB = 2000  # of all the papers' experiments that do not say otherwise
LEVINE_REPEATS = 3
LEAST_ATLAS_STEPS, FAR_FROM_SIZE, NARROWEST = 600, 0.08, 8
Numbers: TypeAlias = Mapping[str, Any]  # what the table says of a sweep at one scale
Corpora: TypeAlias = Sequence[Corpus]
Cells: TypeAlias = Iterator[Cell]


def sweep_numbers(name: str, scale: Scale) -> dict[str, Any]:
    """What the table says of a sweep at a scale: recipe, vocabularies, seeds, and its own sizes."""
    table = packed_table(NAMED_SWEEPS)
    own, like = table[name], table.get(table[name].get("like"), {})
    parts = table["usual"][scale], like.get(scale, {}), own.get("always", {}), own.get(scale, {})
    return {key: value for part in parts for key, value in part.items()}


def asked() -> Iterator[str]:
    """The names of all sweeps with their questions, a paragraph each."""
    yield from (f"\n\n{name}: {packed_table(NAMED_SWEEPS)[name]['question']}" for name in NAMED)


def _runs(row: Numbers, vocab: int) -> Iterator[dict[str, Any]]:
    """The options of each run that a row of the table stands for: its lists taken apart."""
    caps, ranks = row.get("caps", [()]), row.get("ranks", [None])
    if "ranks" in row:
        ranks = sweep.ranks_below(min(row["width"], vocab), ranks)
    row = {key: value for key, value in row.items() if key not in ("caps", "ranks")}
    lists = {key: value for key, value in row.items() if isinstance(value, list)}
    for *values, rank, fields in product(*lists.values(), ranks, caps):
        yield {**row, **dict(zip(lists, values, strict=True)), **dict.fromkeys(fields, rank)}


def _network(recipe: RunOptions, row: dict[str, Any]) -> RunOptions:
    """The network of a run: a ratio gives the size of its heads, a size of its blocks the width."""
    size, ratio = row.pop("block_params", None), row.pop("attention_ratio", None)
    options = replace(recipe, **row)

    def shaped(width: int) -> RunOptions:
        head_dim = None if ratio is None else ratio * width // options.heads
        return replace(options, width=width, head_dim=head_dim)

    if size is None:
        return shaped(options.width)
    step = options.heads // math.gcd(options.heads, ratio or 1)
    return shaped(
        sweep.nearest_width(lambda width: sweep.block_size(shaped(width)), size, step=step)
    )


def listed(numbers: Numbers, recipe: RunOptions, corpora: Corpora) -> Cells:
    """The networks that the table lists; own data take those of the nearest vocabulary."""
    for corpus in corpora:
        rows = [{"vocab": PAPERS_VOCAB, **row} for row in numbers["runs"]]
        nearest = min((row["vocab"] for row in rows), key=lambda v: abs(v - corpus.vocab))
        for row in rows:
            if row.pop("vocab") == nearest:
                for run in _runs(row, corpus.vocab):
                    yield Cell(corpus, _network(recipe, run))


def repeats(numbers: Numbers, recipe: RunOptions, corpora: Corpora) -> Cells:
    """Architectures that are trained again and again: how much do seeds alone change the loss?

    Levine et al. 2020, table 2 (11 architectures); Wies et al. 2021 (8).
    """
    by_vocab = {corpus.vocab: corpus for corpus in corpora}
    plain = by_vocab.get(PAPERS_VOCAB, corpora[0])
    for row in numbers.get("levine", ()):
        for run in _runs(row, plain.vocab):
            yield Cell(plain, replace(recipe_of("levine"), **run), most_seeds=LEVINE_REPEATS)
    for row in numbers.get("wies", ()):
        options = replace(recipe, **{key: row[key] for key in row if key != "vocab"})
        yield Cell(by_vocab.get(row["vocab"], plain), options)
    for depth, width in numbers.get("shapes", ()):
        yield Cell(corpora[0], replace(recipe, depth=depth, width=width))


def repairs(numbers: Numbers, recipe: RunOptions, corpora: Corpora) -> Cells:
    """A text-shaped network of this vocabulary, and four others of as many parameters.

    Deeper; with a larger vocabulary (BPE, k-mers: the corpora after the first); with patches. All
    see equally many positions; losses compare in bits per byte, and the tokens of a patch are
    predicted at once.
    """
    given, *larger = corpora
    plain = replace(recipe, depth=numbers["depth"], width=numbers["width"])
    params = plain.architecture(given.vocab).params
    yield Cell(given, plain)
    others = [(given, replace(plain, depth=times * plain.depth)) for times in numbers["deeper"]]
    others += [(corpus, plain) for corpus in larger]
    others += [(given, replace(plain, patch=size)) for size in numbers["patches"]]
    for corpus, options in others:
        yield Cell(corpus, equal_total(options, vocab=corpus.vocab, params=params))


def atlas(numbers: Numbers, recipe: RunOptions, corpora: Corpora) -> Cells:
    """All depths at every size, tables included, on every vocabulary (and at every rank of its
    embedding), equally many tokens for each parameter.

    Two heads, or one for every 64 dimensions, as plans choose them; batches that make some 600
    steps or more. A shape that no width brings to its size is left out, and a vocabulary of BPE
    where its tables would be more than half of the network.
    """
    ranks = numbers.get("ranks", [None])
    for corpus, params, depth, rank in product(corpora, numbers["sizes"], numbers["depths"], ranks):
        if rank is not None and rank >= corpus.vocab:
            continue
        tokens = numbers["tokens_a_parameter"] * params
        rows = tokens / (LEAST_ATLAS_STEPS * recipe.context)
        batch = min(numbers["most_rows"], max(1, 2 ** round(math.log2(rows))))
        steps = round(tokens / (batch * recipe.context))
        options = replace(recipe, depth=depth, batch=batch, steps=steps, embedding_inner=rank)
        options = replace(options, evaluate_every=max(1, steps // 10), heads=2)
        options = equal_total(options, vocab=corpus.vocab, params=params)
        if (heads := max(2, round(options.width / 64))) > 2:
            options = equal_total(replace(options, heads=heads), vocab=corpus.vocab, params=params)
        shape = options.architecture(corpus.vocab)
        tables = shape.params - shape.block_params
        is_large = corpus.vocab > BYTES and 2 * tables > shape.params
        is_far = abs(shape.params / params - 1) > FAR_FROM_SIZE
        is_wide = shape.width >= NARROWEST and (rank is None or rank < shape.width)
        if not is_far and not is_large and is_wide:
            most_seeds = 1 if params >= numbers["one_seed_from"] else None
            yield Cell(corpus, options, most_seeds=most_seeds)


CELLS = {"repeats": repeats, "repairs": repairs, "atlas": atlas}  # those of others are listed
NAMED: Mapping[str, Callable[[Numbers, RunOptions, Corpora], Cells]] = {
    name: CELLS.get(row.get("like", name), listed)
    for name, row in packed_table(NAMED_SWEEPS).items()
    if "question" in row
}
ATLAS = tuple(name for name, cells in NAMED.items() if cells is atlas)


def named_sweep(
    name: str, scale: Scale, corpora: Corpora, *, seeds: Sequence[int], changes: Mapping[str, str]
) -> Sweep:
    """The sweep of this name on these data.

    `changes` are fields of every cell that the user sets: precision or learning_rate_rule.
    """
    numbers, question = sweep_numbers(name, scale), packed_table(NAMED_SWEEPS)[name]["question"]
    recipe = replace(recipe_of(numbers["recipe"]), **numbers.get("options", {}))
    if "learning_rate_rule" in changes and recipe.learning_rate == "auto":
        recipe = replace(recipe, learning_rate=None)  # that of the rule
    cells = [
        replace(cell, options=replace(cell.options, **changes))  # type: ignore[arg-type]  # words
        for cell in NAMED[name](numbers, recipe, corpora)
    ]
    specs = sweep.seeded(cells, seeds)
    data = sweep.used_corpora(corpora, specs)
    return Sweep(name=name, scale=scale, question=question, data=data, specs=specs)


def counted_corpora(name: str, scale: Scale) -> tuple[Corpus, ...]:
    """The data that a sweep asks for, where none are at hand and its cells are only counted."""
    wanted = sweep_numbers(name, scale)["vocabularies"]
    usual = {"as given": (BYTES,), "as given and larger": (BYTES, PAPERS_VOCAB)}
    usual["as given and grouped"] = tuple(sweep_numbers(name, scale).get("groups", ()))
    sizes = usual[wanted] if isinstance(wanted, str) else wanted
    corpora = []
    for vocab in sizes:
        label = "bytes" if vocab == BYTES else f"bpe-{vocab}"
        stand_in = f"{vocab:064x}" if len(sizes) > 1 else sweep.NO_DATA
        corpora.append(Corpus(label=label, kind="text", vocab=vocab, hash=stand_in, folder=""))
    return tuple(corpora)
