"""Other advice on depth and width, beside ours, each with its source and where it was seen.

An adviser that names a band of depths, or no shape at all, is quoted as such.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from archfit.plan.law import (
    FITTED_BLOCK_PARAMS,
    FITTED_DEPTHS,
    FITTED_VOCABS,
    WEIGHTS,
    IdealShape,
    ideal_shape,
)
from archfit.plan.own_runs import SEEN_IN, SMALL_VOCABULARIES, SOURCE, best_depths_of_text
from archfit.theory.sizes import RANGES
from archfit.theory.thresholds import minimal_depth

MILLION, BILLION = 10**6, 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What an adviser is asked."""

    block_params: float
    rank_limit: int
    vocab: int  # rows of a full table; 0 for patches and factorised tables
    is_text: bool
    is_vision: bool  # patches of an image


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """What one adviser says; `depths` is a band where no single depth is named."""

    name: str
    depth: float | None
    width: float | None
    depths: tuple[float, float] | None
    says: str
    source: str
    seen_in: str  # where it was seen to hold
    in_range: bool  # whether the question is of the kind and size that the advice was seen at


def all_advice(asked: Asked) -> tuple[Advice, ...]:
    """Everybody's answer to the question."""
    return tuple(adviser(asked) for adviser in ADVISERS)


def _own_runs(asked: Asked) -> Advice:
    found = best_depths_of_text(asked.block_params, asked.vocab) if asked.is_text else None
    name = "archfit's own runs"
    if found is None:
        says = "no best depth: outside of the sizes and kinds of text that were trained"
        return _unnamed(name, says, SOURCE, SEEN_IN, in_range=False)
    if found.low == found.high:
        shape = _of_depth(asked, found.low)
        return _named(name, shape, found.says, SOURCE, SEEN_IN, in_range=True)
    return _band(name, (found.low, found.high), found.says, SOURCE, SEEN_IN, in_range=True)


def _levine(asked: Asked) -> Advice:
    shape = ideal_shape(asked.block_params)
    return _named(
        "Levine 2020",
        shape,
        "deepen until ln(width) = 5.039 + 0.0555 depth",
        "arXiv:2006.12467, published version",
        "own runs of 1M to 0.6B, 6 to 48 layers, text",
        in_range=_is_between(FITTED_BLOCK_PARAMS, asked.block_params)
        and _is_between(FITTED_DEPTHS, shape.depth)
        and asked.rank_limit >= shape.width,
    )


def _wies(asked: Asked) -> Advice:
    shape = ideal_shape(asked.block_params, asked.rank_limit)
    return _named(
        "Levine + Wies 2021",
        shape,
        "the same with the width capped by the rank of the input",
        "arXiv:2105.03928",
        "V 257 to 50257, 24 to 48 layers, 5M to 110M",
        in_range=_is_between((5 * MILLION, 110 * MILLION), asked.block_params)
        and _is_between((24, 48), shape.depth)
        and _is_between(FITTED_VOCABS, asked.rank_limit),
    )


def _log3(asked: Asked) -> Advice:
    least, most = RANGES["size"]
    depth = minimal_depth(min(max(round(asked.block_params), least), most)).min_depth
    return _named(
        "log3 threshold",
        _of_depth(asked, max(1, depth)),
        "depth at least log3 of the width",
        "arXiv:2006.12467, preprint, table 1",
        "theory; the deep bound behind it is disputed",
        in_range=True,
    )


def _kaplan(asked: Asked) -> Advice:
    return _band(
        "Kaplan 2020",
        (_of_aspect(asked, 4288 / 6).depth, _of_aspect(asked, 1600 / 48).depth),
        "width / depth may vary 40 times for a few % of loss; 6 x 4288 is within 3 % of 48 x 1600",
        "arXiv:2001.08361",
        "text, up to 1.5B",
        in_range=asked.is_text and asked.block_params <= 1.5 * BILLION,
    )


