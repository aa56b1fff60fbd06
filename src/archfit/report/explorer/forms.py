"""What the controls of a page say: the state that its address holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from archfit.plan.planner import Plan
from archfit.report.explorer.api import plan_of
from archfit.report.explorer.parameters import Pairs

BUDGETS = {
    "params": "all parameters",
    "block_params": "parameters of the blocks",
    "flops": "operations of the training",
}
PLAN_FIELDS = {  # with what an untouched page shows; empty: not said
    "budget": "125M",
    "of": "params",
    "vocab": "",
    "rank": "",
    "patch": "",
    "context": "1024",
    "max_depth": "128",
    "tied": "",
    "multiple_of": "",
    "tokens_per_param": "20",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """The fields of a page as they were sent."""

    fields: dict[str, str]
    problem: str  # with the form itself; empty: none


def read_form(query: Pairs, defaults: dict[str, str]) -> Form:
    """The fields, with the defaults for those that were not sent."""
    sent = dict(query)
    fields = {name: sent.get(name, default).strip() for name, default in defaults.items()}
    unknown = [name for name in sent if name not in defaults]
    problem = f"{unknown[0][:40]!r} is no field; use {', '.join(defaults)}" if unknown else ""
    if len(sent) < len(query):
        problem = "a field is sent twice; send it once"
    return Form(fields=fields, problem=problem)


def plan_query(form: Form) -> Sequence[tuple[str, str]]:
    """The parameters of the API that the fields of the plan say."""
    if form.problem:
        raise ValueError(form.problem)
    fields = dict(form.fields)
    kind, budget = fields.pop("of"), fields.pop("budget")
    if kind not in BUDGETS:
        raise ValueError(f"of={kind[:40]!r} is no budget; use one of {', '.join(BUDGETS)}")
    return [(name, text) for name, text in ({kind: budget} | fields).items() if text]


def plan_from_page(query: Pairs) -> Plan:
    """The plan that the address of a page asks for."""
    return plan_of(plan_query(read_form(query, PLAN_FIELDS)))
