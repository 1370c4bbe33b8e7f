from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.app.compare.measuring import Measurement, _p_of_difference, claimed, measured
from agentv.model.run.comparison import ComparisonSettings
from agentv.stats.comparison.difference import Differences
from agentv.stats.comparison.holm import adjusted


def scores(*values, size=1, before=0.5):
    """Differences of the mean score, so many of them in each cluster."""
    clusters = [number // size for number in range(len(values))]
    return Measurement("mean score", Differences(values, [before] * len(values), clusters))


def alone(found, question):
    return measured([found], question)[0]


def test_a_measure_by_itself_is_not_equivalent_by_what_a_few_cases_do_not_hold():
    assert alone(scores(0.001, *[0.0] * 9), ComparisonSettings(margin=0.02)).verdict == "inconclusive"
    assert alone(scores(0.001, *[0.0] * 199), ComparisonSettings(margin=0.02)).verdict == "equivalent"


@pytest.mark.parametrize(("moved", "margin", "may"), [(5, 0.0, False), (6, 0.0, True), (1, 0.1, True), (0, 0.1, True)])
def test_what_moved_in_too_few_cases_cannot_be_shown_to_differ_but_to_be_equivalent(moved, margin, may):
    assert scores(*[0.5] * moved, *[0.0] * 20).may_claim(ComparisonSettings(margin=margin)) is may
    few = scores(*[0.5] * moved, *[0.0] * 20, size=7)
    assert few.differences.test is None
    assert not few.may_claim(ComparisonSettings(margin=margin))


def rates(*values):
    return replace(scores(*values), measure="pass rate")


def test_suites_in_which_nothing_changed_are_not_each_shown_equivalent_as_if_they_were_the_only_one():
    """With 40 cases that all pass, 9 % of others may fail: one suite of several is so by chance."""
    unchanged = scores(*[0.0] * 40, before=1.0)
    question = ComparisonSettings(margin=0.1)
    assert alone(unchanged, question).verdict == "equivalent"
    found = measured([unchanged, *(scores(*[0.0] * 40, before=1.0) for _ in range(9))], question)
    assert {(one.verdict, one.tests, round(one.level, 12)) for one in found} == {("inconclusive", 10, 0.995)}


def test_a_pass_rate_that_did_not_change_is_held_at_the_level_of_the_mean_score_before_it_and_is_not_counted():
    question = ComparisonSettings(margin=0.15)
    moved, still = scores(*[0.2, 0.0] * 30), rates(*[0.0] * 60)
    assert [(one.level, one.tests) for one in measured([moved, still], question)] == [(0.95, 1)] * 2
    again = [scores(*[0.2, 0.0] * 30), rates(*[0.0] * 60)]
    found = measured([moved, still, *again], question)
    assert [(one.level, one.tests) for one in found] == [(0.975, 2)] * 4
    assert claimed([moved, still, *again], question) == [one.verdict for one in found]
    beside = measured([moved, rates(*[0.2, 0.0] * 30)], question)
    assert [(one.level, one.tests) for one in beside] == [(0.975, 2)] * 2, "one that changed is"


@pytest.mark.parametrize("sign", [1, -1])
def test_equivalence_is_as_sure_as_the_border_that_is_nearer(sign):
    one = scores(*[0.2 * sign, 0.0] * 30)
    far, near = (one.differences.test.p(border * sign) for border in (-0.15, 0.15))
    found = alone(one, ComparisonSettings(margin=0.15))
    assert found.verdict == "equivalent"
    assert far < near == pytest.approx(found.p_of_claim)


def test_non_inferiority_is_held_against_the_border_below():
    one = scores(*[0.2, 0.0] * 30)
    found = alone(one, ComparisonSettings(margin=0.11))
    assert found.verdict == "non-inferior"
    assert found.p_of_claim == pytest.approx(one.differences.test.p(-0.11))
    assert found.p_of_claim < 0.01 < one.differences.test.p(0.11)


@pytest.mark.parametrize("margin", [0.0, 0.01])
def test_no_claim_has_the_p_value_of_any_difference_and_with_a_margin_none(margin):
    found = alone(scores(*[0.5, -0.4] * 10), ComparisonSettings(margin=margin))
    assert found.verdict == "inconclusive"
    assert found.p_of_claim == (1.0 if margin else found.p)
    assert 0.05 < found.p < 1.0


@pytest.mark.parametrize(("sign", "margin", "border"), [(1, 0.0, 0.0), (1, 0.02, 0.02), (-1, 0.02, -0.02)])
def test_what_is_corrected_for_is_the_difference_beyond_the_margin(sign, margin, border):
    one = scores(*[0.2 * sign, 0.0] * 30)
    assert _p_of_difference(one, margin) == one.differences.test.p(border)
    assert _p_of_difference(one, 0.15) == 1.0


@pytest.mark.parametrize(("sign", "margin"), [(1, 0.0), (-1, 0.0), (1, 0.02), (-1, 0.02)])
def test_a_difference_is_held_against_the_border_on_its_side(sign, margin):
    one = scores(*[0.2 * sign, 0.0] * 30)
    found = alone(one, ComparisonSettings(margin=margin))
    assert found.verdict == ("better" if sign > 0 else "worse")
    assert found.p_of_claim == pytest.approx(one.differences.test.p(sign * margin))
    assert found.p == pytest.approx(one.differences.test.p())
    assert found.level == pytest.approx(0.95)


def test_clusters_that_moved_alike_have_an_interval_all_the_same():
    found = alone(scores(*[0.4, 0.0] * 30, size=2), ComparisonSettings(margin=0.45))  # of two targets, one was mended
    assert found.interval[0] < 0.2 < found.interval[1] < 0.45
    assert found.verdict == "equivalent"
    none = alone(scores(*[0.5, -0.5] * 10, size=2), ComparisonSettings())
    assert none.interval == pytest.approx((-none.interval[1], none.interval[1]))
    assert none.interval[1] > 0.05


def test_of_too_few_clusters_there_is_no_number_but_the_difference():
    found = alone(scores(*[0.1] * 20, size=5), ComparisonSettings())
    assert (found.interval, found.p, found.p_of_claim, found.verdict) == (None, None, None, "inconclusive")
    assert (found.delta, found.level) == (pytest.approx(0.1), 0.95)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from((-0.4, -0.1, 0.0, 0.1, 0.2)), min_size=6, max_size=14), min_size=1, max_size=4),
    st.sampled_from((0.0, 0.05)),
)
def test_interval_p_value_and_verdict_never_disagree_however_many_are_tested(parts, margin):
    question = ComparisonSettings(margin=margin)
    for found in measured([scores(*values) for values in parts], question):
        low, high = found.interval
        assert (not low <= 0 <= high) == (found.p <= question.alpha + 1e-12)
        assert (found.verdict == "better") == (low > margin)
        assert (found.verdict == "worse") == (high < -margin)
        if found.verdict in ("better", "worse"):
            assert found.p_of_claim <= question.alpha + 1e-12


