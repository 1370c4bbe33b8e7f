from math import comb, log

import pytest

from agentv.extensions.labels.stats.left_out import LEFT_OUT, AnswerPart, left_out


@pytest.mark.parametrize("verdict", [0, 1])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_part_is_left_out_where_random_labels_would_rarely_miss_it(verdict, elsewhere):
    """By the hypergeometric distribution in this run, by the binomial one where the labels are of other runs."""

    def counts(number):
        return (number, 0) if verdict == 0 else (0, number)

    seen = set()
    for size in (3, 8, 20, 45):
        for labels in range(1, 56):
            by_chance = (1 - size / 100) ** labels if elsewhere else comb(100 - size, labels) / comb(100, labels)
            parts = [AnswerPart(counts(100 - size), counts(labels)), AnswerPart(counts(size), counts(0))]
            expected = 1 if by_chance < LEFT_OUT / 2 else None
            assert left_out(parts, elsewhere=elsewhere) == expected, (size, labels)
            seen.add(expected)
    assert seen == {1, None}


def test_parts_without_labels_are_left_out_together_by_maurers_bound():
    """Labels of other runs: each of 200 parts is in one of so many labels with 1 - (1 - 1/200) ** labels."""
    seen = set()
    for lacking in range(40, 200, 4):
        for labels in (40, 100, 300):
            counts = [0] * lacking + [labels] + [1] * (199 - lacking)
            parts = [AnswerPart((0, 1), (0, labelled)) for labelled in counts]
            number = labels + 199 - lacking
            chance = 1 - (1 - 1 / 200) ** number
            below = chance - (200 - lacking) / 200
            unlikely = below > 0 and below**2 > -2 * chance / 200 * log(LEFT_OUT)
            assert (left_out(parts, elsewhere=True) is not None) == unlikely, (lacking, labels)
            seen.add(unlikely)
    assert seen == {True, False}
