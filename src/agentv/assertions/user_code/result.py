"""Conversion of user code's return values to verdicts (SPEC section 8, "AssertionScore")."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from agentv.assertions.services_for_workers import services_of
from agentv.model.run.context import AssertionContext, wire_of_context
from agentv.model.run.grade import AssertionScore, Check, Grade, reaches
from agentv.model.values.formatting import shorten
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.ports import CodeCall, Raised

PASS_MARK = 0.5
"""Threshold of a score that is given without a verdict."""

BAD_RESULT = "bad-result"

LIKE_PASS = ("ok", "success", "correct", "valid")
"""Fields that look like a verdict but are ignored."""


@dataclass(frozen=True, slots=True)
class ReturnedVerdict:
    """A complete verdict, with a finite score within 0..1.

    Attributes:
        denied: whether the code itself returned `pass: false`, so that its score counts as 0 (SPEC section 10).
        needs: threshold of the score; None if the code itself returned whether it passes.
        note: a remark that the score was clamped; None if it was within 0..1.
    """

    passed: bool
    score: float
    checks: tuple[Check, ...] = ()
    reason: str | None = None
    details: JsonObject = field(default=EMPTY)
    denied: bool = False
    needs: float | None = None
    note: str | None = None


def grade_of(value: object, subject: str) -> Grade:
    """Return the grade for a value that user code returned.

    Args:
        value: a bool, a number, an AssertionScore, or a mapping with its fields: `pass` (or `passed`), `score`,
            `assertions` (or `checks`), `reason`, `details`; `hits`, `misses` and `reasoning` of a code judge.
        subject: name of the code; the text of the only check if the value has no checks, and the beginning of errors.

    Returns:
        The grade; errored with code `bad-result` if the value is not a verdict.
    """
    verdict = verdict_of(value)
    if isinstance(verdict, Failure):
        return Grade.errored(verdict.code, f"{subject} {verdict.message}")
    checks = verdict.checks or (Check(subject, verdict.passed, verdict.reason),)
    return Grade(
        verdict.score,
        verdict.passed,
        checks,
        verdict.reason,
        verdict.details,
        has_own_threshold=verdict.denied,
        needs=verdict.needs,
        note=verdict.note,
    )


def verdict_of(value: object) -> ReturnedVerdict | Failure:
    """Return the verdict in a returned value, or a Failure `bad-result` whose message names the wrong field."""
    try:
        return _verdict_of(_native(value))
    except _WrongError as wrong:
        return Failure(BAD_RESULT, str(wrong))
    except RecursionError:
        return Failure(BAD_RESULT, "returned no verdict: 'details' is nested too deeply")


def wire_of(verdict: ReturnedVerdict) -> dict[str, Json]:
    """Return the output of an assertion file that is run directly: `score`, `assertions`, any `reason` and `details`.

    `pass` is included only if it contradicts the score, so that a reader cannot take a failure with a high score for
    a pass. Source: seed 003, "Expected output".
    """
    plain: dict[str, Json] = {}
    if verdict.passed != (verdict.score >= PASS_MARK):
        plain["pass"] = verdict.passed
    plain["score"] = int(verdict.score) if verdict.score.is_integer() else verdict.score
    plain["assertions"] = [
        {"text": one.text, "passed": one.passed, **({} if one.evidence is None else {"evidence": one.evidence})}
        for one in verdict.checks
    ]
    if verdict.reason is not None:
        plain["reason"] = verdict.reason
    if verdict.details:
        plain["details"] = verdict.details
    return plain


class _WrongError(Exception):
    """A returned value is not a verdict. The message continues a sentence that begins with the name of the code."""


def _verdict_of(value: object) -> ReturnedVerdict:
    if isinstance(value, bool):
        return ReturnedVerdict(value, float(value), denied=not value)
    if isinstance(value, int | float):
        score = _score(value, "a number")
        return ReturnedVerdict(score >= PASS_MARK, score, needs=PASS_MARK, note=_note(value, score))
    if isinstance(value, AssertionScore):
        return _verdict_of_fields(structs.asdict(value))
    if isinstance(value, Mapping):
        return _verdict_of_fields(value)
    found = "nothing" if value is None else f"{type(value).__name__} {_short(value)}"
    raise _WrongError(f"returned {found}; it must return a bool, a number, or an object with 'pass' or 'score'")


def _verdict_of_fields(fields: Mapping[Any, object]) -> ReturnedVerdict:
    passed = _either(fields, ("pass", "passed"), _flag)
    score = _optional(fields, "score", _score)
    checks = _checks(fields)
    if score is None and passed is not None:
        score = float(passed)
    elif score is None:  # `assertions` alone: the share that passed
        if not (fields.get("assertions") or fields.get("checks")):
            raise _WrongError("returned no verdict: its result has none of 'pass', 'score' and 'assertions'")
        score = sum(check.passed for check in checks) / len(checks)
    return ReturnedVerdict(
        passed=score >= PASS_MARK if passed is None else passed,
        score=score,
        checks=checks,
        reason=_reason(fields, has_verdict=passed is not None),
        details=_optional(fields, "details", _details) or EMPTY,
        denied=passed is False,
        needs=PASS_MARK if passed is None else None,
        note=_note(_native(fields.get("score")), score),
    )


_ROUNDING = 1e-6
"""Rounding error of single precision: a score this far outside of 0 to 1 is clamped without a note."""


def _note(given: object, score: float) -> str | None:
    """Return a note if a score was clamped: a grader that scores from 1 to 10 would otherwise go unnoticed."""
    if not isinstance(given, int | float) or -_ROUNDING <= given <= 1 + _ROUNDING:
        return None
    return f"the score {_short(given)} is outside of 0 to 1 and was clamped to {score:g}"


def _reason(fields: Mapping[Any, object], *, has_verdict: bool) -> str | None:
    """Return the given reason, with a note about an ignored field that was probably meant as the verdict."""
    given: str | None = _either(fields, ("reason", "reasoning"), _text)
    ignored = [name for name in LIKE_PASS if isinstance(_native(fields.get(name)), bool)]
    if has_verdict or not ignored:
        return given
    note = f"'{ignored[0]}' is ignored; did you mean 'pass'?"
    return f"{given} ({note})" if given else note


def _checks(fields: Mapping[Any, object]) -> tuple[Check, ...]:
    found: list[Check] = []
    for name in ("assertions", "checks"):
        rows = _optional(fields, name, _rows) or ()
        found += [_check(row, f"{name}[{place}]") for place, row in enumerate(rows)]
    for name, passed in (("hits", True), ("misses", False)):
        rows = _optional(fields, name, _rows) or ()
        found += [Check(_text(row, f"{name}[{place}]"), passed) for place, row in enumerate(rows)]
    return tuple(found)


def _check(row: object, name: str) -> Check:
    if isinstance(row, Check):
        row = {"text": row.text, "passed": row.passed, "evidence": row.evidence}
    if not isinstance(row, Mapping):
        raise _wrong_field(name, "an object with 'text' and 'passed'", row)
    passed = _either(row, ("passed", "pass"), _flag, f"{name}.")
    if passed is None:
        raise _WrongError(f"returned a check without a verdict: '{name}' has no 'passed'")
    evidence = _either(row, ("evidence", "reason"), _text, f"{name}.", all_agree=False)
    return Check(_text(row.get("text"), f"{name}.text"), passed, evidence)


def _either(
    fields: Mapping[Any, object],
    names: tuple[str, str],
    read: Callable[[object, str], Any],
    prefix: str = "",
    *,
    all_agree: bool = True,
) -> Any:
    """Return the value under either spelling, or None. With `all_agree`, raise if the two contradict each other."""
    values = [_optional(fields, name, read, prefix) for name in names]
    given = [value for value in values if value is not None]
    if all_agree and len(given) > 1 and given[0] != given[1]:
        raise _WrongError(f"contradicts itself: '{prefix}{names[0]}' and '{prefix}{names[1]}' differ")
    return given[0] if given else None


def _optional(fields: Mapping[Any, object], name: str, read: Callable[[object, str], Any], prefix: str = "") -> Any:
    value = _native(fields.get(name))
    return None if value is None else read(value, prefix + name)


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong_field(name, "true or false", value)
    return value


def _score(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_field(name, "a number from 0 to 1", value)
    if not isinstance(value, int) and not math.isfinite(value):
        raise _wrong_field(name, "a finite number", value)
    return float(min(max(value, 0), 1))


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise _wrong_field(name, "text", value)
    return value


def _rows(value: object, name: str) -> Iterable[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _wrong_field(name, "a list", value)
    return value


def _details(value: object, name: str) -> JsonObject:
    if not isinstance(value, Mapping):
        raise _wrong_field(name, "an object", value)
    return {str(key): _json(inner, f"{name}.{key}") for key, inner in value.items()}


def _json(value: object, name: str) -> Json:
    value = _native(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no NaN or infinity; most languages write null
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json(inner, f"{name}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner, f"{name}[{place}]") for place, inner in enumerate(value)]
    raise _wrong_field(name, "a value that JSON can represent", value)


def _native(value: object) -> object:
    """Return a NumPy scalar as a Python value, since people compute scores with NumPy; other values unchanged."""
    if type(value).__module__ == "numpy" and not getattr(value, "shape", (0,)):
        return value.item()  # type: ignore[attr-defined]  # every NumPy scalar has it
    return value


def _wrong_field(name: str, wanted: str, value: object) -> _WrongError:
    found = "nothing" if value is None else f"{type(value).__name__} {_short(value)}"
    return _WrongError(f"returned no verdict: '{name}' must be {wanted}, found {found}")


def _short(value: object, limit: int = 60) -> str:
    return shorten(repr(value), limit)


_SPELLINGS = {
    "pass_": "pass",
    "component_results": "componentResults",
    "named_scores": "namedScores",
    "tokens_used": "tokensUsed",
}
"""Key as spelled in Python, where keywords and camel case are avoided → promptfoo's spelling."""


