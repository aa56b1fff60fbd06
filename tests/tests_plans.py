"""Questions that tests of several rooms ask."""

from archfit.advise.budgets import Budget
from archfit.advise.plan_request import DataFacts, PlanRequest, VocabularySize


def question(  # noqa: PLR0913 - one for each thing that a test may care about
    budget: Budget | int = 10**8,
    *,
    vocab: int | None = 50257,
    rank: int | None = None,
    patch: tuple[int, ...] | None = None,
    max_depth: int = 128,
    multiple_of: int | None = None,
    family: str | None = None,
) -> PlanRequest:
    """A question with the usual answers to what a test does not care about."""
    return PlanRequest(
        budget=Budget(kind="block_params", amount=budget) if isinstance(budget, int) else budget,
        vocabulary=None if vocab is None else VocabularySize(size=vocab, used=vocab),
        rank=rank,
        patch=patch,
        context=1024,
        is_tied=False,
        max_depth=max_depth,
        multiple_of=multiple_of,
        tokens_per_param=20,
        data=None,
        family=family,
    )


def facts(
    kind: str = "text",
    *,
    folder: str = "d",
    source: str | None = "s",
    tokens: int = 10**6,
    family: str | None = None,
) -> DataFacts:
    """What a prepared data set of this kind says."""
    return DataFacts(
        folder=folder,
        source=source,
        knows_path=False,
        kind=kind,
        family=family,
        tokens=tokens,
        bytes_per_token=1.0,
        cooccurrence_rank=5,
    )
