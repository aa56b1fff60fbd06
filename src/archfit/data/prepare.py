"""From a source to a prepared data set, which appears whole or was there already.

The first reading counts and hashes documents and looks at their content; then the split and the
vocabulary are known, and the second reading writes the tokens of both sides.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archfit.data.kinds import HANDLERS, Documents, Report, SourceDocuments, check_tokenizer_file
from archfit.data.prepared import (
    FILES,
    PreparedData,
    mapped_ids,
    named_hash,
    open_prepared,
    sha256,
    work_hash,
    write_description,
)
from archfit.data.shards import FolderAppearedError, ShardWriter, atomic_folder
from archfit.data.sources import SAMPLE_HELDOUT_FILE, DataSettings, is_sample
from archfit.data.split import Divider, NgramSketch, Survey, sampling, split_places
from archfit.data.statistics import cooccurrence, unigram_entropy_bits
from archfit.data.streams import InputFile
from archfit.data.vocabulary import Bpe, Vocabulary, pieces_of, train_bpe, word_cut
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.files import (
    CHECKSUMS,
    HELDOUT_TOKENS,
    TOKENIZER,
    TRAIN_TOKENS,
    remove_stale,
    write_whole,
)
from archfit.spec.lazy_numpy import NDArray

TRAINING_BYTES = 128 << 20  # a tokenizer sees at most this much; its table of words stays small
LISTED_FILES = 100
MANY_FILES = re.compile(r"\d+ files(, most of them \.\w+)?")  # the name that stands for more


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
        return work_hash(settings, [each.hashed().values() for each in sources])

    def write(folder: Path) -> None:
        settle = HANDLERS[settings.kind].settle  # the first block of the source decides for both
        settled = [
            SourceDocuments(each.source, settle(each.settings, sources[0].first_facts), report)
            for each in sources
        ]
        write_data_set(folder, settled, lambda: _origin(settings, settled))

    return find_or_write(out, work=work, write=write, overwrite=overwrite)


def _origin(settings: DataSettings, sources: list[SourceDocuments]) -> dict[str, object]:
    """The settings as given, the input files, and the hash that recognises finished work."""
    files = [list(source.files.values()) for source in sources]
    return {
        "kind": settings.kind,
        "settings": settings.as_json(),
        "input": _listed(files[0]),
        "heldout_input": _listed([file for each in files[1:] for file in each]),
        "image": sources[0].facts or None,
        "work_hash": work_hash(settings, files),
    }


def _listed(files: list[InputFile]) -> list[dict[str, object]]:
    """Each file, or of very many only how many they are, with one hash over theirs."""
    if len(files) > LISTED_FILES:
        size, hashes = sum(file.bytes for file in files), "".join(file.sha256 for file in files)
        ends = [Path(file.name.lower()).suffix for file in files]
        usual = max(ends, key=ends.count)
        most = f", most of them {usual}" if usual and 2 * ends.count(usual) > len(ends) else ""
        files = [InputFile(f"{len(files)} files{most}", size, sha256(hashes))]
    return [dataclasses.asdict(file) for file in files]


def find_or_write(
    out: Path, *, work: Callable[[], str], write: Callable[[Path], None], overwrite: bool
) -> Preparation:
    """The data set in `out`: found there, if its work has the hash `work`, or written now."""
    remove_stale(out.resolve())
    there = _what_is_there(out, overwrite=overwrite)
    if there is None:
        try:
            with atomic_folder(out, overwrite=overwrite) as folder:
                write(folder)
            return Preparation(open_prepared(out), already_there=False)
        except FolderAppearedError:  # another process was faster; was it the same work?
            there = open_prepared(out)
    if there.description["work_hash"] == work():
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


def write_data_set(
    folder: Path, sources: Sequence[Documents], about: Callable[[], dict[str, object]]
) -> None:
    """Everything a data set consists of, data.json last.

    Everything is read once, which decides the split and the vocabulary, then encoded and written;
    `about` is what the tokens do not say, known when all was read.
    """
    main, settings = sources[0], sources[0].settings
    line_ends = b"\r\n" if DATA_KINDS[settings.kind].units == "bytes" else b""
    surveys = [Survey(line_ends) for _ in sources]
    read = (_surveyed(each, found, main) for each, found in zip(sources, surveys, strict=True))
    chosen = HANDLERS[settings.kind].vocabulary(settings, itertools.chain.from_iterable(read))
    places, split = split_places(*surveys)
    vocabulary = chosen or _trained_bpe(main, places[0], surveys[0].bytes)
    train, sides, leakage = _write_tokens(folder, sources, surveys, places, vocabulary)
    origin, tokenizer = about(), vocabulary.as_json()
    write_whole(folder / TOKENIZER, tokenizer.encode())
    ranks = cooccurrence(mapped_ids(folder / TRAIN_TOKENS, train.dtype.name))
    description = (
        origin
        | {"documents": sum(len(found.lengths) for found in surveys)}
        | _described(vocabulary, tokenizer, train, sides)
        | {"cooccurrence": ranks, "split": split, "leakage": leakage}
        | {"warnings": _size_warnings(settings, vocabulary)}
        | origin
    )
    write_description(folder, description)


def _surveyed(source: Documents, found: Survey, main: Documents) -> Iterator[bytes]:
    """The content of a source; one that holds nothing, or other images, is refused at its end."""
    yield from found.read(source.blocks("reading"))
    if not found.bytes:
        rule = f"is empty: it holds no document of kind {source.settings.kind}"
        raise ValueError(f"{source.source!r} {rule}; give another source or --kind")
    if source.facts != main.facts:
        rule = f"has images of another size than {main.source!r}"
        raise ValueError(f"{source.source!r} {rule}; crop or resize them")


def _trained_bpe(source: Documents, places: NDArray[np.int64], content: int) -> Bpe:
    """A BPE learnt from the training side, of which it sees blocks evenly spread if it is large."""
    every = -(-content // TRAINING_BYTES)

    def texts() -> Iterator[str]:
        divider = Divider(places, word_cut)
        for number, block in enumerate(source.blocks("training the tokenizer")):
            train, _ = divider.divide(block)
            for part in train.parts if number % every == 0 else ():
                yield from pieces_of(part)

    assert source.settings.vocab is not None  # without a size there is nothing to train
    return train_bpe(texts(), source.settings.vocab)


def _write_tokens(
    folder: Path,
    sources: Sequence[Documents],
    surveys: list[Survey],
    places: list[NDArray[np.int64]],
    vocabulary: Vocabulary,
) -> tuple[ShardWriter, dict[str, dict[str, Any]], dict[str, Any]]:
    """The second reading: documents divided, encoded and written, with n-grams noted on the way.

    What counted the training tokens, what was written of both sides, and the leakage.
    """
    content, unit = sum(found.bytes for found in surveys), vocabulary.unit_bytes
    dividers = [Divider(each, vocabulary.cut) for each in places]
    sketches = [NgramSketch(unit, sampling(content, unit)) for _ in range(2)]
    with (
        ShardWriter(folder / TRAIN_TOKENS, vocabulary.size) as train,
        ShardWriter(folder / HELDOUT_TOKENS, vocabulary.size) as heldout,
    ):
        for source, divider in zip(sources, dividers, strict=True):
            for block in source.blocks("encoding"):
                sides = zip((train, heldout), sketches, divider.divide(block), strict=True)
                for shard, sketch, part in sides:
                    if part.parts:
                        shard.write(vocabulary.encode(part))
                        sketch.add(part)
        if not train.tokens or not heldout.tokens:
            rule = f"is too small ({content} bytes of content) to hold out 5 % of it"
            raise ValueError(f"{sources[0].source!r} {rule}; give more, or a --heldout source")
        written = {
            "train": train.finish([divider.train for divider in dividers]),
            "heldout": heldout.finish([divider.heldout for divider in dividers]),
        }
    write_whole(folder / CHECKSUMS, bytes(train.checksums + heldout.checksums))
    first, *others = (np.array(found.digests, np.uint64) for found in surveys)
    shared = sum(int(np.isin(other, first).sum()) for other in others)
    return train, written, sketches[1].leakage(sketches[0], shared)


def _described(
    vocabulary: Vocabulary, tokenizer: str, train: ShardWriter, sides: dict[str, dict[str, Any]]
) -> dict[str, object]:
    """What depends on the tokens alone; the statistics are those of the training side."""
    tokens, content = (sum(side[key] for side in sides.values()) for key in ("tokens", "bytes"))
    used = int((train.counts > 0).sum())
    described = {
        "vocabulary": vocabulary.name,
        "vocab": vocabulary.size,
        "used_vocab": used,
        "embedding_rank_limit": used,  # rows that never occur are never trained
        "separator": vocabulary.separator,
        "dtype": train.dtype.name,
        "tokens": tokens,
        "bytes": content,
        "bytes_per_token": content / tokens,
        "unigram_entropy_bits": unigram_entropy_bits(train.counts),
        **sides,
        "tokenizer_sha256": sha256(tokenizer),
    }
    return described | {"data_hash": named_hash(described)}


def _size_warnings(settings: DataSettings, vocabulary: Vocabulary) -> list[str]:
    """What to tell a user who asked for more tokens than the data has."""
    is_bpe = isinstance(vocabulary, Bpe)
    wanted = settings.vocab if is_bpe else settings.clusters or settings.bins
    have = vocabulary.size if is_bpe else vocabulary.separator
    if wanted is None or have is None or have >= wanted:
        return []
    return [f"the data has only {have} of the {wanted} tokens, colours or bins asked for"]
