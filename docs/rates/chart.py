"""The map of best rates as a picture: python docs/rates/chart.py FILES > docs/rates/map.svg

A mark is a network: its best rate over the width, brought to 8,192 tokens a step by the rule's
power of the batch. The larger the mark, the more a wrong rate costs there; lines are the rule.
"""

import sys
from pathlib import Path

import altair as alt
import numpy as np
import vl_convert

from archfit.spec.rates import BATCH_TOKENS, auto_rate
from fit import BLOCKS, TunedNetwork, read

FACTOR = np.log(2)


def mark(network: TunedNetwork) -> dict[str, object]:
    """Where a network stands."""
    shape, at = network.spec.architecture, int(network.losses.argmin())
    rule = [
        auto_rate(shape.block, width=shape.width, batch_tokens=batch)
        for batch in (BATCH_TOKENS, network.batch_tokens)
    ]
    best = float(np.exp(network.log_rates[at]))
    wrong = [network.cost(float(network.log_rates[at]) + side) for side in (-FACTOR, FACTOR)]
    return {
        "width": shape.width,
        "rate": best * rule[0] / rule[1],
        "block": shape.block,
        "cost": min(0.3, float(np.mean(wrong))),
    }


def main() -> None:
    """Draw all networks of the files."""
    networks = read(map(Path, sys.argv[1:]))
    marks = [mark(network) for network in networks if network.is_fitted_to]
    lines = [
        {"width": w, "rate": auto_rate(b, width=w, batch_tokens=BATCH_TOKENS), "block": b}
        for b in BLOCKS
        for w in (16, 32, 64, 128, 256)
    ]
    x = alt.X("width:Q", scale=alt.Scale(type="log", domain=[14, 290]), title="width")
    y = alt.Y(
        "rate:Q",
        scale=alt.Scale(type="log", domain=[5e-4, 0.2]),
        title="best peak rate at 8,192 tokens a step",
    )
    size = alt.Size("cost:Q", title="bits lost at half or twice the rate")
    points = alt.Chart(alt.Data(values=marks)).mark_point(filled=True, opacity=0.55)
    rule = alt.Chart(alt.Data(values=lines)).mark_line()
    both = points.encode(x=x, y=y, color="block:N", size=size) + rule.encode(
        x=x, y=y, color="block:N"
    )
    spec = both.properties(width=560, height=340).to_json()
    print(vl_convert.vegalite_to_svg(spec))


if __name__ == "__main__":
    main()
