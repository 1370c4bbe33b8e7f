import random

import pytest
from scipy import stats

from agentv.extensions.labels.stats.annotators import (
    COST_BENEFIT,
    AlternativeAnnotator,
    _benjamini_yekutieli,
    alternative_annotator,
)


def labelled(judge_errs, count=200, people=("ada", "bob", "eve"), person_errs=0.1):
    chance = random.Random(1)
    found = []
    for _ in range(count):
        truth = chance.random() < 0.6
        labels = {person: truth ^ (chance.random() < person_errs) for person in people}
        found.append((truth ^ (chance.random() < judge_errs), labels))
    return found


def test_a_judge_that_errs_as_people_do_may_stand_in_and_a_random_one_may_not():
    good, bad = alternative_annotator(labelled(0.1)), alternative_annotator(labelled(0.5))
    assert (good.winning_rate, good.passed) == (1, True)
    assert (bad.winning_rate, bad.passed) == (0, False)
    assert bad.advantage < good.advantage
    assert [one.person for one in good.against] == ["ada", "bob", "eve"]
    assert {one.answers for one in good.against} == {200}


def test_shares_count_ties_for_both():
    # each other person alone decides: the judge agrees with both others, or with one, or with none
    rows = [(True, {"a": True, "b": True, "c": True})] * 30 + [(False, {"a": True, "b": True, "c": True})] * 10
    found = alternative_annotator(rows)
    assert [(one.judge, one.people) for one in found.against] == [(pytest.approx(0.75), 1)] * 3


def test_people_who_all_agree_with_the_judge_have_no_variance():
    found = alternative_annotator([(True, dict.fromkeys("abc", True))] * 30)
    assert (found.winning_rate, found.advantage) == (1, 1)


def test_the_test_needs_three_people_with_thirty_shared_answers():
    assert alternative_annotator(labelled(0.1, people=("ada", "bob"))) is None
    assert alternative_annotator(labelled(0.1, count=29)) is None
    assert alternative_annotator([]) is None


def with_differences(worse, alike, better):
    """Answers of three people: on so many the judge agrees less with the others than a person does, and so on."""
    return (
        [(False, dict.fromkeys("abc", True))] * worse
        + [(True, dict.fromkeys("abc", True))] * alike
        + [(True, {"a": True, "b": True, "c": False})] * better
    )


@pytest.mark.parametrize("cost_benefit", [COST_BENEFIT, 0.0, 0.3])
@pytest.mark.parametrize("counts", [(12, 40, 0), (3, 40, 9), (30, 10, 0), (1, 29, 20)])
def test_the_p_value_is_that_of_a_one_sided_t_test(counts, cost_benefit):
    rows = with_differences(*counts)
    found = alternative_annotator(rows, cost_benefit)
    for one, name in zip(found.against, "abc", strict=True):
        differences = []
        for judge, labels in rows:
            others = [label for other, label in labels.items() if other != name]
            of_judge, of_person = others.count(judge), others.count(labels[name])
            differences.append((of_person >= of_judge) - (of_judge >= of_person))
        expected = stats.ttest_1samp(differences, cost_benefit, alternative="less").pvalue
        assert one.p_value == pytest.approx(expected, rel=1e-6), name
    corrected = stats.false_discovery_control([one.p_value for one in found.against], method="by")
    assert [one.better for one in found.against] == [p <= 0.05 for p in corrected.tolist()]
    assert found.winning_rate == sum(one.better for one in found.against) / 3
    assert found.advantage == pytest.approx(sum(one.judge for one in found.against) / 3)


def test_differences_without_variance_are_certain_on_either_side_of_the_cost():
    never = alternative_annotator([(False, dict.fromkeys("abc", True))] * 30)
    assert [(one.p_value, one.better) for one in never.against] == [(1.0, False)] * 3
    always = alternative_annotator([(True, dict.fromkeys("abc", True))] * 30)
    assert [(one.p_value, one.better) for one in always.against] == [(0.0, True)] * 3
    assert [one.p_value for one in alternative_annotator([(True, dict.fromkeys("abc", True))] * 30, 0.0).against] == [
        1
    ] * 3


def test_hypotheses_are_rejected_as_by_benjamini_and_yekutieli_at_every_rank():
    """People of unlike care, so that some p-values are rejected and others are not."""
    found = []
    for people in (3, 4, 6):
        for judge_errs in (0.15, 0.25, 0.3):
            rows = labelled(judge_errs, count=120, people="abcdef"[:people], person_errs=0.05)
            chance = random.Random(people)
            for _, labels in rows:
                for place, person in enumerate(labels):
                    labels[person] ^= chance.random() < 0.06 * place
            found.append(alternative_annotator(rows))
    mixed = 0
    for one in found:
        p_values = [each.p_value for each in one.against]
        corrected = stats.false_discovery_control(p_values, method="by").tolist()
        better = [each.better for each in one.against]
        assert better == [p <= 0.05 for p in corrected]
        mixed += len(set(better)) > 1
    assert mixed >= 2


def test_a_judge_passes_from_half_of_the_people_on():
    assert AlternativeAnnotator((), 0.5, 0.9).passed
    assert not AlternativeAnnotator((), 0.49, 0.9).passed


def test_people_with_few_shared_answers_are_left_out():
    rows = [(True, {"a": True, "b": True, "c": True, "late": True})] * 29 + [(True, dict.fromkeys("abc", True))]
    alone = [(True, {"late": True})] * 20
    found = alternative_annotator(rows + alone)
    assert [(one.person, one.answers) for one in found.against] == [("a", 30), ("b", 30), ("c", 30)]


def test_hypotheses_are_rejected_at_their_level_and_not_above_it():
    assert _benjamini_yekutieli([0.05]) == [True]
    harmonic = 1 + 1 / 2 + 1 / 3
    for first, rejected in ((0.0499, True), (0.0501, False)):
        assert _benjamini_yekutieli([0.5, first / (3 * harmonic), 0.6]) == [False, rejected, False]
    assert _benjamini_yekutieli([0.0499 / harmonic] * 3) == [True] * 3
    assert _benjamini_yekutieli([0.0501 / harmonic] * 3) == [False] * 3
