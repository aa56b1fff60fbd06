"""Bounds, quantities of the papers and witnesses as documents."""

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from archfit.report.document import Document, Figure, Section, Table, facts, json_of, said
from archfit.theory.arithmetic import TooManyDigitsError
from archfit.theory.bounds import BoundsReport
from archfit.theory.catalogue import ENTRIES, Quantity, as_json_value, quantity
from archfit.theory.counterexample import Refutation
from archfit.theory.shape import Bound, Shape

if TYPE_CHECKING:
    from archfit.exact.witness import WitnessCheck

WITNESSES = {"monomial_witness", "monomial_witness_log3"}
MOST_LISTED = 20  # numbers in a line
LARGEST_WRITTEN = 10**9
PROVED = {"proved": "proved in the paper", "derived": "proved here (docs/theory.md)"}
GROUPS = {  # of names: how they begin
    "Upper bounds": "ub_", "Lower bounds": "lb", "Thresholds, counts and lemmas": "",
}  # fmt: skip
Json = dict[str, object]


def bounds_json(report: BoundsReport) -> Json:
    """All bounds of one architecture, for programs."""
    share, words = f"{report.saturation:.6g}", _regime_words(report)
    return _data("bounds", report, share=share, notes=notes(report.shape), **words)


def _regime_words(report: BoundsReport) -> dict[str, str]:
    """Where the depth stands, what its thresholds are, and what the saturation is."""
    shape, mask = report.shape, "masked" if report.shape.causal else "unmasked"
    growth, formula = (said(f"bounds.{what}-{mask}") for what in ("growth", "threshold"))
    return {
        "regime_name": said(f"bounds.{report.regime.place}", shape, report.regime, growth=growth),
        "paper_threshold_is": said("bounds.paper-threshold"),
        "corrected_threshold_is": said("bounds.corrected-threshold", formula=formula),
        "saturation_is": said(f"bounds.saturation-{mask}"),
    }


def notes(shape: Shape) -> list[str]:
    """What a reader of the bounds must know about this shape."""
    is_open = shape.positions is None
    told = {
        "uneven-heads": shape.head_dim is None and shape.width % shape.heads > 0,
        "any-length": is_open,
        "under-mask": shape.causal,
        "large-vocabulary": shape.vocab is not None and not shape.causal,
        "residual-length": shape.residual and is_open,
    }
    return [said(f"bounds.{note}", shape) for note, holds in told.items() if holds]


def _data(name: str, item: object, **more: object) -> Json:
    """The object of this name in json.toml; nothing about nothing. Numbers keep their digits."""
    return {} if item is None else dict(as_json_value(json_of(name, item, **more)))  # type: ignore[arg-type]  # an object


def bounds_document(report: BoundsReport, verdict: Refutation | None) -> Document:
    """All bounds of one architecture, the best proved pair first."""
    shape, regime, data = report.shape, report.regime, bounds_json(report)
    lower, upper, words = _size(report.lower), _size(report.upper), _regime_words(report)
    found = Decimal(0) if verdict is None or shape.vocab else verdict.witness_log3 or Decimal(0)
    if found > report.lower.log3:
        lower = f"3^{short_real(found)}"
    network, causal = said("bounds.network", shape), said("bounds.causal", shape)
    table = Table.of(
        "bounds",
        report.bounds,
        title=f"Separation rank at {network} (best that hold: first two)",
        log3=lambda bound: short_real(bound.log3),
        status=lambda bound: PROVED.get(bound.status, bound.status_line),
    )
    mask = causal if shape.causal else "no causal mask"
    return Document(
        title=f"Bounds at {network}",
        headline=said("bounds.headline", lower=lower, upper=upper),
        sections=(
            *_verdict_sections(verdict),
            Section.of(
                said("bounds.analysed", network=network, mask=mask),
                said("bounds.lower", report.lower, proved=PROVED[report.lower.status]),
                said("bounds.upper", report.upper, proved=PROVED[report.upper.status]),
                said("bounds.regime", shape.depth, words["regime_name"]),
                said("bounds.means"),
            ),
            Section.of(table, is_why=True),
            Section.of(
                f"Network: {data['network']}.",
                f"{regime.paper_threshold:.3f} = {words['paper_threshold_is']}.",
                f"{regime.corrected_threshold:.3f} = {words['corrected_threshold_is']}.",
                *(f"Note: {note}." for note in notes(shape)),
                said("bounds.sources"),
                is_why=True,
            ),
            Section.of(bounds_figure(shape), is_detail=True),
        ),
        data=data | _data("refutation", verdict),
    )


