import numpy as np
import pytest

from agentv.extensions.labels.stats.agreement import (
    ConfusionMatrix,
    LabelledUnit,
    judge_accuracy,
    krippendorff_alpha,
    majority,
    mean_pairwise_agreement,
)
from agentv.extensions.labels.stats.posterior import Counted, JudgeCounts, JudgedAnswer, judge_counts
from doubles.labelled_scores import labels_of_people, verdicts


def units(*observers):
    return [
        LabelledUnit({str(who): label == "1" for who, label in enumerate(row)}) for row in zip(*observers, strict=True)
    ]


def test_alpha_is_that_of_the_published_example():
    # K. Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), section A
    found = krippendorff_alpha(units("0100000010", "1110010000"))
    assert found.value == pytest.approx(0.095, abs=0.0005)
    assert found.low < 0 < found.high < 1


def test_alpha_of_perfect_agreement_is_one_and_its_interval_is_not_a_point():
    few, many = (krippendorff_alpha(units("01" * count, "01" * count, "01" * count)) for count in (4, 200))
    assert (few.value, many.value) == (1, 1)
    assert few.low < 0.9 < many.low <= many.high == 1


def test_alpha_is_undefined_where_chance_explains_everything():
    assert krippendorff_alpha(units("1111", "1111")) is None
    assert krippendorff_alpha(units("10")) is None
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([*units("1", "0"), *units("1")]) is None


