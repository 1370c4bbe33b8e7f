import pytest

from agentv.extensions.labels.comparing import AssertionComparison, ComparedJudge
from agentv.extensions.labels.labelled import PersonLabel, accuracy_difference, accuracy_of
from agentv.extensions.labels.posterior import Counted, JudgeCounts
from agentv.stats.difference import Differences


def cells(**sizes):
    """Return (label, judge's verdict) by counts named `SPV`: stratum, person, verdict, each `p` or `f`."""
    weights = {"p": 8.0, "f": 1.0}
    return [
        (PersonLabel(name[1] == "p", name[0] == "p", weights[name[0]]), name[2] == "p")
        for name, size in sizes.items()
        for _ in range(size)
    ]


def test_labels_are_weighted_by_the_strata_that_they_were_drawn_from():
    # the run's judge passes 80% of 1,000 answers; 100 labels from each stratum
    pairs = cells(ppp=70, ppf=10, pfp=5, pff=15, fpp=12, fpf=8, ffp=20, fff=60)
    labels, verdicts = zip(*pairs, strict=True)
    counts = JudgeCounts(Counted(8000, 2000), Counted(2000, 8000), Counted(80000, 20000))
    found = accuracy_of(labels, verdicts, counts)
    passed, failed = 0.8, 0.2
    true_passes = passed * 0.8 * 70 / 80 + failed * 0.2 * 12 / 20
    true_failures = passed * 0.2 * 15 / 20 + failed * 0.8 * 60 / 80
    person = passed * 0.8 + failed * 0.2
    judge = true_passes + passed * 0.2 * 5 / 20 + failed * 0.8 * 20 / 80
    chance = person * judge + (1 - person) * (1 - judge)
    accuracy = true_passes + true_failures
    for estimate, value in (
        (found.tpr, true_passes / person),
        (found.tnr, true_failures / (1 - person)),
        (found.accuracy, accuracy),
        (found.kappa, (accuracy - chance) / (1 - chance)),
    ):
        assert estimate.value == pytest.approx(value, abs=0.02)
        assert estimate.low < value < estimate.high
    unweighted = accuracy_of([PersonLabel(one.passed) for one in labels], verdicts)
    assert unweighted.accuracy.value == pytest.approx(157 / 200, abs=0.01)
    assert abs(unweighted.tpr.value - found.tpr.value) > 0.02


def weighted_pair(weights, signs, clusters=None):
    labels = [
        PersonLabel(passed=True, weight=weight, cluster=None if clusters is None else clusters[place])
        for place, weight in enumerate(weights)
    ]
    return labels, [one >= 0 for one in signs], [one <= 0 for one in signs]


@pytest.mark.parametrize("clusters", [None, "aabbccddeffg"])
def test_it_is_the_test_of_compare(clusters):
    weights = [5.0, 4.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 1.0, 3.0]
    signs = [-1, -1, -1, 1, 1, 0, 0, 0, -1, 1, 0, 0]
    found = accuracy_difference(*weighted_pair(weights, signs, clusters), comparisons=2, margin=0.1)
    sides = [float(one <= 0) for one in signs], [float(one >= 0) for one in signs]
    test = Differences(*sides, list(clusters or range(12)), weights)
    assert found.p_value == pytest.approx(min(1.0, 2 * test.p()))
    assert (found.low, found.high) == pytest.approx(test.interval(0.95))
    assert (found.only_this, found.only_other, found.verdict) == (3, 4, "inconclusive")


def test_six_clusters_are_enough_and_five_are_not():
    signs = [1, -1, 0, 0, 1, 0]
    assert accuracy_difference(*weighted_pair([1.0] * 6, signs)) is not None
    assert accuracy_difference(*weighted_pair([1.0] * 6, signs, "aabcde")) is None


def judge(name, cost, verdict=None, difference=None):
    return ComparedJudge(name, "m", 1, 0, None, cost_usd=cost, verdict=verdict, difference=difference)


def recommended(*judges):
    found = AssertionComparison("polite", "m", 60, weighted=True, notes=(), judges=judges, reference=0)
    return found.cheapest and found.cheapest.name, [one.name for one in found.undecided]


def test_the_cheapest_that_is_not_worse_is_recommended_and_never_one_of_which_nothing_is_known():
    best = judge("best", 3.0)
    for others, expected in (
        ((judge("a", 1.0, "non-inferior"), judge("b", 0.5, "worse")), ("a", [])),
        ((judge("a", 1.0, "non-inferior"), judge("b", 0.5, "inconclusive")), ("a", ["b"])),
        ((judge("a", 1.0, "inconclusive"), judge("b", 4.0, "equivalent")), ("best", ["a"])),
        ((judge("a", 4.0, "inconclusive"),), ("best", [])),
        ((judge("a", None, "better"),), ("best", [])),
        ((judge("a", None, "inconclusive"),), ("best", ["a"])),
    ):
        assert recommended(best, *others) == expected
    assert recommended(judge("best", None), judge("a", 1.0, "inconclusive")) == (None, ["a"])
