"""A plan's promises hold under the rule of `compare`, in a simulation other than the plan's own."""

import numpy as np
import pytest

from agentv.stats.difference import Differences
from agentv.stats.power import BETTER, Assumptions, ComparisonPlan, Population, split
from agentv.stats.rule import decided

ROUNDS = 300
"""The standard error of an 80% probability is 2.3 points."""


def achieved(sides, rounds=ROUNDS):
    """Return how often the rule of `compare` calls a drawn pair of runs better, and worse."""
    found = []
    for _ in range(rounds):
        before, after, clusters = sides()
        found.append(decided([Differences(before, after, clusters).evidence("mean score", 0.0)], 0.05))
    return found.count("better") / rounds, found.count("worse") / rounds


def drawn(plan, difference, way):
    """Draw two runs under the plan's assumptions, case by case."""
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
    """The rule behind `about N cases would show it`: resample the observed pairs."""
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

    if scores == "alike":  # (0.8 / 0.9)^n against 0.025: without spread, the power is 0 or 1
        fewer = Differences([0.7] * (needed - 1), [0.8] * (needed - 1), range(needed - 1))
        assert (fewer.p() > 0.05, achieved(sides, 1)) == (True, (1.0, 0.0))
    else:
        assert achieved(sides)[0] == pytest.approx(0.8, abs=0.07)
    assert population.swapped.swapped.needed(BETTER, 0.05) == needed


def test_a_difference_that_is_likely_missed_is_shown_four_times_in_five():
    before, after = np.repeat([0.0, 1.0, 1.0, 0.0], [12, 9, 60, 19]), np.repeat([1.0, 0.0, 1.0, 0.0], [12, 9, 60, 19])
    population = Population.of([("mean score", Differences(before.tolist(), after.tolist(), range(100)))])
    least = population.detectable(100, 0.05)
    assert least == population.swapped.detectable(100, 0.05)
    assert 0.08 < least < 0.2
    tilted = population.with_extremes.tilted(least)
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


# strength of a chemical paste by batch, three casks each, two assays of a cask; yield of a dye by batch, five each
# O. L. Davies, P. L. Goldsmith, Statistical Methods in Research and Production (1972); `Pastes`, `Dyestuff` of R's lme4
PASTES = (
    "62.8 62.6 60.1 62.3 62.7 63.1 60 61.4 57.5 56.9 61.1 58.9 58.7 57.5 63.9 63.1 65.4 63.7 57.1 56.4 56.9 58.6 64.7 "
    "64.5 55.1 55.1 54.7 54.2 58.8 57.5 63.4 64.9 59.3 58.1 60.5 60 62.5 62.6 61 58.7 56.9 57.7 59.2 59.4 65.2 66 64.8 "
    "64.1 54.8 54.8 64 64 57.7 56.8 58.3 59.3 59.2 59.2 58.9 56.6"
)
DYESTUFF = (
    "1545 1440 1440 1520 1580 1540 1555 1490 1560 1495 1595 1550 1605 1510 1560 1445 1440 1595 1465 1545 1595 1630 1515 "
    "1635 1625 1520 1455 1450 1480 1445"
)


def test_agrees_with_lme4_on_two_levels_of_noise():
    # R 4.2.2, lme4 1.1-31: VarCorr(lmer(strength ~ 1 + (1 | batch/cask), Pastes)): 1.6573, 8.4337, 0.6780, which its
    # optimiser finds to six digits; exactly, from anova(aov(strength ~ batch/cask, Pastes)):
    squares = (27.4891851852, 17.5453333333, 0.678)
    found = split((place // 6, place // 2, float(one)) for place, one in enumerate(PASTES.split()))
    assert found.counts == (10, 30, 60)
    assert found.judge == pytest.approx(squares[2], abs=1e-9)
    assert found.target == pytest.approx((squares[1] - squares[2]) / 2, abs=1e-9)
    assert found.cases == pytest.approx((squares[0] - squares[1]) / 6, abs=1e-9)
    assert (found.target, found.cases) == (pytest.approx(8.433665931, abs=2e-6), pytest.approx(1.657310911, abs=3e-6))


def test_agrees_with_lme4_on_one_level_of_noise():
    # VarCorr(lmer(Yield ~ 1 + (1 | Batch), Dyestuff)): 1764.05, 2451.25
    found = split((place // 5, place, float(one)) for place, one in enumerate(DYESTUFF.split()))
    assert (found.cases, found.target, found.judge) == (pytest.approx(1764.05), pytest.approx(2451.25), None)


@pytest.mark.parametrize(
    ("votes", "advice"),
    [
        ([(case, answer, float(case % 2)) for case in range(6) for answer in range(3)], "more cases"),
        ([(case, answer, float(answer % 2)) for case in range(6) for answer in range(4)], "more cases"),
        ([(case, at, float(vote)) for case in range(6) for at in range(2) for vote in range(2)], "a steadier judge"),
        ([(case, answer, 1.0) for case in range(6) for answer in range(2)], None),
    ],
)
def test_advises_more_cases_unless_the_judge_is_the_largest_part(votes, advice):
    assert split(votes).advice() == advice


def test_refuses_nothing_at_all():
    with pytest.raises(ValueError, match="no votes"):
        split([])


def test_unequal_numbers_by_the_formulas_of_searle_casella_and_mcculloch():
    votes = [("a", 1, 0.1), ("a", 1, 0.3), ("a", 2, 0.5), ("b", 1, 0.9), ("b", 2, 0.6), ("b", 2, 0.8), ("b", 3, 0.7)]
    found = split(votes)
    # votes within answers: two answers with two votes, each 0.1 from their mean
    judge = 4 * 0.01 / (7 - 5)
    # answers within cases: means 0.2 (2), 0.5 of 0.3; 0.9, 0.7 (2), 0.7 of 0.75
    of_answers = 2 * 0.01 + 0.04 + 0.0225 + 2 * 0.0025 + 0.0025
    in_case = (4 + 1) / 3 + (1 + 4 + 1) / 4
    target = (of_answers - 3 * judge) / (7 - in_case)
    whole = 3.9 / 7
    of_cases = 3 * (0.3 - whole) ** 2 + 4 * (0.75 - whole) ** 2
    cases = (of_cases - (judge + (in_case - (4 + 1 + 1 + 4 + 1) / 7) * target)) / (7 - (9 + 16) / 7)
    assert (found.judge, found.target, found.cases) == pytest.approx((judge, target, cases))
    assert found.counts == (2, 5, 7)
