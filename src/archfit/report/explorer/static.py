"""Scripts and styles, under addresses that change with what they hold, so that they may be kept."""

import hashlib
from functools import cache
from importlib import metadata, resources

OWN = {"explorer.js": "text/javascript", "explorer.css": "text/css"}
VEGA = "vega.js"


@cache
def links() -> dict[str, str]:
    """The address of each file, from a page."""
    return {name: f"static/{version}/{name}" for name, version in _versions().items()}


@cache
def own_file(name: str) -> bytes:
    """A file of ours."""
    folder = resources.files("archfit.report").joinpath("templates/explorer")
    return folder.joinpath(name).read_bytes()


def _versions() -> dict[str, str]:
    own = {name: hashlib.sha256(own_file(name)).hexdigest()[:12] for name in OWN}
    return own | {VEGA: metadata.version("vl-convert-python")}
