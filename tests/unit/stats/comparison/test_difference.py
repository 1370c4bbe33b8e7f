from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agentv.stats.comparison.difference import Differences, fewest_for
from agentv.stats.comparison.joint import StudentT, Tail
from agentv.stats.comparison.paired import mcnemar_exact
from agentv.stats.comparison.sign_flips import SignFlips
from agentv.stats.intervals.zero_variance import unseen_share
from doubles.thorough import examples

GAINS = [0.11, 0.12, 0.05, 0.2, 0.14, 0.09, 0.13, 0.07, -0.02, 0.16]
thirds = st.integers(0, 3).map(lambda number: number / 3)


@st.composite
def paired(draw, score=thirds):
    """Scores before and after of 6 to 25 cases, in clusters of one or of several."""
    cases = draw(st.integers(6, 25))
    before = draw(st.lists(score, min_size=cases, max_size=cases))
    after = draw(st.lists(score, min_size=cases, max_size=cases))
    size = draw(st.sampled_from((1, 1, 2, 3)))
    return Differences(
        [new - old for old, new in zip(before, after, strict=True)], before, [case // size for case in range(cases)]
    )


@settings(max_examples=examples(150, 60))
@given(
    st.one_of(paired(), paired(st.sampled_from((0.0, 1.0))), paired(st.floats(0, 1))),
    st.sampled_from((0.8, 0.95, 0.975, 0.999)),
)
def test_an_interval_excludes_zero_exactly_when_its_p_value_is_below_alpha(found, level):
    if found.test is None:
        return
    low, high = found.test.interval(level)
    assert -1 <= low <= found.mean <= high <= 1
    assert (not low <= 0 <= high) == (found.test.p() <= 1 - level)


@settings(max_examples=50)
@given(paired(st.floats(0, 1)), st.floats(0.01, 0.3))
def test_so_it_is_at_a_margin(found, margin):
    if found.test is None:
        return
    low, high = found.test.interval(0.95)
    for null in (margin, -margin):
        p = found.test.p(null)
        if abs(p - 0.05) > 0.002:  # the two are as close as bisection is
            assert (not low <= null <= high) == (p <= 0.05)


@settings(max_examples=50)
@given(paired())
def test_a_higher_level_gives_a_wider_interval(found):
    if found.test is None:
        return
    ends = [found.test.interval(level) for level in (0.8, 0.95, 0.99)]
    assert all(wide[0] <= low + 1e-9 and high <= wide[1] + 1e-9 for (low, high), wide in pairwise(ends))


@settings(max_examples=50)
@given(paired(st.sampled_from((0.0, 1.0))))
def test_swapping_the_runs_turns_the_interval(found):
    if found.test is None:
        return
    after = [old + change for old, change in zip(found.before, found.values, strict=True)]
    swapped = Differences([-one for one in found.values], after, found.clusters)
    low, high = found.test.interval(0.95)
    assert swapped.test.interval(0.95) == (pytest.approx(-high, abs=1e-6), pytest.approx(-low, abs=1e-6))
    assert swapped.test.p() == pytest.approx(found.test.p())


@pytest.mark.parametrize("changes", [[1.0] * 8 + [-1.0] * 8, [1.0] * 6 + [-0.5] * 12, [0.25, -0.125, -0.125] * 6])
def test_swapping_runs_of_equal_means_turns_the_interval(changes):
    base = [0.5] * len(changes) if abs(changes[0]) < 1 else [0.0 if one > 0 else -one for one in changes]
    found = Differences(changes, base, range(len(changes)))
    swapped = Differences(
        [-one for one in changes], [a + b for a, b in zip(base, changes, strict=True)], found.clusters
    )
    low, high = found.test.interval(0.95)
    assert swapped.test.interval(0.95) == (pytest.approx(-high, abs=1e-6), pytest.approx(-low, abs=1e-6))


def test_of_fewer_than_six_clusters_there_is_no_test():
    assert Differences([0.1] * 20, [0.5] * 20, [case % 5 for case in range(20)]).test is None
    assert Differences([0.1] * 20, [0.5] * 20, [case % 6 for case in range(20)]).test is not None


def test_verdicts_are_held_against_mcnemars_exact_test_too():
    flips = [1.0] * 5 + [0.0] * 35
    found = Differences(flips, [0.0] * 5 + [1.0] * 35, range(40))
    assert found.test.p() == mcnemar_exact(5, 0) == 0.0625
    assert found.test.interval(0.95)[0] == pytest.approx(0.0, abs=1e-9)


def test_student_and_sign_flips_agree_with_scipy():
    error = np.std(GAINS, ddof=1) / len(GAINS) ** 0.5
    student = StudentT(float(np.mean(GAINS)), float(error), len(GAINS) - 1)
    found = stats.ttest_1samp(GAINS, 0.05)
    assert student.p(0.05) == pytest.approx(found.pvalue)
    assert student.interval(0.95) == pytest.approx(tuple(found.confidence_interval(0.95)))
    shifted = np.array(GAINS) - 0.05
    flips = stats.permutation_test((shifted,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert SignFlips.of(GAINS, range(10)).p(0.05) == pytest.approx(flips.pvalue)


def test_drawn_sign_flips_agree_with_all_of_them():
    many = [*GAINS, *(one / 3 for one in GAINS)]
    drawn, shifted = SignFlips.of(many, range(20)), np.array(many) - 0.05
    signs = 1 - 2 * ((np.arange(2**20)[:, None] >> np.arange(20)) & 1).astype(np.int8)
    exact = np.mean(np.abs(signs @ shifted) >= abs(shifted.sum()) - 1e-12)
    assert drawn.p(0.05) == pytest.approx(exact, abs=4 * (exact / 10_000) ** 0.5)


@pytest.mark.parametrize("kinds", [2, 200])
def test_clusters_are_drawn_alike_however_many_kinds_there_are(kinds, monkeypatch):
    chance = np.random.default_rng(4)
    sums = chance.normal(0.02, 0.2, kinds).tolist() * (400 // kinds)
    by_kind = SignFlips(tuple(sums), (1,) * 400).p(0.01)
    monkeypatch.setattr("agentv.stats.comparison.sign_flips.FEW_KINDS", 1 if kinds == 2 else 1000)
    assert SignFlips(tuple(sums), (1,) * 400).p(0.01) == pytest.approx(by_kind, abs=0.03)


def test_the_tail_reaches_as_far_as_clopper_and_pearson_allow():
    none = Tail.of([0.1] * 20, 0.1, 0.9, -1)
    assert none.interval(0.95)[0] == pytest.approx(0.1 - unseen_share(20) * 1.0)
    assert none.p() == pytest.approx(2 * 0.9**20)
    seen = Tail.of([0.1] * 48 + [-0.9] * 2, 0.06, 0.9, -1)
    share = stats.binomtest(2, 50).proportion_ci(0.95, "exact").high
    assert seen.interval(0.95) == (pytest.approx(0.1 - share), 0.06)
    assert seen.p(0.1 - share) == pytest.approx(0.05)
    assert seen.p(0.2) == 0.0  # the other side is left to the other tests
    assert Tail.of([-0.9] * 8, -0.9, 0.9, -1) is None


TRIPLES = [(1, 1, 1), (-1, 0, 0), (1, 0, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0), (-1, -1, -1), (1, 1, 0)]


def of_triples(triples, before=(0.0, 1.0)):
    values = [float(one) for triple in triples for one in triple]
    sides = [before[0] if one > 0 else before[1] if one < 0 else before[place % 2] for place, one in enumerate(values)]
    return Differences(values, sides, [place // 3 for place in range(len(values))])


def test_verdicts_in_clusters_are_tested_with_the_design_effect_that_the_clusters_show():
    found = of_triples(TRIPLES)
    values = np.array(found.values)
    means = values.reshape(8, 3).mean(axis=1)
    # of clusters of one size CR2 is the variance of their means over their number
    variance, alone = means.var(ddof=1) / 8, values.var(ddof=1) / 24
    shown, largest, moved = variance / alone, 3.0, 5  # the cluster of three failures and the others that sum to no 0
    effect = shown + (largest - shown) * 0.5 / (0.5 + moved)
    assert (found.moved, found.independent, found.of_verdicts) == (5, 8, True)
    assert 1 < shown < effect < largest
    score, flips = found.test.tests
    assert (score.design_effect, score.freedom) == (pytest.approx(effect), pytest.approx(7))
    assert (score.wins, score.losses, score.ties) == (7, 4, 13)
    assert found.test.p() == max(score.p(), flips.p()) == found.chance
    assert found.error == pytest.approx(variance**0.5)


def test_clusters_that_differ_less_than_chance_have_no_design_effect_below_one():
    alike = of_triples([(1, 0, -1)] * 4 + [(1, 1, -1)] * 4)
    values = np.array(alike.values)
    assert values.reshape(8, 3).mean(axis=1).var(ddof=1) / 8 < values.var(ddof=1) / 24
    assert alike.test.tests[0].design_effect == pytest.approx(1 + 2 * 0.5 / (0.5 + 4))


def test_clusters_that_all_moved_alike_count_once_each():
    found = Differences([1.0] * 20, [0.0] * 20, [place // 2 for place in range(20)])
    score, flips = found.test.tests
    assert (score.wins, score.design_effect, found.error) == (20, 2.0, 0.0)
    assert flips.p() == 2 / 2**10


def test_cases_that_stand_alone_have_the_plain_score_test():
    found = Differences([1.0, -1.0, *[0.0] * 8], [0.0, 1.0] * 5, range(10))
    score = found.test.tests[0]
    assert (score.wins, score.losses, score.ties, score.design_effect, score.freedom) == (1, 1, 8, 1.0, inf)


def test_scores_have_students_t_and_the_tails_and_their_chance_is_students_alone():
    found = Differences(GAINS, [0.5] * 10, range(10))
    student, *tails, flips = found.test.tests
    assert found.chance == pytest.approx(stats.ttest_1samp(GAINS, 0).pvalue) == student.p()
    assert found.error == pytest.approx(stats.sem(GAINS))
    assert student.freedom == pytest.approx(9)
    assert [(one.count, one.large) for one in tails] == [(0, -0.5), (0, 0.5)]
    assert found.test.p() == max(one.p() for one in (student, *tails, flips))
    apart = Differences(GAINS, [0.9] * 10, range(10))
    assert apart.room == (pytest.approx(0.9), pytest.approx(0.1))
    assert [(one.count, one.large) for one in apart.test.tests[1:3]] == [(0, -0.9), (9, pytest.approx(1.07 / 9))]


def test_tails_are_of_the_means_of_clusters():
    found = Differences([0.1, 0.3] * 6 + [-0.6, -0.2], [0.5] * 14, [place // 2 for place in range(14)])
    loss = found.test.tests[1]
    assert (loss.seen, loss.count, loss.large) == (7, 1, pytest.approx(-0.4))


def test_above_two_thousand_clusters_a_mean_is_normal_enough_without_sign_flips():
    for cases, flips in ((2000, True), (2001, False)):
        found = Differences([1.0, -1.0] + [0.0] * (cases - 2), [0.0, 1.0] + [1.0] * (cases - 2), range(cases))
        assert (found.flips in found.test.tests) is flips


def test_how_many_cases_rule_the_tail_out():
    cases = fewest_for(0.1, 0.9, 0.05)
    assert Tail.of([0.1] * cases, 0.1, 0.9, -1).p() <= 0.05 < Tail.of([0.1] * (cases - 1), 0.1, 0.9, -1).p()
    assert fewest_for(0.1, 0.0, 0.05) == 0, "where nothing can be lost there is no tail"


@pytest.mark.parametrize("mean", [0.0, 1e-17, 5e-17, 1e-10])
def test_a_mean_that_only_rounding_tells_from_the_margin_takes_endless_cases(mean):
    assert fewest_for(mean, 0.9, 0.05) == inf
