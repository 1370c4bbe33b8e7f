import pytest

from agentv.assertions.measured import Latency
from agentv.assertions.structure import AssertSet
from agentv.assertions.text.matching import Contains
from agentv.model.run.grade import Check, Grade
from doubles.nested_grading import Given, entry, graded, issues

YES, NO = Grade.of(True, "is so", "seen"), Grade.of(False, "is so", "not seen")
BROKEN = Grade.errored("timeout", "too late")


def given(grade, name="given", **settings):
    return entry(Given(grade, name), **settings)


def test_the_score_is_the_weighted_mean_of_the_children():
    grade = graded(AssertSet((given(YES, weight=3.0), given(NO)), 0.75), "")
    assert (grade.score, grade.passed, grade.error, grade.has_own_threshold) == (0.75, True, None, True)
    assert not graded(AssertSet((given(YES, weight=3.0), given(NO)), 0.76), "").passed


def test_a_required_child_is_a_gate():
    grade = graded(AssertSet((given(YES, weight=99.0), given(NO, "tone", required=True)), 0.5), "")
    assert (grade.passed, grade.counted, grade.reason) == (False, 0.0, "given: tone is required")


def test_an_undecided_child_fails_the_set_and_its_complement():
    nothing = Grade(0.0, False, undecided=True)
    grade = graded(AssertSet((given(nothing),), 0.5), "")
    assert (grade.passed, grade.negated().passed, grade.error) == (False, False, None)
    assert not graded(AssertSet((given(nothing), given(NO)), 0.5), "").negated().passed


def test_an_undecided_child_does_no_harm_where_the_others_are_enough():
    nothing = Grade(0.0, False, undecided=True)
    grade = graded(AssertSet((given(nothing), given(YES)), 0.5), "")
    assert (grade.passed, grade.negated().passed) == (True, False)
    assert graded(AssertSet((given(nothing, weight=0.0), given(NO)), 0.5), "").negated().passed


def test_children_are_inverted_before_they_count():
    grade = graded(AssertSet((entry(Contains("a"), "contains", negate=True), entry(Contains("b"), "contains"))), "b")
    assert (grade.score, grade.passed) == (1.0, True)
    assert grade.checks[0] == Check("not-contains: 'a': not: contains 'a'", True, "b")


def test_missing_data_is_an_error_of_the_set():
    assert graded(AssertSet((entry(Latency(5), "latency", negate=True),)), "").error.code == "no-data"


def test_the_details_show_every_child():
    grade = graded(AssertSet((given(YES, "a", weight=2.0), given(BROKEN, "b", weight=0.0)), 0.4), "")
    assert grade.details == {
        "threshold": 0.4,
        "scores": [
            {"name": "given: a", "type": "given", "weight": 2.0, "required": False, "score": 1.0, "pass": True},
            {
                "name": "given: b",
                "type": "given",
                "weight": 0.0,
                "required": False,
                "error": {"code": "timeout", "message": "too late"},
            },
        ],
    }


@pytest.mark.parametrize(
    ("children", "found"),
    [
        ((), [("missing-value", ("assert_",))]),
        ((given(YES, weight=0.0),), [("bad-value", ("assert_",))]),
        ((given(YES, weight=0.0, required=True),), []),
        ((given(YES, weight=0.0), given(NO)), []),
    ],
)
def test_faults(children, found):
    assert issues(AssertSet(children)) == found
