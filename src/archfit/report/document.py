"""A result as it is told: headline, sections of sentences, tables and figures, and its JSON.

Every kind of result is built once, by one function of this room (`plan_document`, …), and
rendered by `terminal.text_of` for people at a terminal, by `page` for browsers, and by `data` for
programs. Values in, words out: nothing here prints, draws or writes a file.

What does not change with the values stands in resources/report: the columns of tables in
tables.toml, titles and captions of figures in figures.toml, the keys of JSON in json.toml,
sentences in sentences.toml, and sections that always say the same in sections.toml.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from importlib import import_module
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from archfit.spec.packed import packed_table
from archfit.spec.sizes import short_size, written_size

if TYPE_CHECKING:
    import altair

    Drawing: TypeAlias = altair.LayerChart | altair.VConcatChart | altair.ConcatChart

LONGEST_NUMBER = 40  # characters
NEXT = "Next"  # the title of the section that says what to do now


def written(name: str) -> dict[str, Any]:
    """What resources/report says of tables, figures, charts, sections or JSON, by their names."""
    return packed_table(f"report/{name}.toml")


def size_words(size: float) -> str:
    """A round number of parameters: 60k, 125k, 1M."""
    return f"{size / 1e6:g}M" if size >= 1e6 else f"{size / 1e3:g}k"


class Unsaid(Exception):
    """Raised by what is not known and without which there is nothing to say."""


class Template(Formatter):
    """`{0.size:,|?}` is the size of the first item, or a question mark where it has none."""

    forms: ClassVar[dict[str, Callable[[Any], str]]] = {
        "yes": lambda value: "yes" if value else "no",
        "list": lambda values: ", ".join(map(str, values)),
        "and": lambda values: " and ".join(map(str, values)),
        "number": lambda values: str(len(values)),
        "size": size_words,
        "short": short_size,
        "gigabytes": lambda value: f"{value / 1e9:,.2f}",
        "millions": lambda value: f"{value / 1e6:{',.0f' if value >= 1e9 else '.4g'}}",
        "2 digits": lambda value: written_size(round(float(f"{value:.2g}"))),
        "3 digits": lambda value: written_size(round(float(f"{value:.3g}"))),
    }

    def format_field(self, value: Any, format_spec: str) -> str:
        """The value, or what stands behind the bar, if there is one, for None and for no words.

        Besides the formats of Python there are those above; `count layer` writes 1 layer and
        2 layers. Behind the bar of what nothing can be said without stands an exclamation mark.
        """
        form, bar, unknown = format_spec.partition("|")
        if bar and value in (None, ""):
            if unknown == "!":
                raise Unsaid
            return unknown
        if form in self.forms:
            return self.forms[form](value)
        if form.endswith("%"):  # and a space before it
            return f"{100 * value:{form[:-1]}f} %"
        _, counts, noun = form.rpartition("count ")
        return counted(value, noun) if counts else format(value, form)

    def filled(self, form: str, *items: object, **words: object) -> str:
        """The text with its places filled; nothing where what it needs is not known."""
        try:
            return self.vformat(form, items, words)
        except Unsaid:
            return ""


def said(name: str, /, *items: object, **words: object) -> str:
    """The sentence of this name in sentences.toml about these items, `document.name`."""
    document, _, sentence = name.partition(".")
    return Template().filled(written("sentences")[document][sentence], *items, **words)


def json_of(name: str, item: object, **more: object) -> dict[str, Any]:
    """The object of this name in json.toml about an item: its keys, and where their values are.

    A dataclass becomes an object, a tuple a list, and `path as NAME` the objects of that name;
    paths may begin with names in `more`, too.
    """

    def value_at(about: str | Mapping[str, Any]) -> object:
        if not isinstance(about, str):
            return {key: value_at(path) for key, path in about.items()}
        path, _, kind = about.partition(" as ")
        path, _, form = path.partition(":")
        first, *others = path.split(".")
        value: Any = more[first] if first in more else getattr(item, first)
        for attribute in others:
            value = None if value is None else getattr(value, attribute)
        return _json_value(value, form, kind)

    return {key: value_at(path) for key, path in written("json")[name].items()}


def _json_value(value: Any, form: str, kind: str) -> object:
    """What json.toml says of a value: how many, whether there is none, to how many digits, or as
    an object of which name."""
    if form in ("#", "?"):
        return len(value) if form == "#" else value is None
    if isinstance(value, tuple):
        return [_json_value(each, form, kind) for each in value]
    if value is not None and kind:
        return json_of(kind, value)
    if value is not None and form:
        return float(value) if form == "real" else round(value, int(form) or None)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 layer`, `2 layers`; `several` is the plural where it is not made by an s."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


class Command(str):
    """A line to type, among sentences: set as code, and never wrapped."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Words in rows and columns under a title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    narrow: tuple[str, ...] = ()  # the columns that a terminal has room for; none named: all
    sortable: bool = False  # so long that a page lets its reader sort and filter it

    @classmethod
    def of(
        cls, name: str, items: Iterable[Any], title: str = "", **more: Callable[[Any], object]
    ) -> "Table":
        """The table of this name in tables.toml, with a row for each item, or tuple of items.

        Templates of its columns call what is said of items by no attribute by the names in `more`.
        """
        about, filled = written("tables")[name], Template().filled
        columns, rows = about["columns"], []
        for item in items:
            values = item if isinstance(item, tuple) else (item,)
            named = {name: say(item) for name, say in more.items()}
            rows.append(tuple(filled(form, *values, **named) for form in columns.values()))
        return cls(
            title=title or about["title"],
            columns=tuple(columns),
            rows=tuple(rows),
            narrow=tuple(about.get("narrow", ())),
            sortable=about.get("sortable", False),
        )

    @property
    def numeric(self) -> frozenset[int]:
        """Places of the columns that hold numbers, which are set to the right."""
        places = range(len(self.columns))
        return frozenset(at for at in places if all(_is_number(row[at]) for row in self.rows))

    def narrowed(self) -> "Table":
        """The table with the columns that a terminal has room for."""
        if not self.narrow:
            return self
        kept = [self.columns.index(name) for name in self.narrow]
        rows = tuple(tuple(row[at] for at in kept) for row in self.rows)
        return replace(self, columns=self.narrow, rows=rows, narrow=())


