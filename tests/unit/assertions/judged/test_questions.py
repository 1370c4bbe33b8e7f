"""`factuality`, `closed-qa`, `answer-relevance`, `trajectory:goal-success`."""

import re

import pytest

from agentv.assertions.judged.questions import AnswerRelevance, ClosedQa, Factuality, GoalSuccess
from agentv.model.values.message import Message
from doubles.judging import grade_judged

REFERENCE = (Message("assistant", "Paris is the capital."),)


@pytest.mark.parametrize(("category", "passed"), [("A", True), ("B", True), ("C", True), ("D", False), ("E", True)])
def test_only_a_disagreement_fails_by_default(category, passed):
    grade, _ = grade_judged(Factuality("Paris."), {"category": category, "reason": "so"})
    assert (grade.score, grade.passed, grade.has_own_threshold) == (float(passed), passed, False)
    assert grade.negated().passed is not passed


def test_the_reference_is_the_value_else_the_expected_output():
    _, run = grade_judged(Factuality("Rome."), {"category": "C"}, expected_output=REFERENCE)
    assert "Rome." in run.asked
    assert "Paris is the capital." not in run.asked
    _, run = grade_judged(Factuality(), {"category": "C"}, expected_output=REFERENCE)
    assert "Paris is the capital." in run.asked


def test_without_a_reference_nothing_is_compared():
    grade, run = grade_judged(Factuality(), {"category": "C"})
    assert grade.error.code == "no-reference"
    assert run.judge_target.requests == []
    (fault,) = Factuality().missing_inputs({}, reference=False, criteria=False)
    assert (fault.code, fault.path) == ("missing-key", ())
    assert not [
        *Factuality().missing_inputs({}, reference=True, criteria=False),
        *Factuality("a").missing_inputs({}, reference=False, criteria=False),
    ]


@pytest.mark.parametrize("kind", [Factuality("a"), ClosedQa("a"), GoalSuccess("a"), AnswerRelevance()])
def test_without_an_answer_there_is_nothing_to_judge(kind):
    grade, run = grade_judged(kind, {"criterion_met": True, "reason": "it does"}, None)
    assert grade.error.code == "no-output"
    assert run.judge_target.requests == []


STATEMENTS = {"statements": [{"statement": one, "relevant": one != "It rains."} for one in ("Paris.", "It rains.")]}


@pytest.mark.parametrize(("threshold", "passed"), [(0.5, True), (0.51, False), (0.8, False)])
def test_an_answer_is_as_relevant_as_the_share_of_its_statements(threshold, passed):
    grade, _ = grade_judged(AnswerRelevance(threshold), STATEMENTS)
    assert (grade.score, grade.passed, grade.has_own_threshold) == (0.5, passed, True)
    assert [(check.text, check.passed) for check in grade.checks] == [("Paris.", True), ("It rains.", False)]


def test_the_question_is_the_option_else_the_variable_else_the_input():
    for kind, known, asked in (
        (AnswerRelevance(query="Which city?"), {"vars": {"query": "Which town?"}}, "Which city?"),
        (AnswerRelevance(), {"vars": {"query": "Which town?"}}, "Which town?"),
        (AnswerRelevance(), {"vars": {"query": ["no text"]}}, "What is 15 + 27?"),
        (AnswerRelevance(), {}, "What is 15 + 27?"),
    ):
        _, run = grade_judged(kind, STATEMENTS, **known)
        assert re.search(rf"<input-(\w+)>{re.escape(asked)}</input-\1>", run.asked)