@settings(max_examples=60)
@given(
    values=st.lists(st.sampled_from([-1.0, -0.3, -0.1, 0.0, 0.1, 0.2, 1.0]), min_size=4, max_size=24),
    verdicts=st.booleans(),
    margin=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_the_verdicts_without_intervals_are_those_with_them(values, verdicts, margin):
    one = scores(*values)
    other = scores(*[float(value > 0) - float(value < 0) for value in values]) if verdicts else scores(*values, size=2)
    question = ComparisonSettings(margin=margin)
    assert claimed([one, other], question) == [shown.verdict for shown in measured([one, other], question)]


@pytest.mark.parametrize(
    ("values", "margin", "verdict"),
    [
        ([0.2, 0.0] * 30, 0.0, "better"),
        ([-0.2, 0.0] * 30, 0.0, "worse"),
        ([0.2, 0.0] * 30, 0.15, "equivalent"),
        ([-0.2, 0.0] * 30, 0.15, "equivalent"),
        ([0.2, 0.0] * 30, 0.11, "non-inferior"),
        ([-0.2, 0.0] * 30, 0.11, "inconclusive"),
        ([-0.2, 0.0] * 30, 0.09, "inconclusive"),
        ([0.2, 0.0] * 30, 0.02, "better"),
        ([-0.2, 0.0] * 30, 0.02, "worse"),
        ([0.5, -0.4] * 10, 0.0, "inconclusive"),
        ([0.2] * 5, 0.0, "inconclusive"),
    ],
)
def test_each_verdict_is_that_of_the_interval_and_of_the_p_values_alike(values, margin, verdict):
    one, question = scores(*values), ComparisonSettings(margin=margin)
    assert (alone(one, question).verdict, claimed([one], question)) == (verdict, [verdict])


def test_a_p_value_too_small_for_a_number_is_zero():
    won = Measurement("mean score", Differences([1.0] * 3000, [0.0] * 3000, range(3000)))
    found = alone(won, ComparisonSettings())
    assert (found.verdict, found.p, found.p_of_claim) == ("better", 0.0, 0.0)


def test_of_several_measures_no_corrected_p_value_is_below_that_of_a_smaller_one():
    some = [scores(*[0.5] * moved, *[0.0] * 9) for moved in (12, 7, 6, 9)]
    found = measured([*some, scores(*[0.5] * 5, *[0.0] * 9)], ComparisonSettings())
    plain = [one.differences.test.p() for one in some]
    assert [one.p for one in found[:4]] == pytest.approx(adjusted(plain))
    assert [one.p_of_claim for one in found[:4]] == pytest.approx(adjusted(plain))
    assert {one.tests for one in found} == {4}
    assert found[4].p == found[4].p_of_claim == pytest.approx(2 / 2**5), "one that can show nothing is not corrected"


def test_the_same_differences_have_the_same_corrected_p_value():
    """As R: `p.adjust(c(p, p), "holm")`."""
    both = measured([scores(*[0.5] * 7, *[0.0] * 9), scores(*[0.5] * 7, *[0.0] * 9)], ComparisonSettings())
    assert both[0].p == both[1].p == pytest.approx(2 * 2 / 2**7)
    assert [one.verdict for one in both] == ["better", "better"]
