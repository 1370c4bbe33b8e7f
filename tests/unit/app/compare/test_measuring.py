from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.app.compare.measuring import Measurement, measured
from agentv.model.run.comparison import ComparisonSettings
from agentv.stats.comparison.difference import Differences
from agentv.stats.comparison.rule import decided


def scores(*values, size=1, before=0.5):
    """Differences of the mean score, so many of them in each cluster."""
    clusters = [number // size for number in range(len(values))]
    starts = [before if 0 <= before + value <= 1 else float(value < 0) for value in values]
    ends = [start + value for start, value in zip(starts, values, strict=True)]
    return Measurement("mean score", Differences(starts, ends, clusters))


def alone(found, question):
    return measured([found], question)[0]


def test_a_measure_by_itself_is_not_equivalent_by_what_a_few_cases_do_not_hold():
    assert alone(scores(0.001, *[0.0] * 9), ComparisonSettings(margin=0.02)).verdict == "inconclusive"
    assert alone(scores(0.001, *[0.0] * 199), ComparisonSettings(margin=0.02)).verdict == "equivalent"


@pytest.mark.parametrize(("moved", "margin", "may"), [(5, 0.0, False), (6, 0.0, True), (1, 0.1, True), (0, 0.1, True)])
def test_what_moved_in_too_few_cases_cannot_be_shown_to_differ_but_to_be_equivalent(moved, margin, may):
    found = scores(*[0.5] * moved, *[0.0] * 20).differences
    assert found.evidence("mean score", margin).may_claim(0.05) is may


def rates(*values):
    return replace(scores(*values), measure="pass rate")


def test_suites_in_which_nothing_changed_are_not_each_shown_equivalent_as_if_they_were_the_only_one():
    """With 40 cases that all pass, 9 % of others may fail: one suite of several is so by chance."""
    unchanged = scores(*[0.0] * 40, before=1.0)
    question = ComparisonSettings(margin=0.1)
    assert alone(unchanged, question).verdict == "equivalent"
    found = measured([unchanged, *(scores(*[0.0] * 40, before=1.0) for _ in range(9))], question)
    assert {(one.verdict, one.tests, one.level) for one in found} == {("inconclusive", 10, 0.95)}


def test_a_pass_rate_that_did_not_change_is_not_counted_beside_its_mean_score():
    question = ComparisonSettings(margin=0.15)
    moved, still = scores(*[0.2, 0.0] * 30), rates(*[0.0] * 60)
    assert [one.tests for one in measured([moved, still], question)] == [1, 1]
    again = [scores(*[0.2, 0.0] * 30), rates(*[0.0] * 60)]
    assert [one.tests for one in measured([moved, still, *again], question)] == [2] * 4
    beside = measured([moved, rates(*[0.2, 0.0] * 30)], question)
    assert [one.tests for one in beside] == [2, 2], "one that changed is"


@pytest.mark.parametrize("sign", [1, -1])
def test_equivalence_is_as_sure_as_the_border_that_is_nearer(sign):
    one = scores(*[0.2 * sign, 0.0] * 30)
    far, near = (one.differences.p(border * sign) for border in (-0.15, 0.15))
    found = alone(one, ComparisonSettings(margin=0.15))
    assert found.verdict == "equivalent"
    assert far < near == pytest.approx(found.p_of_claim)


def test_non_inferiority_is_held_against_the_border_below():
    one = scores(*[0.2, 0.0] * 30)
    found = alone(one, ComparisonSettings(margin=0.11))
    assert found.verdict == "non-inferior"
    assert found.p_of_claim == pytest.approx(one.differences.p(-0.11))
    assert found.p_of_claim < 0.01 < one.differences.p(0.11)


@pytest.mark.parametrize("margin", [0.0, 0.01])
def test_no_claim_has_the_p_value_of_any_difference_and_with_a_margin_none(margin):
    found = alone(scores(*[0.5, -0.4] * 10), ComparisonSettings(margin=margin))
    assert found.verdict == "inconclusive"
    assert found.p_of_claim == (1.0 if margin else found.p)
    assert 0.05 < found.p < 1.0


@pytest.mark.parametrize(("sign", "margin"), [(1, 0.0), (-1, 0.0), (1, 0.02), (-1, 0.02)])
def test_a_difference_is_held_against_the_border_on_its_side(sign, margin):
    one = scores(*[0.2 * sign, 0.0] * 30)
    found = alone(one, ComparisonSettings(margin=margin))
    assert found.verdict == ("better" if sign > 0 else "worse")
    assert found.p_of_claim == pytest.approx(one.differences.p(sign * margin))
    assert found.p == pytest.approx(one.differences.p())
    assert found.level == pytest.approx(0.95)


def test_clusters_that_moved_alike_have_an_interval_all_the_same():
    found = alone(scores(*[0.4, 0.0] * 30, size=2), ComparisonSettings(margin=0.45))  # of two targets, one was mended
    assert found.interval[0] < 0.2 < found.interval[1] < 0.45
    assert found.verdict == "equivalent"
    none = alone(scores(*[0.5, -0.5] * 10, size=2), ComparisonSettings())
    assert none.interval == pytest.approx((-none.interval[1], none.interval[1]))
    assert none.interval[1] > 0.05


def test_too_few_clusters_show_nothing():
    found = alone(scores(*[0.1] * 20, size=5), ComparisonSettings())
    assert (found.verdict, found.p > 0.05, found.interval[0] < 0 < found.interval[1]) == ("inconclusive", True, True)
    assert (found.delta, found.level) == (pytest.approx(0.1), 0.95)


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from((-0.4, -0.1, 0.0, 0.1, 0.2)), min_size=6, max_size=14), min_size=1, max_size=4),
    st.sampled_from((0.0, 0.05)),
)
def test_interval_p_value_and_verdict_never_disagree_however_many_are_tested(parts, margin):
    question = ComparisonSettings(margin=margin)
    found = measured([scores(*values) for values in parts], question)
    for one in found:
        low, high = one.interval
        if one.verdict in ("better", "worse"):
            assert (low > margin - 1e-9) if one.verdict == "better" else (high < 1e-9 - margin)
            assert one.p_of_claim <= question.alpha + 1e-9
        if one.p <= question.alpha and not margin:
            assert one.verdict in ("better", "worse")
    if len(found) == 1:
        (one,), (low, high) = found, found[0].interval
        assert (one.verdict in ("better", "worse")) == (low > margin or high < -margin)


