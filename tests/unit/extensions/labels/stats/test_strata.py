import itertools

import pytest

from agentv.extensions.labels.stats.corrected import corrected_rate
from agentv.extensions.labels.stats.posterior import JudgedAnswer, estimated, judge_counts
from agentv.extensions.labels.stats.run_rate import JudgedPart, RunParts, run_rate_draws
from agentv.extensions.labels.stats.strata import even_sizes, with_label_weights


def test_a_sample_is_drawn_evenly_as_far_as_each_stratum_has_answers():
    assert even_sizes(10, [80, 20]) == [5, 5]
    assert even_sizes(11, [80, 20]) == [6, 5]
    assert even_sizes(10, [80, 2]) == [8, 2]
    assert even_sizes(10, [3, 90]) == [3, 7]
    assert even_sizes(100, [30, 20]) == [30, 20]
    assert even_sizes(5, [0, 3]) == [0, 3]
    assert even_sizes(4, [1, 9, 9]) == [1, 2, 1]
    assert even_sizes(16, [5, 1, 1, 100]) == [5, 1, 1, 9]
    assert even_sizes(0, [1, 2]) == [0, 0]
    assert even_sizes(3, []) == []


def test_a_larger_sample_takes_at_least_as_many_from_each_stratum():
    available = [7, 0, 1, 12, 3]
    sizes = [even_sizes(wanted, available) for wanted in range(26)]
    assert [sum(size) for size in sizes] == [*range(24), 23, 23]
    for smaller, larger in itertools.pairwise(sizes):
        assert all(less <= more for less, more in zip(smaller, larger, strict=True)), (smaller, larger)


def drawn(kind, answers, labels, passed):
    """Answers that a judge passes, some of them labelled, of which people pass some; and their kind."""
    people = [place < passed for place in range(labels)] + [None] * (answers - labels)
    return [(JudgedAnswer(True, person), kind) for person in people]


def weighted(*groups):
    placed = [one for group in groups for one in group]
    return with_label_weights([one for one, _ in placed], [kind for _, kind in placed])


def test_labels_of_a_small_assertion_do_not_speak_for_a_large_one():
    """People pass all of 100 easy answers and two thirds of 900 hard ones; both have 30 labels."""
    found = weighted(drawn("easy", 100, 30, 30), drawn("hard", 900, 30, 20))
    truth = (100 + 900 * 2 / 3) / 1000
    assert {one.per_label for one in found if one.person is not None} == {100 / 30, 900 / 30}
    rate = corrected_rate(judge_counts(found))
    assert rate.value == pytest.approx(truth, abs=0.02)
    assert rate.low < truth < rate.high < 0.85, "the rate without weights is (30 + 20) / 60 = 0.83"
    of_run = estimated(run_rate_draws(RunParts([JudgedPart(found)], always_judged=True)))
    assert (of_run.value, of_run.low) == pytest.approx((rate.value, rate.low), abs=1e-9)


def test_labels_of_one_assertion_count_as_without_weights():
    alone = [one for one, _ in drawn("easy", 100, 30, 20)]
    found, expected = (judge_counts(one).of_passed for one in (weighted(drawn("easy", 100, 30, 20)), alone))
    assert (found.passed, found.failed) == pytest.approx((expected.passed, expected.failed))
