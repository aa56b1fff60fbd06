"""What depth does to the loss, as a surface over size and depth that runs bend.

For one kind of data, with n = ln(parameters / 1M), s = n + patience ln(tokens a parameter / 20),
since more tokens do to depth what more parameters do, and z = ln depth - (centre + growth s),

    ln loss = level + a e^(-f n) (c . terms + wave(s, ln depth)) and noise,
    terms = z, z^2, z e^(-h s), z tanh s, e^-z, t e^-z

where t = REACH tanh(s / REACH): what kinds differ in does not grow with size for ever. With the
fading f depth matters less in large networks than in small ones, with the hurry h what depth costs
small networks, which hardly learn, goes away, and by z tanh s best depths grow faster about 1M
parameters than beyond. Levels are free: only differences between depths of one size count. The
coefficients c have a normal distribution over kinds of data, the wave is a Gaussian process for
what those few terms miss, and a, how much data answer to depth at all, is one of a few scales with
weights of their own. Networks of Llama's blocks, which learn sooner, have another mean of c; half
of that is gone at e^alike million parameters, since GPT-2's learn, too, once they are large. Two
kinds of one family (two languages, two vocabularies of one text) share `kinship` of that
distribution, and the scale, but no wave. All of that is fitted to many families
(docs/atlas/prior.py); given runs on kinds of a family, on new data, or none, it says which depths
may be best.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, TypeAlias

from archfit.spec import lazy_numpy as np
from archfit.spec.lazy_numpy import NDArray

Reals: TypeAlias = "NDArray[np.float64]"

SCALES = (0.2, 0.45, 1.0, 2.2)
REACH = 3.0  # in ln size
TERMS = 6
LEVEL_STD = 5.0  # of a free level, in ln loss
NUGGET = 1e-10
USUAL_TOKENS = 20.0  # a parameter
NEW = -1  # the number of a kind without runs


class Training(NamedTuple):
    """What networks of a size are trained on: a kind of data, and how much of it."""

    kind: int = NEW
    tokens_per_param: float = USUAL_TOKENS
    is_llama: bool = False  # its blocks, instead of GPT-2's


USUAL = Training()


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Networks on the surface, of kinds of one family of data."""

    sizes: Reals  # ln(parameters / 1M)
    tokens: Reals  # ln(tokens a parameter / 20)
    depths: Reals  # ln
    kinds: Reals  # which kind of the family each is of, by number
    llama: Reals  # 1 with Llama's blocks, 0 with GPT-2's


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed(Places):
    """Runs there."""

    losses: Reals  # ln
    variances: Reals  # of those, by seeds
    levels: Reals  # a column for each free level: networks that share one, or powers of the size

    @cached_property
    def free(self) -> Reals:
        """The covariance of the levels."""
        scaled = LEVEL_STD * self.levels
        return np.asarray(scaled @ scaled.T)


def of_sizes(sizes: Reals, tokens: Reals) -> Reals:
    """Levels of runs where every size has its own, and every number of tokens a parameter."""
    both = np.array([sizes, tokens]).T
    return np.asarray((both[:, None] == np.unique(both, axis=0)).all(axis=2), dtype=float)


def joined(kinds: Sequence[Observed]) -> Observed:
    """Kinds of one family, numbered as they come, each with its own levels."""
    from scipy.linalg import block_diag

    names = [field.name for field in fields(Observed) if field.name not in ("levels", "kinds")]
    columns = {name: np.concatenate([getattr(kind, name) for kind in kinds]) for name in names}
    numbers = np.repeat(np.arange(len(kinds)), [len(kind.sizes) for kind in kinds])
    levels = block_diag(*(kind.levels for kind in kinds))
    return Observed(**columns, levels=levels, kinds=numbers.astype(float))


