"""What a run is: everything that decides its result, and nothing else."""

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

from archfit.spec.architecture import Architecture
from archfit.spec.codec import canonical_json
from archfit.spec.errors import check_at_least, check_choice, check_real, check_types, refuse_if

LearningRateRule = Literal["standard", "completep", "fan-in"]  # docs/rates.md
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How a network is trained: AdamW, linear warm-up, cosine to zero."""

    steps: int
    batch_sequences: int
    warmup_steps: int
    peak_learning_rate: float
    learning_rate_rule: LearningRateRule
    weight_decay: float  # on matrices
    beta1: float
    beta2: float
    gradient_clip: float  # norm above which gradients are scaled down
    dropout: float
    precision: Literal["float32", "bfloat16"]
    evaluation_steps: int  # steps from one held-out evaluation to the next
    evaluation_sequences: int  # held-out sequences in each, at most
    full_context_tokens: int  # held-out tokens that the end predicts each from a whole context

    def __post_init__(self) -> None:
        check_at_least(1, steps=self.steps, batch_sequences=self.batch_sequences)
        check_at_least(1, evaluation_steps=self.evaluation_steps)
        check_at_least(1, evaluation_sequences=self.evaluation_sequences)
        check_at_least(0, warmup_steps=self.warmup_steps)
        check_at_least(0, full_context_tokens=self.full_context_tokens)
        is_long = self.warmup_steps > self.steps
        refuse_if(is_long, "long-warmup", self.warmup_steps, steps=self.steps)
        check_real(0, 10, peak_learning_rate=self.peak_learning_rate)
        check_real(0, 10, weight_decay=self.weight_decay)
        check_real(0, 0.999999, beta1=self.beta1, beta2=self.beta2)
        check_real(1e-6, 1e6, gradient_clip=self.gradient_clip)
        check_real(0, 0.95, dropout=self.dropout)
        check_choice(get_args(LearningRateRule), learning_rate_rule=self.learning_rate_rule)
        check_choice(("float32", "bfloat16"), precision=self.precision)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSpec:
    """One training run. Equal specs give equal results on one machine."""

    architecture: Architecture
    data_hash: str  # of the prepared data set, as its data.json names it
    recipe: Recipe
    seed: int

    def __post_init__(self) -> None:
        check_types(self, "architecture", "recipe", "data_hash")
        refuse_if(not _SHA256.fullmatch(self.data_hash), "no-hash", self.data_hash)
        check_at_least(0, seed=self.seed)
        self._check_task()

    def _check_task(self) -> None:
        """Refuse networks that see what they should predict, or never see what they should read."""
        is_causal, is_masked = self.architecture.is_causal, self.architecture.objective == "masked"
        blind = not (is_masked or is_causal)  # only linear attention has such a mask
        refuse_if(blind, "attention-without-mask", "linear")
        refuse_if(is_masked and is_causal, "attention-with-mask", "linear")
        tokens = self.recipe.full_context_tokens
        refuse_if(is_masked and tokens > 0, "masked-contexts", tokens)

    def at_rate(self, factor: float) -> "RunSpec":
        """The same run at so many times its peak learning rate."""
        rate = factor * self.recipe.peak_learning_rate
        return replace(self, recipe=replace(self.recipe, peak_learning_rate=rate))

    @property
    def hash(self) -> str:
        """SHA-256 of the spec's content: the same on every machine and in every key order."""
        return hashlib.sha256(f"archfit-run-1\n{canonical_json(self)}".encode()).hexdigest()

    @property
    def name(self) -> str:
        """The folder of the run: the first 16 digits of the hash."""
        return self.hash[:16]

    @property
    def training_tokens(self) -> int:
        """Tokens of the source that training sees, repeats counted."""
        positions = self.architecture.context * self.recipe.batch_sequences * self.recipe.steps
        return positions * self.architecture.input.tokens_per_position

    @property
    def training_flops(self) -> float:
        """Floating point operations of the whole training."""
        return self.training_tokens * self.architecture.training_flops_per_token
