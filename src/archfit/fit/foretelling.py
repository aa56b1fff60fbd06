"""Does a fingerprint of the data foretell the best depth of a kind that was left out?

Best depths are fitted by ln depth = a + b ln size + c feature on all families of data but one, and
asked for the kinds of that one; what counts is the loss by the kind's own curve. A feature helps if
it loses less than size alone, over families, beyond chance and beyond our having tried several.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from archfit.fit.best_depth import DepthCurve
from archfit.fit.curves import Reals
from archfit.fit.noise import TAIL
from archfit.spec import lazy_numpy as np
from archfit.spec.files import packed_file

FINGERPRINTS = "atlas/fingerprints.json"
SPREAD = 0.5  # of ln depth between kinds that nothing here explains
STANDARD_ERRORS = 3.29  # in a 90 % interval
LEAST_FAMILIES = 4
AFTER_TWO = "entropy of a token after two"


@dataclass(frozen=True, kw_only=True, slots=True)
class KindCurves:
    """The curves of one kind of data, and what its data are like."""

    family: str
    curves: tuple[DepthCurve, ...]
    features: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold:
    """What a feature is worth on families that it was not fitted to."""

    feature: str  # empty: size alone
    regret: float  # mean over kinds and sizes, in bits
    error: float  # root of the mean square, in ln depth
    gain: float  # of regret over size alone, mean over families
    low: float  # of that gain; the tail is shared among all features
    high: float

    @property
    def helps(self) -> bool:
        """Significantly."""
        return self.low > 0


@cache
def shipped_fingerprints() -> dict[str, dict[str, float]]:
    """The features of each data set by its hash."""
    table = json.loads(packed_file(FINGERPRINTS).read_text(encoding="utf-8"))
    return {data_hash: features_of(found) for data_hash, found in table.items()}


def features_of(fingerprint: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of a fingerprint, on scales on which a straight line may make sense."""
    features = {
        "ln of the tokens that occur": math.log(fingerprint["vocab"]),
        "entropy of a token": fingerprint["entropy"],
        AFTER_TWO: fingerprint["entropy_after_two"],
        "entropy less that after two": fingerprint["entropy"] - fingerprint["entropy_after_two"],
        "mutual information at distance 1": fingerprint["information"][0],
        "mutual information at distance 64": fingerprint["information"][-3],
        "decay of mutual information": fingerprint["decay"],
        "tokens that copy": fingerprint["copied"],
        "bits a token by LZMA": fingerprint["packed"],
    }
    return {name: float(number) for name, number in features.items()}


def foretold(kinds: Sequence[KindCurves]) -> tuple[Foretold, ...]:
    """Size alone first, then each feature; nothing where there are too few families."""
    from scipy.special import stdtrit

    own = np.array([kind.family for kind in kinds for _ in kind.curves])
    families, found = sorted({kind.family for kind in kinds}), []
    if len(families) < LEAST_FAMILIES:
        return ()
    alone, _ = _left_out(kinds, None)
    names = [*kinds[0].features]
    for feature in (None, *names):
        regrets, squares = _left_out(kinds, feature)
        gains = np.array([(alone - regrets)[own == family].mean() for family in families])
        gain, error = float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(len(gains))
        half = float(stdtrit(len(gains) - 1, 1 - TAIL / len(names))) * error  # of a mean of few
        found.append(
            Foretold(
                feature=feature or "",
                regret=float(regrets.mean()),
                error=math.sqrt(float(squares.mean())),
                gain=gain,
                low=gain - half,
                high=gain + half,
            )
        )
    return tuple(found)


def _left_out(kinds: Sequence[KindCurves], feature: str | None) -> Reals:
    """Of each curve, by a fit to those of other families: regret, and squared error of ln depth."""
    every = [(kind, curve) for kind in kinds for curve in kind.curves]
    facts = [
        [1.0, math.log(curve.size), *([kind.features[feature]] if feature else [])]
        for kind, curve in every
    ]
    design, weights = np.array(facts), np.sqrt([_weight(curve) for _, curve in every])
    bests, found = np.log([curve.best.value or math.nan for _, curve in every]), []
    for (kind, curve), best, row in zip(every, bests, design, strict=True):
        known = weights * [other.family != kind.family for other, _ in every]
        solved = np.linalg.lstsq(design * known[:, None], bests * known, rcond=None)[0]
        depth = float(np.clip(np.exp(row @ solved), curve.depths[0], curve.depths[-1]))
        found.append((curve.regret(depth), (math.log(depth) - best) ** 2))
    return np.array(found).T


def _weight(curve: DepthCurve) -> float:
    """The less, the wider the interval of the best depth; an open end is the end of the grid."""
    low = curve.best.low or float(curve.depths[0])
    high = curve.best.high or float(curve.depths[-1])
    error = math.log(max(high / low, 1.0)) / STANDARD_ERRORS
    return 1 / (error**2 + SPREAD**2)
