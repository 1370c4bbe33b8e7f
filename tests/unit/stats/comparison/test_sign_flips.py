from __future__ import annotations

from itertools import product
from random import Random

import pytest

from agentv.stats.comparison.paired import mcnemar_exact, permutation_test
from agentv.stats.comparison.sign_flips import SignFlips

DICE = Random(3)
VALUES = [round(DICE.uniform(-0.3, 0.6), 2) for _ in range(22)]
CLUSTERS = [place // 2 if place < 8 else place for place in range(22)]


def by_hand(sums, sizes, null):
    """The share of all ways to turn the clusters that lie at least as far from zero."""
    apart = [total - null * size for total, size in zip(sums, sizes, strict=True)]
    totals = [
        abs(sum(sign * one for sign, one in zip(signs, apart, strict=True)))
        for signs in product((1, -1), repeat=len(sums))
    ]
    return sum(one >= abs(sum(apart)) - 1e-9 for one in totals) / len(totals)


def test_clusters_are_summed_in_the_order_of_first_sight():
    found = SignFlips.of([0.1, 0.2, -0.3, 0.4, 0.5], ["b", "a", "b", "c", "a"])
    assert list(found.sums) == pytest.approx([-0.2, 0.7, 0.4])
    assert (list(found.sizes), found.mean) == ([2, 2, 1], pytest.approx(0.18))
    alone = SignFlips.of(VALUES, range(22))
    assert (list(alone.sums), list(alone.sizes)) == (VALUES, [1] * 22)


@pytest.mark.parametrize("null", [-0.2, 0.05, 0.1, 0.3])
def test_up_to_fifteen_clusters_every_way_to_turn_them_is_counted(null):
    for sums, sizes in (
        ([0.5, -0.2, 0.9, 0.4, 0.0, 1.1, 0.3, -0.1], [1, 2, 3, 1, 1, 2, 1, 4]),
        ([0.3] * 7, [1] * 7),
        ([1.0, -1.0, 1.0, 1.0, 0.0, 0.0, 1.0], [1, 1, 2, 1, 1, 1, 3]),
    ):
        assert SignFlips(sums, sizes).p(null) == by_hand(sums, sizes, null)


def test_fifteen_clusters_are_counted_and_sixteen_are_drawn():
    counted, drawn = (SignFlips(VALUES[:number], [1] * number).p(0.05) for number in (15, 16))
    assert (counted * 2**14).is_integer()
    assert not (drawn * 2**15).is_integer()
    assert (drawn * 10_001) % 1 == pytest.approx(0, abs=1e-9)


def test_at_zero_it_is_the_permutation_test_of_the_sums_or_mcnemars_where_they_are_of_one_size():
    assert SignFlips(VALUES, [1] * 22).p() == permutation_test(VALUES)
    many = [0.4] * 25 + [-0.4] * 10 + [0.0] * 5
    assert SignFlips(many, [1] * 40).p() == mcnemar_exact(25, 10)
    two_sizes = [0.5] * 4 + [-0.1] * 3
    assert SignFlips(two_sizes, [1] * 7).p() == permutation_test(two_sizes) != mcnemar_exact(4, 3)
    one_size = [0.4, 0.4, -0.4, 0.0, 0.4, 0.4, 0.4]
    assert SignFlips(one_size, [1] * 7).p() == SignFlips(one_size, [1] * 7).p(0.0) == mcnemar_exact(5, 1)
    assert SignFlips([0.0] * 7, [1] * 7).p() == 1.0


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_an_interval_ends_where_the_test_begins_to_reject(level):
    for found in (
        SignFlips.of(VALUES, CLUSTERS),
        SignFlips.of(VALUES[:9], range(9)),
        SignFlips([0.5, -0.2, 0.9, 0.4, 0.0, 1.1, 0.3, -0.1], [1, 2, 3, 1, 1, 2, 1, 4]),
    ):
        low, high = found.interval(level)
        assert -1 < low < found.mean < high < 1
        for end, outwards in ((low, -1e-6), (high, 1e-6)):
            assert found.p(end + outwards) <= 1 - level < found.p(end - outwards)


def test_an_interval_reaches_as_far_as_a_difference_can_where_nothing_is_rejected():
    few = SignFlips([0.1, -0.1, 0.2], [1, 1, 1])
    assert few.interval(0.95) == (-1.0, 1.0)


def test_an_interval_that_holds_zero_by_its_p_value_has_it_inside_or_at_its_end():
    four = [0.5, 0.48, 0.46, 0.44] + [0.0] * 16
    found = SignFlips(four, [1] * 20)
    assert found.p() == 0.125
    assert found.interval(0.95)[0] == 0.0
    turned = SignFlips([-one for one in four], [1] * 20)
    assert turned.interval(0.95)[1] == 0.0


def test_swapping_the_runs_turns_drawn_p_values_and_intervals_exactly():
    for values in (VALUES, [0.25] * 9 + [-0.25] * 9, [0.5] * 12 + [-0.3] * 20):
        sizes = [1 + place % 2 for place in range(len(values))]
        found, turned = SignFlips(values, sizes), SignFlips([-one for one in values], sizes)
        assert turned.p(-0.07) == found.p(0.07)
        low, high = found.interval(0.95)
        assert turned.interval(0.95) == (pytest.approx(-high, abs=1e-9), pytest.approx(-low, abs=1e-9))


def test_drawn_p_values_are_never_zero():
    sure = SignFlips([0.5 + place / 1000 for place in range(40)], [1] * 40)
    assert sure.p(-0.5) == 1 / 10_001
