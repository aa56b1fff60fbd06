"""What the Python functions return: a value, and the document that tells it."""

import base64
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, Generic, TypeVar

from archfit.report.document import Document, Figure
from archfit.report.terminal import text_of

Value = TypeVar("Value")
Rows = Callable[[Any], Sequence[Mapping[str, object]]]
LIBRARIES = ("pandas", "polars")  # of tables


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Answer(Generic[Value]):
    """A result: its value, whose attributes are the answer's, and its document.

    A notebook shows the document; `to_dict` is what `--json` prints.
    """

    value: Value
    tell: Callable[[], Document]  # called once, when somebody looks
    rows: Rows = field(default=list)  # of what `to_dict` returns: a table

    @cached_property
    def document(self) -> Document:
        """Headline, sections, tables and figures."""
        return self.tell()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling ask for these before there is a value
            raise AttributeError(name)
        return getattr(self.value, name)

    def __repr__(self) -> str:
        return f"<{self.document.headline}>"

    def __str__(self) -> str:
        return text_of(self.document, why=False)

    def _repr_html_(self) -> str:
        """The document as a notebook shows it: the answer, and the rest folded away."""
        from archfit.report.page import fragment

        parts = [replace(part, figures=()) for part in self.document.sections]
        told = [part for part in parts if not (part.is_why or part.is_detail)]
        rest = [part for part in parts if part.is_why or part.is_detail]
        can_draw = all(importlib.util.find_spec(name) for name in ("altair", "vl_convert"))
        figures = "".join(map(_image, self.document.figures)) if can_draw else ""
        return (
            f"<p><strong>{escape(self.document.headline)}</strong></p>{fragment(told)}"
            f"<details><summary>Why</summary>{figures}{fragment(rest)}</details>"
        )

    def to_dict(self) -> Any:
        """What `--json` prints."""
        return self.document.data

    def to_frame(self) -> Any:
        """Its table as a DataFrame of pandas, or of polars where that is missing."""
        for library in LIBRARIES:
            if importlib.util.find_spec(library) is not None:
                rows = list(map(dict, self.rows(self.to_dict())))
                return importlib.import_module(library).DataFrame(rows)
        raise ImportError(f"a table needs {' or '.join(LIBRARIES)}; pip install pandas")


def _image(figure: Figure) -> str:
    """A chart as a picture that needs no script and no other file."""
    import vl_convert

    from archfit.report.page import titled_chart

    drawn = vl_convert.vegalite_to_svg(titled_chart(figure).to_dict())
    coded = base64.b64encode(drawn.encode()).decode()
    source, said = f"data:image/svg+xml;base64,{coded}", escape(figure.description, quote=True)
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    return f'<figure><img src="{source}" alt="{said}">{caption}</figure>'