def test_alpha_of_clustered_answers_is_less_certain():
    alone = units("0011" * 20, "0111" * 20)
    grouped = [LabelledUnit(unit.labels, place // 10) for place, unit in enumerate(alone)]
    assert krippendorff_alpha(grouped).value == krippendorff_alpha(alone).value
    swapped = [LabelledUnit(unit.labels, place % 4 == 1) for place, unit in enumerate(alone)]
    assert krippendorff_alpha(swapped).reach > krippendorff_alpha(alone).reach


def test_the_matrix_counts_each_pair_where_it_belongs():
    pairs = [(True, True)] * 4 + [(True, False)] * 3 + [(False, True)] * 2 + [(False, False)]
    found = ConfusionMatrix.of(pairs)
    assert found == ConfusionMatrix(true_passes=4, false_passes=3, false_failures=2, true_failures=1)
    assert found.total == 10
    assert ConfusionMatrix.of([]) == ConfusionMatrix() == ConfusionMatrix(0, 0, 0, 0)


def test_rates_are_weighted_by_how_often_the_judge_passes():
    # evenly drawn labels of a judge that passes 90%: the raw shares of the matrix would give TPR 0.8, TNR 0.8
    found = judge_accuracy(JudgeCounts(Counted(8000, 2000), Counted(2000, 8000), Counted(9000, 1000)))
    assert found.tpr.value == pytest.approx(0.72 / 0.74, abs=0.005)
    assert found.tnr.value == pytest.approx(0.08 / 0.26, abs=0.01)
    assert found.accuracy.value == pytest.approx(0.8, abs=0.005)


def test_what_the_labels_cannot_show_is_not_made_up():
    alike = judge_accuracy(JudgeCounts(Counted(10, 0), Counted(0, 0), Counted(100, 0)))
    assert (alike.tnr, alike.kappa) == (None, None)
    assert (0.75 < alike.accuracy.low < 1, alike.accuracy.value) == (True, 1.0)
    none_pass = judge_accuracy(JudgeCounts(Counted(0, 4), Counted(0, 6), Counted(50, 50)))
    assert (none_pass.tpr, none_pass.kappa) == (None, None)
    one_verdict = judge_accuracy(JudgeCounts(Counted(), Counted(3, 6), Counted(50, 50)))
    assert one_verdict.kappa is None, "no label shows what people say of what the judge passes"
    few_of_passed = judge_accuracy(JudgeCounts(Counted(2, 8), Counted(8, 2), Counted(50, 50)))
    assert None not in (few_of_passed.tpr, few_of_passed.tnr, few_of_passed.kappa)
    part_of_one = judge_accuracy(JudgeCounts(Counted(0.2, 0.3), Counted(0.3, 0.2), Counted(50, 50)))
    assert None not in (part_of_one.tpr, part_of_one.tnr, part_of_one.kappa)
    with pytest.raises(ValueError, match="no labels"):
        judge_accuracy(JudgeCounts(Counted(), Counted(), Counted(5, 5)))


def test_a_majority_is_more_than_half():
    assert [majority(one) for one in ([], [True], [True, False], [False, False, True])] == [None, True, None, False]
    three_of_four, two_of_four, two_of_five = (
        [place < passes for place in range(count)] for passes, count in ((3, 4), (2, 4), (2, 5))
    )
    assert [majority(one) for one in (three_of_four, two_of_four, two_of_five)] == [True, None, False]


def test_agreement_of_people_is_by_pairs():
    assert mean_pairwise_agreement(units("110", "100", "100")) == pytest.approx((3 + 1 + 3) / 9)
    assert mean_pairwise_agreement(units("10")) is None


KAPPA = (0.517764153082291, 0.4766676464236596, 0.5588606597409224)
ALPHA = 0.43938002025769685
"""Of statsmodels 0.15.0 and krippendorff 0.9.0, printed by `benchmarks/judge_oracles.py`."""


def test_kappa_is_that_of_statsmodels():
    judged = [JudgedAnswer(judge, person) for judge, person in verdicts(2000)]
    found = judge_accuracy(judge_counts(judged)).kappa
    assert (found.value, found.low, found.high) == pytest.approx(KAPPA, abs=0.006)


def test_alpha_is_that_of_the_krippendorff_package():
    labelled = [LabelledUnit(labels) for labels in labels_of_people(150)]
    assert krippendorff_alpha(labelled).value == pytest.approx(ALPHA, abs=1e-12)


def test_labels_of_one_answer_alone_do_not_count_for_alpha_or_for_pairs():
    some = units("0011", "0111")
    assert krippendorff_alpha([*some, LabelledUnit({"0": True})]).value == krippendorff_alpha(some).value
    assert mean_pairwise_agreement([*some, LabelledUnit({"0": True})]) == mean_pairwise_agreement(some) == 0.75


def test_alpha_of_two_answers_is_known_and_of_one_is_not():
    assert krippendorff_alpha(units("10", "10")).value == 1.0
    assert krippendorff_alpha(units("1", "0")) is None
    # two answers, each with a pass and a failure: observed disagreement 4 / 4, expected 2 · 2 · 2 / (4 · 3)
    assert krippendorff_alpha(units("10", "01")).value == pytest.approx(1 - 4 * 3 / (2 * 2 * 2))


def test_the_interval_of_alpha_holds_it_and_another_seed_gives_another():
    some = units("0011" * 5, "0111" * 5, "0010" * 5)
    found, again, other = (krippendorff_alpha(some, seed) for seed in (0, 0, 1))
    assert found == again != other
    assert found.low < found.value < found.high


def test_the_interval_of_alpha_is_that_of_the_bayesian_bootstrap_with_one_unit_more():
    """Of two labels: half of it a pass and a failure, a quarter two passes, a quarter two failures."""
    rows = [(1, 3), (2, 3), (3, 3), (0, 3), (1, 2), (2, 2)]
    found = krippendorff_alpha(LabelledUnit({str(who): who < passed for who in range(size)}) for passed, size in rows)
    shape = [1.0] * len(rows) + [0.5, 0.25, 0.25]
    weights = np.random.default_rng(0).standard_gamma(shape, (4000, len(shape)))
    passed, size = np.array([*rows, (1, 2), (2, 2), (0, 2)], dtype=float).T
    observed = weights @ (2 * passed * (size - passed) / (size - 1))
    passes, labels = weights @ passed, weights @ size
    drawn = 1 - observed * (labels - 1) / (2 * passes * (labels - passes))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))))


def test_an_accuracy_is_known_by_labels_of_one_verdict_too():
    found = judge_accuracy(JudgeCounts(Counted(8, 2), Counted(), Counted(70, 30)))
    assert found.kappa is None
    assert found.tpr.low < found.tpr.value < found.tpr.high
    assert found.tnr is not None
    found = judge_accuracy(JudgeCounts(Counted(), Counted(0, 9), Counted(70, 30)))
    assert (found.tpr, found.kappa) == (None, None)
    assert judge_accuracy(JudgeCounts(Counted(9, 0), Counted(9, 0), Counted(7, 3))).tnr is None
    both = JudgeCounts(Counted(9, 1), Counted(2, 8), Counted(70, 30))
    assert judge_accuracy(both) == judge_accuracy(both, 0) != judge_accuracy(both, 1)
