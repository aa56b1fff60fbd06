"""A run as people ask for it: the options they name, and defaults that follow from them.

`archfit train` takes these names as options, a sweep file as keys.
"""

import math
from dataclasses import dataclass

from archfit.spec.architecture import Architecture, head_dim_of
from archfit.spec.errors import InvalidValue, check_at_least, check_choice
from archfit.spec.parts import (
    Attention,
    Full,
    Head,
    Input,
    Linear,
    Patches,
    Softmax,
    Tied,
    Tokens,
    table_of,
)
from archfit.spec.run import Recipe, RunSpec

BASE_WIDTH, BASE_DEPTH, BASE_HEAD_DIM = 256, 2, 64  # the shape whose rates completep keeps
ATTENTIONS: dict[str, Attention] = {
    "softmax": Softmax(),
    "linear": Linear(residual=False, causal=True),
    "linear-residual": Linear(residual=True, causal=True),
}

# Fields of specs by the names that people give them, as options or as keys of a sweep file.
NAMES_OF_FIELD = {
    "inner": ("embedding_inner", "position_inner", "head", "rank"),
    "embedding_rank": ("rank",),
    "size": ("patch",),
    "encoding": ("patch_encoding",),
    "head_dim": ("head_dim",),  # which a way out proposes
    "batch_sequences": ("batch",),
    "warmup_steps": ("warmup",),
    "peak_learning_rate": ("learning_rate",),
    "evaluation_steps": ("evaluate_every",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """The options of one run; None stands for the usual value."""

    precision: str  # of the device, so nobody can leave it out here
    depth: int = 4
    width: int = 64
    heads: int = 2
    head_dim: int | None = None  # width / heads
    context: int = 128
    feed_forward_multiple: int | None = None  # 4, or 0 for linear attention
    embedding_inner: int | None = None  # a full table
    position_inner: int | None = None  # a full table
    head: str | int = "full"  # or tied, or an inner size
    patch: int | None = None  # one token a position
    patch_encoding: str = "one-hot"
    attention: str = "softmax"
    steps: int = 1500
    batch: int = 16
    warmup: int | None = None  # a tenth of the steps
    learning_rate: float | None = None  # that of `usual_rate`
    learning_rate_rule: str = "standard"
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    gradient_clip: float = 1.0
    dropout: float = 0.0
    evaluate_every: int | None = None  # a tenth of the steps
    evaluation_sequences: int = 512
    full_context_tokens: int = 0

    def spec(self, *, vocab: int, data_hash: str, seed: int) -> RunSpec:
        """The run, on data that has this vocabulary and hash."""
        return RunSpec(
            architecture=self.architecture(vocab),
            data_hash=data_hash,
            recipe=self.recipe(),
            seed=seed,
        )

    def architecture(self, vocab: int) -> Architecture:
        """The network, for this vocabulary."""
        check_choice(tuple(ATTENTIONS), attention=self.attention)
        attention = ATTENTIONS[self.attention]
        usual = 4 if isinstance(attention, Softmax) else 0
        multiple = usual if self.feed_forward_multiple is None else self.feed_forward_multiple
        return Architecture(
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            head_dim=head_dim_of(self.width, self.heads)
            if self.head_dim is None
            else self.head_dim,
            attention=attention,
            feed_forward_multiple=multiple,
            context=self.context,
            input=self._input(vocab),
            embedding=table_of(self.embedding_inner),
            positions=table_of(self.position_inner),
            head=self._head(),
        )

    def recipe(self) -> Recipe:
        """How it is trained."""
        check_at_least(1, steps=self.steps)
        tenth = self.steps // 10
        rate = self.learning_rate
        return Recipe(
            steps=self.steps,
            batch_sequences=self.batch,
            warmup_steps=tenth if self.warmup is None else self.warmup,
            peak_learning_rate=(
                usual_rate(self.width, self.learning_rate_rule) if rate is None else rate
            ),
            learning_rate_rule=self.learning_rate_rule,  # type: ignore[arg-type]  # it checks
            weight_decay=self.weight_decay,
            beta1=self.beta1,
            beta2=self.beta2,
            gradient_clip=self.gradient_clip,
            dropout=self.dropout,
            precision=self.precision,  # type: ignore[arg-type]  # it checks
            evaluation_steps=max(1, tenth) if self.evaluate_every is None else self.evaluate_every,
            evaluation_sequences=self.evaluation_sequences,
            full_context_tokens=self.full_context_tokens,
        )

    def _input(self, vocab: int) -> Input:
        if self.patch is None:
            return Tokens(vocab=vocab)
        return Patches(vocab=vocab, size=self.patch, encoding=self.patch_encoding)  # type: ignore[arg-type]  # it checks

    def _head(self) -> Head:
        named: dict[str | int, Head] = {"tied": Tied(), "full": Full()}
        if isinstance(self.head, str) and self.head not in named:
            raise InvalidValue("head", self.head, "is unknown", "use full, tied, or an inner size")
        return named.get(self.head) or table_of(int(self.head))


def usual_rate(width: int, rule: str) -> float:
    """A peak learning rate to start from: 0.004 at width 64, less for wider networks.

    Under completep it is that of the base shape, whatever the width.
    """
    return 0.032 / math.sqrt(BASE_WIDTH if rule == "completep" else max(1, width))
