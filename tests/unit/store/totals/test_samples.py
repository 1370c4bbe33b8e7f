from __future__ import annotations

import pytest

from agentv.stats.intervals.design_effect import estimated_rate, wilson_interval
from agentv.store.totals.samples import LISTED, SamplesTally
from agentv.store.totals.tally import CaseSamples


def tallied(*cases):
    tally = SamplesTally()
    for number, (judged, passed) in enumerate(cases):
        tally.add(CaseSamples(f"case-{number:04}", "s", "t", None, judged, passed), number)
    return tally.samples()


def test_a_case_says_how_often_it_passes_and_how_sure_that_is():
    (case,) = tallied((5, 3)).by_case
    assert (case.test_id, case.judged, case.passed, case.pass_rate, case.flaky) == ("case-0000", 5, 3, 0.6, True)
    assert case.pass_rate_interval == wilson_interval(3, 5)
    assert case.pass_at_k == {1: pytest.approx(0.6), 2: pytest.approx(0.9), 4: 1.0, 5: 1.0}
    assert case.pass_hat_k == {1: pytest.approx(0.6), 2: pytest.approx(0.3), 4: 0.0, 5: 0.0}


def test_means_are_over_the_same_cases_for_every_k():
    found = tallied((4, 4), (4, 2), (3, 0))
    assert found.pass_at_k == {1: 0.75, 2: pytest.approx((1 + 5 / 6) / 2), 4: 1.0}
    assert found.pass_hat_k == {1: 0.75, 2: pytest.approx((1 + 1 / 6) / 2), 4: 0.5}
    assert (found.cases, found.complete) == (3, 2)
    most = tallied((2, 2), (2, 0), (4, 4))  # one that has more is complete, too
    assert (most.pass_at_k, most.complete) == ({1: pytest.approx(2 / 3), 2: pytest.approx(2 / 3)}, 3)


def test_flaky_cases_are_counted_and_come_first():
    found = tallied((5, 5), (5, 0), (5, 4), (5, 1), (1, 1))
    assert (found.cases, found.compared, found.flaky) == (5, 4, 2)
    assert found.flaky_share_interval == wilson_interval(2, 4)
    assert found.always_passed == {1: 1, 5: 1}
    assert [(case.passed, case.flaky) for case in found.by_case] == [
        (1, True),
        (4, True),
        (0, False),
        (5, False),
        (1, False),
    ]


def test_the_interval_of_the_flaky_share_counts_a_case_once_on_however_many_targets():
    tally = SamplesTally()
    for target in ("gpt", "claude", "llama"):
        for number in range(8):
            tally.add(CaseSamples(f"case-{number}", "s", target, None, 2, 1 if number < 2 else 2), number)
    found = tally.samples()
    assert (found.compared, found.flaky) == (24, 6)
    assert found.flaky_share_interval == estimated_rate([(3, 3)] * 2 + [(3, 0)] * 6).interval
    assert found.flaky_share_interval[0] < wilson_interval(6, 24)[0]


def test_one_estimator_tells_each_chance_with_its_interval():
    found = tallied((5, 5), (5, 3), (5, 1), (5, 0))
    for at, sure in ((found.pass_at_k, found.pass_at_k_interval), (found.pass_hat_k, found.pass_hat_k_interval)):
        assert at.keys() == sure.keys() == {1, 2, 4, 5}
        assert all(low <= at[k] <= high and high - low > 0.3 for k, (low, high) in sure.items())
    assert found.pass_at_k_interval[1] == found.pass_hat_k_interval[1]
    assert tallied((5, 3)).pass_at_k_interval[5] == pytest.approx(wilson_interval(1, 1))
    together = SamplesTally()
    for number in range(4):
        together.add(CaseSamples(f"case-{number}", "s", "t", None, 5, 3), 7)
    assert together.samples().pass_at_k_interval == {}
    assert together.samples().flaky_share_interval is None


def test_a_bounded_number_is_listed_and_all_are_counted():
    found = tallied(*[(2, 2)] * (3 * LISTED), (2, 1))
    assert (found.cases, len(found.by_case), found.omitted) == (3 * LISTED + 1, LISTED, 2 * LISTED + 1)
    assert found.by_case[0].flaky
    assert found.by_case[1].test_id == "case-0000"
