"""From a source to a prepared data set, which appears whole or was there already.

The first reading counts and hashes documents and looks at their content; then the split and the
vocabulary are known, and the second reading writes the tokens of both sides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.bpe import PIECE_BYTES, TRAINING_BYTES, Bpe, pieces_of, train_bpe, word_cut
from archfit.data.kinds import HANDLERS, Documents, Report, SourceDocuments, hash_inputs
from archfit.data.prepared import (
    FILES,
    PreparedData,
    described_origin,
    described_split,
    described_tokens,
    description_text,
    mapped_ids,
    open_prepared,
    work_hash,
)
from archfit.data.shards import FolderAppearedError, ShardWriter, WrittenShard, atomic_folder
from archfit.data.sources import SAMPLE_HELDOUT_FILE, DataSettings, is_sample
from archfit.data.split import Divider, Leakage, NgramSketch, Survey, sampling, split_places, survey
from archfit.data.statistics import cooccurrence
from archfit.data.tokenizer_files import check_tokenizer_file
from archfit.data.vocabulary import Vocabulary
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.files import DATA, HELDOUT_TOKENS, TOKENIZER, TRAIN_TOKENS, write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Preparation:
    """A prepared data set, and whether it was there already."""

    data: PreparedData
    already_there: bool


class OtherDataError(ValueError):
    """Where the data set should be lies something else."""


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


def prepare(
    source: str,
    out: Path,
    settings: DataSettings,
    *,
    heldout: str | None = None,
    overwrite: bool = False,
    report: Report = silent,
) -> Preparation:
    """The data set of `source` in the folder `out`, made now or found there finished.

    `heldout` is a source of its own for the held-out side; without it the split is by content.
    """
    if heldout is None and is_sample(source):
        heldout = str(SAMPLE_HELDOUT_FILE)
    sources = [SourceDocuments(source, settings, report)]
    if heldout is not None:
        other = dataclasses.replace(settings, field=settings.heldout_field or settings.field)
        sources.append(SourceDocuments(heldout, other, report))
    folder = Path(source).resolve()
    is_inside = folder.is_dir() and out.resolve().is_relative_to(folder)
    if is_inside and DATA_KINDS[settings.kind].reads_shards:  # a later run would read it
        rule = f"lies inside {source!r}, all of whose files are read"
        raise ValueError(f"--out {str(out)!r} {rule}; choose a folder outside")
    if settings.tokenizer is not None:
        check_tokenizer_file(settings.tokenizer)

    def work() -> str:
        files = [hash_inputs(each.source, each.settings).values() for each in sources]
        return work_hash(settings, files)

    def write(folder: Path) -> None:
        settle = HANDLERS[settings.kind].settle  # the first block of the source decides for both
        settled = [
            SourceDocuments(each.source, settle(each.settings, sources[0].first_facts), report)
            for each in sources
        ]
        examined = examine(settled)
        write_data_set(folder, examined, described_origin(settings, settled))

    return find_or_write(out, work=work, write=write, overwrite=overwrite)


def find_or_write(
    out: Path, *, work: Callable[[], str], write: Callable[[Path], None], overwrite: bool
) -> Preparation:
    """The data set in `out`: found there, if its work has the hash `work`, or written now."""
    if there := _what_is_there(out, overwrite=overwrite):
        return _same_work(there, work())
    try:
        with atomic_folder(out, overwrite=overwrite) as folder:
            write(folder)
    except FolderAppearedError:  # another process was faster; was it the same work?
        return _same_work(open_prepared(out), work())
    return Preparation(open_prepared(out), already_there=False)


def _same_work(there: PreparedData, work: str) -> Preparation:
    """The data set that is there, if it is what would be made."""
    if there.description["work_hash"] == work:
        return Preparation(there, already_there=True)
    rule = f"{str(there.folder)!r} holds a data set made from other data or settings"
    raise OtherDataError(f"{rule}; use --overwrite to replace it, or choose another --out")


def _what_is_there(out: Path, *, overwrite: bool) -> PreparedData | None:
    """The data set in `out`, or None where one may be put; a folder of anything else is refused."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    if overwrite and out.is_dir() and {path.name for path in out.iterdir()} <= FILES:
        return None  # a data set, perhaps a damaged one, and nothing else
    try:
        if not overwrite:
            return open_prepared(out)
    except (ValueError, NotADirectoryError) as problem:
        way_out = "choose another --out, or --overwrite if it is a damaged one"
        rule = f"{str(out)!r} exists and is not a complete data set"
        raise OtherDataError(f"{rule}; {way_out}") from problem
    raise ValueError(f"{str(out)!r} holds other things than a data set; choose another --out")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExaminedDocuments:
    """What is decided before anything is encoded."""

    sources: Sequence[Documents]
    surveys: list[Survey]
    places: list[NDArray[np.int64]]  # for each source: bytes for training, document by document
    rule: str
    vocabulary: Vocabulary


