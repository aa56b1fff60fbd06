"""What a user asks of the planner: a budget, and what is known of the data.

`PlanOptions` are the words of a command line or an address, `PlanRequest` is what they mean.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from archfit.advise import budgets
from archfit.advise.prior import TEXT, known_families
from archfit.spec.architecture import BlockFamily, Objective, gated_units
from archfit.spec.counting import GPT2_STYLE, LLAMA_STYLE, NetworkSizes
from archfit.spec.errors import check_at_least, check_choice, refusal, refuse_if
from archfit.spec.rates import CHINCHILLA_TOKENS, EPOCHS
from archfit.spec.search import bisect_rising
from archfit.spec.sizes import parse_size
from archfit.theory.law import DEEPEST_TRAINED, WEIGHTS

GPT2_VOCAB = 50257
USUAL_VOCABS = (257, 512, 2_000, 8_000, 32_000, GPT2_VOCAB)
TABLES_SHARE = 0.5  # of all parameters that tables may have: more was never better in the atlas
TABLE_WIDTH, TABLE_POWER = 0.45, 0.38  # the width of a usual network goes about so with its size
USUAL_DEPTH = 8  # layers
TEXT_VOCAB = 256  # from here on a vocabulary of unknown origin is taken for text
BUDGETS = ("params", "block_params", "flops", "minutes", "bytes", "tokens")
ANY = "any"  # names no family
# What data of other families have without more ado, as in the atlas: letters, characters, bytes.
OWN_VOCABS = {"DNA": 5, "protein": 24, "molecules": 28, "music": 83, "pixels": 257, "signal": 257}
SPELT = ("DNA", "protein", "molecules")  # in letters of their own: nobody reads these as bytes
MOST_SIDES = 4  # time, height, width and channels


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularySize:
    """Tokens of a table; `used` of them occur in the data, as far as that is known."""

    size: int
    used: int

    def __post_init__(self) -> None:
        check_at_least(2, vocab=self.size)
        check_at_least(1, used_vocab=self.used)
        refuse_if(self.used > self.size, "more-used-than-rows", self.used, size=self.size)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFacts:
    """What a prepared data set says beyond its vocabulary."""

    folder: str
    source: str | None  # what it was made from, as `data prepare` takes it; None if not known
    knows_path: bool  # whether that is a path, or the name alone that data.json keeps
    kind: str
    family: str | None  # of the atlas
    tokens: int  # for training
    bytes_per_token: float
    cooccurrence_rank: int  # dimensions that hold 99.9 % of the normalised co-occurrence

    @property
    def place(self) -> str:
        """What finds the data again: its source where the path is known, else the folder."""
        return self.source if self.knows_path and self.source else self.folder


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """Which shape? Every field decides the answer."""

    budget: budgets.Budget | budgets.TrainingMinutes
    vocabulary: VocabularySize | None  # None: patches without a table of tokens
    rank: int | None  # inner size of a factorised embedding; None: a full table
    patch: tuple[int, ...] | None  # sides and channels; None: one token at a position
    context: int
    is_tied: bool
    max_depth: int
    multiple_of: int | None  # of the width; None: what hardware likes at that width
    tokens_per_param: float
    data: DataFacts | None
    family: str | None  # of data that the atlas has; None: no known one
    block: BlockFamily = "gpt2"
    objective: Objective = "causal"

    def __post_init__(self) -> None:
        check_choice(get_args(Objective), objective=self.objective)
        check_at_least(1, context=self.context, max_depth=self.max_depth)
        budgets.check_tokens_per_param(self.tokens_per_param)
        has_patch, multiple = self.patch is not None, self.multiple_of
        refuse_if(self.vocabulary is None and not has_patch, "no-vocabulary")
        for name in ("rank", "multiple_of"):
            if getattr(self, name) is not None:
                check_at_least(1, **{name: getattr(self, name)})
        for side in (*self.patch, self.input_dimensions) if self.patch else ():
            check_at_least(1, patch=side)
        refuse_if(self.is_tied and has_patch, "tied-to-patches")
        refuse_if(self.objective == "masked" and has_patch, "masked-in-patches", "masked")
        is_odd = multiple is not None and multiple % 2 > 0
        refuse_if(self.block == "llama" and is_odd, "odd-multiple", multiple)

    def trained_tokens(self, params: float) -> float:
        """Tokens a parameter: those asked for, or what the data have, read EPOCHS times."""
        if self.data is None:
            return self.tokens_per_param
        return min(self.tokens_per_param, EPOCHS * self.data.tokens / params)

    @property
    def input_dimensions(self) -> int:
        """Dimensions that enter the embedding: values of a patch, or tokens of the table."""
        if self.patch is not None:
            return math.prod(self.patch)
        assert self.vocabulary is not None
        return self.vocabulary.size

    @property
    def limit(self) -> "RankLimit":
        """The narrowest place that the input must pass."""
        narrow = RankLimit(kind="patch", limit=self.input_dimensions)
        if self.patch is None and self.vocabulary is not None:
            narrow = RankLimit(kind="vocabulary", limit=self.vocabulary.used)
        if self.rank is None or self.rank >= narrow.limit:
            return narrow
        return RankLimit(kind="rank", limit=self.rank)

    def sizes(self, depth: float, width: float) -> NetworkSizes:
        """What a network of this depth and width stores, every head with its own keys."""
        outputs = 0 if self.is_tied or self.vocabulary is None else self.vocabulary.size
        is_llama = self.block == "llama"
        positions = 0 if is_llama else self.context
        return NetworkSizes(
            depth=depth,
            width=width,
            query=width,
            key_value=width,
            head_dim=width,  # of no count here
            hidden=self.hidden_units(depth, width),
            style=LLAMA_STYLE if is_llama else GPT2_STYLE,
            tables=((self.input_dimensions, self.rank), (positions, None), (outputs, None)),
        )

    def hidden_units(self, depth: float, width: float) -> float:
        """Units of the feed-forward layer; between whole shapes gated ones are not rounded."""
        if self.block == "gpt2":
            return 4 * width
        is_whole = isinstance(depth, int) and isinstance(width, int)
        return gated_units(width) if is_whole else 8 * width / 3  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankLimit:
    """No input has more dimensions than this, whatever the width."""

    kind: Literal["vocabulary", "rank", "patch"]
    limit: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanOptions:
    """The options of a plan; None: not given."""

    params: int | None = None
    block_params: int | None = None
    flops: int | None = None
    minutes: float | None = None
    gpu: str = ""  # whose minutes
    bytes: int | None = None
    weight_bits: int = 16
    tokens: int | None = None
    family: str = ""  # of the data; empty: as the vocabulary has it
    vocab: int | None = None  # 50257, GPT-2's, unless there is a patch
    rank: int | None = None  # a full table
    patch: str = ""  # as in 16x16x3; empty: one token at a position
    context: int = 1024
    tied: bool = False
    max_depth: int = DEEPEST_TRAINED
    multiple_of: int | None = None  # what hardware likes
    tokens_per_param: float = float(CHINCHILLA_TOKENS)
    block: str = "gpt2"
    objective: str = "causal"

    @property
    def block_family(self) -> BlockFamily:
        """The blocks that were named."""
        check_choice(get_args(BlockFamily), block=self.block)
        return self.block  # type: ignore[return-value]  # it was checked

    def request(
        self,
        vocabulary: VocabularySize | None = None,
        data: DataFacts | None = None,
        speed: budgets.Speed | None = None,
    ) -> PlanRequest:
        """What is asked: about prepared data, or about a vocabulary alone.

        `speed` is that of a machine which was timed, where minutes are asked for and no name.
        """
        if vocabulary is None and not (self.vocab is None and self.patch):
            own = OWN_VOCABS.get(self.family_of(None) or "") or self.usual_vocab(speed)
            size = own if self.vocab is None else self.vocab
            vocabulary = VocabularySize(size=size, used=size)
        if vocabulary is not None and self.objective == "masked":  # and the token that hides others
            vocabulary = VocabularySize(size=vocabulary.size + 1, used=vocabulary.used + 1)
        return PlanRequest(
            budget=self._budget(speed),
            vocabulary=vocabulary,
            rank=self.rank,
            patch=_sides(self.patch) if self.patch else None,
            context=self.context,
            is_tied=self.tied,
            max_depth=self.max_depth,
            multiple_of=self.multiple_of,
            tokens_per_param=self.tokens_per_param,
            data=data,
            family=self._family(vocabulary, data),
            block=self.block_family,
            objective=self.objective,  # type: ignore[arg-type]  # it checks
        )

    def usual_vocab(self, speed: budgets.Speed | None = None) -> int:
        """The largest of the usual vocabularies whose embeddings a budget can carry."""
        budget = self._budget(speed)
        if self.block_params is not None:
            return GPT2_VOCAB
        params = budget.params if isinstance(budget, budgets.Budget) else self._usual_size(budget)
        tables = (1 if self.tied else 2) * TABLE_WIDTH * params**TABLE_POWER
        able = [vocab for vocab in USUAL_VOCABS if tables * vocab <= TABLES_SHARE * params]
        return max(able, default=min(USUAL_VOCABS))

    def _usual_size(self, budget: budgets.TrainingMinutes) -> float:
        """About what a network of USUAL_DEPTH layers could be in that time, its blocks alone."""

        def minutes(width: float) -> float:
            shape = {"depth": USUAL_DEPTH, "width": width, "vocab": 0, "context": self.context}
            each = budget.speed.seconds(**shape) * budget.tokens_per_param  # for a parameter
            return each * (WEIGHTS * USUAL_DEPTH * width**2) / 60

        return WEIGHTS * USUAL_DEPTH * bisect_rising(minutes, budget.minutes, 1e-3, 1e6) ** 2

    def family_of(self, found: str | None) -> str | None:
        """The family that was named, or the one that the data are of."""
        names = {name.lower(): name for name in known_families()}
        is_known, known = self.family.lower() in (*names, ANY, ""), ", ".join(names.values())
        refuse_if(not is_known, "no-family", self.family, known=known, any=ANY)
        return names.get(self.family.lower()) if self.family else found

    def _family(self, vocabulary: VocabularySize | None, data: DataFacts | None) -> str | None:
        """The family of the data; without any, a large vocabulary is one of text."""
        if self.family or data is not None:
            return self.family_of(data.family if data else None)
        is_text = vocabulary is not None and vocabulary.size >= TEXT_VOCAB and not self.patch
        return TEXT if is_text else None

    def _budget(self, speed: budgets.Speed | None) -> budgets.Budget | budgets.TrainingMinutes:
        given = {name: getattr(self, name) for name in BUDGETS if getattr(self, name) is not None}
        if len(given) != 1:
            named = [f"--{name.replace('_', '-')}" for name in given]
            found = f"{' and '.join(named)} are" if named else "no budget is"
            is_both = named == ["--params", "--tokens"]
            both = "; for both --params and --tokens-per-param, as in 80" if is_both else ""
            raise refusal("one-budget", found=found, both=both)
        if self.minutes is not None:
            timed = budgets.known_speed(self.gpu) if self.gpu else speed
            if timed is None:
                raise refusal("minutes-of-no-machine", f"{self.minutes:g}")
            each = self.tokens_per_param
            return budgets.TrainingMinutes(
                minutes=self.minutes, speed=timed, gpu=self.gpu, tokens_per_param=each
            )
        refuse_if(bool(self.gpu), "machine-of-no-minutes", self.gpu)
        ((kind, amount),) = given.items()
        bits = {"weight_bits": self.weight_bits} if kind == "bytes" else {}
        paid: dict[str, Any] = {"kind": kind, "amount": amount} | bits
        return budgets.Budget(**paid, tokens_per_param=self.tokens_per_param)


def _sides(text: str) -> tuple[int, ...]:
    try:
        sides = tuple(parse_size(side) for side in text.lower().split("x"))
    except ValueError as problem:
        raise refusal("not-sides", text=repr(text), problem=problem) from problem
    is_long = len(sides) > MOST_SIDES
    refuse_if(is_long, "many-sides", text=repr(text), count=len(sides), most=MOST_SIDES)
    return sides