def _henighan(asked: Asked) -> Advice:
    text = ideal_shape(asked.block_params)
    return _named(
        "Henighan 2020",
        _of_aspect(asked, text.width / text.depth / 10),
        "images and mathematics want about 10 times more depth for their width than text "
        "(here: than Levine's shape)",
        "arXiv:2010.14701, as cited by Wies et al. 2021",
        "small vocabularies",
        in_range=not asked.is_text,
    )


def _tay(asked: Asked) -> Advice:
    return _band(
        "Tay 2021",
        (32.0, 36.0),
        "deepen first; gains level off at 32 to 36 layers",
        "arXiv:2109.10686",
        "T5, up to 3B",
        in_range=asked.is_text and asked.block_params <= 3 * BILLION,
    )


def _petty(asked: Asked) -> Advice:
    return _unnamed(
        "Petty 2023",
        "deeper generalises better, returns diminish fast, shallower than usual is fine",
        "arXiv:2310.19956",
        "41M, 134M, 374M",
        in_range=asked.is_text and _is_between((41 * MILLION, 374 * MILLION), asked.block_params),
    )


def _mobile_llm(asked: Asked) -> Advice:
    name, says = "MobileLLM 2024", "below 1B deep and thin wins: 30 layers at 125M"
    source, seen_in = "arXiv:2402.14905", "125M to 1B"
    in_range = asked.is_text and _is_between((100 * MILLION, BILLION), asked.block_params)
    if not _is_between((62.5 * MILLION, 250 * MILLION), asked.block_params):  # no number for these
        return _unnamed(name, says, source, seen_in, in_range=in_range)
    return _named(name, _of_depth(asked, 30), says, source, seen_in, in_range=in_range)


def _nanochat(asked: Asked) -> Advice:
    return _named(
        "nanochat 2026",
        _of_aspect(asked, 64),
        "width / depth 64 beats 128 at 1e18 FLOPs; head_dim 128 beats 64",
        "nanochat repository",
        "up to about 1B",
        in_range=asked.is_text and asked.block_params <= BILLION,
    )


def _marin(asked: Asked) -> Advice:
    width = (asked.block_params * 95 / WEIGHTS) ** (1 / 3)
    for _ in range(50):  # d^3 = N ratio(d) / 12, and the ratio changes slowly
        width = (asked.block_params * _marin_ratio(width) / WEIGHTS) ** (1 / 3)
    return _named(
        "Marin recipe",
        IdealShape(depth=width / _marin_ratio(width), width=width),
        "width / depth from 85 (width 512) to 106 (width 8192), head_dim 128",
        "Marin project",
        "text, width 512 to 8192",
        in_range=asked.is_text and _is_between((512, 8192), width),
    )


def _depth_delusion(asked: Asked) -> Advice:
    width = (asked.block_params / WEIGHTS) ** (1 / 2.44)
    return _named(
        "Depth Delusion 2026",
        IdealShape(depth=width**0.44, width=width),
        "depth beyond width^0.44 hurts (read with a factor of 1)",
        "arXiv:2601.20994",
        "17M to 7B",
        in_range=asked.is_text and _is_between((17 * MILLION, 7 * BILLION), asked.block_params),
    )


def _complete_p(asked: Asked) -> Advice:
    return _unnamed(
        "CompleteP 2025",
        "with residual branches scaled by 1/depth and matching learning rates many shapes are "
        "as good: a depth sweep at one learning rate is confounded",
        "arXiv:2505.01618",
        "up to 1.5B",
        in_range=asked.is_text and asked.block_params <= 1.5 * BILLION,
    )


def _so_vit(asked: Asked) -> Advice:
    return _unnamed(
        "SoViT 2023",
        "vision: scale the feed-forward layer fastest, then depth, then width",
        "arXiv:2305.13035",
        "ViT",
        in_range=asked.is_vision,
    )


