"""Properties of the paired test, and its results where another method is exact."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import beta

from agentv.stats.difference import ALPHA, MOST_KINDS, Differences, difference_at, level_at, not_above_zero
from agentv.stats.intervals.proportion import unseen_share
from doubles.thorough import examples

thirds = st.integers(0, 3).map(lambda number: number / 3)
verdicts = st.sampled_from((0.0, 1.0))
CLOSE = {"abs": 1e-9, "rel": 1e-6}


@st.composite
def paired(draw, score=None):
    """Draw values before and after of 1 to 25 cases, in clusters of one or several sizes."""
    score = draw(st.sampled_from((thirds, verdicts, st.floats(0, 1)))) if score is None else score
    cases = draw(st.integers(1, 25))
    before, after = (draw(st.lists(score, min_size=cases, max_size=cases)) for _ in range(2))
    alone = draw(st.booleans())
    clusters = range(cases) if alone else draw(st.lists(st.integers(0, 7), min_size=cases, max_size=cases))
    return Differences(before, after, list(clusters))


def numbers(found):
    return (found.mean, found.p(), *found.interval(0.95))


def mirrored(found):
    low, high = found.interval(0.95)
    return pytest.approx((-found.mean, found.p(), -high, -low), **CLOSE)


LAW = settings(max_examples=examples(150, 30))


@LAW
@given(paired())
def test_swapping_the_runs_mirrors_everything(found):
    assert numbers(Differences(found.after, found.before, found.clusters)) == mirrored(found)


@LAW
@given(paired())
def test_turning_the_scores_round_mirrors_everything(found):
    turned = ([1 - one for one in side] for side in (found.before, found.after))
    assert numbers(Differences(*turned, found.clusters)) == mirrored(found)


@LAW
@given(paired(), st.lists(st.floats(0, 1), min_size=1, max_size=10), st.booleans())
def test_identical_pairs_never_add_evidence(found, scores, joined):
    clusters = [found.clusters[0] if joined else ("new", place) for place in range(len(scores))]
    more = Differences([*found.before, *scores], [*found.after, *scores], [*found.clusters, *clusters])
    assert more.p() >= found.p() * (1 - 1e-9)


@LAW
@given(paired(), st.integers(2, 4))
def test_duplicating_every_case_within_its_cluster_changes_nothing(found, times):
    more = Differences(*(list(side) * times for side in (found.before, found.after, found.clusters)))
    assert numbers(more) == pytest.approx(numbers(found), **CLOSE)
    assert more.independent == found.independent


@LAW
@given(paired(), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_no_digit(found, chance):
    order = list(range(len(found.before)))
    chance.shuffle(order)
    assert numbers(
        Differences(*([side[place] for place in order] for side in (found.before, found.after, found.clusters)))
    ) == numbers(found)


@LAW
@given(paired(), st.sampled_from((0.8, 0.95, 0.975, 0.999)))
def test_an_interval_excludes_zero_exactly_when_its_p_value_is_below_alpha(found, level):
    low, high = found.interval(level)
    assert -1 <= low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= high <= 1
    if abs(found.p() / (1 - level) - 1) > 1e-6:
        assert (not low <= 0 <= high) == (found.p() < 1 - level)


@settings(max_examples=25)
@given(paired(), st.floats(0.01, 0.3))
def test_so_it_is_at_a_margin(found, margin):
    low, high = found.interval(0.95)
    for null in (margin, -margin):
        if abs(found.p(null) - 0.05) > 1e-5:
            assert (not low <= null <= high) == (found.p(null) <= 0.05)


@settings(max_examples=25)
@given(paired())
def test_a_higher_level_gives_a_wider_interval(found):
    ends = [found.interval(level) for level in (0.8, 0.95, 0.99)]
    assert all(wide[0] <= low + 1e-9 and high <= wide[1] + 1e-9 for (low, high), wide in pairwise(ends))


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (5, 0), (6, 0), (10, 3), (3, 10), (12, 2), (630, 570)])
def test_of_verdicts_it_is_mcnemars_exact_test(wins, losses):
    before, after = [0.0] * wins + [1.0] * losses + [1.0] * 20, [1.0] * wins + [0.0] * losses + [1.0] * 20
    exact = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert Differences(before, after, range(len(before))).p() == pytest.approx(exact, rel=1e-9)


def test_where_all_differences_are_alike_the_unseen_may_be_clopper_and_pearsons_share():
    found = Differences([1.0] * 20, [1.0] * 20, range(20))
    share = unseen_share(20)
    assert found.interval(0.95) == pytest.approx((-share, share))
    gains = Differences([0.0] * 12, [1.0] * 12, range(12))
    assert gains.interval(0.95) == pytest.approx((1 - 2 * unseen_share(12), 1.0))


def test_of_many_cases_it_comes_to_the_t_test():
    chance = random.Random(1)
    before = [chance.uniform(0.2, 0.8) for _ in range(3000)]
    after = [one + chance.gauss(0.004, 0.1) for one in before]
    found = Differences(before, after, range(3000))
    assert found.interval(0.95) == pytest.approx(found.plain_interval(0.95), abs=4e-4)
    expected = stats.ttest_rel(after, before).confidence_interval(0.95)
    assert found.plain_interval(0.95) == pytest.approx(tuple(expected), abs=1e-6)


def test_the_runs_of_the_issue_give_one_verdict_both_ways():
    """20 of 20 scores rise by 0.117, but 20 cases cannot rule out that some others get much worse."""
    chance = random.Random(1)
    before = [min(1, max(0, chance.gauss(0.7, 0.08))) for _ in range(20)]
    after = [min(1, max(0, one + 0.1 + chance.gauss(0, 0.08))) for one in before]
    rise, fall = Differences(before, after, range(20)), Differences(after, before, range(20))
    assert rise.p() == fall.p() == pytest.approx(0.1454, abs=1e-4)
    assert rise.moved == 20
    assert rise.plain_interval(0.95)[0] > 0 > rise.interval(0.95)[0]


def test_many_different_scores_are_rounded_alike_in_both_directions():
    chance = random.Random(2)
    before = [chance.random() for _ in range(MOST_KINDS * 3)]
    after = [min(1.0, max(0.0, one + chance.gauss(0.002, 0.1))) for one in before]
    found = Differences(before, after, range(len(before)))
    assert len(found.kinds.counts) <= MOST_KINDS
    assert numbers(Differences(after, before, found.clusters)) == mirrored(found)
    assert found.interval(0.95) == pytest.approx(found.plain_interval(0.95), abs=1e-3)


def exact(values, counts):
    return not_above_zero(np.array(values, dtype=float), np.array(counts, dtype=float))


@pytest.mark.parametrize(("few", "many", "at"), [(1, 20, 0.1), (3, 7, 0.4), (40, 160, 0.25), (1, 1, 0.5)])
def test_of_two_values_it_is_a_beta_tail(few, many, at):
    """A gamma variable's share of the sum of two has a beta distribution."""
    assert exact([-(1 - at), at], [few, many]) == pytest.approx(beta.sf(at, few, many), rel=1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-1, 1).filter(lambda one: abs(one) > 1e-3), st.integers(1, 9)), min_size=1, max_size=9)
)
def test_turning_the_values_gives_the_rest(kinds):
    values, counts = map(list, zip(*kinds, strict=True))
    assert exact(values, counts) + exact([-one for one in values], counts) == pytest.approx(1, abs=1e-9)


