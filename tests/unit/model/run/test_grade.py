import pytest
from msgspec.structs import replace

from agentv.model.run.grade import Check, Grade, spent_on, weighted_mean
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage

ALL = Grade(
    0.3,
    False,
    (Check("says 42", False, "41"), Check("not: rude", True), Check("score of at least 0.5", False)),
    "it is short",
    {"votes": 3},
    has_own_threshold=True,
    cost_usd=0.1,
    token_usage=TokenUsage(total=7),
    threshold_checks=1,
    needs=0.4,
    note="clamped",
)
UNDECIDED = Grade(0.3, False, undecided=True, threshold_checks=1)


def test_an_error_says_why_and_is_no_pass():
    grade = Grade.errored("timeout", "too late", details={"after_s": 3})
    assert grade == Grade(0.0, False, (), "too late", {"after_s": 3}, Failure("timeout", "too late"))


@pytest.mark.parametrize(("passed", "score"), [(True, 1.0), (False, 0.0)])
def test_a_type_that_is_right_or_wrong_scores_1_or_0(passed, score):
    assert Grade.of(passed, "says 42", "41") == Grade(score, passed, (Check("says 42", passed, "41"),))


def test_a_grade_of_another_text_has_no_places_in_the_answer():
    checks = (Check("says 42", True, spans=((0, 2),)), Check("is short", True))
    assert Grade(1.0, True, checks).without_spans().checks == (Check("says 42", True), Check("is short", True))


def test_the_complement_inverts_score_verdict_and_checks_and_keeps_the_rest():
    checks = (Check("not: says 42", True, "41"), Check("rude", False), Check("not: score of at least 0.5", True))
    assert ALL.negated() == replace(ALL, score=0.7, passed=True, checks=checks, needs=0.6)
    assert ALL.negated().negated() == ALL


@pytest.mark.parametrize("grade", [UNDECIDED, Grade.errored("timeout", "too late")])
def test_what_was_not_judged_has_no_complement_and_no_other_mark(grade):
    assert grade.negated() is grade
    assert grade.passing_at(0.0) is grade


@pytest.mark.parametrize(("mark", "passed"), [(0.3, True), (0.3 + 1e-12, True), (0.31, False)])
def test_another_mark_changes_the_verdict_and_the_checks_that_say_it(mark, passed):
    told = (*ALL.checks[:2], Check("score of at least 0.5", passed))
    assert ALL.passing_at(mark) == replace(ALL, passed=passed, has_own_threshold=False, checks=told, needs=mark)
    shown = replace(ALL, threshold_checks=0).passing_at(mark)
    assert shown == replace(ALL, threshold_checks=0, passed=passed, has_own_threshold=False, needs=mark)


def test_the_threshold_of_the_case_is_a_check_that_another_threshold_changes():
    own = Check("says 42", True)
    missed = Grade(0.5, True, (own,)).required_at(0.8)
    text = "required: the score reaches the case's threshold of 0.8"
    assert missed == Grade(0.5, False, (own, Check(text, False, "score 0.5")), threshold_checks=1, needs=0.8)
    assert missed.passing_at(0.4).checks == (own, Check(text, True, "score 0.5"))
    assert Grade(0.5, True, (own,)).required_at(0.5) == Grade(0.5, True, (own,))


@pytest.mark.parametrize(
    ("pairs", "mean"),
    [
        ([], 1.0),
        ([(0.0, 0.2)], 1.0),
        ([(1.0, 0.2)], 0.2),
        ([(3.0, 1.0), (1.0, 0.0)], 0.75),
        ([(1.0, 1 / 3)], 0.333333333333),
    ],
)
def test_the_weighted_mean(pairs, mean):
    assert weighted_mean(pairs) == mean


TOKENS = TokenUsage(1, 2, 3)


def spent(cost, tokens=None):
    return Grade(1.0, True, cost_usd=cost, token_usage=tokens)


@pytest.mark.parametrize(
    ("grades", "cost", "tokens"),
    [
        ([], None, None),
        ([spent(None)], None, None),
        ([spent(0.5, TOKENS), spent(None), spent(0.25)], 0.75, TOKENS),
        ([spent(0.5, TOKENS), spent(None, TOKENS)], None, TokenUsage(2, 4, 6)),
        ([spent(None, TOKENS), spent(0.5, TOKENS)], None, TokenUsage(2, 4, 6)),
    ],
)
def test_a_part_without_a_price_makes_the_sum_unknown(grades, cost, tokens):
    assert spent_on(grades) == (cost, tokens)
