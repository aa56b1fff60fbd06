"""Singular values of embeddings, largest first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archfit.audit.auditor import AuditResult
from archfit.audit.embedding_spectrum import EmbeddingSpectrum

if TYPE_CHECKING:
    import altair


def spectrum_chart(models: Sequence[AuditResult]) -> "altair.LayerChart | altair.FacetChart":
    """One curve for each model, as a share of its largest value; a rule marks its rank."""
    import altair

    measured = [(one.model.name, one.spectrum) for one in models if one.spectrum is not None]
    values = [
        {"model": name, "index": index, "share": value / spectrum.singular_values[0]}
        for name, spectrum in measured
        for index, value in spectrum.points()
        if value > 0  # the axis is logarithmic
    ]
    ranks = [{"model": name, "rank": spectrum.numerical_rank} for name, spectrum in measured]
    curves = (
        altair.Chart(altair.InlineData(values=values))
        .mark_line(strokeWidth=2)
        .encode(
            x=altair.X("index:Q", title="singular value, by size"),
            y=altair.Y(
                "share:Q",
                title="share of the largest",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(format="~e"),
            ),
            color=altair.Color("model:N", legend=altair.Legend(title=None, orient="bottom")),
            strokeDash=altair.StrokeDash("model:N", legend=None),
        )
    )
    rules = (
        altair.Chart(altair.InlineData(values=ranks))
        .mark_rule(strokeDash=[2, 3])
        .encode(x="rank:Q", color="model:N")
    )
    return altair.layer(
        curves,
        rules,
        width=560,
        height=320,
        title=altair.TitleParams(
            "Spectrum of the embedding",
            subtitle=[_words(name, spectrum) for name, spectrum in measured],
            anchor="start",
        ),
        description="Singular values of "
        + "; ".join(_words(name, spectrum) for name, spectrum in measured),
    )


def _words(name: str, spectrum: EmbeddingSpectrum) -> str:
    return (
        f"{name}: rank {spectrum.numerical_rank:,} of {spectrum.width:,} (dotted), stable rank "
        f"{spectrum.stable_rank:.1f}, effective rank {spectrum.effective_rank:.1f}"
    )
