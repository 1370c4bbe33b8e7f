import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score
from agentv.model.run.verdict import always_passes, combined, combined_parts, counts, passes_gate
from agentv.model.values.response import Failure
from doubles.nested_grading import FixedGrade, entry


def score(value, passed=None, *, error=None, has_own_threshold=False, name="given", **settings):
    passed = value >= 1 if passed is None else passed
    grade = (
        Grade(value, passed, has_own_threshold=has_own_threshold)
        if error is None
        else Grade.errored(error, f"{error} happened")
    )
    return Score(entry(FixedGrade(grade), name=name, **settings), grade, 0.0)


def test_the_score_is_the_weighted_mean():
    whole = combined([score(1.0, weight=3.0), score(0.5), score(0.0, weight=0.0)], 0.8)
    assert (whole.score, whole.passed, whole.error) == (0.875, True, None)


def test_a_type_with_its_own_mark_counts_as_it_passed():
    grades = [score(0.9, False, has_own_threshold=True, weight=3.0), score(0.1, True, has_own_threshold=True)]
    assert combined(grades, 0.5).score == 0.25


@pytest.mark.parametrize(("threshold", "passed"), [(0.5, True), (0.5 + 1e-12, True), (0.5 + 1e-6, False)])
def test_the_threshold_forgives_rounding_alone(threshold, passed):
    assert combined([score(1.0), score(0.0)], threshold).passed is passed


def test_a_mean_that_is_not_exact_in_binary_still_reaches_its_threshold():
    assert combined([score(0.1), score(0.2), score(0.3)], 0.2).passed


@pytest.mark.parametrize(
    ("required", "value", "holds"),
    [
        (True, 1.0, True),
        (True, 0.9, False),
        (0.9, 0.9, True),
        (0.9, 0.8, False),
        (1, 0.9, False),
        (0.0, 0.0, True),
        (False, 0.0, True),
    ],
)
def test_gates(required, value, holds):
    one = score(value, required=required)
    assert passes_gate(one) is holds
    assert combined([one, score(1.0, weight=1000.0)], 0.5).passed is holds


def test_a_gate_of_weight_0_still_decides():
    whole = combined([score(0.0, weight=0.0, required=True), score(1.0)], 0.8)
    assert (whole.score, whole.passed) == (1.0, False)


@pytest.mark.parametrize("settings", [{}, {"required": True}, {"weight": 0.0, "required": True}, {"weight": 0.001}])
def test_an_error_that_counts_errs_the_whole(settings):
    whole = combined([score(1.0), score(0.0, error="timeout", name="slow", **settings)], 0.0)
    assert not whole.passed
    assert whole.error == Failure("timeout", "slow: timeout happened")


def test_whether_a_retry_may_help_is_kept():
    grade = Grade(0.0, False, error=Failure("timeout", "late", retryable=True))
    assert combined([Score(entry(FixedGrade(grade)), grade, 0.0)], 0.5).error.retryable


@pytest.mark.parametrize(
    "scores",
    [
        [],
        [score(1.0, weight=0.0)],
        [score(1.0, weight=0.0, required=0.0)],
        [score(0.0, error="timeout", weight=0.0)],
    ],
)
def test_nothing_that_counts_is_no_pass(scores):
    whole = combined(scores, 0.0)
    assert not whole.passed
    assert whole.error.code == "nothing-counts"


def test_what_has_no_judgement_scores_nothing():
    assert combined([], 0.0).score == 0.0
    assert combined([score(1.0, error="timeout")], 0.0).score == 0.0


@pytest.mark.parametrize("required", [True, 0.5, 0.0])
def test_an_error_passes_no_gate_not_even_one_of_0(required):
    assert not passes_gate(score(0.0, error="timeout", required=required))


@pytest.mark.parametrize(("value", "passed"), [(0.7, True), (1.0, False)])
def test_a_required_grade_passes_by_its_own_mark(value, passed):
    assert passes_gate(score(value, passed, has_own_threshold=True, required=True)) is passed


