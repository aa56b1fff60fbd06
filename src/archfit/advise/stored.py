"""What an advice was, beside its report: enough to write the report again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archfit import __version__
from archfit.advise.check import read_check
from archfit.advise.request import AdviceRequest, plan_for
from archfit.advise.verdict import CheckResult, judged
from archfit.data.prepared import PreparedData, open_prepared
from archfit.plan.planner import Plan
from archfit.spec import canonical_json, load_file, write_whole
from archfit.spec.files import ADVICE, LARGEST_ADVICE

FORMAT = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAdvice:
    """A request, and where its data and its check lie."""

    format: int
    archfit: str
    wish: AdviceRequest  # what was asked, under the key that folders of 0.1 have
    data: str  # within the folder of the advice, so that it can be moved, or a whole path
    check: str | None  # the name of its folder; None: not checked
    command: str


def check_place(out: Path, names: Sequence[str]) -> None:
    """Refuse a folder of no advice that has something of a name which an advice would replace."""
    there = [name for name in names if (out / name).exists()]
    if there and not (out / ADVICE).is_file():
        raise ValueError(
            f"{str(out)!r} holds {there[0]} and no advice, and {there[0]} would be lost; use "
            "another --out"
        )


def store(
    out: Path, request: AdviceRequest, data: PreparedData, check: CheckResult | None, command: str
) -> None:
    """Write what was asked and where its data and check lie, so that a page can be made again."""
    folder, within = data.folder.resolve(), out.resolve()
    advice = StoredAdvice(
        format=FORMAT,
        archfit=__version__,
        wish=request,
        data=str(folder.relative_to(within) if folder.is_relative_to(within) else folder),
        check=check.folder.name if check else None,
        command=command,
    )
    write_whole(out / ADVICE, (canonical_json(advice) + "\n").encode())


def read_advice(out: Path) -> tuple[StoredAdvice, PreparedData, Plan, CheckResult | None]:
    """The advice in a folder, with its plan and what its check says; nothing is trained."""
    path = out / ADVICE
    try:
        advice = load_file(StoredAdvice, path, most_bytes=LARGEST_ADVICE)
    except ValueError as problem:
        raise ValueError(
            f"{path} holds no advice: {problem}; run archfit advise again"
        ) from problem
    if (advice.format, advice.archfit) != (FORMAT, __version__):
        raise ValueError(
            f"{path} is written by archfit {advice.archfit:.20}, and this is archfit "
            f"{__version__}; run archfit advise again"
        )
    data = open_prepared(out / advice.data)
    plan = plan_for(advice.wish, data, out)
    if advice.check is None:
        return advice, data, plan, None
    folder = out / Path(advice.check).name
    return advice, data, plan, judged(plan, read_check(plan, data, folder), folder)
