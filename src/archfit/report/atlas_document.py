"""The atlas in words: which depth is best at each size, kind by kind."""

from archfit.fit.atlas import Atlas, Series, atlas_json
from archfit.fit.best_depth import LEAST_DEPTHS, DepthCurve
from archfit.fit.noise import LEAST_DEGREES
from archfit.report.document import Document, Section, Table


def atlas_document(atlas: Atlas) -> Document:
    """A table of best depths with their intervals, a row a series."""
    found, kinds = atlas.curves(), {run.kind for run in atlas.runs}
    sizes = sorted({curve.size for curves in found.values() for curve in curves})
    rows = tuple(
        (series.kind, _name(series), *(_best(curves, size) for size in sizes))
        for series, curves in found.items()
        if curves
    )
    columns = ("kind", "tokens", *(_brief(size) for size in sizes))
    return Document(
        title="Which depth is best at each size",
        headline=f"{len(atlas.runs):,} runs on {len(kinds)} kind{'s' * (len(kinds) != 1)} of data",
        sections=(
            Section(
                sentences=(
                    "Layers that lose least at equal total size, with 90 % intervals; < and > "
                    "where the best may lie beyond the depths trained."
                    if rows
                    else f"No size has {LEAST_DEPTHS} depths and {LEAST_DEGREES} repeats by other "
                    "seeds, which a best depth needs.",
                ),
                tables=(Table(title="Best depth", columns=columns, rows=rows),),
            ),
        ),
        data=atlas_json(atlas),
    )


def _brief(size: int) -> str:
    return f"{size / 1e6:g}M" if size >= 1e6 else f"{size / 1e3:g}k"


def _name(series: Series) -> str:
    """What sets a series apart from the plain one of its kind."""
    return series.vocabulary if series.block == "gpt2" else f"{series.vocabulary}, {series.block}"


def _best(curves: tuple[DepthCurve, ...], size: int) -> str:
    for curve in curves:
        if curve.size == size:
            best = curve.best
            low = "<" if best.low is None else f"{best.low:.2g}"
            high = ">" if best.high is None else f"{best.high:.2g}"
            return f"{best.value:.2g} ({low} to {high})"
    return ""
