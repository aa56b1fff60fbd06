"""From a request to its answer: pure functions, in whichever process they run."""

import sys
import traceback
from collections.abc import Callable

from archfit.report.explorer.api import (
    TooLargeError,
    audit_document,
    bounds_document,
    plan_document,
)
from archfit.report.explorer.charts import CHARTS
from archfit.report.explorer.exchange import Asked, Reply, json_reply, refusal
from archfit.report.explorer.pages import audit_page, gallery_page, plan_page
from archfit.spec.sentence import one_line

DOCUMENTS: dict[str, Callable[[Asked], object]] = {
    "/api/plan": plan_document,
    "/api/bounds": bounds_document,
    "/api/audit": audit_document,
}
PAGES: dict[str, Callable[[Asked], Reply]] = {
    "/": plan_page,
    "/audit": audit_page,
    "/gallery": gallery_page,
}
TAKE_A_CONFIG = ("/api/audit", "/audit")  # as the body of a POST
# Plans and audits take milliseconds; bounds, which may not, and charts have processes of their own.
LANES = {
    "answers": (*PAGES, "/api/plan", "/api/audit"),
    "bounds": ("/api/bounds",),
    "charts": tuple(CHARTS),
}

_SMALL = (("depth", "2"), ("width", "8"), ("heads", "2"))
FIRST = {  # what a process asks itself before others may
    "answers": Asked(path="/", query=(), body=b""),
    "bounds": Asked(path="/api/bounds", query=_SMALL, body=b""),
    "charts": Asked(path="/chart/wide/shapes", query=(), body=b""),
}


def answer(asked: Asked) -> Reply:
    """The answer; whatever is wrong with the request is one sentence."""
    try:
        if asked.path in PAGES:
            return PAGES[asked.path](asked)
        return json_reply((DOCUMENTS | CHARTS)[asked.path](asked))
    except TooLargeError as problem:
        return refusal(asked.path, 422, one_line(str(problem)))
    except ValueError as problem:
        return refusal(asked.path, 400, one_line(str(problem)))
    except Exception:  # a mistake of ours: one request's answer, not the end of the process
        traceback.print_exc(file=sys.stderr)
        return refusal(asked.path, 500, "archfit made a mistake here; its log has more")


def warm_up(lane: str) -> None:
    """Load what answers need, so that the first is as quick as the others."""
    answer(FIRST[lane])
