"""Every quantity by its name in the notation of the papers, with its status and source."""

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Literal, TypeAlias

from archfit.theory import (
    certified,
    counting,
    lower_bound,
    lower_strong,
    lower_vocabulary,
    monomial_witness,
    parameters,
    required_width,
    shallow_equivalent,
    thresholds,
    upper_deep_disputed,
    upper_every_depth,
    upper_residual,
    upper_statistics,
    upper_statistics_short,
    upper_statistics_vocabulary,
    upper_vocabulary_disputed,
    veronese,
)

Status: TypeAlias = Literal["proved", "derived", "disputed"]
Number: TypeAlias = int | Fraction | Decimal
Json: TypeAlias = "int | str | bool | list[Json] | dict[str, Json] | None"

NETWORK = "unmasked analysed network (linear attention; no softmax, norm or feed-forward)"
LARGEST_JSON_INTEGER = 2**53

# The one table from the papers' letters to our words; docs/notation.md explains them.
WORDS: dict[str, str] = {
    "L": "depth",
    "d_x": "width",
    "H": "heads",
    "d_a": "head_dim",
    "N": "positions",
    "V": "vocab",
    "r": "embedding_rank",
    "r_e": "position_rank",
    "n_P": "inside",
    "n_Q": "outside",
    "n": "n",
    "k": "k",
    "d": "dimension",
    "lambda": "degree",
    "size": "size",
    "L_deep": "deep_depth",
    "d_deep": "deep_width",
    "L_shallow": "shallow_depth",
    "lower": "lower",
    "upper": "upper",
    "plan": "plan",
    "entry": "entry",
}
LETTERS = {word: letter for letter, word in WORDS.items()}

