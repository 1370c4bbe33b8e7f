from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.intervals.classification import Classified
from agentv.stats.intervals.proportion import wilson_interval

counts = st.integers(0, 1000)
tables = st.builds(Classified, counts, counts, counts, counts)


def test_agrees_with_what_was_reckoned_by_hand():
    # 8 found, 2 said wrongly, 4 missed: precision 8/10, recall 8/12, F1 16/22, Jaccard 8/14
    table = Classified(8, 2, 4, 6)
    precision, recall, f1 = table.precision(), table.recall(), table.f1()
    assert table.total == 20
    assert (precision.value, recall.value, f1.value) == (0.8, pytest.approx(2 / 3), pytest.approx(16 / 22))
    # Wilson by hand, z² = 3.841459: 8 of 10 is (0.8 + 0.192073 ± 1.959964·√(0.016 + 0.009604)) / 1.384146
    assert (precision.low, precision.high) == (pytest.approx(0.49016, abs=5e-5), pytest.approx(0.94332, abs=5e-5))
    assert (recall.low, recall.high) == (pytest.approx(0.39062, abs=5e-5), pytest.approx(0.86187, abs=5e-5))
    # 8 of 14 is 0.32590 to 0.78617 as a Jaccard index; 2·J / (1 + J) of its ends
    assert (f1.low, f1.high) == (pytest.approx(0.49159, abs=5e-5), pytest.approx(0.88029, abs=5e-5))


def test_what_nobody_said_and_nothing_was_has_no_value():
    assert Classified(0, 0, 3, 5).precision() is None
    assert Classified(0, 3, 0, 5).recall() is None
    nothing = Classified(0, 0, 0, 9)
    assert (nothing.precision(), nothing.recall(), nothing.f1()) == (None, None, None)
    assert Classified(0, 2, 3, 5).f1().value == 0.0
    assert Classified() == Classified(0, 0, 0, 0)


@given(tables)
def test_f1_is_the_harmonic_mean_and_lies_in_its_interval(table):
    precision, recall, f1 = table.precision(), table.recall(), table.f1()
    for one in (precision, recall, f1):
        assert one is None or 0.0 <= one.low <= one.value <= one.high <= 1.0
    if precision and recall and precision.value + recall.value:
        harmonic = 2 * precision.value * recall.value / (precision.value + recall.value)
        assert f1.value == pytest.approx(harmonic)


@given(tables)
def test_right_noes_change_nothing(table):
    without = Classified(table.true_positives, table.false_positives, table.false_negatives)
    assert (table.precision(), table.recall(), table.f1()) == (without.precision(), without.recall(), without.f1())


def test_a_higher_confidence_is_a_wider_interval():
    table = Classified(8, 2, 4)
    for name in ("precision", "recall", "f1"):
        usual, sure = getattr(table, name)(), getattr(table, name)(0.99)
        assert sure.low < usual.low
        assert sure.high > usual.high
    assert table.precision(0.99).low == wilson_interval(8, 10, 0.99)[0]
