"""Grades that code of the user's gave, as lines of a cassette: the code need not run where they are found.

A line holds `key`, `case`, `target`, `sample` where it says something, `code` (the assertion's name), `graded` (the
answer) and `grade`. A grade holds `score`, `pass`, `checks`, and of `reason`, `details`, `cost_usd`, `token_usage`,
`own_mark`, `undecided` and `by_mark` what says something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.model.run.grade import Check, Grade
from agentv.model.values.usage import TokenUsage
from agentv.store.files.encoding import to_json

_Number = Annotated[float, Meta(ge=0)]
_Score = Annotated[float, Meta(ge=0, le=1)]
_AFTER = "~"
"""Behind every hash: the grades of an answer stand behind the answer."""

Place = tuple[str, str, int, int, str]


@dataclass(frozen=True, slots=True)
class Grading:
    """One answer that code of the user's is to grade.

    Attributes:
        key: hash of what determines the grade: the code, its options, and what it gets to see.
        target: who gave the answer.
        name: of the assertion.
        output: the answer.
    """

    key: str
    case: str
    target: str
    sample: int
    name: str
    output: str | None


class _CheckLine(Struct, gc=False, forbid_unknown_fields=True):
    text: str
    passed: bool
    evidence: str | None = None


class _UsageLine(Struct, gc=False, forbid_unknown_fields=True):
    input: int | None = None
    output: int | None = None
    total: int | None = None
    cached: int | None = None
    reasoning: int | None = None


_GRADE_KEYS = {"passed": "pass", "has_own_threshold": "own_mark", "threshold_checks": "by_mark"}
"""Field of a grade → its key in a cassette, where the two differ."""


class _GradeLine(Struct, gc=False, forbid_unknown_fields=True, rename=_GRADE_KEYS):
    score: _Score
    passed: bool
    checks: list[_CheckLine]
    reason: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    cost_usd: _Number | UnsetType = UNSET
    token_usage: _UsageLine | UnsetType = UNSET
    has_own_threshold: bool | UnsetType = UNSET
    undecided: bool | UnsetType = UNSET
    threshold_checks: int | UnsetType = UNSET


class _GradingLine(Struct, gc=False):
    key: str
    case: str
    target: str
    sample: int | UnsetType
    code: str
    graded: str | None
    grade: _GradeLine


class _GradingRecord(Struct, gc=False):
    key: str
    case: str
    target: str
    code: str
    grade: _GradeLine
    sample: int = 1


class _Kind(Struct, gc=False):
    code: str | UnsetType = UNSET


_kind = msgspec.json.Decoder(_Kind).decode
_decode = msgspec.json.Decoder(_GradingRecord).decode


def is_grading(line: bytes) -> bool:
    """Return true if a line of a cassette holds a grade, rather than an answer.

    Raises:
        ValueError: it is no object of JSON.
    """
    return _kind(line).code is not UNSET


def grading_line(grading: Grading, grade: Grade) -> tuple[Place, bytes]:
    """The place of the line of a grade in a cassette, and the line, without its end."""
    usage = grade.token_usage
    written = _GradeLine(
        grade.score,
        grade.passed,
        [_CheckLine(check.text, check.passed, check.evidence) for check in grade.checks],
        grade.reason or UNSET,
        dict(grade.details) or UNSET,
        UNSET if grade.cost_usd is None else grade.cost_usd,
        UNSET if usage is None else _UsageLine(usage.input, usage.output, usage.total, usage.cached, usage.reasoning),
        grade.has_own_threshold or UNSET,
        grade.undecided or UNSET,
        grade.threshold_checks or UNSET,
    )
    sample = grading.sample if grading.sample > 1 else UNSET
    line = _GradingLine(grading.key, grading.case, grading.target, sample, grading.name, grading.output, written)
    return (_place(line, grading.sample), to_json(line))


def grading_in(line: bytes) -> tuple[str, Place, Grade]:
    """The key of a line that holds a grade, its place, and the grade.

    Raises:
        ValueError, TypeError: it holds none; the text names the place in the line.
    """
    read = _decode(line)
    found = read.grade
    usage = None if found.token_usage is UNSET else TokenUsage(**msgspec.structs.asdict(found.token_usage))
    grade = Grade(
        found.score,
        found.passed,
        tuple(Check(one.text, one.passed, one.evidence) for one in found.checks),
        found.reason or None,
        {} if found.details is UNSET else found.details,
        has_own_threshold=bool(found.has_own_threshold),
        cost_usd=None if found.cost_usd is UNSET else found.cost_usd,
        token_usage=usage,
        undecided=bool(found.undecided),
        threshold_checks=found.threshold_checks or 0,
    )
    return read.key, _place(read, read.sample), grade


def _place(line: _GradingLine | _GradingRecord, sample: int) -> Place:
    return (line.case, line.target, 0, sample, f"{_AFTER}{line.code}{line.key}")
