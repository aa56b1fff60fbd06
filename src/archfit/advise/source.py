"""The data of an advice: a prepared folder as it is, anything else prepared for it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from archfit.data.looks import look_at
from archfit.data.prepare import OtherDataError, prepare
from archfit.data.prepared import DESCRIPTION, PreparedData, open_prepared
from archfit.data.settings import Settings
from archfit.data.sources import SAMPLE, guess_kind

Report = Callable[[str, int, int], None]  # stage, bytes read, bytes in all


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What somebody wants advice on."""

    words: str  # a file, a folder, a pattern, hf:NAME, sample, or a prepared folder
    kind: str  # empty: guessed
    vocab: int | None  # None: as the data has it
    heldout: str | None
    field: str | None

    @property
    def is_prepared(self) -> bool:
        """Whether it is a folder that `data prepare` made."""
        return (Path(self.words) / DESCRIPTION).is_file()

    @property
    def name(self) -> str:
        """A word for it: genes for data/genes.fa.gz."""
        word = Path(self.words.removeprefix("hf:").split(":")[0]).name.split(".")[0]
        kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in word)
        return kept.strip("-") or "data"


def prepared_source(source: Source, out: Path, report: Report) -> PreparedData:
    """The data set, found or made in `out`; what cannot be read is said with what it looks like."""
    if source.is_prepared:
        return _as_it_is(source)
    kind = source.kind or guess_kind(source.words)
    settings = Settings(kind=kind, vocab=source.vocab, field=source.field)
    try:
        return prepare(source.words, out, settings, heldout=source.heldout, report=report).data
    except OtherDataError as problem:
        raise ValueError(
            f"{out.parent} holds the advice on other data or settings; use another --out"
        ) from problem
    except ValueError as problem:
        raise _explained(problem, source, kind) from problem


def _as_it_is(source: Source) -> PreparedData:
    given = {
        "--kind": source.kind,
        "--vocab": source.vocab,
        "--heldout": source.heldout,
        "--field": source.field,
    }
    if said := [option for option, value in given.items() if value]:
        raise ValueError(
            f"{said[0]} cannot change {source.words}, which is prepared already; leave it out, or "
            "give the source"
        )
    return open_prepared(Path(source.words))


def _explained(problem: ValueError, source: Source, kind: str) -> ValueError:
    """The same refusal, with the kind that might work."""
    look = look_at(source.words)
    if look is None or look.kind == kind or source.words == SAMPLE:
        return problem
    return ValueError(
        f"{problem}; {source.words} looks like {look.like}, and was read as {kind}: "
        f"try --kind {look.kind}"
    )
