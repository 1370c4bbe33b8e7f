"""What a plan promises is what the rule of `compare` shows, in another simulation than the plan's own."""

import numpy as np
import pytest

from agentv.stats.difference import Differences
from agentv.stats.power import BETTER, Assumptions, ComparisonPlan, Population
from agentv.stats.rule import decided

ROUNDS = 300
"""The standard error of a chance of 80 % is 2.3 points."""


def achieved(sides, rounds=ROUNDS):
    """How often `compare`'s rule calls a drawn pair of runs better, and worse."""
    found = []
    for _ in range(rounds):
        before, after, clusters = sides()
        found.append(decided([Differences(before, after, clusters).evidence("mean score", 0.0)], 0.05))
    return found.count("better") / rounds, found.count("worse") / rounds


def drawn(plan, difference, way):
    """Two runs as the plan assumes them, drawn case by case."""
    assumed, chance = plan.assumed, np.random.default_rng(5)
    sign = 1 if way == "rise" else -1

    def rates(mean, hard):
        from scipy.stats import beta

        weight = 1 / assumed.alike - 1
        return beta.ppf(hard, mean * weight, (1 - mean) * weight)

    def sides():
        hard, other = chance.random((2, plan.cases))
        also = np.where(chance.random(plan.cases) < assumed.shared, hard, other)
        before = chance.binomial(plan.repeat, rates(assumed.rate, hard)) / plan.repeat
        after = chance.binomial(plan.repeat, rates(assumed.rate + sign * difference, also)) / plan.repeat
        return before.tolist(), after.tolist(), range(plan.cases)

    return sides


@pytest.mark.parametrize(("cases", "repeat", "difference"), [(100, 1, 0.15), (40, 3, 0.16)])
@pytest.mark.parametrize("way", ["drop", "rise"])
def test_a_plan_keeps_what_it_promises_both_ways(cases, repeat, difference, way):
    plan = ComparisonPlan(cases, repeat, Assumptions())
    better, worse = achieved(drawn(plan, difference, way))
    shown, wrong = (better, worse) if way == "rise" else (worse, better)
    assert plan.chance(difference, way) == pytest.approx(shown, abs=0.07)
    assert wrong <= 0.02


@pytest.mark.parametrize("way", ["drop", "rise"])
def test_as_many_cases_as_a_plan_asks_for_reach_its_power(way):
    needed = ComparisonPlan(100, 1, Assumptions()).needed(0.15, way)
    better, worse = achieved(drawn(ComparisonPlan(needed, 1, Assumptions()), 0.15, way))
    assert max(better, worse) == pytest.approx(0.8, abs=0.07)


@pytest.mark.parametrize("scores", ["verdicts", "scores", "alike"])
def test_as_many_cases_as_compare_asks_for_reach_their_power(scores):
    """The law of `about N cases would show it`: the observed pairs, drawn again."""
    chance = np.random.default_rng(3)
    if scores == "verdicts":
        before, after = np.repeat([0.0, 1.0, 1.0], [9, 3, 48]), np.repeat([1.0, 0.0, 1.0], [9, 3, 48])
    elif scores == "scores":
        before = chance.uniform(0.3, 0.8, 40)
        after = before + chance.normal(0.05, 0.12, 40)
    else:
        before, after = np.full(20, 0.7), np.full(20, 0.8)
    population = Population.of([("mean score", Differences(before.tolist(), after.tolist(), range(len(before))))])
    needed = population.needed(BETTER, 0.05)

    def sides():
        places = chance.integers(0, len(before), needed)
        return before[places].tolist(), after[places].tolist(), range(needed)

    if scores == "alike":  # 0.8 / 0.9 to the power of n, against 0.025: without a spread it is all or nothing
        fewer = Differences([0.7] * (needed - 1), [0.8] * (needed - 1), range(needed - 1))
        assert (fewer.p() > 0.05, achieved(sides, 1)) == (True, (1.0, 0.0))
    else:
        assert achieved(sides)[0] == pytest.approx(0.8, abs=0.07)
    assert population.turned.turned.needed(BETTER, 0.05) == needed


def test_a_difference_that_is_likely_missed_is_shown_four_times_in_five():
    before, after = np.repeat([0.0, 1.0, 1.0, 0.0], [12, 9, 60, 19]), np.repeat([1.0, 0.0, 1.0, 0.0], [12, 9, 60, 19])
    population = Population.of([("mean score", Differences(before.tolist(), after.tolist(), range(100)))])
    least = population.detectable(100, 0.05)
    assert least == population.turned.detectable(100, 0.05)
    assert 0.08 < least < 0.2
    tilted = population.spread.tilted(least)
    assert tilted.mean == pytest.approx(least, abs=1e-6)
    assert tilted.chance(100, BETTER, 0.05) == pytest.approx(0.8, abs=0.07)


def test_a_plan_of_scores_tests_the_pass_rate_too_and_clusters_count_once():
    scores = ComparisonPlan(60, 1, Assumptions(rate=0.7, deviation=0.15))
    assert scores.assumed.population(1, 0.0).measures == ("mean score", "pass rate")
    assert 0.2 < scores.chance(0.1) < 1
    alone, together = (ComparisonPlan(100, 1, Assumptions(cluster_size=size, correlation=0.3)) for size in (1, 5))
    assert together.chance(0.15) < alone.chance(0.15)
    assert together.needed(0.15) % 5 == 0
    assert ComparisonPlan(25, 1, together.assumed).least("drop") == float("inf"), "five clusters show nothing"
