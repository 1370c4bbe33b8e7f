from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from agentv.stats.planning import Assumed, Plan
from agentv.stats.power import Drop, chance_shown

PLAN = Plan(200, 3)


def test_what_is_seen_just_as_often_as_asked_is_the_least():
    assert PLAN.chance(PLAN.least) == pytest.approx(0.8, abs=0.002)
    assert PLAN.chance(0.05) == chance_shown(200, 3, Drop(0.8, 0.05))


@pytest.mark.parametrize("plan", [PLAN, Plan(200, 1)])
def test_as_many_cases_as_are_needed_are_enough_and_one_less_is_not(plan):
    needed = plan.needed(0.05)
    assert replace(plan, cases=needed).chance(0.05) >= 0.8 > replace(plan, cases=needed - 1).chance(0.05)
    assert plan.needed(1e-6) is None


def test_the_table_holds_the_plan_and_falls_with_cases_and_repeats():
    table = PLAN.table()
    assert table[200][3] == PLAN.least
    assert list(table) == [50, 100, 200, 400, 800, 2000]
    assert list(table[200]) == [1, 2, 3, 5, 10]
    assert list(table[200].values()) == sorted(table[200].values(), reverse=True)
    assert list(Plan(3, 7).table()) == [2, 3, 6, 12, 30]


def test_fewer_cases_than_compare_can_use_are_never_planned():
    certain = Plan(10, 1, Assumed(rate=0.99, alike=1.0, shared=1.0))
    assert (certain.needed(0.99), certain.assumed.fewest) == (6, 6)
    assert certain.chance(0.01) < 1e-6
    assert set(Plan(5, 10).table()[5].values()) == {inf}
    assert Plan(10, 1, Assumed(rate=0.2)).least == inf