def facts(name: str, /, *items: object, **words: object) -> list[tuple[str, str]]:
    """Quantities and their values, by the facts of this name in tables.toml.

    One whose template ends in a bar with nothing behind it is left out where it is not known.
    """
    filled, rows = Template().filled, []
    for quantity, form in written("tables")[name]["facts"].items():
        value = filled(form, *items, **words)
        if value or "|" not in form:
            rows.append((filled(quantity, *items, **words), value))
    return rows


def _is_number(text: str) -> bool:
    """Whether it is empty or begins like one; a hash may, but is too long."""
    return not text or ((text[0].isdigit() or text[0] in "+-…≤≥?") and len(text) < LONGEST_NUMBER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The room that a chart has."""

    columns: int  # panels in a row
    width: int  # pixels of a panel
    legend_columns: int

    def for_panels(self, panels: int) -> "Layout":
        """The same, with wide panels where they do not fill a row."""
        return replace(self, width=self.width * max(1, self.columns // panels))


WIDE = Layout(columns=2, width=340, legend_columns=4)
NARROW = Layout(columns=1, width=250, legend_columns=1)  # a phone, held upright


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A chart, drawn only when somebody asks for it, and what is said about it."""

    name: str  # of its files
    title: str
    caption: str  # how to read it
    description: str  # what it shows, for those who do not see it
    chart: "Callable[[Layout], Drawing]"

    @classmethod
    def of(cls, name: str, description: str, *of_what: object, **words: object) -> "Figure":
        """The figure of this name in figures.toml; `words` fill the braces there, also its name's.

        Its function of report/charts draws `of_what` in a layout. Where a number is `left` out of
        the chart, its caption says so.
        """
        about = written("figures")[name]
        module, _, function = about["chart"].partition(".")

        def draw(page: Layout) -> "Drawing":
            """Load the module only now: altair takes its time."""
            drawn = getattr(import_module(f"archfit.report.charts.{module}"), function)
            return drawn(*of_what, page)  # type: ignore[no-any-return]  # as all of them are

        caption = about["caption"] + (about["left"] if words.get("left") else "")
        name, title, caption = (text.format(**words) for text in (name, about["title"], caption))
        return cls(name=name, title=title, caption=caption, description=description, chart=draw)


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of a document: sentences, then figures, then tables."""

    title: str = ""
    sentences: tuple[str, ...] = ()  # a `Command` among them is one to type
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    is_detail: bool = False  # for pages: a terminal leaves it out
    is_why: bool = False  # for a terminal only where somebody asks why
    status: str = ""  # of a check, or the severity of a finding: a page sets it off by that

    @classmethod
    def of(cls, *parts: str | Table | Figure, **marks: Any) -> "Section":
        """A section of these parts, of each kind in their order; `marks` are its other fields.

        Sentences that are empty are left out, such as the question of a sweep that has none.
        """
        return cls(
            sentences=tuple(part for part in parts if isinstance(part, str) and part),
            tables=tuple(part for part in parts if isinstance(part, Table)),
            figures=tuple(part for part in parts if isinstance(part, Figure)),
            **marks,
        )

    @classmethod
    def next(cls, *parts: str) -> "Section":
        """What to do now."""
        return cls.of(*parts, title=NEXT)

    @classmethod
    def of_page(
        cls, name: str, *parts: Table | Figure, is_why: bool = False, **words: object
    ) -> "Section":
        """The section of this name in sections.toml, a detail for pages or `is_why`, with these
        parts; `words` fill the braces of its sentences.

        Where it has tables and none of them has rows, there is nothing to say.
        """
        about = written("sections")[name]
        tables = [part for part in parts if isinstance(part, Table)]
        if tables and not any(table.rows for table in tables):
            return cls()
        told, title = (each.format(**words) for each in about["sentences"]), about.get("title", "")
        return cls.of(*told, *parts, title=title, is_why=is_why, is_detail=not is_why)


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A result in words, and the JSON that stands for it."""

    title: str
    headline: str = ""  # the answer, in at most two lines
    sections: tuple[Section, ...]  # first how sure it is, then NEXT; `is_why` for who asks
    data: object  # what `--json` prints
    status: str = ""  # of the headline: the worst severity, or how a check ended

    def __post_init__(self) -> None:
        """Sections without anything to say are left out, and tables without rows."""
        kept = (
            replace(section, tables=tuple(table for table in section.tables if table.rows))
            for section in self.sections
        )
        told = tuple(part for part in kept if part.sentences or part.tables or part.figures)
        object.__setattr__(self, "sections", told)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All charts, in their order."""
        return tuple(figure for section in self.sections for figure in section.figures)

    def figure(self, name: str) -> Figure:
        """The chart of this name."""
        return next(figure for figure in self.figures if figure.name == name)
