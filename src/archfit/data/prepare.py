"""From a source to a prepared data set, which appears whole or was there already.

The first reading counts and hashes documents and looks at their content; then the split and the
vocabulary are known, and the second reading writes the tokens of both sides.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from archfit.data import prepared, shards
from archfit.data.kinds import HANDLERS, Documents, Report, SourceDocuments
from archfit.data.prepared import FILES, PreparedData, mapped_ids, named_hash, open_prepared, sha256
from archfit.data.shards import Divider, ShardWriter, Survey
from archfit.data.sources import SAMPLE_HELDOUT_FILE, DataSettings, is_sample
from archfit.data.statistics import cooccurrence, unigram_entropy_bits
from archfit.data.streams import Facts, InputFile
from archfit.data.vocabulary import Vocabulary, pieces_of, tokenizer_text, train_bpe, word_cut
from archfit.spec import files
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import DATA_KINDS
from archfit.spec.errors import refusal, refuse_if
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
    facts: Facts = {}  # the first block of the source decides for both
    sources = [SourceDocuments(source, settings, facts, report)]
    if heldout is not None:
        other = replace(settings, field=settings.heldout_field or settings.field)
        sources.append(SourceDocuments(heldout, other, facts, report))
    documents = [Documents(each.source, settings, facts, each.blocks) for each in sources]
    folder = Path(source).resolve()
    is_inside = folder.is_dir() and out.resolve().is_relative_to(folder)
    is_read = is_inside and DATA_KINDS[settings.kind].reads_shards  # by a later run
    refuse_if(is_read, "out-inside-source", out=repr(str(out)), source=repr(source))
    if settings.tokenizer is not None:
        tokenizer_text(settings.tokenizer)  # refused before anything is read

    def origin() -> dict[str, object]:
        read = [list(each.files.values()) for each in sources]
        return {
            "input": _listed(read[0]),
            "heldout_input": _listed([file for each in read[1:] for file in each]),
            "image": facts or None,
            "work_hash": work_hash(settings, read),
        }

    return find_or_write(
        out,
        work=lambda: work_hash(settings, [each.hashed().values() for each in sources]),
        write=lambda folder: write_data_set(folder, documents, origin),
        overwrite=overwrite,
    )


def work_hash(settings: DataSettings, inputs: Iterable[Iterable[InputFile]]) -> str:
    """The name of a piece of work: equal settings and equal inputs, wherever they lie.

    The end of a file's name decides how it is read: the same bytes as .txt and .jsonl.
    """

    def ending(name: str) -> str:
        return "".join(PurePath(name).suffixes[-2:]).lower()

    tokenizer = settings.tokenizer
    work = {
        "format": prepared.FORMAT_VERSION,
        "settings": settings.as_json(),
        "tokenizer": None if tokenizer is None else sha256(tokenizer_text(tokenizer)),
        "inputs": [[(file.sha256, ending(file.name)) for file in each] for each in inputs],
    }
    return sha256(json.dumps(work, sort_keys=True))


def _listed(inputs: list[InputFile]) -> list[dict[str, object]]:
    """Each file, or of very many only how many they are, with one hash over theirs."""
    if len(inputs) > LISTED_FILES:
        size, hashes = sum(file.bytes for file in inputs), "".join(file.sha256 for file in inputs)
        ends = [Path(file.name.lower()).suffix for file in inputs]
        usual = max(ends, key=ends.count)
        most = f", most of them {usual}" if usual and 2 * ends.count(usual) > len(ends) else ""
        inputs = [InputFile(f"{len(inputs)} files{most}", size, sha256(hashes))]
    return [asdict(file) for file in inputs]


def find_or_write(
    out: Path, *, work: Callable[[], str], write: Callable[[Path], None], overwrite: bool
) -> Preparation:
    """The data set in `out`: found there, if its work has the hash `work`, or written now."""
    files.remove_stale(out.resolve())
    there = out.iterdir() if out.is_dir() else [Path()] * out.exists()  # a file is another thing
    names = {path.name for path in there}
    if overwrite and not names <= FILES:  # a data set may be damaged, but nothing else be there
        raise ValueError(f"{str(out)!r} holds other things than a data set; choose another --out")
    if overwrite or not names:
        try:
            with shards.atomic_folder(out, overwrite=overwrite) as folder:
                write(folder)
            return Preparation(open_prepared(out), already_there=False)
        except shards.FolderAppearedError:  # another process was faster; was it the same work?
            pass
    try:
        found = open_prepared(out)
    except (ValueError, NotADirectoryError) as problem:
        raise OtherDataError(str(refusal("incomplete-data", out=repr(str(out))))) from problem
    if found.description["work_hash"] == work():
        return Preparation(found, already_there=True)
    raise OtherDataError(str(refusal("other-data", out=repr(str(out)))))


def write_data_set(
    folder: Path, sources: Sequence[Documents], origin: Callable[[], dict[str, object]]
) -> None:
    """Everything a data set consists of, data.json last.

    Everything is read once, which decides the split and the vocabulary, then encoded and written;
    `origin` is what the tokens do not say, known when all was read.
    """
    main, settings = sources[0], sources[0].settings
    line_ends = b"\r\n" if DATA_KINDS[settings.kind].units == "bytes" else b""
    surveys = [Survey(line_ends) for _ in sources]
    read = itertools.chain.from_iterable(map(_surveyed, sources, surveys))
    chosen = HANDLERS[settings.kind].vocabulary(settings, read, main.facts)
    places, split = shards.split_places(*surveys)
    vocabulary = chosen or _trained_bpe(main, places[0], sum(surveys[0].lengths))
    sides, train = _write_tokens(folder, sources, surveys, places, vocabulary)
    tokenizer = vocabulary.as_json()
    files.write_whole(folder / files.TOKENIZER, tokenizer.encode())
    tokens, content = (sides["train"][key] + sides["heldout"][key] for key in ("tokens", "bytes"))
    used = int((train.counts > 0).sum())
    description = {
        "format": prepared.FORMAT_VERSION,
        "kind": settings.kind,
        "vocabulary": vocabulary.name,
        "vocab": vocabulary.size,
        "tokens": tokens,
        "bytes": content,
        "documents": sum(len(found.lengths) for found in surveys),
        "settings": settings.as_json(),
        "used_vocab": used,
        "embedding_rank_limit": used,  # rows that never occur are never trained
        "separator": vocabulary.separator,
        "dtype": train.dtype.name,
        "bytes_per_token": content / tokens,
        "unigram_entropy_bits": unigram_entropy_bits(train.counts),
        **sides,
        "tokenizer_sha256": sha256(tokenizer),
        "cooccurrence": cooccurrence(mapped_ids(folder / files.TRAIN_TOKENS, train.dtype.name)),
        "split": split,
        "warnings": _size_warnings(settings, vocabulary),
        **origin(),
    }
    description["data_hash"] = named_hash(description)
    text = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
    files.write_whole(folder / files.DATA, text.encode())


def _surveyed(source: Documents, found: Survey) -> Iterator[bytes]:
    """The content of a source; one that holds nothing is refused at its end."""
    yield from found.read(source.blocks("reading"))
    named = {"source": repr(source.source), "kind": source.settings.kind}
    refuse_if(not found.lengths, "empty-source", **named)


def _trained_bpe(source: Documents, places: NDArray[np.int64], content: int) -> Vocabulary:
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
) -> tuple[dict[str, Any], ShardWriter]:
    """The second reading: documents divided, encoded and written, with n-grams noted on the way.

    What data.json says of both sides and of the leakage, and what wrote the training side.
    """
    content = sum(sum(found.lengths) for found in surveys)
    one_in = shards.sampling(content, vocabulary.unit_bytes)
    with (
        ShardWriter(folder / files.TRAIN_TOKENS, vocabulary, one_in) as train,
        ShardWriter(folder / files.HELDOUT_TOKENS, vocabulary, one_in) as heldout,
    ):
        for source, each in zip(sources, places, strict=True):
            divider = Divider(each, vocabulary.cut)
            for block in source.blocks("encoding"):
                for shard, part in zip((train, heldout), divider.divide(block), strict=True):
                    shard.add(part)
        is_small, name = not train.bytes or not heldout.bytes, repr(sources[0].source)
        refuse_if(is_small, "small-source", source=name, content=content)
        (trained, checksums), (held, others) = train.finish(), heldout.finish()
    files.write_whole(folder / files.CHECKSUMS, checksums + others)
    first, *rest = (np.array(found.digests, np.uint64) for found in surveys)
    shared = sum(int(np.isin(other, first).sum()) for other in rest)
    leakage = heldout.sketch.leakage(train.sketch, shared)
    return {"train": trained, "heldout": held, "leakage": leakage}, train


def _size_warnings(settings: DataSettings, vocabulary: Vocabulary) -> list[str]:
    """What to tell a user who asked for more tokens than the data has."""
    asked = {
        "bpe": (settings.vocab, vocabulary.size),
        "palette": (settings.count("clusters"), vocabulary.separator),
        "bins": (settings.count("bins"), vocabulary.separator),
    }
    wanted, have = asked.get(vocabulary.name, (None, None))
    if wanted is None or have is None or have >= wanted:
        return []
    return [f"the data has only {have} of the {wanted} tokens, colours or bins asked for"]
