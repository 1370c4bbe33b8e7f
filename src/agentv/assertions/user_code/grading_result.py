"""promptfoo's GradingResult: `pass`, `score`, `reason`, `componentResults`, `namedScores`, in either spelling."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from msgspec.structs import replace

from agentv.model.run.grade import AssertionScore, Grade, reaches
from agentv.model.values.values import Json

_SPELLINGS = {
    "pass_": "pass",
    "component_results": "componentResults",
    "named_scores": "namedScores",
    "tokens_used": "tokensUsed",
}
"""As Python code spells a key, which may be no keyword → as promptfoo does."""


def from_python(value: object) -> object:
    """The return value of a Python function in the form of `grade_of`: dataclasses as mappings, texts parsed."""
    if isinstance(value, str):
        return _promptfoo_verdict(value.strip())
    if is_dataclass(value) and not isinstance(value, type | AssertionScore):
        value = asdict(value)
    return with_checks(value) if isinstance(value, Mapping) else value


def with_checks(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same answer with the verdicts of its components as `checks`, if it has none.

    `namedScores` are kept in `details`.
    """
    answer = _spelled(answer)
    named, details = answer.get("namedScores"), answer.get("details")
    if isinstance(named, Mapping) and named and isinstance(details, Mapping | None):
        answer["details"] = {"named_scores": named, **(details or {})}
    components = answer.get("componentResults")
    if isinstance(components, list) and "checks" not in answer and "assertions" not in answer:
        answer["checks"] = [_check(one, place) for place, one in enumerate(components, start=1)]
    return answer


def at_threshold(grade: Grade, threshold: float | None, subject: str) -> Grade:
    """The grade judged by a threshold of the entry; a no of the code's own stays one.

    Args:
        grade: made of what the code returned.
        threshold: None: the grade stays as it is.
        subject: the text of the check that was made of the verdict itself.
    """
    if threshold is None or grade.error is not None or grade.has_own_threshold:
        return grade
    passed = reaches(grade.score, threshold)
    checks = grade.checks
    if len(checks) == 1 and checks[0].text == subject:
        checks = (replace(checks[0], passed=passed, evidence=f"scores {grade.score:g}, threshold {threshold:g}"),)
    return replace(grade, passed=passed, checks=checks, has_own_threshold=True, needs=threshold)


def _promptfoo_verdict(text: str) -> object:
    """The verdict in a text, as promptfoo reads what Python printed; else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return with_checks(value) if isinstance(value, dict) else value if isinstance(value, int | float) else text


def _check(component: Json, place: int) -> Json:
    if not isinstance(component, Mapping):
        return component
    component = _spelled(component)
    reason = component.get("reason")
    text = reason if isinstance(reason, str) and reason else f"component {place}"
    return {"text": text, "passed": component.get("pass")}


def _spelled(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_SPELLINGS.get(key, key): value for key, value in row.items()}
