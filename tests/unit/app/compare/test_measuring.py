import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.app.compare.measuring import Measurement, claimed, measured
from agentv.model.run.comparison import ComparisonSettings
from agentv.stats.comparison.difference import Differences


def scores(*values, size=1, before=0.5):
    """Differences of the mean score, so many of them in each cluster."""
    clusters = [number // size for number in range(len(values))]
    return Measurement("mean score", Differences(values, [before] * len(values), clusters))


def alone(found, question):
    return measured([found], question)[0]


def test_a_measure_by_itself_is_not_equivalent_by_what_a_few_cases_do_not_hold():
    assert alone(scores(0.001, *[0.0] * 9), ComparisonSettings(margin=0.02)).verdict == "cannot tell"
    assert alone(scores(0.001, *[0.0] * 199), ComparisonSettings(margin=0.02)).verdict == "equivalent"


@pytest.mark.parametrize(("moved", "margin", "may"), [(5, 0.0, False), (6, 0.0, True), (1, 0.1, True), (0, 0.1, False)])
def test_what_moved_in_too_few_cases_cannot_claim_anything(moved, margin, may):
    assert scores(*[0.5] * moved, *[0.0] * 20).may_claim(ComparisonSettings(margin=margin)) is may


def test_clusters_that_moved_alike_have_an_interval_all_the_same():
    found = alone(scores(*[0.4, 0.0] * 30, size=2), ComparisonSettings(margin=0.45))  # of two targets, one was mended
    assert found.interval[0] < 0.2 < found.interval[1] < 0.45
    assert found.verdict == "equivalent"
    none = alone(scores(*[0.5, -0.5] * 10, size=2), ComparisonSettings())
    assert none.interval == pytest.approx((-none.interval[1], none.interval[1]))
    assert none.interval[1] > 0.05


def test_of_too_few_clusters_there_is_no_number_but_the_difference():
    found = alone(scores(*[0.1] * 20, size=5), ComparisonSettings())
    assert (found.interval, found.p, found.p_of_claim, found.verdict) == (None, None, None, "cannot tell")
    assert found.delta == pytest.approx(0.1)


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
