from __future__ import annotations

from dataclasses import replace

import pytest

from agentv.stats.planning import Assumed, Plan
from agentv.stats.power import power

PLAN = Plan(200, 3)


def test_what_is_seen_just_as_often_as_asked_is_the_least():
    assert PLAN.chance(PLAN.least) == pytest.approx(0.8)
    assert PLAN.chance(0.05) == power(200, 0.05, PLAN.assumed.deviation(3))


def test_as_many_cases_as_are_needed_are_enough_and_one_less_is_not():
    needed = PLAN.needed(0.05)
    assert replace(PLAN, cases=needed).chance(0.05) >= 0.8 > replace(PLAN, cases=needed - 1).chance(0.05)


def test_the_table_holds_the_plan_and_falls_with_cases_and_repeats():
    table = PLAN.table()
    assert table[200][3] == PLAN.least
    assert list(table) == [50, 100, 200, 400, 800, 2000]
    assert list(table[200]) == [1, 2, 3, 5, 10]
    assert list(table[200].values()) == sorted(table[200].values(), reverse=True)
    assert list(Plan(3, 7).table()) == [2, 3, 6, 12, 30]


def test_cases_that_are_all_alike_in_both_runs_leave_the_noise_of_samples_alone():
    assert Assumed(alike=1.0, shared=1.0).deviation(1) == 0.0
    assert Assumed(alike=0.0).deviation(1) == pytest.approx((2 * 0.16) ** 0.5)