def from_python(value: object) -> object:
    """Return a Python function's return value in a form for `grade_of`: dataclasses as mappings, texts parsed."""
    if isinstance(value, str):
        return _promptfoo_verdict(value.strip())
    if is_dataclass(value) and not isinstance(value, type | AssertionScore):
        value = asdict(value)
    return with_checks(value) if isinstance(value, Mapping) else value


def with_checks(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer with the verdicts of promptfoo's `componentResults` as `checks`, if it has no checks.

    `namedScores` are copied to `details`.
    """
    answer = _spelled(answer)
    named, details = answer.get("namedScores"), answer.get("details")
    if isinstance(named, Mapping) and named and isinstance(details, Mapping | None):
        answer["details"] = {"named_scores": named, **(details or {})}
    components = answer.get("componentResults")
    if isinstance(components, list) and "checks" not in answer and "assertions" not in answer:
        answer["checks"] = [_component_check(one, place) for place, one in enumerate(components, start=1)]
    return answer


def at_threshold(grade: Grade, threshold: float | None, subject: str) -> Grade:
    """Return the grade decided by the entry's threshold. If the code itself returned `pass: false`, it stays failed.

    Args:
        grade: the grade for the code's return value.
        threshold: None leaves the grade unchanged.
        subject: text of the check that represents the verdict itself.
    """
    if threshold is None or grade.error is not None or grade.has_own_threshold:
        return grade
    passed = reaches(grade.score, threshold)
    checks = grade.checks
    if len(checks) == 1 and checks[0].text == subject:
        checks = (replace(checks[0], passed=passed, evidence=f"scores {grade.score:g}, threshold {threshold:g}"),)
    return replace(grade, passed=passed, checks=checks, has_own_threshold=True, needs=threshold)


def _promptfoo_verdict(text: str) -> object:
    """Return the verdict in a text, read as promptfoo reads Python's output, or the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return with_checks(value) if isinstance(value, dict) else value if isinstance(value, int | float) else text


def _component_check(component: Json, place: int) -> Json:
    if not isinstance(component, Mapping):
        return component
    component = _spelled(component)
    reason = component.get("reason")
    text = reason if isinstance(reason, str) and reason else f"component {place}"
    return {"text": text, "passed": component.get("pass")}


def _spelled(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_SPELLINGS.get(key, key): value for key, value in row.items()}


Read = Callable[[object, str], Grade]
"""(return value of user code, name of the code) → grade."""


async def grade_in_worker(
    context: AssertionContext, call: CodeCall, config: JsonObject | None, read: Read = grade_of
) -> Grade:
    """Call user code in a worker, and return its grade.

    Args:
        context: context of the answer, which is added to the payload.
        call: the call; its payload has what the adapter needs besides the context.
        config: `config` of the context in the worker; None leaves it unchanged.
        read: converts the return value to a grade.

    Returns:
        The grade; errored with `assertion-raised`, `cannot-load` or `user-code-died` if the code does not return.
    """
    payload = {**call.payload, "context": wire_of_context(context, config)}
    env = dict(context.env) or None
    found = await context.services.executor.python(
        replace(call, payload=payload, env=env, handler=services_of(context))
    )
    if not isinstance(found, Raised):
        return read(found.value, call.what)
    if found.code == BAD_RESULT and found.cause:
        wanted = "it must return a bool, a number, or an object with 'pass' or 'score'"
        return Grade.errored(BAD_RESULT, f"{call.what} returned {found.cause}; {wanted}")
    return Grade.errored(found.code, found.message)
