import pytest

from agentv.extensions.labels.posterior import Counted, JudgeCounts, JudgedAnswer, judge_accuracy, judge_counts
from doubles.labelled_scores import verdicts


def units(*observers):
    return [[label == "1" for label in row] for row in zip(*observers, strict=True)]


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
"""Of statsmodels 0.15.0, printed by `benchmarks/judge_oracles.py`."""


def test_kappa_is_that_of_statsmodels():
    judged = [JudgedAnswer(judge, person) for judge, person in verdicts(2000)]
    found = judge_accuracy(judge_counts(judged)).kappa
    assert (found.value, found.low, found.high) == pytest.approx(KAPPA, abs=0.006)
