import pytest

from agentv.extensions.labels.posterior import JudgedAnswer, Observation, corrected_rate, estimated, judge_counts
from agentv.extensions.labels.run_rates import JudgedPart, RunParts, _design_effect, run_rate_draws


def answers(passed, failed, labelled=0, *, agrees=0.9, clusters=None):
    """Answers of a judge, the first of each verdict labelled."""
    found = []
    for verdict, number in ((True, passed), (False, failed)):
        for place in range(number):
            person = None if place >= labelled else verdict == (place < agrees * labelled)
            cluster = None if clusters is None else (verdict, place // clusters)
            found.append(JudgedAnswer(verdict, person, cluster))
    return found


@pytest.mark.parametrize("clusters", [None, 4])
def test_where_every_verdict_is_the_judges_it_is_the_corrected_rate(clusters):
    found = answers(80, 20, 20, clusters=clusters)
    rate = estimated(run_rate_draws(RunParts([JudgedPart(found)], always_judged=True)))
    expected = corrected_rate(judge_counts(found))
    assert (rate.value, rate.low, rate.high) == pytest.approx((expected.value, expected.low, expected.high), abs=1e-9)


def test_two_judges_are_two_parts():
    good, bad = JudgedPart(answers(95, 5, 5, agrees=1)), JudgedPart(answers(95, 5, 5, agrees=0.2))
    rates = [estimated(run_rate_draws(RunParts([one], always_judged=True))).value for one in (good, bad)]
    both = estimated(run_rate_draws(RunParts([good, bad], always_judged=True)))
    assert both.value == pytest.approx(sum(rates) / 2, abs=0.03)


def labelled(passed, failed, right_of_passed, right_of_failed, weight=1.0):
    """Answers that all have labels: so many of those that the judge passed, and of those that it failed, are right."""
    return [
        JudgedAnswer(verdict, verdict == (place < right), weight=weight)
        for verdict, number, right in ((True, passed, right_of_passed), (False, failed, right_of_failed))
        for place in range(number)
    ]


def test_the_rate_is_the_sum_of_each_parts_rate_by_its_share_of_the_trials():
    first, second = labelled(200, 100, 180, 80), labelled(60, 40, 30, 30)
    decided = [Observation(place < 150) for place in range(200)]
    people = [180 + 20, 30 + 10, 150]
    rate = estimated(run_rate_draws(RunParts([JudgedPart(first), JudgedPart(second)], decided)))
    assert rate.value == pytest.approx(sum(people) / 600, abs=0.005)
    both = estimated(run_rate_draws(RunParts([JudgedPart(first), JudgedPart(second)], always_judged=True)))
    assert both.value == pytest.approx(sum(people[:2]) / 400, abs=0.005)


def test_trials_that_stand_for_several_count_so_often():
    judged = JudgedPart(labelled(200, 100, 180, 80))
    for weight in (0.5, 3.0):
        decided = [Observation(place < 30, weight=weight) for place in range(120)]
        rate = estimated(run_rate_draws(RunParts([judged], decided)))
        assert rate.value == pytest.approx((200 + 30 * weight) / (300 + 120 * weight), abs=0.01), weight


def test_the_design_effect_of_a_run_is_that_of_its_linearized_rate_by_hand():
    judged = [
        JudgedAnswer(True, True, "a"), JudgedAnswer(True, False, "a", 2.0), JudgedAnswer(True, None, "b"),
        JudgedAnswer(False, False, "b"), JudgedAnswer(False, True, "c", 1.0, 3.0), JudgedAnswer(False, None, "c"),
    ]  # fmt: skip
    decided = [Observation(True, "a"), Observation(False, "b"), Observation(True, "c", 2.0), Observation(False)]
    total = 12.0
    # of the answers that the judge passed 1 of 3 labelled trials pass, of those that it failed 3 of 4
    rates, shares, labelled = {True: 1 / 3, False: 3 / 4}, {True: 4 / total, False: 3 / total}, {True: 3.0, False: 4.0}
    truth = (4 * rates[True] + 3 * rates[False] + 3.0) / total
    summed, alone = {}, 0.0
    for one in judged:
        rate = rates[one.judge]
        label = 0.0 if one.person is None else one.label_weight * shares[one.judge] * (one.person - rate)
        influence = one.weight * (rate - truth) / total + label / labelled[one.judge]
        summed[one.cluster] = summed.get(one.cluster, 0.0) + influence
        alone += influence**2
    for place, one in enumerate(decided):
        influence = one.weight * (one.passed - truth) / total
        cluster = one.cluster or place
        summed[cluster] = summed.get(cluster, 0.0) + influence
        alone += influence**2
    effect = sum(one**2 for one in summed.values()) / alone
    assert _design_effect(RunParts([JudgedPart(judged)], decided)) == pytest.approx(max(1.0, effect))
    assert effect > 1.01
    alike = [JudgedAnswer(True, True, place // 2) for place in range(6)]
    assert _design_effect(RunParts([JudgedPart(alike)], [Observation(True)])) == 1.0, "nothing moves the rate"
    apart = [("a", True, True), ("b", True, False), ("b", False, None), ("b", False, None)]
    half = [JudgedAnswer(judge, person, cluster) for cluster, judge, person in apart]
    # people pass half of what the judge passes, and are taken to fail what it fails: 0.1875 against its opposite
    assert _design_effect(RunParts([JudgedPart(half)])) == pytest.approx(2 * 0.1875**2 / (0.1875**2 + 3 * 0.0625**2))
    unlabelled = [JudgedAnswer(place < 4, None, "a" if place < 3 else "b") for place in range(8)]
    # without labels people are taken to agree with the judge, who passes half
    assert _design_effect(RunParts([JudgedPart(unlabelled)])) == pytest.approx((3**2 + 3**2) / 8)
    apart = [JudgedAnswer(one.judge, one.person, None, one.weight, one.per_label) for one in judged]
    assert _design_effect(RunParts([JudgedPart(apart)], [Observation(True)])) == 1.0
