import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.judged.rubric import LlmRubric, RubricEntry
from agentv.judge.target import TargetJudge
from agentv.model.run.grade import Check
from agentv.model.run.rubric import JudgeFailure, Verdict
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import Document
from doubles.judges import Deciding, JudgeServices, Saying, answered

RANGES = {"0": "bad", "5": "good"}


def verdict(score, *checks, satisfied=None, **more):
    return Verdict(score, checks, more.pop("reason", None), "{}", satisfied, **more)


def graded(assertion, said, output="42", criteria=None):
    judge = Deciding(said)
    services = JudgeServices(judge)
    grade = asyncio.run(assertion.grade(answered(output, criteria=criteria, _services=services)))
    return grade, judge.rubrics, services.asked


# what is asked


@pytest.mark.parametrize(("given", "mark"), [({"min_score": 7}, 7), ({"required": 7}, 7), ({"required": False}, None)])
def test_the_points_that_an_item_must_reach(given, mark):
    _, (rubric,), _ = graded(LlmRubric((RubricEntry("adds", score_ranges=RANGES, **given),)), verdict(1))
    assert rubric.items[0].min_score == mark


@pytest.mark.parametrize("criteria", [None, "", " "])
def test_nothing_to_judge_by_is_an_error(criteria):
    grade, rubrics, _ = graded(LlmRubric(), verdict(1), criteria=criteria)
    assert grade.error.code == "nothing-to-judge"
    assert not rubrics


def test_no_answer_is_an_error_and_nothing_is_asked():
    grade, rubrics, _ = graded(LlmRubric("is right"), verdict(1), output=None)
    assert grade.error.code == "no-output"
    assert not rubrics


# what becomes of the verdict


@pytest.mark.parametrize(("score", "passed"), [(1, True), (0.8, True), (0.8 - 1e-12, True), (0.79, False), (0, False)])
def test_prose_passes_from_0_8(score, passed):
    grade, _, _ = graded(LlmRubric("is right"), verdict(score, reason="so"))
    assert (grade.score, grade.passed, grade.reason, grade.error) == (score, passed, "so", None)
    assert grade.checks == (Check("so", passed),)


@pytest.mark.parametrize("votes", [(), (0.6, 0.6, 0.9)])
def test_a_check_that_the_mark_made_follows_another_mark(votes):
    grade, _, _ = graded(LlmRubric("is right"), verdict(0.6, reason="so", votes=votes))
    for mark, passed in ((0.5, True), (0.7, False)):
        assert {check.passed for check in grade.passing_at(mark).checks} == {passed}
    assert {check.passed for check in grade.negated().passing_at(0.3).checks} == {True}
    assert {check.passed for check in grade.negated().passing_at(0.5).checks} == {False}
    assert grade.passing_at(0.5).negated() == grade.negated().passing_at(0.5)


def test_a_check_of_the_judges_own_stays_whatever_the_mark():
    own = Check("says 42", False)
    grade, _, _ = graded(LlmRubric("is right"), verdict(0.6, own, votes=(0.6, 0.6, 0.9)))
    assert [check.passed for check in grade.passing_at(0.5).checks] == [False, True]


@pytest.mark.parametrize(("passed", "counted"), [(True, 1.0), (False, 0.0)])
def test_on_a_scale_the_points_decide_and_not_the_score(passed, counted):
    grade, _, _ = graded(LlmRubric("is right", scale="1-5"), verdict(0.75, passed=passed, details={"points": 4}))
    assert (grade.score, grade.passed, grade.counted) == (0.75, passed, counted)
    assert grade.details == {"points": 4}
    assert grade.passing_at(0.7).passed


def test_a_reply_that_is_no_verdict_fails_the_answer_and_its_complement():
    grade, _, _ = graded(LlmRubric("is right", scale="1-5"), verdict(0, passed=False, undecided=True))
    assert (grade.error, grade.passed, grade.counted) == (None, False, 0)
    shown = (grade.negated().passed, grade.passing_at(0).passed, grade.negated().passing_at(0).passed)
    assert shown == (False, False, False)


def test_a_failure_is_an_errored_grade_that_negation_leaves_so():
    failure = JudgeFailure("unreadable-verdict", "no", reply="Fine!", token_usage=TokenUsage(1), cost_usd=0.01)
    grade, _, _ = graded(LlmRubric("is right"), failure)
    assert grade.error == Failure("unreadable-verdict", "no")
    assert (grade.passed, grade.negated().passed, grade.passing_at(0).passed) == (False, False, False)
    assert grade.details == {"judge_reply": "Fine!"}
    assert (grade.token_usage, grade.cost_usd) == (TokenUsage(1), 0.01)


@given(weights=st.lists(st.floats(0, 10), min_size=1, max_size=6).filter(any), data=st.data())
def test_a_checklist_passes_just_when_its_rule_says_so(weights, data):
    count = len(weights)
    required = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    held = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    entries = tuple(RubricEntry(f"does {n}", weight=weights[n], required=required[n]) for n in range(count))
    checks = [f'{{"id": "r{n + 1}", "satisfied": {str(held[n]).lower()}}}' for n in range(count)]
    judge = TargetJudge(Saying([f'{{"checks": [{", ".join(checks)}]}}']), "judge")
    grade = asyncio.run(LlmRubric(entries).grade(answered("42", _services=JudgeServices(judge))))
    share = sum(weights[n] for n in range(count) if held[n]) / sum(weights)
    gate = all(held[n] for n in range(count) if required[n])
    assert grade.score == pytest.approx(share if gate else 0)
    assert grade.passed is (gate and share >= 0.8 - 1e-9)


# what is wrong with it at load


@pytest.mark.parametrize(
    ("minimum", "points"),
    [
        ({"min_score": 0.75}, 8),
        ({"min_score": 0.7}, 7),
        ({"min_score": 1}, 10),
        ({"min_score": 0}, 0),
        ({"required_min_score": 1}, 1),
        ({"required": 0.7}, 7),
        ({"required": True}, 10),
        ({}, None),
    ],
)
def test_a_minimum_of_an_item_is_a_share_up_to_1_and_points_above_it(minimum, points):
    assert RubricEntry("b", score_ranges=RANGES, **minimum).gate == points


def test_a_prompt_without_a_placeholder_is_criteria_in_the_built_in_prompt():
    rubric = LlmRubric(prompt=Document("Look for depth.")).rubric("Is short")
    assert (rubric.mode, rubric.text, rubric.prompt) == ("freeform", "Look for depth.", None)
    listed = LlmRubric(("names a day",), prompt=Document("Look for depth.")).rubric("Is short")
    assert (listed.mode, listed.text, len(listed.items), listed.prompt) == ("checklist", "Look for depth.", 1, None)


# how it is named


@pytest.mark.parametrize(
    ("assertion", "label"),
    [
        (LlmRubric("is\n right"), "is right"),
        (LlmRubric("x" * 100), "x" * 59 + "…"),
        (LlmRubric((RubricEntry("says 42"), "b", "c")), "says 42 (+2)"),
        (LlmRubric((RubricEntry(score_ranges=RANGES), "b")), "score ranges (+1)"),
        (LlmRubric((RubricEntry(id="tone", score_ranges=RANGES),)), "tone"),
        (LlmRubric(prompt=Document("Judge {{ output }}", "/evals/judges/depth.md")), "depth.md"),
        (LlmRubric(), "criteria"),
    ],
)
def test_the_label_is_what_is_judged_by(assertion, label):
    assert assertion.label() == label
