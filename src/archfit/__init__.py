"""Which Transformer architecture fits my data?"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archfit.fit.atlas import Atlas

__version__ = "0.1.0"


def atlas() -> "Atlas":
    """The runs that ship with archfit, on many kinds of data; `to_frame()` is their table."""
    from archfit.fit.atlas import read_atlas

    return read_atlas()
