"""A run as people ask for it: the options they name, and defaults that follow from them.

`archfit train` takes these names as options, a sweep file as keys.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from archfit.spec import parts
from archfit.spec.architecture import Architecture, BlockFamily, gated_units, head_dim_of
from archfit.spec.errors import check_at_least, check_choice, refusal, refuse_if
from archfit.spec.rates import auto_rate
from archfit.spec.run import Recipe, RunSpec

BASE_WIDTH, BASE_DEPTH, BASE_HEAD_DIM = 256, 2, 64  # the shape whose rates completep keeps
FAN_IN_VARIANCE = 0.4  # of a matrix at its start under fan-in, times the width
ATTENTIONS: dict[str, parts.Attention] = {
    "softmax": parts.Softmax(),
    "linear": parts.Linear(residual=False, causal=True),
    "linear-residual": parts.Linear(residual=True, causal=True),
}

# Fields of specs by the names that people give them, as options or as keys of a sweep file.
NAMES_OF_FIELD = {
    "inner": ("embedding_inner", "position_inner", "head", "rank"),
    "embedding_rank": ("rank",),
    "size": ("patch",),
    "encoding": ("patch_encoding",),
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
    feed_forward_multiple: int | None = None  # of the width; see `_hidden_units`
    feed_forward: int | str | None = None  # hidden units; attention: 4 heads head_dim, as T5 has
    embedding_inner: int | None = None  # a full table
    position_inner: int | None = None  # a full table
    head: str | int = "full"  # or tied, or an inner size
    patch: int | None = None  # one token a position
    patch_encoding: str = "one-hot"
    attention: str = "softmax"
    block: str = "gpt2"
    kv_heads: int | None = None  # one for each head
    qk_norm: bool = False
    objective: str = "causal"
    steps: int = 1500
    batch: int = 16
    warmup: int | None = None  # three tenths of the steps under fan-in, else one
    learning_rate: float | str | None = None  # that of the rule; auto: that of fan-in
    learning_rate_rule: str | None = None  # fan-in where the rate is auto, else standard
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float | None = None  # 0.95 under fan-in, else 0.999
    gradient_clip: float = 1.0
    dropout: float = 0.0
    evaluate_every: int | None = None  # a tenth of the steps
    evaluation_sequences: int = 512
    full_context_tokens: int = 0

    def spec(self, *, vocab: int, data_hash: str, seed: int) -> RunSpec:
        """The run, on data that has this vocabulary and hash."""
        shape, recipe = self.architecture(vocab), self.recipe()
        return RunSpec(architecture=shape, data_hash=data_hash, recipe=recipe, seed=seed)

    def architecture(self, vocab: int) -> Architecture:
        """The network, for this vocabulary."""
        check_choice(tuple(ATTENTIONS), attention=self.attention)
        attention = ATTENTIONS[self.attention]
        if isinstance(attention, parts.Linear) and self.objective == "masked":
            attention = replace(attention, causal=False)
        head_dim = self.head_dim or head_dim_of(self.width, self.heads)
        is_rotary, has_rank = self.block == "llama", self.position_inner is not None
        refuse_if(is_rotary and has_rank, "rotary-rank", self.position_inner)
        others = {
            "head_dim": head_dim,
            "attention": attention,
            "feed_forward": self._hidden_units(head_dim),
            "input": self._input(vocab),
            "embedding": parts.table_of(self.embedding_inner),
            "positions": parts.Rotary() if is_rotary else parts.table_of(self.position_inner),
            "head": self._head(),
        }
        return Architecture(**self._fields_of(Architecture) | others)

    def _fields_of(self, kind: type) -> dict[str, Any]:
        """The options that are called like fields of `kind`, which checks them."""
        return {each.name: getattr(self, each.name, None) for each in fields(kind)}

    def _hidden_units(self, head_dim: int) -> int:
        """Those asked for; else 4 width, 8/3 width where they are gated, 0 for linear attention."""
        multiple, units = self.feed_forward_multiple, self.feed_forward
        is_twice = multiple is not None and units is not None
        refuse_if(is_twice, "units-twice", units, multiple=multiple)
        if multiple is not None:
            check_at_least(0, feed_forward_multiple=multiple)
            return multiple * self.width
        if units == "attention":
            return 4 * self.heads * head_dim
        if isinstance(units, str):
            raise refusal("no-units", units)
        if units is not None:
            return units
        if self.attention != "softmax":
            return 0
        return gated_units(self.width) if self.block == "llama" else 4 * self.width

    @property
    def rule(self) -> str:
        """The learning-rate rule; automatic rates belong to fan-in."""
        if self.learning_rate_rule is not None:
            return self.learning_rate_rule
        return "fan-in" if self.learning_rate == "auto" else "standard"

    def _rate(self) -> float:
        if isinstance(self.learning_rate, int | float):
            return self.learning_rate
        refuse_if(self.learning_rate not in ("auto", None), "no-rate", self.learning_rate)
        is_other = self.learning_rate == "auto" and self.rule != "fan-in"
        refuse_if(is_other, "rate-of-fan-in", "auto", rule=self.rule)
        if self.rule != "fan-in":
            return usual_rate(self.width, self.rule)
        return auto_rate(self.block, width=self.width, batch_tokens=self.batch * self.context)

    def recipe(self) -> Recipe:
        """How it is trained."""
        check_at_least(1, steps=self.steps, batch=self.batch, context=self.context)
        check_at_least(1, width=self.width, depth=self.depth)
        check_choice(get_args(BlockFamily), block=self.block)
        tenth, is_scaled, every = self.steps // 10, self.rule == "fan-in", self.evaluate_every
        warmup, usual_beta2 = (3 * self.steps // 10, 0.95) if is_scaled else (tenth, 0.999)
        others = {
            "batch_sequences": self.batch,
            "warmup_steps": warmup if self.warmup is None else self.warmup,
            "peak_learning_rate": self._rate(),
            "learning_rate_rule": self.rule,
            "beta2": usual_beta2 if self.beta2 is None else self.beta2,
            "evaluation_steps": max(1, tenth) if every is None else every,
        }
        return Recipe(**self._fields_of(Recipe) | others)

    def _input(self, vocab: int) -> parts.Input:
        if self.objective == "masked":
            vocab += 1  # the token that hides others
        if self.patch is None:
            return parts.Tokens(vocab=vocab)
        return parts.Patches(vocab=vocab, size=self.patch, encoding=self.patch_encoding)  # type: ignore[arg-type]  # it checks

    def _head(self) -> parts.Head:
        named: dict[str | int, parts.Head] = {"tied": parts.Tied(), "full": parts.Full()}
        refuse_if(isinstance(self.head, str) and self.head not in named, "no-head", self.head)
        return named.get(self.head) or parts.table_of(int(self.head))


def standard_architecture(
    *, depth: int, width: int, heads: int, vocab: int, context: int
) -> Architecture:
    """The usual shape: head_dim = width / heads, feed-forward 4 x width, full untied tables.

    This is the network that the papers trained.
    """
    usual = RunOptions(precision="float32", context=context)
    return replace(usual, depth=depth, width=width, heads=heads).architecture(vocab)


def usual_rate(width: int, rule: str) -> float:
    """A peak learning rate of the older rules: 0.004 at width 64, less for wider networks.

    Under completep it is that of the base shape, whatever the width.
    """
    return 0.032 / math.sqrt(BASE_WIDTH if rule == "completep" else max(1, width))