def examine(sources: Sequence[Documents]) -> ExaminedDocuments:
    """Read everything once, then split and choose the vocabulary."""
    main, settings = sources[0], sources[0].settings
    builder = HANDLERS[settings.kind].builder(settings)
    line_ends = b"\r\n" if DATA_KINDS[settings.kind].units == "bytes" else b""
    surveys = [survey(each.blocks("reading"), builder.add, line_ends) for each in sources]
    for each, found in zip(sources, surveys, strict=True):
        if not found.bytes:
            rule = f"is empty: it holds no document of kind {settings.kind}"
            raise ValueError(f"{each.source!r} {rule}; give another source or --kind")
        if each.facts != main.facts:
            rule = f"has images of another size than {main.source!r}"
            raise ValueError(f"{each.source!r} {rule}; crop or resize them")
    places, rule = split_places(*surveys)
    vocabulary = builder.build() or _trained_bpe(main, places[0], surveys[0].bytes)
    return ExaminedDocuments(
        sources=sources, surveys=surveys, places=places, rule=rule, vocabulary=vocabulary
    )


def _trained_bpe(source: Documents, places: NDArray[np.int64], content: int) -> Bpe:
    """A BPE learnt from the training side, of which it sees blocks evenly spread if it is large."""
    every = -(-content // TRAINING_BYTES)

    def texts() -> Iterator[str]:
        divider = Divider(places, word_cut)
        for number, block in enumerate(source.blocks("training the tokenizer")):
            train, _ = divider.divide(block)
            for part in train.parts if number % every == 0 else ():
                yield from (piece.decode() for piece in pieces_of(part, PIECE_BYTES))

    assert source.settings.vocab is not None  # without a size there is nothing to train
    return train_bpe(texts(), source.settings.vocab)


def write_data_set(folder: Path, examined: ExaminedDocuments, about: dict[str, object]) -> None:
    """Everything a data set consists of, data.json last; `about` is what tokens do not say."""
    train, heldout, leakage = _write_tokens(folder, examined)
    vocabulary, tokenizer = examined.vocabulary, examined.vocabulary.as_json()
    write_whole(folder / TOKENIZER, tokenizer.encode())
    ranks = cooccurrence(mapped_ids(folder / TRAIN_TOKENS, train.dtype))
    description = (
        about
        | {"documents": sum(len(found.lengths) for found in examined.surveys)}
        | described_tokens(vocabulary, tokenizer, train, heldout)
        | {"cooccurrence": dataclasses.asdict(ranks)}
        | described_split(examined.rule, leakage)
        | {"warnings": _size_warnings(examined.sources[0].settings, vocabulary)}
        | about
    )
    write_whole(folder / DATA, description_text(description).encode())


def _size_warnings(settings: DataSettings, vocabulary: Vocabulary) -> list[str]:
    """What to tell a user who asked for more tokens than the data has."""
    is_bpe = isinstance(vocabulary, Bpe)
    wanted = settings.vocab if is_bpe else settings.clusters or settings.bins
    have = vocabulary.size if is_bpe else vocabulary.separator
    if wanted is None or have is None or have >= wanted:
        return []
    return [f"the data has only {have} of the {wanted} tokens, colours or bins asked for"]


def _write_tokens(
    folder: Path, examined: ExaminedDocuments
) -> tuple[WrittenShard, WrittenShard, Leakage]:
    """The second reading: documents divided, encoded and written, with n-grams noted on the way."""
    import numpy as np

    vocabulary, unit = examined.vocabulary, examined.vocabulary.unit_bytes
    content = sum(found.bytes for found in examined.surveys)
    dividers = [Divider(places, vocabulary.cut) for places in examined.places]
    one_in = sampling(content, unit)
    sketches = NgramSketch(unit, one_in), NgramSketch(unit, one_in)
    with (
        ShardWriter(folder / TRAIN_TOKENS, vocabulary.size) as train,
        ShardWriter(folder / HELDOUT_TOKENS, vocabulary.size) as heldout,
    ):
        for source, divider in zip(examined.sources, dividers, strict=True):
            for block in source.blocks("encoding"):
                sides = zip((train, heldout), sketches, divider.divide(block), strict=True)
                for shard, sketch, part in sides:
                    if part.parts:
                        shard.write(vocabulary.encode(part))
                        sketch.add(part)
        if not train.tokens or not heldout.tokens:
            rule = f"is too small ({content} bytes of content) to hold out 5 % of it"
            main = examined.sources[0].source
            raise ValueError(f"{main!r} {rule}; give more, or a --heldout source")
        learnt = train.finish([divider.train for divider in dividers])
        held = heldout.finish([divider.heldout for divider in dividers])
    digests = [found.digests for found in examined.surveys]
    shared = int(np.isin(digests[1], digests[0]).sum()) if len(digests) > 1 else 0
    return learnt, held, sketches[1].leakage(sketches[0], shared)
