import json

import pytest

from agentv.assertions.measured import Latency
from agentv.assertions.structure import Aggregator, AssertSet, results_of
from agentv.assertions.text.matching import Contains
from agentv.assertions.user_code.script_and_python import aggregator_grade
from agentv.model.run.grade import Check, Grade
from agentv.model.run.trial import Score
from agentv.registry.fields import Command, Document
from agentv.user_code.processes import Finished
from doubles.nested_grading import FixedGrade, answer, entry, graded

YES, NO = Grade.of(True, "is so", "seen"), Grade.of(False, "is so", "not seen")
BROKEN = Grade.errored("timeout", "too late")


def given(grade, name="given", **settings):
    return entry(FixedGrade(grade, name), **settings)


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


HALF = Grade(0.5, False)
KINDS = [
    Aggregator("weighted_average"),
    Aggregator("threshold", threshold=0.1),
    Aggregator("all"),
    Aggregator("any"),
    Aggregator("code", command=Command(shell="decide")),
    Aggregator("llm"),
]


def child(grade, name, **settings):
    return entry(FixedGrade(grade, name), name=name, **settings)


def of(aggregator, *children, threshold=None):
    return AssertSet(children, threshold, aggregator)


@pytest.mark.parametrize(
    ("aggregator", "score", "passed"),
    [
        (Aggregator("threshold", threshold=0.6), 2 / 3, True),
        (Aggregator("threshold", threshold=0.7), 2 / 3, False),
        (Aggregator("all"), 0.0, False),
        (Aggregator("any"), 1.0, True),
    ],
)
def test_verdicts_are_counted(aggregator, score, passed):
    grade = graded(of(aggregator, child(YES, "a"), child(YES, "b"), child(HALF, "c")), "")
    assert (grade.score, grade.passed, grade.counted) == (score, passed, score)
    assert grade.checks[0].text.startswith("2 of 3 assertions pass")


@pytest.mark.parametrize("aggregator", KINDS, ids=lambda one: one.type)
def test_an_errored_child_errs_the_set_whatever_the_aggregator(aggregator):
    assert graded(of(aggregator, child(YES, "a"), child(BROKEN, "b")), "").error.code == "timeout"


@pytest.mark.parametrize("aggregator", KINDS[:4], ids=lambda one: one.type)
def test_a_required_child_that_fails_makes_the_set_count_for_nothing(aggregator):
    grade = graded(of(aggregator, child(YES, "a", weight=99.0), child(NO, "b", required=True)), answer(""))
    assert (grade.passed, grade.counted) == (False, 0.0)


def test_a_threshold_of_the_set_decides_whether_it_counts():
    children = (child(YES, "a"), child(HALF, "b"))
    grade = graded(of(Aggregator("weighted_average"), *children, threshold=0.7), "")
    assert (grade.passed, grade.counted) == (True, 1.0)
    assert graded(of(Aggregator("weighted_average"), *children, threshold=0.8), "").counted == 0.0


def test_code_that_decides_says_why_and_nothing_is_counted_beside_it():
    said = '{"score": 1, "assertions": [{"text": "enough of them pass", "passed": true}]}'
    decide = Aggregator("code", command=Command(argv=("echo", said)))
    grade = graded(of(decide, child(YES, "a"), child(NO, "b")), answer(""))
    assert [check.text for check in grade.checks] == ["enough of them pass", "a: is so", "b: is so"]


def test_names_that_stand_twice_get_a_number():
    results = results_of([Score(child(YES, "a"), YES, 1.0), Score(child(NO, "a"), NO, 1.0)])
    assert [*results] == ["a", "a (2)"]
    assert results["a (2)"]["verdict"] == "fail"
    assert results["a"]["assertions"] == [{"text": "is so", "passed": True, "evidence": "seen"}]


@pytest.mark.parametrize("name", ["results", "EVALUATOR_RESULTS_JSON"])
def test_a_judge_prompt_may_use_either_name_of_the_grades(name):
    assert not [*Aggregator("llm", prompt=Document(f"Decide: {{{{{name}}}}}")).validate()]


def said(value, status=0, stderr=b""):
    printed = value if isinstance(value, bytes) else json.dumps(value).encode()
    return aggregator_grade(Finished(status=status, stdout=printed, stderr=stderr), 0.8)


@pytest.mark.parametrize(
    ("value", "score", "passed", "counted"),
    [
        ({"score": 0.9}, 0.9, True, 0.9),
        ({"score": 0.7}, 0.7, False, 0.7),
        ({"score": 0.7, "verdict": "pass"}, 0.7, True, 0.7),
        ({"score": 0.9, "verdict": "fail"}, 0.9, False, 0.0),
        ({"score": 0.9, "pass": False}, 0.9, False, 0.0),
        ({"verdict": "pass"}, 1.0, True, 1.0),
        ({"score": 7}, 1.0, True, 1.0),
        ({"score": 0.6, "pass": None}, 0.6, False, 0.6),
        ({"score": 0.6, "verdict": None}, 0.6, False, 0.6),
    ],
)
def test_the_command_says_a_score_or_a_verdict(value, score, passed, counted):
    grade = said(value)
    assert (grade.error, grade.score, grade.passed, grade.counted) == (None, score, passed, counted)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"fine",
        {},
        {"reasoning": "good"},
        {"assertions": [{"text": "good", "passed": True}]},
        {"score": "high"},
        {"score": 1, "verdict": "maybe"},
        {"pass": True, "verdict": "fail"},
    ],
)
def test_whatever_else_the_command_prints_is_no_verdict(value):
    assert said(value).error.code == "bad-result"


def test_a_command_that_fails_gives_no_verdict():
    assert said({"score": 1}, status=1).error.code == "script-failed"
    assert said(b"", status=1).error is not None
