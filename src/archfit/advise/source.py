"""The data that advice is about: prepared or found, and what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archfit.advise.plan_request import DataFacts, VocabularySize
from archfit.data.fasta import NO_NUCLEOTIDES, Kmers
from archfit.data.kinds import Report, detect_kind
from archfit.data.prepare import MANY_FILES, OtherDataError, prepare
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import DataSettings, guess_kind, is_sample
from archfit.spec import files
from archfit.spec.data_kinds import DATA_KINDS, SAMPLE
from archfit.spec.errors import refusal

FAMILIES = {"text": "text", "images": "pixels", "series": "signal", "abc": "music"}
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
CODE = frozenset(DATA_KINDS["text"].code)
DATA = "data"  # the folder of prepared data within that of the advice
ENERGY = 0.999  # of the co-occurrence that its rank is to hold


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The data that advice is about, as the command line names it."""

    words: str  # a file, a folder, a pattern, hf:NAME, sample, or a prepared folder
    kind: str  # empty: guessed
    vocab: int | None  # None: as the data has it
    heldout: str | None
    field: str | None

    @property
    def is_prepared(self) -> bool:
        """Whether it is a folder that `data prepare` made."""
        return (Path(self.words) / files.DATA).is_file()

    @property
    def name(self) -> str:
        """A word for it: genes for data/genes.fa.gz."""
        word = Path(self.words.removeprefix("hf:").split(":")[0]).name.split(".")[0]
        kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in word)
        return kept.strip("-") or "data"

    @property
    def title(self) -> str:
        """What people call it: the end of its path, unless it is the sample that ships."""
        path = Path(self.words)
        return "the English sample" if is_sample(self.words) else path.name or path.resolve().name


def prepared_source(source: Source, out: Path, report: Report) -> PreparedData:
    """The data set, found or made in `out`; what cannot be read is said with what it looks like."""
    if source.is_prepared:
        options = ("kind", "vocab", "heldout", "field")
        if said := [name for name in options if getattr(source, name)]:
            raise refusal("fixed-source", option=said[0], source=source.words)
        return open_prepared(Path(source.words))
    kind = source.kind or guess_kind(source.words)
    settings = DataSettings(kind=kind, vocab=source.vocab, field=source.field)
    try:
        return prepare(source.words, out, settings, heldout=source.heldout, report=report).data
    except OtherDataError as problem:
        raise refusal("other-source", folder=out.parent) from problem
    except ValueError as problem:
        look = detect_kind(source.words)
        if look is None or look.kind == kind or source.words == SAMPLE:
            raise
        words = {"source": source.words, "like": look.like, "kind": kind, "better": look.kind}
        raise refusal("read-as-other", problem=problem, **words) from problem


def vocabulary_of(data: PreparedData) -> VocabularySize:
    """Its rows, and those that occur."""
    return VocabularySize(size=data.vocab, used=data.description["used_vocab"])


def family_of(data: PreparedData, names: Sequence[str]) -> str | None:
    """The family of the atlas that data are of, by their kind, letters and names of files."""
    kind = data.kind
    if data.units == "letters":
        vocabulary = data.vocabulary()
        is_dna = isinstance(vocabulary, Kmers) and not NO_NUCLEOTIDES & set(vocabulary.alphabet)
        return "DNA" if is_dna else "protein"
    suffixes = [
        [suffix for suffix in Path(name.lower()).suffixes if suffix not in COMPRESSED]
        for name in names
    ]
    is_code = 2 * sum(bool(CODE.intersection(each[-1:])) for each in suffixes) > len(names)
    return "code" if kind in ("text", "bytes") and is_code else FAMILIES.get(kind)


def facts_of(data: PreparedData, source: str | None = None) -> DataFacts:
    """Everything else; `source` is what it was made from, where that is known."""
    described, parts = data.description, data.description.get("input")
    names = [str(part["name"]) for part in parts] if isinstance(parts, list) else []
    name_alone = names[0] if len(names) == 1 and not MANY_FILES.fullmatch(names[0]) else None
    try:
        ranks = described["cooccurrence"]["normalised"]
        cooccurrence = next(int(rank["rank"]) for rank in ranks if rank["energy"] == ENERGY)
    except (KeyError, TypeError, ValueError, StopIteration) as problem:
        raise refusal("no-rank", file=data.folder / "data.json") from problem
    return DataFacts(
        folder=str(data.folder),
        source=source or name_alone,
        knows_path=source is not None,
        kind=data.kind,
        family=family_of(data, names),
        tokens=data.train_tokens,
        bytes_per_token=float(described["bytes_per_token"]),
        cooccurrence_rank=cooccurrence,
    )
