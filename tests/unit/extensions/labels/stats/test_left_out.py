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


def test_the_chances_of_both_verdicts_multiply():
    # 12 of 100 passed and 12 of 100 failed answers; 20 labels of either miss them with 5.7%, of both with 0.33%
    one_sided = [AnswerPart((88, 88), (0, 20)), AnswerPart((12, 12), (0, 0))]
    both = [AnswerPart((88, 88), (20, 20)), AnswerPart((12, 12), (0, 0))]
    assert comb(88, 20) / comb(100, 20) == pytest.approx(0.057, abs=0.001)
    assert left_out(one_sided, elsewhere=False) is None
    assert left_out(both, elsewhere=False) == 1


def test_labels_of_a_verdict_that_all_other_answers_lack_cannot_miss_the_part():
    parts = [AnswerPart((50, 3), (0, 4)), AnswerPart((0, 5), (0, 0))]
    assert left_out(parts, elsewhere=False) == 1, "4 of 8 labelled, and only 3 are outside of the part"
    assert left_out([AnswerPart((0, 0), (0, 3)), AnswerPart((0, 5), (0, 0))], elsewhere=True) == 1


def test_where_no_part_lacks_labels_none_is_left_out():
    assert left_out([], elsewhere=True) is None
    assert left_out([AnswerPart((0, 90), (0, 90)), AnswerPart((1, 0), (1, 0))], elsewhere=False) is None
    assert left_out([AnswerPart((90, 0), (0, 90)), AnswerPart((10, 0), (0, 1))], elsewhere=True) is None


def test_of_several_parts_it_is_the_one_that_labels_would_miss_least():
    parts = [AnswerPart((0, 30), (0, 0)), AnswerPart((0, 40), (0, 0)), AnswerPart((0, 30), (0, 30))]
    assert left_out(parts, elsewhere=False) == 1
    assert left_out(parts[::-1], elsewhere=False) == 1
    assert left_out([parts[1], parts[0], parts[2]], elsewhere=False) == 0


def test_a_small_part_without_labels_hides_no_large_one():
    parts = [AnswerPart((0, 1), (0, 0)), AnswerPart((0, 40), (0, 0)), AnswerPart((0, 59), (0, 30))]
    assert left_out(parts, elsewhere=False) == 1
    assert left_out(parts, elsewhere=True) == 1


def test_labels_of_a_verdict_that_the_run_does_not_have_say_nothing_of_its_parts():
    parts = [AnswerPart((0, 95), (120, 2)), AnswerPart((0, 5), (0, 0))]
    assert left_out(parts, elsewhere=True) is None


def test_the_one_answer_of_a_verdict_says_little_of_where_answers_of_that_verdict_are():
    parts = [AnswerPart((0, 99), (5, 10)), AnswerPart((1, 0), (0, 0))]
    assert left_out(parts, elsewhere=True) is None, "though the only answer that the judge failed is in the second part"


def test_a_part_with_hardly_an_answer_of_a_verdict_is_not_missed_by_labels_of_that_verdict():
    parts = [AnswerPart((60, 98), (0, 30)), AnswerPart((40, 2), (0, 0))]
    assert left_out(parts, elsewhere=True) is None, "2% of what the judge passed, though 21% of all answers"
    assert left_out([AnswerPart((60, 98), (30, 30)), parts[1]], elsewhere=True) == 1


def test_many_small_parts_that_none_alone_shows_are_left_out_together_and_the_largest_is_named():
    labelled = [AnswerPart((0, 1), (0, 4))] * 10
    lacking = [AnswerPart((0, 1), (0, 0))] * 244 + [AnswerPart((0, 2), (0, 0))] + [AnswerPart((0, 1), (0, 0))] * 244
    assert left_out([*labelled, *lacking], elsewhere=True) == 254
    assert left_out([AnswerPart((0, 1), (0, 1))] * 40 + lacking, elsewhere=True) is None
    assert left_out([AnswerPart((0, 1), (0, 1))] * 5 + [AnswerPart((0, 1), (0, 0))] * 5, elsewhere=False) is None


def test_labels_of_a_verdict_that_this_run_lacks_do_not_count_as_labels_of_all_its_answers():
    parts = [AnswerPart((0, 60), (50, 1)), AnswerPart((0, 40), (0, 0))]
    assert left_out(parts, elsewhere=True) is None, "one label misses 40% with 60%; the others tell nothing"


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
