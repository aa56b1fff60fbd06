"""Refused inputs whose sentences stand in resources/refusals.toml, by names."""

from string import Template

from archfit.spec.errors import InvalidValue
from archfit.spec.packed import packed_table


def sentences() -> dict[str, dict[str, str]]:
    """Each refusal's field, rule and way out, or what it says."""
    return packed_table("refusals.toml")


def refusal(name: str, value: object = None, /, **given: object) -> ValueError:
    """The error of this name about a value; `given` fills the places behind $ of its sentences."""
    about = {part: Template(text).substitute(given) for part, text in sentences()[name].items()}
    if "says" in about:
        return ValueError(about["says"])
    return InvalidValue(about["field"], value, about["rule"], about["way_out"])


def refuse_if(is_bad: bool, name: str, value: object = None, /, **given: object) -> None:
    """Raise the refusal of this name where a value breaks its rule."""
    if is_bad:
        raise refusal(name, value, **given)
