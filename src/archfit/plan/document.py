"""An interval of redundancy as JSON."""

from archfit.plan.redundancy import Redundancy


def interval_json(share: Redundancy) -> dict[str, object]:
    """An interval of redundancy as JSON."""
    return {"low": share.low, "high": share.high, "basis": share.basis}