FUNCTIONS: dict[str, Callable[..., object]] = {
    "C": counting.interaction_count,
    "multiset": counting.multiset,
    "multiset_log3": certified.multiset_log3,
    "ub_thm1": upper_every_depth.every_depth_upper_bound,
    "ub_thm1_log3": upper_every_depth.every_depth_upper_bound_log3,
    "ub_thm2": upper_deep_disputed.deep_upper_formula,
    "ub_thm2_log3": upper_deep_disputed.deep_upper_formula_log3,
    "ub_thm2_closed_log3": upper_deep_disputed.deep_upper_closed_log3,
    "ub_thm2_closed_log3_preprint": upper_deep_disputed.deep_upper_closed_preprint_log3,
    "lb": lower_bound.lower_bound,
    "lb_log3": lower_bound.lower_bound_log3,
    "lb_relaxA_log3": lower_bound.lower_bound_wide_log3,
    "lb_relaxB_log3": lower_bound.lower_bound_deep_log3,
    "lb_thm1_closed_log3": lower_bound.lower_bound_wide_closed_log3,
    "lb_thm2_closed_log3": lower_bound.lower_bound_deep_closed_log3,
    "lb_strong": lower_strong.strong_lower_bound,
    "lb_strong_log3": lower_strong.strong_lower_bound_log3,
    "ub_residual_recursion": upper_residual.residual_recursion,
    "ub_residual_recursion_log3": upper_residual.residual_recursion_log3,
    "ub_residual_product_paper_log3": upper_residual.residual_product_paper_log3,
    "ub_residual_closed_paper_log3": upper_residual.residual_closed_paper_log3,
    "ub_residual_product_corrected_log3": upper_residual.residual_product_corrected_log3,
    "ub_residual_thm4": upper_residual.residual_deep_formula,
    "ub_residual_thm4_log3": upper_residual.residual_deep_formula_log3,
    "ub_vocab_statement": upper_vocabulary_disputed.vocabulary_formula,
    "ub_vocab_statement_log3": upper_vocabulary_disputed.vocabulary_formula_log3,
    "ub_vocab_proof": upper_vocabulary_disputed.vocabulary_proof_formula,
    "ub_vocab_proof_log3": upper_vocabulary_disputed.vocabulary_proof_formula_log3,
    "lb_vocab": lower_vocabulary.vocabulary_lower_bound,
    "lb_vocab_log3": lower_vocabulary.vocabulary_lower_bound_log3,
    "lb_vocab_long": lower_vocabulary.long_sequence_lower_bound,
    "lb_vocab_long_log3": lower_vocabulary.long_sequence_lower_bound_log3,
    "lb_vocab_min_V": lower_vocabulary.vocabulary_needed,
    "lemma7_N": lower_vocabulary.positions_needed,
    "lemma8_smallest_c": veronese.smallest_squared_norm,
    "ub_stat": upper_statistics.statistics_upper_bound,
    "ub_stat_simple_log3": upper_statistics.statistics_upper_bound_log3,
    "ub_stat_N": upper_statistics_short.statistics_upper_bound_short,
    "ub_stat_vocab": upper_statistics_vocabulary.statistics_upper_bound_vocabulary,
    "ub_stat_vocab_log3": upper_statistics_vocabulary.statistics_upper_bound_vocabulary_log3,
    "ub_fill": upper_statistics_vocabulary.filling_upper_bound,
    "ub_fill_log3": upper_statistics_vocabulary.filling_upper_bound_log3,
    "ub_stat_pos": upper_statistics.statistics_upper_bound_positions,
    "ub_stat_pos_log3": upper_statistics.statistics_upper_bound_positions_log3,
    "monomial_witness": monomial_witness.monomial_witness,
    "monomial_witness_log3": monomial_witness.monomial_witness_log3,
    "depth_threshold": thresholds.depth_threshold,
    "depth_threshold_corrected": thresholds.corrected_depth_threshold,
    "bound_transition_depth": thresholds.bound_transition_depth,
    "min_depth": thresholds.minimal_depth,
    "required_width": required_width.required_width,
    "required_width_int": required_width.required_width_integer,
    "corollary2_beta": shallow_equivalent.shallow_equivalent,
    "params_12": parameters.standard_parameters,
    "params_analysed": parameters.analysed_parameters,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One value of the theory, with what it was computed from and how far to trust it."""

    name: str
    inputs: Mapping[str, object]
    value: Number | Mapping[str, Number]
    status: Status
    status_line: str  # the status with its reason or conditions
    source: str

    def as_json(self) -> dict[str, Json]:
        """The document that `archfit theory NAME … --json` prints."""
        return {
            "quantity": self.name,
            "inputs": {letter: as_json_value(value) for letter, value in self.inputs.items()},
            "value": as_json_value(self.value),
            "status": self.status,
            "status_line": self.status_line,
            "source": self.source,
            "network": NETWORK,
        }


def quantity(name: str, **inputs: object) -> Quantity:
    """The quantity of this name, for example quantity("ub_thm1", L=2, d_x=6, H=3)."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise ValueError(
            f"{name!r} is no quantity; {_nearest(name)}`archfit theory` lists them all"
        )
    _check_names(name, inputs)
    inputs = {letter: _plain(letter, value) for letter, value in inputs.items()}
    words = {WORDS[letter]: value for letter, value in inputs.items()}
    try:
        value = function(**words)
    except ValueError as problem:
        raise ValueError(_in_letters(str(problem), inputs)) from problem
    line = _docstring_line(function, "Status")
    return Quantity(
        name=name,
        inputs=inputs,
        value=_as_numbers(value),
        status=_status(name, line, inputs),
        status_line=line,
        source=_docstring_line(function, "Source"),
    )


@cache
def input_letters(name: str) -> Mapping[str, bool]:
    """The inputs of a quantity in the papers' letters, True where one must be given."""
    parameters_of = inspect.signature(FUNCTIONS[name]).parameters
    return {LETTERS[word]: p.default is p.empty for word, p in parameters_of.items()}


def meaning(name: str) -> str:
    """The first line of the quantity's docstring."""
    return (FUNCTIONS[name].__doc__ or "").partition("\n")[0]


def status_line(name: str) -> str:
    """The status of a quantity with its reason or conditions."""
    return _docstring_line(FUNCTIONS[name], "Status")


def source(name: str) -> str:
    """Where a quantity is stated."""
    return _docstring_line(FUNCTIONS[name], "Source")


