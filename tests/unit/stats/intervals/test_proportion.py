from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.intervals.proportion import (
    USUAL,
    USUAL_QUANTILE,
    Classified,
    cases_for_share,
    unseen_share,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_agrees_with_table_i_of_newcombe_1998(successes, trials, low, high):
    assert wilson_interval(successes, trials) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(st.integers(1, 10**6).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_holds_the_share_and_mirrors_when_successes_and_failures_change_places(counted):
    successes, trials = counted
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    assert low < high
    assert wilson_interval(trials - successes, trials) == (pytest.approx(1 - high), pytest.approx(1 - low))


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 5), (6, 5)])
def test_refuses_what_is_no_proportion(successes, trials):
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_refuses_what_is_no_confidence(confidence):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, found"):
        wilson_interval(1, 2, confidence)


def test_the_usual_quantile_is_the_exact_one():
    assert NormalDist().inv_cdf((1 + USUAL) / 2) == USUAL_QUANTILE


counts = st.integers(0, 1000)
tables = st.builds(Classified, counts, counts, counts, counts)


def test_agrees_with_what_was_reckoned_by_hand():
    # 8 true positives, 2 false positives, 4 false negatives: precision 8/10, recall 8/12, F1 16/22, Jaccard 8/14
    table = Classified(8, 2, 4, 6)
    precision, recall, f1 = table.precision(), table.recall(), table.f1()
    assert table.total == 20
    assert (precision.value, recall.value, f1.value) == (0.8, pytest.approx(2 / 3), pytest.approx(16 / 22))
    # Wilson by hand, z² = 3.841459: 8 of 10 is (0.8 + 0.192073 ± 1.959964·√(0.016 + 0.009604)) / 1.384146
    assert precision.interval == (pytest.approx(0.49016, abs=5e-5), pytest.approx(0.94332, abs=5e-5))
    assert recall.interval == (pytest.approx(0.39062, abs=5e-5), pytest.approx(0.86187, abs=5e-5))
    # as a Jaccard index, 8 of 14 is 0.32590 to 0.78617; F1 is 2·J / (1 + J) of both ends
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


@pytest.mark.parametrize(
    ("seen", "level", "share"), [(40, 0.95, 0.0880973028788024), (1, 0.95, 0.975), (40, 0.9, 0.0721575245055146)]
)
def test_agrees_with_r(seen, level, share):
    # R 4.2.2: binom.test(0, seen, conf.level = level)$conf.int[2]
    assert unseen_share(seen, level) == pytest.approx(share)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02, 0.001])
def test_so_many_cases_leave_no_larger_share_unseen_and_one_fewer_does(share):
    cases = cases_for_share(share)
    assert unseen_share(cases) <= share < unseen_share(cases - 1)
    assert cases_for_share(1.0) == 1


def test_refuses_what_nobody_saw():
    with pytest.raises(ValueError, match="nothing was seen"):
        unseen_share(0)


@pytest.mark.parametrize("level", [0.8, 0.99])
def test_how_many_cases_it_takes_depends_on_the_level(level):
    cases = cases_for_share(0.1, level)
    assert unseen_share(cases, level) <= 0.1 < unseen_share(cases - 1, level)
    assert (cases_for_share(1.5), unseen_share(1, 0.9)) == (1, pytest.approx(0.95))