def test_all_comparisons_of_a_series_spend_the_error_rate_and_no_more():
    spent = level_at(1) + sum(level_at(at) + level_at(at, from_baseline=True) for at in range(2, 1_000_000))
    assert spent == pytest.approx(ALPHA, rel=1e-3)
    assert spent <= ALPHA


def test_a_series_without_a_change_seldom_shows_one_and_a_step_is_shown_at_once():
    chance = np.random.default_rng(3)
    alone = list(range(100))
    rounds, wrong, right = 3, 0, 0
    for _ in range(rounds):
        flaky = chance.uniform(0, 0.5, 100)
        runs = (chance.random((30, 100)) >= flaky).astype(float).tolist()
        wrong += any(
            difference_at("r", Differences(runs[base], runs[at], alone), level_at(at)).direction
            for at in range(1, 30)
            for base in {at - 1, 0}
        )
        before, after = (chance.random((2, 100)) >= 0.03).astype(float)
        after[:30] = 1 - after[:30]
        right += (
            difference_at("r", Differences(before.tolist(), after.tolist(), alone), level_at(29)).direction == "lower"
        )
    assert (wrong, right) == (0, rounds)  # each has a probability above 0.95


def test_a_difference_that_errors_could_undo_is_not_shown():
    before, after = [1.0] * 40, [0.0] * 20 + [1.0] * 20
    alone = list(range(40))
    found = Differences(before, after, alone)
    assert difference_at("r", found, 0.005).direction == "lower"
    best = Differences(before, [1.0] * 40, alone)
    kept = difference_at("r", found, 0.005, (found, best))
    assert (kept.direction, kept.errors_decide) == (None, True)
    assert difference_at("r", found, 0.005, (best, found)).direction == "lower"
