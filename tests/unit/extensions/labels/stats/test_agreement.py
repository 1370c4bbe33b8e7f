import numpy as np
import pytest

from agentv.extensions.labels.stats.agreement import (
    LabelledUnit,
    judge_accuracy,
    krippendorff_alpha,
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
