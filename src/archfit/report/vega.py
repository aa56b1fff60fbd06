"""The scripts that draw charts in a browser, and what a page must say to let only them run."""

import base64
import hashlib
from functools import cache

# Charts in a JSON element of the page, each for a wide and for a narrow window. Expressions are
# interpreted (`ast`), so that no page need allow text to become code.
DRAW = """
const specs = JSON.parse(document.getElementById("charts").textContent);
const layout = matchMedia("(max-width: 700px)").matches ? "narrow" : "wide";
for (const [name, spec] of Object.entries(specs))
  vegaEmbed(document.getElementById(name), spec[layout],
    {mode: "vega-lite", actions: false, renderer: "svg", ast: true});
"""


@cache
def vega_embed() -> str:
    """Vega, Vega-Lite and their embedding as one script, from the package that draws the files."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script


def script_hash(script: str) -> str:
    """What a content security policy calls this script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