@pytest.mark.parametrize(
    ("threshold", "required", "excludes"),
    [(None, [], False), (0.0, [], True), (0.1, [], False), (0.0, [False, 0.0], True), (0.0, [False, 0.1], False)],
)
def test_a_threshold_of_0_without_a_gate_excludes_nothing(threshold, required, excludes):
    assert always_passes(threshold, [score(1.0, required=one).entry for one in required]) is excludes


@pytest.mark.parametrize(("value", "passed"), [(1.0, True), (0.5, False)])
def test_where_nothing_weighs_anything_the_gates_are_the_verdict(value, passed):
    whole = combined([score(value, weight=0.0, required=True), score(0.0, weight=0.0)], 0.8)
    assert (whole.score, whole.passed, whole.error) == (float(passed), passed, None)


@pytest.mark.parametrize(
    ("aggregation", "value", "passed"), [("mean", 0.5, True), ("min", 0.1, False), ("max", 1.0, True)]
)
def test_turns_are_parts_with_one_score_each(aggregation, value, passed):
    turns = [[score(1.0), score(1.0)], [score(0.4), score(0.0, weight=0.0)], [score(0.1)], [score(0.0, weight=0.0)], []]
    whole = combined_parts(turns, 0.5, aggregation)
    assert (whole.score, whole.passed, whole.error) == (value, passed, None)


@pytest.mark.parametrize("gate", [{}, {"weight": 0.0}])
def test_a_gate_of_a_turn_is_one_of_the_case(gate):
    for value, passed in ((1.0, True), (0.0, False)):
        turns = [[score(value, required=True, **gate), score(1.0, weight=9.0, required=True)], [score(1.0)]]
        assert combined_parts(turns, 0.5, "max").passed is passed


def test_an_error_in_a_turn_errs_the_case():
    whole = combined_parts([[score(1.0)], [score(0.0, error="timeout", name="slow")]], 0.0, "max")
    assert (whole.score, whole.passed) == (0.0, False)
    assert whole.error == Failure("timeout", "slow: timeout happened")


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_where_no_turn_weighs_anything_the_gates_are_the_verdict(value):
    whole = combined_parts([[score(value, weight=0.0, required=True)], []], 0.5, "mean")
    assert (whole.score, whole.passed, whole.error) == (value, bool(value), None)


def test_what_has_a_say():
    assert counts(score(1.0))
    assert counts(score(1.0, weight=0.0, required=0.5))
    assert not counts(score(1.0, weight=0.0))


fractions = st.integers(0, 100).map(lambda hundredths: hundredths / 100)
some_scores = st.lists(
    st.builds(
        score,
        fractions,
        st.booleans(),
        error=st.none() | st.just("broken"),
        has_own_threshold=st.booleans(),
        weight=st.sampled_from([0.0, 0.5, 1.0, 7.0]),
        required=st.sampled_from([False, True, 0.5]),
    ),
    max_size=5,
)


@given(some_scores, fractions)
def test_a_pass_is_never_without_a_judgement(scores, threshold):
    whole = combined(scores, threshold)
    if whole.passed:
        assert whole.error is None
        assert any(counts(one) and one.grade.error is None for one in scores)
        assert all(passes_gate(one) for one in scores)
        assert whole.score >= threshold - 1e-9


@given(some_scores, fractions)
def test_the_score_stays_between_0_and_1_and_order_does_not_matter(scores, threshold):
    whole, turned = combined(scores, threshold), combined(scores[::-1], threshold)
    assert 0.0 <= whole.score <= 1.0
    assert (whole.score, whole.passed) == (pytest.approx(turned.score), turned.passed)


@given(some_scores, fractions)
def test_a_better_grade_never_makes_it_worse(scores, threshold):
    better = [Score(one.entry, Grade(1.0, True, has_own_threshold=one.grade.has_own_threshold), 0.0) for one in scores]
    if combined(scores, threshold).passed:
        assert combined(better, threshold).passed
