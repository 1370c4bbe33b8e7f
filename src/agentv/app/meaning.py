"""What a suite says, whatever file and spelling it is written in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentv.model.suite import Case, Suite, TargetSpec


def meaning(suite: Suite) -> tuple[Any, dict[str, Any]]:
    """The head of a suite and its cases by their ids, without their places: equal where two texts say the same."""
    head = replace(
        suite,
        cases=(),
        path="",
        targets=tuple(_placeless(target) for target in suite.targets),
        judge=_placeless(suite.judge),
        default_judge=_placeless(suite.default_judge),
        judges={name: _placeless(judge) for name, judge in suite.judges.items()},
        files={},
        tally=None,
        span=None,
    )
    return head, {case.id: _placeless_case(case) for case in suite.cases}


def _placeless_case(case: Case) -> Case:
    """A case without its assertions too: what they say is in its digest."""
    return replace(case, assertions=(), span=None, target=_placeless(case.target), judge=_placeless(case.judge))


def _placeless(target: TargetSpec | None) -> Any:
    return replace(target, span=None) if target is not None else None
