"""Which disputed formulas can be tested, and on which network."""

from collections.abc import Mapping
from dataclasses import replace

from archfit.theory.bound import Bound
from archfit.theory.bounds import BoundsReport
from archfit.theory.catalogue import FUNCTIONS, WORDS, quantity, status_line
from archfit.theory.certified import Certified
from archfit.theory.counterexample import SEARCH_SECONDS, Verdict, find_counterexample
from archfit.theory.counting import symmetric_entries

_OVER_A_VOCABULARY = (
    "explicit weights have a larger separation rank on long enough sequences, since the "
    "vocabulary has more tokens than S has entries"
)


def disputed_bounds() -> list[str]:
    """The names of the bounds whose proofs have a gap."""
    return [n for n in FUNCTIONS if n.startswith("ub_") and status_line(n).startswith("disputed")]


def refute_formula(name: str, inputs: Mapping[str, object], *, heads: int | None = None) -> Verdict:
    """Weights whose separation rank exceeds the disputed formula `name`, if a search finds any.

    Formulas that do not name the heads claim to hold for any number of them, so that H = d_x is
    theirs to survive. With an embedding of rank r the network may as well have width r.
    """
    if name not in disputed_bounds():
        raise ValueError(
            f"{name} is no disputed bound; --counterexample takes {', '.join(disputed_bounds())}"
        )
    sizes = _checked_sizes(name, inputs)
    formula = FUNCTIONS[name if "_log3" in name else f"{name}_log3"]
    assert isinstance(formula, Certified)
    width = sizes["embedding_rank"] if "embedding_rank" in sizes else sizes["width"]
    return find_counterexample(
        lambda: formula.ball(**sizes),
        depth=sizes["depth"],
        width=width,
        heads=min(heads or sizes.get("heads", width), width),
        seconds=SEARCH_SECONDS,
    )


def refute_for_shape(report: BoundsReport) -> Verdict:
    """Whether the disputed bound of this shape fails; it holds where a proved one is below it."""
    shape = report.shape
    target = next(bound for bound in report.bounds if bound.id in _targets(report))
    if report.upper.log3 <= target.log3:
        return _not_refuted(target, f"it holds here, because {report.upper.id} is below it")
    if shape.vocab is not None and shape.vocab <= symmetric_entries(shape.embedding_rank):
        return _not_refuted(target, f"no witness is known for a vocabulary of only {shape.vocab}")
    if shape.vocab is not None and shape.positions is not None:
        return _not_refuted(target, "over a vocabulary the witness needs sequences of any length")
    if shape.positions is not None and shape.positions < 2 * shape.width:
        return _not_refuted(target, f"the witness needs {2 * shape.width} positions or more")
    inputs: dict[str, object] = {"L": shape.depth}
    if target.id == "ub_vocab_statement":
        inputs |= {"r": shape.embedding_rank, "r_e": shape.position_rank}
    else:
        inputs |= {"d_x": shape.width}
    verdict = refute_formula(target.id, inputs, heads=shape.heads)
    if verdict.refuted and shape.vocab is not None:
        return replace(verdict, reason=_OVER_A_VOCABULARY)
    return verdict


def _targets(report: BoundsReport) -> set[str]:
    if report.shape.is_rank_limited or report.shape.vocab is not None:
        return {"ub_vocab_statement"}
    return {"ub_thm2", "ub_residual_thm4"}


def _not_refuted(target: Bound, reason: str) -> Verdict:
    return Verdict(refuted=False, reason=f"{target.id}: {reason}", formula_log3=target.log3)


def _checked_sizes(name: str, inputs: Mapping[str, object]) -> dict[str, int]:
    """The inputs under our names; the logarithm's own checks refuse what is no size."""
    log_name = name if "_log3" in name else f"{name}_log3"
    checked = quantity(log_name, **inputs).inputs
    return {WORDS[letter]: size for letter, size in checked.items() if isinstance(size, int)}