@dataclass(frozen=True, kw_only=True, slots=True)
class Surface:
    """What is known of all kinds together."""

    centre: float  # ln depth, at 1M parameters
    growth: float  # of that, by ln size
    fading: float  # of all that depth does, by ln size
    hurry: float  # with which what depth costs small networks goes away, by ln size
    patience: float  # what tokens a parameter are worth, in ln size by their logarithm
    alike: float  # where half of what Llama's blocks change is gone, in ln million parameters
    mean: tuple[float, ...]  # of the coefficients, with GPT-2's blocks
    llama: tuple[float, ...]  # what Llama's add to that
    spread: tuple[float, ...]  # their standard deviations
    wave: float  # standard deviation of the wave
    size_length: float
    depth_length: float
    misfit: float  # standard deviation of a network about the surface, seeds aside
    weights: tuple[float, ...]  # of the scales
    kinship: float  # what kinds of one family share of the spread

    def told(self, places: Places) -> Reals:
        """s of the formula: sizes, tokens considered."""
        return places.sizes + self.patience * places.tokens

    def terms(self, places: Places) -> Reals:
        """Those that coefficients multiply, a row a network."""
        sizes = self.told(places)
        z = places.depths - (self.centre + self.growth * sizes)
        faded, t = np.exp(-self.fading * places.sizes), REACH * np.tanh(sizes / REACH)
        hurried, shallow = np.exp(-self.hurry * sizes), np.exp(-z)
        found = z, z * z, z * hurried, z * np.tanh(sizes), shallow, t * shallow
        return np.asarray(faded * np.array(found)).T

    def middle(self, places: Places) -> Reals:
        """The mean over kinds, at a scale of 1."""
        plain, added = (self.terms(places) @ np.array([self.mean, self.llama]).T).T
        share = places.llama / (1 + np.exp(self.told(places) - self.alike))
        return np.asarray(plain + share * added)

    def covariance(self, some: Places, others: Places) -> Reals:
        """Between networks and others, at a scale of 1."""
        spread = np.array(self.spread) ** 2
        linear = (self.terms(some) * spread) @ self.terms(others).T
        away = ((self.told(some)[:, None] - self.told(others)) / self.size_length) ** 2
        away += ((some.depths[:, None] - others.depths) / self.depth_length) ** 2
        same = some.kinds[:, None] == others.kinds
        faded = np.exp(-self.fading * (some.sizes[:, None] + others.sizes))
        wave = np.where(same, faded * self.wave**2 * np.exp(-away / 2), 0.0)
        return np.asarray(np.where(same, 1.0, self.kinship) * linear + wave)

    def given(self, observed: Observed | None) -> "Posterior":
        """What it says of kinds of a family after these runs."""
        if observed is None or not len(observed.sizes):
            return Posterior(surface=self, weights=self.weights)
        solved = self._solved(observed)
        logs = np.array([each.evidence for each in solved]) + np.log(self.weights)
        likely = np.exp(logs - logs.max())
        return Posterior(
            surface=self,
            weights=tuple(float(weight) for weight in likely / likely.sum()),
            relatives=tuple(each.relatives for each in solved),
            observed=observed,
            solved=solved,
        )

    def log_evidence(self, observed: Observed) -> float:
        """ln of the probability of these runs."""
        logs = np.array([each.evidence for each in self._solved(observed)])
        logs = logs + np.log(self.weights)
        return float(logs.max() + math.log(np.exp(logs - logs.max()).sum()))

    def _solved(self, observed: Observed) -> "tuple[_Solved, ...]":
        found = []
        shared = self.covariance(observed, observed)
        alone = observed.free + np.diag(observed.variances + self.misfit**2)
        terms = self.terms(observed)
        middle, kin = self.middle(observed), self.kinship * terms * np.array(self.spread) ** 2
        for scale in SCALES:
            root = np.asarray(np.linalg.cholesky(scale**2 * shared + alone), dtype=float)
            sides = np.column_stack([observed.losses - scale * middle, scale**2 * kin])
            left, *others = np.linalg.solve(root, sides).T
            evidence = float(-left @ left / 2 - np.log(np.diag(root)).sum())
            relatives = Relatives(
                shift=tuple(float(left @ other) for other in others),
                certainty=tuple(tuple(float(a @ b) for a in others) for b in others),
            )
            found.append(_Solved(root=root, left=left, evidence=evidence, relatives=relatives))
        return tuple(found)


class Relatives(NamedTuple):
    """What runs on other kinds of a family say of a new kind's coefficients, at one scale."""

    shift: tuple[float, ...]  # of their mean
    certainty: tuple[tuple[float, ...], ...]  # what is taken from their covariance


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solved:
    """Runs, at one scale."""

    root: Reals  # of their covariance
    left: Reals  # its inverse times what the mean leaves
    evidence: float
    relatives: Relatives

    @cached_property
    def inverse(self) -> Reals:
        """Of the root: audits of many networks ask the same posterior."""
        return np.asarray(np.linalg.inv(self.root))


@dataclass(frozen=True, kw_only=True, slots=True)
class Posterior:
    """A surface after runs on kinds of one family, or without any.

    Of a new kind `relatives` say all that those runs do; the runs themselves are needed only to ask
    about their own kinds.
    """

    surface: Surface
    weights: tuple[float, ...]  # of the scales
    relatives: tuple[Relatives, ...] = ()  # by scale
    observed: Observed | None = None
    solved: tuple[_Solved, ...] = ()  # by scale

    def draws(self, size: float, depths: Reals, count: int, training: Training = USUAL) -> Reals:
        """ln loss at these depths (layers) up to a level, as it may be: `count` rows.

        Its kind is the number of one that was observed, or a new one of the family.
        """
        random = np.random.default_rng(0)
        ones = np.ones(len(depths))
        places = Places(
            sizes=math.log(size / 1e6) * ones,
            tokens=math.log(training.tokens_per_param / USUAL_TOKENS) * ones,
            depths=np.log(depths),
            kinds=training.kind * ones,
            llama=float(training.is_llama) * ones,
        )
        counts = random.multinomial(count, self.weights)
        parts = [
            self._drawn(at, places, random.standard_normal((some, len(depths))))
            for at, some in enumerate(counts)
            if some
        ]
        return np.concatenate(parts)

    def _drawn(self, at: int, places: Places, normal: Reals) -> Reals:
        surface, scale, terms = self.surface, SCALES[at], self.surface.terms(places)
        mean = scale * surface.middle(places)
        own = scale**2 * surface.covariance(places, places)
        if self.relatives and places.kinds[0] == NEW:
            shift, certainty = map(np.array, self.relatives[at])
            mean = mean + terms @ shift
            own = own - terms @ certainty @ terms.T
        elif self.observed is not None:
            solved = self.solved[at]
            cross = scale**2 * surface.covariance(places, self.observed)
            known = solved.inverse @ cross.T
            mean = mean + solved.left @ known
            own = own - known.T @ known
        roots, directions = np.linalg.eigh((own + own.T) / 2 + NUGGET * np.eye(len(own)))
        root = (directions * np.sqrt(np.clip(roots, 0, None))) @ directions.T  # the one of no sign
        return np.asarray(mean + normal @ root)


def short(number: float) -> float:
    """With as many digits as a file keeps."""
    return float(f"{number:.6g}")