def as_json_value(value: object) -> Json:
    """Integers above 2^53 and reals as decimal strings, fractions as "p/q", the rest as it is."""
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{integer_string(value.numerator)}/{integer_string(value.denominator)}"
    if isinstance(value, Fraction | int) and not isinstance(value, bool):
        whole = int(value)
        return whole if abs(whole) <= LARGEST_JSON_INTEGER else integer_string(whole)
    if isinstance(value, Mapping):
        return {str(key): as_json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(part) for part in value]
    return str(value)


def integer_string(value: int) -> str:
    """The decimal digits of an integer, also beyond the length at which `str` refuses."""
    if abs(value) < 10**4000:
        return str(value)
    from flint import fmpz

    return str(fmpz(value))


def _check_names(name: str, inputs: Mapping[str, object]) -> None:
    wanted = input_letters(name)
    takes = ", ".join(letter if needed else f"[{letter}]" for letter, needed in wanted.items())
    for letter in inputs:
        if letter not in wanted:
            hint = f" ({letter} is written {LETTERS[letter]})" if letter in LETTERS else ""
            raise ValueError(f"{name} has no input {letter!r}{hint}; it takes {takes}")
    missing = [letter for letter, needed in wanted.items() if needed and letter not in inputs]
    if missing:
        raise ValueError(f"{name} needs {', '.join(missing)}; it takes {takes}")


def _plain(letter: str, value: object) -> object:
    """The input as functions take it: a plan of pairs, a word, or a whole number, float or not."""
    if letter == "plan":
        return as_plan(value)
    if letter in {"lower", "upper"}:
        if not isinstance(value, str):
            raise ValueError(f"{letter}={value!r} is not a word; docs/notation.md lists them")
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if (
        isinstance(value, Decimal)
        and value.adjusted() < 4300
        and value == value.to_integral_value()
    ):
        return int(value)  # 1e999999999 is a Decimal of one digit, and no integer to have
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{letter}={value!s:.60} is not a whole number; give one, as {letter}=3")
    return value


def as_plan(value: object) -> monomial_witness.Plan:
    """The plan that a list of lists of pairs, or the word example, stands for."""
    if value == "example":
        return monomial_witness.example_plan()
    shape = "a plan is a list of layers, each a list of pairs [p, q], or the word example"
    try:
        plan = tuple(tuple((p, q) for p, q in layer) for layer in value)  # type: ignore[attr-defined]  # the except below
    except (TypeError, ValueError) as problem:
        raise ValueError(f"plan={str(value)[:40]!r} has another shape; {shape}") from problem
    if not all(type(n) is int for layer in plan for pair in layer for n in pair):
        raise ValueError(f"the plan holds something that is no whole number; {shape}")
    return plan


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, FUNCTIONS, n=1, cutoff=0.4)
    return f"did you mean {close[0]}? " if close else ""


def _in_letters(sentence: str, inputs: Mapping[str, object]) -> str:
    """An error that speaks of `width=` said in the letters the caller used."""
    for letter in inputs:
        sentence = re.sub(rf"\b{WORDS[letter]}(?==| [<>]=)", letter, sentence)
    return sentence


def _as_numbers(value: object) -> Number | Mapping[str, Number]:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    assert isinstance(value, int | Fraction | Decimal)
    return value


def _docstring_line(function: Callable[..., object], heading: str) -> str:
    """What the function's docstring says under `Source:` or `Status:`, the one place it is said."""
    for line in (function.__doc__ or "").splitlines():
        label, colon, text = line.strip().partition(": ")
        if colon and label == heading:
            return text.rstrip(".")
    raise RuntimeError(f"{function} has no {heading} in its docstring; run without -OO")


def _status(name: str, line: str, inputs: Mapping[str, object]) -> Status:
    if name == "corollary2_beta" and inputs.get("upper") == "paper":
        return "disputed"
    for status in ("proved", "derived", "disputed"):
        if line.startswith(status):
            return status
    raise RuntimeError(f"{name} has the status line {line!r}")