def _tao(asked: Asked) -> Advice:
    return _unnamed(
        "Tao 2024",
        "larger networks want larger vocabularies (Llama2-70B: 216K instead of 32K)",
        "arXiv:2407.13623",
        "text",
        in_range=asked.is_text,
    )


def _godey(asked: Asked) -> Advice:
    deepest = asked.block_params / (WEIGHTS * 1000**2)
    return _band(
        "Godey 2024",
        (1.0, max(1.0, deepest)),
        "output side: heads of width below about 1000 saturate",
        "arXiv:2404.07647",
        "text",
        in_range=asked.is_text and deepest >= 1,
    )


SHAPES_IN_USE = (
    ("SmolLM2-135M", 30, 576),
    ("Qwen3-0.6B", 28, 1024),
    ("SmolLM3-3B", 36, 2048),
    ("GPT-3 175B", 96, 12288),
    ("BLOOM", 70, 14336),
)


def _in_use(asked: Asked) -> Advice:
    def distance(shape: tuple[str, int, int]) -> float:
        return abs(math.log(WEIGHTS * shape[1] * shape[2] ** 2 / asked.block_params))

    name, depth, width = min(SHAPES_IN_USE, key=distance)
    return _named(
        "shape in use",
        _of_aspect(asked, width / depth),
        f"the proportions of {name}, {depth} x {width}",
        "published configs",
        "the nearest in size of five",
        in_range=asked.is_text and distance((name, depth, width)) < math.log(2),
    )


Adviser = Callable[[Asked], Advice]
ADVISERS: tuple[Adviser, ...] = (
    _own_runs, _levine, _wies, _log3, _kaplan, _henighan, _tay, _petty, _mobile_llm, _nanochat,
    _marin, _depth_delusion, _complete_p, _so_vit, _tao, _godey, _in_use,
)  # fmt: skip

EVIDENCE_AGAINST = (
    "nanochat pull request 807: token embedding and first block at half the width, no loss for "
    "its FLOPs over 40 runs",
    "reports that a low input rank barely hurts GPT-2 small trained from scratch",
    "Kaplan 2020: shapes of one size differ by a few % of loss over a 40-fold range of width / "
    "depth",
    "CompleteP 2025: with a learning rate of its own for each depth, many shapes are as good",
    SMALL_VOCABULARIES,
)


def _marin_ratio(width: float) -> float:
    share = math.log(width / 512) / math.log(8192 / 512)
    return 85 + 21 * min(1.0, max(0.0, share))


def _of_depth(asked: Asked, depth: float) -> IdealShape:
    return IdealShape(depth=depth, width=(asked.block_params / (WEIGHTS * depth)) ** 0.5)


def _of_aspect(asked: Asked, ratio: float) -> IdealShape:
    """The shape with this width / depth: N = 12 L (ratio L)^2."""
    return _of_depth(asked, (asked.block_params / (WEIGHTS * ratio**2)) ** (1 / 3))


def _is_between(ends: tuple[float, float], value: float) -> bool:
    return ends[0] <= value <= ends[1]


def _named(
    name: str, shape: IdealShape, says: str, source: str, seen_in: str, *, in_range: bool
) -> Advice:
    return Advice(
        name=name, depth=shape.depth, width=shape.width, depths=None, says=says, source=source,
        seen_in=seen_in, in_range=in_range,
    )  # fmt: skip


def _band(
    name: str, depths: tuple[float, float], says: str, source: str, seen_in: str, *, in_range: bool
) -> Advice:
    return Advice(
        name=name, depth=None, width=None, depths=depths, says=says, source=source,
        seen_in=seen_in, in_range=in_range,
    )  # fmt: skip


def _unnamed(name: str, says: str, source: str, seen_in: str, *, in_range: bool) -> Advice:
    return Advice(
        name=name, depth=None, width=None, depths=None, says=says, source=source,
        seen_in=seen_in, in_range=in_range,
    )  # fmt: skip
