"""promptfoo's GradingResult, as Python code returns it."""

from dataclasses import dataclass, field

import pytest

from agentv.assertions.user_code.result import at_threshold, from_python, grade_of


@dataclass
class Result:
    pass_: bool
    score: float
    reason: str = ""
    component_results: list = field(default_factory=list)
    named_scores: dict = field(default_factory=dict)


def graded(value, threshold=None):
    answer = from_python(value)
    return at_threshold(grade_of(answer, "python"), threshold, "python")


@pytest.mark.parametrize(
    ("value", "score", "passed"),
    [
        ({"pass": True, "score": 0.2}, 0.2, True),
        ({"pass_": False, "score": 0.9}, 0.9, False),
        (Result(True, 0.3), 0.3, True),
        ("true", 1, True),
        ('{"pass": true, "score": 0.4}', 0.4, True),
        ('{"pass_": false, "score": 1}', 1, False),
        (True, 1, True),
        (0.25, 0.25, False),
    ],
)
def test_each_shape_is_a_verdict(value, score, passed):
    grade = graded(value)
    assert grade.error is None, grade.error
    assert (grade.score, grade.passed) == (score, passed)


@pytest.mark.parametrize("value", ["yes", "", "{broken", "[true]", "null", None, [True], Result, {"reason": "a"}])
def test_anything_else_is_none(value):
    assert graded(value).error.code == "bad-result"


def test_components_are_checks_and_named_scores_details():
    parts = [{"pass_": True, "score": 1, "reason": "greets"}, {"pass": False, "score": 0}]
    grade = graded(Result(False, 0.5, "half", parts, {"polite": 1.0}))
    assert [(one.text, one.passed) for one in grade.checks] == [("greets", True), ("component 2", False)]
    assert (grade.reason, grade.details) == ("half", {"named_scores": {"polite": 1.0}})


@pytest.mark.parametrize(
    ("value", "threshold", "passed"),
    [
        (0.3, 0.2, True),
        (0.3, 0.4, False),
        (0, 0.000001, False),
        ({"pass": True, "score": 0.3}, 0.4, False),
        ({"pass_": False, "score": 0.9}, 0.4, False),
        (Result(False, 0.9), 0.4, False),
        ("false", 0.4, False),
        (False, 0, False),
    ],
)
def test_a_threshold_decides_unless_the_code_says_that_it_failed(value, threshold, passed):
    assert graded(value, threshold).passed is passed


def test_where_the_code_says_that_it_failed_no_score_would_have_passed():
    grade = graded({"pass": False, "score": 1, "reason": "rude"}, 0.5)
    assert (grade.passed, grade.needs, grade.counted) == (False, None, 0.0)
