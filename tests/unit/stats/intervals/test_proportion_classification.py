import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.intervals.proportion import Classified

counts = st.integers(0, 1000)
tables = st.builds(Classified, counts, counts, counts, counts)


def test_agrees_with_what_was_reckoned_by_hand():
    # 8 found, 2 said wrongly, 4 missed: precision 8/10, recall 8/12, F1 16/22, Jaccard 8/14
    table = Classified(8, 2, 4, 6)
    precision, recall, f1 = table.precision(), table.recall(), table.f1()
    assert table.total == 20
    assert (precision.value, recall.value, f1.value) == (0.8, pytest.approx(2 / 3), pytest.approx(16 / 22))
    # Wilson by hand, z² = 3.841459: 8 of 10 is (0.8 + 0.192073 ± 1.959964·√(0.016 + 0.009604)) / 1.384146
    assert precision.interval == (pytest.approx(0.49016, abs=5e-5), pytest.approx(0.94332, abs=5e-5))
    assert recall.interval == (pytest.approx(0.39062, abs=5e-5), pytest.approx(0.86187, abs=5e-5))
    # 8 of 14 is 0.32590 to 0.78617 as a Jaccard index; 2·J / (1 + J) of its ends
    assert f1.interval == (pytest.approx(0.49159, abs=5e-5), pytest.approx(0.88029, abs=5e-5))


@given(tables)
def test_f1_is_the_harmonic_mean_and_lies_in_its_interval(table):
    precision, recall, f1 = table.precision(), table.recall(), table.f1()
    for one in (precision, recall, f1):
        assert one is None or 0.0 <= one.interval[0] <= one.value <= one.interval[1] <= 1.0
    if precision and recall and precision.value + recall.value:
        harmonic = 2 * precision.value * recall.value / (precision.value + recall.value)
        assert f1.value == pytest.approx(harmonic)


@given(tables)
def test_right_noes_change_nothing(table):
    without = Classified(table.true_positives, table.false_positives, table.false_negatives)
    assert (table.precision(), table.recall(), table.f1()) == (without.precision(), without.recall(), without.f1())