@settings(max_examples=30)
@given(
    values=st.lists(st.sampled_from([-1.0, -0.3, -0.1, 0.0, 0.1, 0.2, 1.0]), min_size=4, max_size=24),
    margin=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_the_rule_without_intervals_gives_the_verdict_with_them(values, margin):
    one = scores(*values)
    shown = alone(one, ComparisonSettings(margin=margin)).verdict
    assert decided([one.differences.evidence("mean score", margin)], 0.05) == shown


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
def test_each_verdict(values, margin, verdict):
    one, question = scores(*values), ComparisonSettings(margin=margin)
    assert alone(one, question).verdict == verdict


def test_a_p_value_too_small_for_a_number_is_zero():
    won = Measurement("mean score", Differences([0.0] * 3000, [1.0] * 3000, range(3000)))
    found = alone(won, ComparisonSettings())
    assert (found.verdict, found.p, found.p_of_claim) == ("better", 0.0, 0.0)


def test_of_several_measures_no_corrected_p_value_is_below_that_of_a_smaller_one():
    some = [scores(*[1.0] * moved, *[0.0] * 9) for moved in (12, 7, 6, 9)]
    found = measured([*some, scores(*[1.0] * 5, *[0.0] * 9)], ComparisonSettings())
    smallest, second, third, largest = sorted(one.differences.p() for one in some)
    adjusted = {12: 4 * smallest, 9: 3 * second, 7: max(3 * second, 2 * third), 6: max(2 * third, largest)}  # Holm
    assert [one.p for one in found[:4]] == pytest.approx([min(1.0, adjusted[moved]) for moved in (12, 7, 6, 9)])
    assert [one.p_of_claim for one in found[:4]] == [one.p for one in found[:4]]
    assert {one.tests for one in found} == {4}
    assert found[4].p == found[4].p_of_claim == pytest.approx(2 / 2**5), "one that can show nothing is not corrected"


def test_the_same_differences_have_the_same_corrected_p_value():
    """As R: `p.adjust(c(p, p), "holm")`."""
    both = measured([scores(*[1.0] * 7, *[0.0] * 9), scores(*[1.0] * 7, *[0.0] * 9)], ComparisonSettings())
    assert both[0].p == both[1].p == pytest.approx(2 * 2 / 2**7)
    assert [one.verdict for one in both] == ["better", "better"]
