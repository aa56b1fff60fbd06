"""From a source to a prepared data set: survey, vocabulary, encoding, statistics, one rename."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.bpe import TRAINING_BYTES, pieces_of, train_bpe, word_cut
from archfit.data.description import (
    as_text,
    described_origin,
    described_ranks,
    described_split,
    described_tokens,
    work_hash,
)
from archfit.data.encode import WrittenSide, write_sides
from archfit.data.images import GREY
from archfit.data.leakage import NgramSketch, compare, sampling
from archfit.data.prepared import (
    DESCRIPTION,
    FILES,
    TOKENIZER,
    PreparedData,
    mapped_ids,
    open_prepared,
)
from archfit.data.readers import hash_inputs
from archfit.data.reading import Reading
from archfit.data.shards import AppearedError, appearing_folder, dtype_for, write_text
from archfit.data.sources import SAMPLE_HELDOUT_FILE, is_sample
from archfit.data.split import BY_SOURCE, Divider, split_places
from archfit.data.statistics import cooccurrence
from archfit.data.survey import survey
from archfit.data.vocabulary_choice import (
    check_tokenizer_file,
    choose_vocabulary,
    gatherer_for,
    ngram_unit,
    settled,
    size_warnings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.reading import Report
    from archfit.data.settings import Settings
    from archfit.data.survey import Survey
    from archfit.data.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Outcome:
    """A prepared data set, and whether it was there already."""

    data: PreparedData
    already_there: bool


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


def prepare(
    source: str,
    out: Path,
    settings: Settings,
    *,
    heldout: str | None = None,
    overwrite: bool = False,
    report: Report = silent,
) -> Outcome:
    """The data set of `source` in the folder `out`, made now or found there finished.

    `heldout` is a source of its own for the held-out side; without it the split is by content.
    """
    if heldout is None and is_sample(source):
        heldout = str(SAMPLE_HELDOUT_FILE)
    readings = [Reading(source, settings, report)]
    if heldout is not None:
        other = dataclasses.replace(settings, field=settings.heldout_field or settings.field)
        readings.append(Reading(heldout, other, report))
    _refuse_own_output(source, out, settings.kind)
    if settings.tokenizer is not None:
        check_tokenizer_file(settings.tokenizer)
    if there := _what_is_there(out, overwrite=overwrite):
        return _same_work(there, readings)
    try:
        with appearing_folder(out, overwrite=overwrite) as folder:
            _write(folder, readings)
    except AppearedError:  # another process was faster; was it the same work?
        return _same_work(open_prepared(out), readings)
    return Outcome(open_prepared(out), already_there=False)


def _same_work(there: PreparedData, readings: list[Reading]) -> Outcome:
    """The data set that is there, if it is what would be made."""
    if there.description["work_hash"] == _work_hash(readings):
        return Outcome(there, already_there=True)
    raise ValueError(
        f"{str(there.folder)!r} holds a data set made from other data or settings; "
        "use --overwrite to replace it, or choose another --out"
    )


def _refuse_own_output(source: str, out: Path, kind: str) -> None:
    """Refuse to write where a later run, reading every file of the source, would find it."""
    folder = Path(source).resolve()
    if kind in ("bytes", "tokens") and folder.is_dir() and out.resolve().is_relative_to(folder):
        raise ValueError(
            f"--out {str(out)!r} lies inside {source!r}, all of whose files are read; "
            "choose a folder outside"
        )


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
        raise ValueError(
            f"{str(out)!r} exists and is not a complete data set; choose another --out, or "
            "--overwrite if it is a damaged one"
        ) from problem
    raise ValueError(f"{str(out)!r} holds other things than a data set; choose another --out")


def _work_hash(readings: list[Reading]) -> str:
    files = [hash_inputs(reading.source, reading.settings).values() for reading in readings]
    return work_hash(readings[0].settings, files)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Examined:
    """What is decided before anything is encoded."""

    readings: list[Reading]
    surveys: list[Survey]
    places: list[NDArray[np.int64]]  # for each reading: bytes for training, document by document
    rule: str
    vocabulary: Vocabulary

    def shared_documents(self) -> int:
        """Held-out documents that the training source has too; a split by content has none."""
        import numpy as np

        if len(self.surveys) == 1:
            return 0
        return int(np.isin(self.surveys[1].digests, self.surveys[0].digests).sum())


def _write(folder: Path, readings: list[Reading]) -> None:
    """Everything a data set consists of, data.json last."""
    examined = _examine(_settled_readings(readings))
    train, heldout = _encode(folder, examined)
    vocabulary, tokenizer = examined.vocabulary, examined.vocabulary.as_json()
    write_text(folder / TOKENIZER, tokenizer)
    ids = mapped_ids(folder / "train.bin", dtype_for(vocabulary.size))
    description = (
        described_origin(readings[0].settings, examined.readings)
        | {"documents": sum(len(one.lengths) for one in examined.surveys)}
        | described_tokens(vocabulary, tokenizer, train, heldout)
        | described_ranks(cooccurrence(ids))
        | described_split(
            examined.rule, compare(train.sketch, heldout.sketch, examined.shared_documents())
        )
        | {"warnings": size_warnings(examined.readings[0].settings, vocabulary)}
    )
    write_text(folder / DESCRIPTION, as_text(description))


def _settled_readings(readings: list[Reading]) -> list[Reading]:
    """The same readings, told whether images are grey or coloured: the first image decides."""
    main = readings[0]
    if main.settings.kind == "images":
        next(main.blocks("reading"), None)
    channels = main.facts.get("channels", GREY)
    return [
        Reading(reading.source, settled(reading.settings, channels), reading.report)
        for reading in readings
    ]


def _examine(readings: list[Reading]) -> _Examined:
    """Read everything once, then split and choose the vocabulary."""
    settings = readings[0].settings
    gathered = gatherer_for(settings)
    ends = b"\r\n" if settings.kind in ("text", "bytes", "abc") else b""
    surveys = [survey(reading.blocks("reading"), gathered, ends) for reading in readings]
    for reading, one in zip(readings, surveys, strict=True):
        if not one.bytes:
            raise ValueError(
                f"{reading.source!r} is empty: it holds no document of kind {settings.kind}; "
                "give another source or --kind"
            )
        if reading.facts != readings[0].facts:
            raise ValueError(
                f"{reading.source!r} has images of another size than {readings[0].source!r}; "
                "crop or resize them"
            )
    places, rule = _places(surveys)
    vocabulary = choose_vocabulary(settings, gathered)
    if vocabulary is None:
        vocabulary = _trained(readings[0], places[0], surveys[0].bytes)
    return _Examined(
        readings=readings, surveys=surveys, places=places, rule=rule, vocabulary=vocabulary
    )


def _places(surveys: list[Survey]) -> tuple[list[NDArray[np.int64]], str]:
    if len(surveys) == 1:
        places, rule = split_places(surveys[0])
        return [places], rule
    return [surveys[0].lengths, surveys[1].lengths * 0], BY_SOURCE


def _trained(reading: Reading, places: NDArray[np.int64], content: int) -> Vocabulary:
    """A BPE learnt from the training side, of which it sees blocks evenly spread if it is large."""
    every = -(-content // TRAINING_BYTES)

    def texts() -> Iterator[str]:
        divider = Divider(places, word_cut)
        for number, block in enumerate(reading.blocks("training the tokenizer")):
            train, _ = divider.divide(block)
            if number % every == 0:
                yield from (piece.decode() for part in train.parts for piece in pieces_of(part))

    vocab = reading.settings.vocab
    assert vocab is not None  # without a size there is nothing to train
    return train_bpe(texts(), vocab)


def _encode(folder: Path, examined: _Examined) -> tuple[WrittenSide, WrittenSide]:
    unit = ngram_unit(examined.readings[0].settings)
    content = sum(one.bytes for one in examined.surveys)
    train, heldout = write_sides(
        folder,
        examined.vocabulary,
        list(zip(examined.readings, examined.places, strict=True)),
        lambda: NgramSketch(unit, sampling(content, unit)),
    )
    if not train.tokens or not heldout.tokens:
        raise ValueError(
            f"{examined.readings[0].source!r} is too small ({content} bytes of content) "
            "to hold out 5 % of it; give more, or a --heldout source"
        )
    return train, heldout