def _size(bound: Bound) -> str:
    """A bound in the headline: exactly where that is short, else by its logarithm."""
    if isinstance(bound.exact, int) and bound.exact < LARGEST_WRITTEN:
        return f"{bound.exact:,}"
    return f"3^{short_real(bound.log3)}"


def bounds_figure(shape: Shape) -> Figure:
    """Bounds on what a network of this width can tell apart, over depth."""
    return Figure.of("bounds", said("bounds.figure", shape), shape)


def quantity_document(result: Quantity, verdict: Refutation | None) -> Document:
    """One quantity of the papers with its status; a witness beside the formula it may exceed."""
    data, entry, comparison = _data("value", result), ENTRIES[result.name], []
    inputs, compared = data["inputs"], {}
    assert isinstance(inputs, dict)
    if result.name in WITNESSES:
        witness, formula = _beside_formula(result)
        assert isinstance(witness.value, int | Decimal)
        assert isinstance(formula.value, int | Fraction | Decimal)
        exceeds = witness.value > formula.value
        compared = _data("comparison", formula, exceeds_formula=exceeds)
        words = {"formula": formula.name, "value": _text(as_json_value(formula.value))}
        relation = "above" if exceeds else "below"
        comparison = [said("quantity.compared", relation=relation, **words)]
    given = ", ".join(f"{key}={_text(value)}" for key, value in inputs.items())
    source = result.source.removeprefix("derived here ")
    about = Section.of(
        entry.meaning,
        f"Status: {_said_status(result.status_line)}.",
        f"Source: {source[1:-1] if source.startswith('(') else source}.",
        f"Network: {result.network}.",
        f"Inputs: {_letters({letter: entry.words[letter] for letter in inputs})}.",
        *comparison,
    )
    return Document(
        title=result.name,
        headline=f"{result.name}({given}) = {_text(data['value'])}",
        sections=(about, *_verdict_sections(verdict)),
        data=data | compared | _data("refutation", verdict),
    )


def _beside_formula(witness: Quantity) -> tuple[Quantity, Quantity]:
    """The witness and the papers' formula for the same depth and width.

    Exactly where both can be written out, by certified logarithms elsewhere.
    """
    shape = {letter: witness.inputs[letter] for letter in ("L", "d_x")}
    # The formula is a fraction over width^width, quickly written out where that is narrow.
    is_narrow = isinstance(shape["d_x"], int) and shape["d_x"] <= 1000
    with suppress(TooManyDigitsError):
        if witness.name == "monomial_witness" and is_narrow:
            return witness, quantity("ub_thm2", **shape)
    logarithm = quantity("monomial_witness_log3", **witness.inputs)
    return logarithm, quantity("ub_thm2_log3", **shape)


def _verdict_sections(verdict: Refutation | None) -> tuple[Section, ...]:
    """Whether a disputed formula was refuted, and by which weights; nothing where nobody asked."""
    if verdict is None:
        return ()
    found, formula = verdict.witness_log3, short_real(verdict.formula_log3)
    best = "" if found is None else said("bounds.best", short_real(found))
    word = "REFUTED" if verdict.refuted else "not refuted"
    allows = said("bounds.allows", formula=formula, best=best)
    check = [said("bounds.check")] * verdict.refuted
    return (Section.of(allows, *check, title=said("bounds.refuted", verdict, word=word)),)


def _said_status(line: str) -> str:
    """How far to trust a quantity, for people; `line` is what JSON says."""
    word = line.partition(" ")[0].rstrip(",")
    return (PROVED.get(word, word) + line[len(word) :]).replace(") (", "; ")


