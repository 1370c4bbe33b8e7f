"""Output of `--list`, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from msgspec import to_builtins

from agentv.model.run.runs import ListedCase, ListedTotals
from agentv.model.values.formatting import money, plural
from agentv.model.values.values import Json
from agentv.reports.text.escaping import one_line, shown_from


def listed_line(case: ListedCase) -> str:
    """`support: refund with brief on gpt, 3 trials`."""
    prompt = "" if case.prompt_id is None else f" with {one_line(case.prompt_id)}"
    variant = "" if case.variant is None else f" as {one_line(case.variant)}"
    trials = "" if case.trials == case.repeat == 1 else f", {plural(case.trials, 'trial')}"
    if case.trials < case.repeat:
        trials += f" of {case.repeat}"
    return f"{one_line(case.suite)}: {one_line(case.test_id)}{prompt} on {one_line(case.target)}{variant}{trials}"


def listed_totals(totals: ListedTotals) -> list[str]:
    """The totals in words."""
    calls = [plural(totals.target_calls, "call") + " of targets", plural(totals.judge_calls, "call") + " of judges"]
    if totals.script_calls:
        calls.append(f"up to {totals.script_calls} more by scripts")
    return [
        f"{plural(totals.cases, 'case')}, {_most(totals)}{plural(totals.trials, 'trial')}: {', '.join(calls)}",
        *_cost(totals),
        *(f"{one_line(name)} ran to list its cases" for name in totals.generators),
        "no target and no judge was called, and nothing was written",
    ]


def _most(totals: ListedTotals) -> str:
    return "up to " if totals.at_most else ""


def _cost(totals: ListedTotals) -> Iterator[str]:
    """The estimate; nothing where no trial costs anything."""
    if totals.cost_usd is None:
        yield "cost unknown: no earlier run has costs for these trials"
    elif totals.unpriced:
        known = f"about {money(totals.cost_usd)}, from the cost of earlier runs"
        yield f"{known}; unknown for {plural(totals.unpriced, 'trial')}"
    elif totals.cost_usd:
        yield f"about {money(totals.cost_usd)}, from the cost of earlier runs"


def listed_json(cases: Iterable[ListedCase], totals: ListedTotals, here: str) -> Iterator[str]:
    """The lines of one JSON object: `cases`, one a line, with the names that rows use, then `totals`."""
    yield '{"cases": ['
    last: str | None = None
    for case in cases:
        if last is not None:
            yield f"{last},"
        last = json.dumps(_case_json(case, here))
    if last is not None:
        yield last
    yield f'], "totals": {json.dumps(to_builtins(totals))}}}'


def _case_json(case: ListedCase, here: str) -> dict[str, Json]:
    found: dict[str, Json] = to_builtins(case)
    del found["place"]
    if case.variant is None:
        del found["variant"]
    found["eval_path"] = shown_from(case.eval_path, here) if case.eval_path else None
    found["source"] = f"{shown_from(case.place[0], here)}:{case.place[1]}" if case.place else None
    return found
