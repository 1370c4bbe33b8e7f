import json
import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.user_code.result import at_threshold, from_python, grade_of, verdict_of, wire_of
from agentv.model.run.grade import AssertionScore, Check


class NumpyLike:
    """Looks like a NumPy scalar to the reader, without NumPy."""

    shape = ()

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


NumpyLike.__module__ = "numpy"


@pytest.mark.parametrize(
    ("value", "passed", "score"),
    [
        (True, True, 1.0),
        (False, False, 0.0),
        (0.5, True, 0.5),
        (0.49, False, 0.49),
        (7, True, 1.0),
        (10**400, True, 1.0),
        ({"pass": True}, True, 1.0),
        ({"score": 0.2}, False, 0.2),
        ({"pass": True, "score": 0.1}, True, 0.1),
        ({"pass": None, "score": 1}, True, 1.0),
        (AssertionScore(passed=True), True, 1.0),
        (AssertionScore(score=0.3), False, 0.3),
        ({"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}, True, 0.5),
        ({"assertions": [{"text": "a", "passed": False}]}, False, 0.0),
        ({"checks": [{"text": "a", "passed": True}], "misses": ["b", "c"]}, False, 1 / 3),
        (NumpyLike(True), True, 1.0),
        ({"score": NumpyLike(0.75)}, True, 0.75),
    ],
)
def test_a_verdict_is_read_as_it_was_given(value, passed, score):
    grade = grade_of(value, "mine")
    assert (grade.passed, grade.score, grade.error) == (passed, score, None)
    assert grade.counted == score


@pytest.mark.parametrize(
    ("value", "note"),
    [
        (7, "the score 7 is outside of 0 to 1 and was clamped to 1"),
        ({"pass": False, "score": 7}, "the score 7 is outside of 0 to 1 and was clamped to 1"),
        ({"score": -0.5}, "the score -0.5 is outside of 0 to 1 and was clamped to 0"),
        ({"score": 1.0000001}, None),  # cosine similarity of equal vectors in single precision
        (-1e-17, None),
        ({"pass": True}, None),
    ],
)
def test_a_score_that_was_clamped_is_noted(value, note):
    assert grade_of(value, "mine").note == note


@pytest.mark.parametrize("value", [{"pass": False, "score": 0.9}, AssertionScore(passed=False, score=0.9)])
def test_a_no_of_the_grader_counts_0_whatever_its_score(value):
    grade = grade_of(value, "mine")
    assert (grade.passed, grade.score, grade.counted) == (False, 0.9, 0.0)
    assert (grade.negated().passed, grade.negated().score, grade.negated().counted) == (True, 0.1, 1.0)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "nothing"),
        ("yes", "str 'yes'"),
        ([True], "list"),
        ({}, "none of 'pass', 'score' and 'assertions'"),
        ({"assertions": []}, "none of"),
        ({"pass": 1}, "'pass' must be true or false, found int 1"),
        ({"pass": True, "score": "0.9"}, "'score' must be a number from 0 to 1"),
        ({"score": math.nan}, "'score' must be a finite number"),
        (math.nan, "finite"),
        ({"pass": True, "passed": False}, "contradicts itself"),
        ({"pass": True, "assertions": "all good"}, "'assertions' must be a list"),
        ({"pass": True, "assertions": ["good"]}, "'assertions[0]' must be an object"),
        ({"pass": True, "assertions": [{"text": "a"}]}, "'assertions[0]' has no 'passed'"),
        ({"pass": True, "checks": [{"text": 3, "passed": True}]}, "'checks[0].text' must be text"),
        ({"pass": True, "checks": [{"text": "a", "passed": True, "evidence": 3}]}, "'checks[0].evidence'"),
        ({"pass": True, "reason": 3}, "'reason' must be text"),
        ({"pass": True, "details": [1]}, "'details' must be an object"),
        ({"pass": True, "details": {"a": {"b": object()}}}, "'details.a.b'"),
        ({"score": 0.9, "hits": "all"}, "'hits' must be a list"),
        (AssertionScore(passed="yes"), "'passed'"),
    ],
)
def test_what_is_no_verdict_is_an_error_that_names_the_field(value, named):
    grade = grade_of(value, "mine")
    assert grade.error.code == "bad-result"
    assert grade.error.message.startswith("mine ")
    assert named in grade.error.message
    assert not grade.passed


def test_checks_keep_their_text_verdict_and_evidence():
    value = {
        "pass": True,
        "assertions": [{"text": "a", "passed": True, "evidence": "line 3"}, Check("b", False)],
        "checks": [{"text": "c", "pass": False, "reason": "because"}],
    }
    shown = grade_of(value, "mine").checks
    assert shown == (Check("a", True, "line 3"), Check("b", False), Check("c", False, "because"))


def test_a_field_that_looks_like_a_verdict_is_ignored_and_says_so():
    note = "'ok' is ignored; did you mean 'pass'?"
    assert grade_of({"ok": False, "score": 1}, "python").reason == note
    assert grade_of({"ok": False, "score": 1, "reason": "fine"}, "python").reason == f"fine ({note})"
    assert grade_of({"ok": False, "pass": True}, "python").reason is None
    assert grade_of({"ok": "no", "score": 1}, "python").reason is None


def test_details_become_plain_data():
    details = grade_of({"pass": True, "details": {"a": (1, NumpyLike(2.5)), 3: math.nan}}, "mine").details
    assert details == {"a": [1, 2.5], "3": None}
    json.dumps(details)


def test_details_nested_too_deeply_are_an_error():
    details = {}
    for _ in range(5000):
        details = {"a": details}
    assert "nested too deeply" in grade_of({"pass": True, "details": details}, "mine").error.message


def test_the_wire_object_has_the_order_of_the_seed():
    verdict = verdict_of({"pass": True, "assertions": [{"text": "Output has 6 words", "passed": True}]})
    expected = '{"score": 1, "assertions": [{"text": "Output has 6 words", "passed": true}]}'
    assert json.dumps(wire_of(verdict)) == expected


@given(
    st.one_of(
        st.fixed_dictionaries({"pass": st.booleans(), "score": st.floats(-1, 2)}),
        st.fixed_dictionaries({"score": st.floats(-1, 2)}),
        st.booleans(),
    )
)
def test_what_is_printed_reads_back_as_the_same_verdict(value):
    verdict = verdict_of(value)
    again = verdict_of(json.loads(json.dumps(wire_of(verdict))))
    assert (again.passed, again.score) == (verdict.passed, verdict.score)


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.dictionaries(st.text(), inner))
)
def test_anything_is_a_grade_within_bounds_or_an_error(value):
    grade = grade_of(value, "mine")
    assert 0.0 <= grade.score <= 1.0
    assert grade.error is None or not grade.passed


@dataclass
class Result:
    pass_: bool
    score: float
    reason: str = ""
    component_results: list = field(default_factory=list)
    named_scores: dict = field(default_factory=dict)


def graded(value, threshold=None):
    return at_threshold(grade_of(from_python(value), "python"), threshold, "python")


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
