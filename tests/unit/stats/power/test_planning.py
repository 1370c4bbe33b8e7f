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
    fewest = replace(certain, cases=6)
    assert fewest.chance(fewest.least) == pytest.approx(0.8, abs=0.002)
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


def test_assumptions_are_handed_to_the_drawn_runs_as_they_are():
    assumed = Assumptions(0.7, 0.4, 0.3, cluster_size=5, correlation=0.2, deviation=0.1)
    assert assumed.rehearsal(40, 3, 0.05) == Rehearsal(40, 3, 0.7, 0.05, 0.4, 0.3, 5, 0.2, 0.1)
    assert Assumptions() == Assumptions(0.8, 0.5, 0.5, 0.05, 0.8, 0.0, 1, 0.0, None)
    assert Assumptions().reach == pytest.approx(1.959964 + 0.841621, abs=1e-6)
    assert Assumptions(alpha=0.01, power=0.9).reach == pytest.approx(2.575829 + 1.281552, abs=1e-6)
    assert Assumptions(alpha=0.01, cluster_size=3).fewest == 24


def normal(plan: Rehearsal, alpha: float, margin: float) -> float:
    """Stands in for the rule of compare: the power of a normal mean."""
    error = sqrt(Assumptions().variance(plan.repeat, plan.difference or 1e-6) / plan.cases)
    return NormalDist().cdf(abs(plan.difference - margin) / error - NormalDist().inv_cdf(1 - alpha / 2))


def test_up_to_three_thousand_cases_the_rule_decides_and_above_means_are_normal():
    asked = []

    def rule(plan: Rehearsal, alpha: float, margin: float) -> float:
        asked.append((plan.cases, plan.repeat, plan.difference, alpha, margin))
        return normal(plan, alpha, margin)

    plan = ComparisonPlan(3000, 2, Assumptions(alpha=0.01, margin=0.02), rule)
    by_rule = plan.chance(0.05)
    assert asked == [(3000, 2, 0.05, 0.01, 0.02)]
    assert replace(plan, cases=3001).chance(0.05) == pytest.approx(by_rule, abs=0.002)
    assert len(asked) == 1


def test_a_difference_at_the_margin_takes_endless_cases():
    assert ComparisonPlan(100, 1, Assumptions(margin=0.05), normal).needed(0.05) is None


@pytest.mark.parametrize(("difference", "margin"), [(0.05, 0.0), (0.1, 0.0), (0.02, 0.0), (0.0, 0.05), (0.1, 0.03)])
def test_the_cases_that_are_needed_show_the_difference_with_the_power_that_is_given(difference, margin):
    plan = ComparisonPlan(100, 2, Assumptions(margin=margin), normal)
    needed = plan.needed(difference)
    assert replace(plan, cases=needed).chance(difference) == pytest.approx(0.8, abs=0.026)
    by_hand = Assumptions().variance(2, difference or 1e-6) * (Assumptions().reach / abs(difference - margin)) ** 2
    assert needed == pytest.approx(by_hand, rel=0.1)


def test_needed_cases_are_corrected_where_the_rule_shows_less_than_normal_means_would():
    def half_as_sure(plan: Rehearsal, alpha: float, margin: float) -> float:
        return normal(replace(plan, cases=plan.cases // 2), alpha, margin)

    usual = ComparisonPlan(100, 2, Assumptions(), normal).needed(0.1)
    twice = ComparisonPlan(100, 2, Assumptions(), half_as_sure).needed(0.1)
    assert twice == pytest.approx(2 * usual, rel=0.08)
    never = ComparisonPlan(100, 2, Assumptions(), lambda *_: 0.0).needed(0.2)
    assert never == pytest.approx(ComparisonPlan(100, 2, Assumptions(), normal).needed(0.2) * 2**4, rel=0.1)


@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_needed_cases_are_corrected_where_the_rule_shows_more_than_normal_means_would(alpha):
    def twice_as_sure(plan: Rehearsal, alpha: float, margin: float) -> float:
        return normal(replace(plan, cases=2 * plan.cases), alpha, margin)

    usual = ComparisonPlan(100, 2, Assumptions(alpha=alpha), normal).needed(0.1)
    half = ComparisonPlan(100, 2, Assumptions(alpha=alpha), twice_as_sure).needed(0.1)
    assert half == pytest.approx(usual / 2, rel=0.08)


def test_the_least_drop_with_a_margin_or_of_scores_is_where_normal_means_show_it():
    for assumed in (Assumptions(margin=0.02), Assumptions(deviation=0.2), Assumptions(cluster_size=4, correlation=0.3)):
        least = ComparisonPlan(400, 3, assumed, counted).least
        error = sqrt(assumed.variance(3, least) / 400)
        assert least == pytest.approx(assumed.margin + assumed.reach * error, abs=2e-4)
    assert ComparisonPlan(12, 1, Assumptions(rate=0.1, margin=0.05), counted).least == inf


def test_clusters_and_scores_have_their_design_effect_and_their_spread():
    plain, clustered = Assumptions(), Assumptions(cluster_size=5, correlation=0.5)
    assert clustered.variance(1, 0.1) == pytest.approx(3 * plain.variance(1, 0.1))
    scores = Assumptions(deviation=0.2, alike=0.5, shared=0.5)
    assert scores.variance(1, 0.1) == pytest.approx(2 * 0.04 * 0.75)
    assert scores.variance(5, 0.1) == pytest.approx(2 * 0.04 * 0.35)
