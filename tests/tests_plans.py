"""Questions that tests of several rooms ask."""

from archfit.advise.plan_request import BlockParams, Budget, PlanRequest, VocabularySize


def question(
    budget: Budget | int = 10**8,
    *,
    vocab: int | None = 50257,
    rank: int | None = None,
    patch: tuple[int, ...] | None = None,
    max_depth: int = 128,
    multiple_of: int | None = None,
) -> PlanRequest:
    """A question with the usual answers to what a test does not care about."""
    return PlanRequest(
        budget=BlockParams(params=budget) if isinstance(budget, int) else budget,
        vocabulary=None if vocab is None else VocabularySize(size=vocab, used=vocab),
        rank=rank,
        patch=patch,
        context=1024,
        is_tied=False,
        max_depth=max_depth,
        multiple_of=multiple_of,
        tokens_per_param=20,
        data=None,
    )
