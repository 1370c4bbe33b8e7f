"""promptfoo's GradingResult, where it says more than an AssertionScore: `componentResults`."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.model.values.values import Json, JsonObject


def with_checks(answer: JsonObject) -> JsonObject:
    """The same answer with the verdicts of its components as `checks`, where it brings none of its own."""
    components = answer.get("componentResults")
    if not isinstance(components, list) or "checks" in answer or "assertions" in answer:
        return answer
    return {**answer, "checks": [_check(one, place) for place, one in enumerate(components, start=1)]}


def _check(component: Json, place: int) -> Json:
    if not isinstance(component, Mapping):
        return component
    reason = component.get("reason")
    text = reason if isinstance(reason, str) and reason else f"component {place}"
    return {"text": text, "passed": component.get("pass")}
