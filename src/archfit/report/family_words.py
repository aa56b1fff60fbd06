"""Families in words: what sets them apart from one another, and nothing that they share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from archfit.fit.families import FamilyKey
from archfit.spec import Tied


def question_of(key: FamilyKey) -> FamilyKey:
    """The family without its depth: curves of one question are compared."""
    return replace(key, depth=1)


def told_apart(keys: Sequence[FamilyKey], labels: Mapping[str, str]) -> dict[FamilyKey, str]:
    """What to call each of these; `labels` names data sets by their hash."""
    parts = {key: _parts(key, labels) for key in keys}
    columns = list(zip(*parts.values(), strict=True))
    kept = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    return {
        key: ", ".join(words[at] for at in kept if words[at]) or words[1]
        for key, words in parts.items()
    }


def _parts(key: FamilyKey, labels: Mapping[str, str]) -> tuple[str, ...]:
    patch = key.input.tokens_per_position
    label = labels.get(key.data_hash, f"data {key.data_hash[:8]}")
    return (
        f"{label}, vocabulary {key.input.vocab:,}",
        key.words or "full tables",
        f"patches of {patch}" if patch > 1 else "",
        "tied head" if isinstance(key.head, Tied) else "",
        f"context {key.context}",
        f"{key.recipe.steps:,} steps",
        f"rule {key.recipe.learning_rate_rule}",
        key.recipe.precision,
    )
