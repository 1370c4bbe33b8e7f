from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt
from statistics import NormalDist

import pytest

from agentv.stats.power.drop import Drop
from agentv.stats.power.planning import Assumptions, ComparisonPlan
from agentv.stats.power.power import chance_shown
from agentv.stats.power.power_simulation import Rehearsal


def counted(plan: Rehearsal, alpha: float, _margin: float) -> float:
    """Stands in for the rule of compare: formulas, which are quick and exact."""
    return chance_shown(plan.cases, plan.repeat, Drop(plan.rate, plan.difference, plan.alike, plan.shared), alpha)


PLAN = ComparisonPlan(200, 3, Assumptions(), counted)


def test_what_is_seen_just_as_often_as_asked_is_the_least():
    assert PLAN.chance(PLAN.least) == pytest.approx(0.8, abs=0.002)
    assert PLAN.chance(0.05) == chance_shown(200, 3, Drop(0.8, 0.05))


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, repeat=1), replace(PLAN, assumed=Assumptions(power=0.9))])
def test_about_as_many_cases_as_are_needed_show_it_as_often_as_asked(plan):
    needed = plan.needed(0.05)
    assert replace(plan, cases=needed).chance(0.05) == pytest.approx(plan.assumed.power, abs=0.03)
    assert plan.needed(1e-6) is None


def test_the_table_holds_the_plan_and_falls_with_cases_and_repeats():
    table = PLAN.table()
    assert table[200][3] == PLAN.least
    assert list(table) == [50, 100, 200, 400, 800, 2000]
    assert list(table[200]) == [1, 2, 3, 5, 10]
    assert list(table[200].values()) == sorted(table[200].values(), reverse=True)
    assert list(replace(PLAN, cases=3, repeat=7).table()) == [2, 3, 6, 12, 30]


def test_fewer_cases_than_compare_can_use_are_never_planned():
    certain = ComparisonPlan(10, 1, Assumptions(rate=0.99, alike=1.0, shared=1.0), counted)
    assert (certain.needed(0.99), certain.assumed.fewest) == (6, 6)
    assert certain.chance(0.01) < 1e-6
    assert set(ComparisonPlan(5, 10, Assumptions(), counted).table()[5].values()) == {inf}
    assert ComparisonPlan(10, 1, Assumptions(rate=0.2), counted).least == inf
    clustered = ComparisonPlan(20, 1, Assumptions(cluster_size=5, correlation=0.3), counted)
    assert (clustered.assumed.fewest, clustered.chance(0.5), clustered.least) == (30, 0.0, inf)


def test_above_what_is_drawn_means_are_as_good_as_normal():
    wide = ComparisonPlan(10_000, 1, Assumptions(), counted)
    assert wide.chance(0.01) == pytest.approx(counted(wide.assumed.rehearsal(10_000, 1, 0.01), 0.05, 0.0), abs=0.02)
    # nothing differs, and a loss of more than one point is to be excluded
    sure = ComparisonPlan(10_000, 1, Assumptions(margin=0.01), counted)
    away = 0.01 / sqrt(sure.assumed.variance(1, 1e-6) / 10_000)
    assert sure.chance(0.0) == pytest.approx(NormalDist().cdf(away - 1.96), abs=1e-3)


def test_clusters_and_scores_have_their_design_effect_and_their_spread():
    plain, clustered = Assumptions(), Assumptions(cluster_size=5, correlation=0.5)
    assert clustered.variance(1, 0.1) == pytest.approx(3 * plain.variance(1, 0.1))
    scores = Assumptions(deviation=0.2, alike=0.5, shared=0.5)
    assert scores.variance(1, 0.1) == pytest.approx(2 * 0.04 * 0.75)
    assert scores.variance(5, 0.1) == pytest.approx(2 * 0.04 * 0.35)
