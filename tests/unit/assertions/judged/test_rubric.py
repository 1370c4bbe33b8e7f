import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.judged.rubric import LlmRubric, RubricEntry, prompt_issues
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


def codes(assertion):
    return [(fault.code, fault.path) for fault in assertion.validate()]


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
    "assertion",
    [
        LlmRubric(),
        LlmRubric(("says 42", RubricEntry("is polite", "r1b", weight=0))),
        LlmRubric(prompt=Document("Judge {{ output }}")),
        LlmRubric("is right", prompt=Document("{{ rubrics }} {{ candidate_answer }}")),
        LlmRubric("is right", prompt=Document("{{ expected_outcome }} {{ output }}")),
        LlmRubric(("says 42",), prompt=Document("{{ rubrics }} {{ output }}")),
        LlmRubric("is right", scale="0-10"),
        LlmRubric((RubricEntry(score_ranges=RANGES), RubricEntry("b", "x", score_ranges=RANGES, min_score=7.0))),
        LlmRubric((RubricEntry("b", score_ranges=RANGES, required=0),)),
        LlmRubric((RubricEntry("b", score_ranges=RANGES, required=False),)),
    ],
)
def test_a_sound_rubric_has_no_faults(assertion):
    assert codes(assertion) == []


@pytest.mark.parametrize(
    ("assertion", "found"),
    [
        (LlmRubric(""), [("missing-value", ("value",))]),
        (LlmRubric(("says 42", " ")), [("missing-value", ("value", 1))]),
        (LlmRubric((RubricEntry("a", weight=0), RubricEntry("b", weight=0))), [("bad-value", ("value",))]),
        (LlmRubric((RubricEntry("a", "x"), "b", RubricEntry("c", "x"))), [("duplicate-id", ("value", 2))]),
        (LlmRubric("a", votes=2), [("bad-value", ("votes",))]),
        (LlmRubric("a", scale="5-1"), [("bad-value", ("scale",))]),
        (LlmRubric("a", scale="1-5", pass_threshold=6), [("bad-value", ("pass_threshold",))]),
        (LlmRubric("a", pass_threshold=1), [("zero-threshold", ("pass_threshold",))]),
        (LlmRubric(("a",), scale="1-5"), [("bad-value", ("scale",))]),
        (LlmRubric((RubricEntry("b", score_ranges=RANGES, min_score=7.5),)), [("bad-value", ("value", 0, "min_score"))]),
        (LlmRubric((RubricEntry("b", score_ranges=RANGES, min_score=7, required=7),)), [("bad-value", ("value", 0, "required"))]),
        (LlmRubric((RubricEntry("b", score_ranges=RANGES, required=7.5),)), [("bad-value", ("value", 0, "required"))]),
        (LlmRubric((RubricEntry("b", score_ranges=RANGES, min_score=7, required_min_score=7),)), [("two-spellings", ("value", 0, "required_min_score"))]),
        (LlmRubric((RubricEntry("b", required_min_score=7),)), [("bad-value", ("value", 0, "required_min_score"))]),
        (LlmRubric("a", max_steps=3), [("no-effect", ("max_steps",))]),
        (LlmRubric(("a",), prompt=Document("Look for depth.")), []),
        (LlmRubric("a", prompt=Document("Look for depth.")), [("judge-prompt-without-rubric", ("prompt",))]),
        (LlmRubric(prompt=Document(" ", "depth.md")), [("missing-value", ("prompt",))]),
        (LlmRubric((RubricEntry("b", score_ranges=RANGES, operator="contradiction"),)), [("bad-value", ("value", 0, "operator"))]),
        (LlmRubric((RubricEntry("b", score_ranges={"0-4": "bad"}),)), [("bad-value", ("value", 0, "score_ranges"))]),
        (LlmRubric(("a",), prompt=Document("{{ output }}")), [("judge-prompt-without-rubric", ("prompt",))]),
        (LlmRubric("a", prompt=Document("{{ output")), [("bad-template", ("prompt",))]),
        (LlmRubric(prompt=Document("{{ input }}")), [("judge-prompt-without-output", ("prompt",))]),
    ],
)  # fmt: skip
def test_faults_name_the_option(assertion, found):
    assert codes(assertion) == found


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


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("outpt", "did you mean 'output'?"),
        ("rubric", "did you mean 'rubrics'?"),
        ("candidate_answr", "did you mean 'candidate_answer'?"),
        ("zzz", "the case's own variables are under 'vars'"),
    ],
)
def test_an_unknown_variable_is_told_the_nearest_one(name, hint):
    (fault,) = prompt_issues(Document(f"{{{{ output }}}} {{{{ {name} }}}}"))
    assert (fault.code, fault.path, fault.hint) == ("undefined-variable", ("prompt",), hint)
    assert f"'{name}'" in fault.message


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
