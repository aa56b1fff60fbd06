"""What a plan must know of a prepared data set."""

from archfit.data.prepared import PreparedData
from archfit.plan.request import DataFacts, Vocabulary

ENERGY = 0.999  # of the co-occurrence that its rank is to hold


def vocabulary_of(data: PreparedData) -> Vocabulary:
    """Its rows, and those that occur."""
    used = data.description["used_vocab"]
    if type(used) is not int:
        raise ValueError(f"used_vocab={used!r} in data.json is no whole number; prepare it again")
    return Vocabulary(size=data.vocab, used=used)


def facts_of(data: PreparedData, source: str | None = None) -> DataFacts:
    """Everything else; `source` is what it was made from, where that is known."""
    described = data.description
    train, files = described["train"], described.get("input")
    names = [str(file["name"]) for file in files] if isinstance(files, list) else []
    name_alone = names[0] if len(names) == 1 else None
    return DataFacts(
        folder=str(data.folder),
        source=source or name_alone,
        knows_path=source is not None,
        kind=str(described["kind"]),
        tokens=int(train["tokens"]) if isinstance(train, dict) else 0,
        cooccurrence_rank=_cooccurrence_rank(data),
    )


def _cooccurrence_rank(data: PreparedData) -> int:
    try:
        ranks = data.description["cooccurrence"]["normalised"]  # type: ignore[index]
        return next(int(one["rank"]) for one in ranks if one["energy"] == ENERGY)
    except (KeyError, TypeError, ValueError, StopIteration) as problem:
        raise ValueError(
            f"{data.folder / 'data.json'} has no co-occurrence rank; prepare it again"
        ) from problem