def _letters(words: Mapping[str, str]) -> str:
    """What the letters of inputs stand for; some are words already."""
    told = (at if at == word else f"{at} {word.replace('_', ' ')}" for at, word in words.items())
    return ", ".join(told)


def quantities_document() -> Document:
    """Every quantity by name, with its inputs, status and meaning."""
    plain = [entry for name, entry in ENTRIES.items() if not name.endswith("_log3")]
    names: dict[str, list[str]] = {group: [] for group in (*GROUPS, "Disputed")}
    for entry in plain:
        group = next(group for group, start in GROUPS.items() if entry.name.startswith(start))
        names["Disputed" if entry.status == "disputed" else group].append(entry.name)
    letters = {letter: word for entry in plain for letter, word in entry.words.items()}
    titles = {
        name: f"{name} {' '.join(entry.takes)}  [{_said_status(entry.status_line)}]"
        for name, entry in ENTRIES.items()
    }
    return Document(
        title="Quantities of the papers",
        headline=said("quantity.all", len(ENTRIES)),
        sections=(
            Section.of(*(f"{group}: {', '.join(found)}." for group, found in names.items())),
            Section.of(f"Letters: {_letters(letters)}.", is_why=True),
            *(Section.of(ENTRIES[at].meaning, title=titles[at], is_why=True) for at in ENTRIES),
        ),
        data=[json_of("quantity", entry, source=entry.row["source"]) for entry in ENTRIES.values()],
    )


def witness_document(check: "WitnessCheck") -> Document:
    """The weights of a lower bound, run and compared with the formula of their output."""
    found, (rows, columns), is_all = check.witness, check.size, check.extent == "all"
    expected, measured = short_integer(str(found.bound)), "not measured: too large"
    if check.measured_rank is not None:
        measured = f"{check.measured_rank:,}{'' if is_all else ' (of the formula)'}"
    runs = "all" if is_all else f"a random {check.entries_checked:,} of"
    words = {"runs": runs, "expected": expected, "measured": measured}
    words["bound"] = f"{found.bound_id} = {expected}"
    lines = facts("witness", check, entries=rows * columns, **words)
    title = said("witness.title", found, network=said("bounds.network", found.shape))
    follows = "witness.follows" if check.measured_rank is None else "witness.verified"
    return Document(
        title=title,
        headline=said(follows if check.verified else "witness.not-verified", expected),
        sections=(
            Section.of(
                said("witness.ranks", **words),
                said("witness.wrong" if check.entries_wrong else "witness.right", check),
            ),
            Section.of(Table(title=title, columns=("", ""), rows=tuple(lines)), is_why=True),
        ),
        data=_data("witness", check),
    )


def short_real(value: Decimal) -> str:
    """A real as a person wants it in a table: six digits, or all of a whole number of nine."""
    if value == 0:
        return "0"
    if 6 <= value.adjusted() < 9:
        return f"{value:,.0f}"
    if -4 <= value.adjusted() < 9:
        return f"{value:.6g}"
    return f"{value:.5e}".replace("e+", "e")


def short_integer(digits: str) -> str:
    """An integer that a line can hold: its first and last digits and their number."""
    if len(digits) <= 60 or not digits.lstrip("-").isdigit():
        return digits
    return f"{digits[:20]}…{digits[-10:]} ({len(digits.lstrip('-')):,} digits)"


def _text(value: object) -> str:
    """A value in a line: long integers shortened, a plan by its length, an object by its parts."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items())
    if not isinstance(value, list):
        return short_integer(str(value))
    if any(isinstance(part, list) for part in value):
        is_plan = value[0][0] not in ("A", "B")
        return f"(a plan of {len(value)} layers)" if is_plan else f"({len(value)} segments)"
    if len(value) > MOST_LISTED:
        return f"{len(value)} numbers, {', '.join(map(_text, value[:MOST_LISTED]))}, …"
    return ", ".join(map(_text, value))
