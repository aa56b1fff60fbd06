"""From readings of documents to the files of a data set: vocabulary, encoding, statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.data.bpe import TRAINING_BYTES, pieces_of, train_bpe, word_cut
from archfit.data.description import as_text, described_ranks, described_split, described_tokens
from archfit.data.encode import WrittenSide, write_sides
from archfit.data.leakage import NgramSketch, compare, sampling
from archfit.data.prepared import DESCRIPTION, TOKENIZER, mapped_ids
from archfit.data.shards import dtype_for, write_text
from archfit.data.split import BY_SOURCE, Divider, split_places
from archfit.data.statistics import cooccurrence
from archfit.data.survey import survey
from archfit.data.vocabulary_choice import (
    choose_vocabulary,
    gatherer_for,
    ngram_unit,
    size_warnings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.reading import Documents
    from archfit.data.survey import Survey
    from archfit.data.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """What is decided before anything is encoded."""

    readings: Sequence[Documents]
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


def write_data_set(folder: Path, examined: Examined, about: dict[str, object]) -> None:
    """Everything a data set consists of, data.json last; `about` is what tokens do not say."""
    train, heldout = _encode(folder, examined)
    vocabulary, tokenizer = examined.vocabulary, examined.vocabulary.as_json()
    write_text(folder / TOKENIZER, tokenizer)
    ids = mapped_ids(folder / "train.bin", dtype_for(vocabulary.size))
    description = (
        about
        | {"documents": sum(len(one.lengths) for one in examined.surveys)}
        | described_tokens(vocabulary, tokenizer, train, heldout)
        | described_ranks(cooccurrence(ids))
        | described_split(
            examined.rule, compare(train.sketch, heldout.sketch, examined.shared_documents())
        )
        | {"warnings": size_warnings(examined.readings[0].settings, vocabulary)}
        | about
    )
    write_text(folder / DESCRIPTION, as_text(description))


def examine(readings: Sequence[Documents]) -> Examined:
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
    return Examined(
        readings=readings, surveys=surveys, places=places, rule=rule, vocabulary=vocabulary
    )


def _places(surveys: list[Survey]) -> tuple[list[NDArray[np.int64]], str]:
    if len(surveys) == 1:
        places, rule = split_places(surveys[0])
        return [places], rule
    return [surveys[0].lengths, surveys[1].lengths * 0], BY_SOURCE


def _trained(reading: Documents, places: NDArray[np.int64], content: int) -> Vocabulary:
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


def _encode(folder: Path, examined: Examined) -> tuple[WrittenSide, WrittenSide]:
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
