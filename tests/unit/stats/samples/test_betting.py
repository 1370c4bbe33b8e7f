import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.samples.betting import PairedBets, confidence_bounds, evidence_above, mean_of

DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.4, 0.0, 0.25, 1.0]), min_size=1, max_size=60)


@given(null=st.floats(-0.9, 0.9), low=st.floats(-1, 0.9), high=st.floats(-0.9, 1))
def test_no_bet_is_favourable_where_the_mean_is_the_null(null, low, high):
    # a two-point distribution whose mean is the null: the expected capital is then 1, for any parts
    low, high = min(low, null - 0.01), max(high, null + 0.01)
    chance = (null - low) / (high - low)
    mean = chance * evidence_above({(high, 1.0): 1}, null) + (1 - chance) * evidence_above({(low, 1.0): 1}, null)
    assert mean == pytest.approx(1)


@given(values=DIFFERENCES, alpha=st.sampled_from([0.05, 0.2]), margin=st.sampled_from([0.0, 0.1, 0.5]))
def test_a_claim_is_made_exactly_where_the_bounds_exclude_what_it_denies(values, alpha, margin):
    bets = PairedBets(alpha, margin)
    for value in values:
        bets.add(value)
    low, high = bets.bounds
    near = 1e-9
    claims = {"better": low > margin - near, "worse": high < -margin + near, "non-inferior": low > -margin - near}
    if bets.claim is not None:
        assert claims[bets.claim]
    else:
        assert low <= margin + near
        assert high >= -margin - near
        assert not margin or low <= -margin + near
    assert low <= mean_of(bets.low) <= high


def test_the_evidence_is_the_mean_of_what_each_part_makes_of_its_capital():
    drawn = {(0.5, 1.0): 2, (-0.25, 0.5): 1}
    by_hand = [
        (1 + part * (0.5 - 0.1) / 1.1) ** 2 * (1 + part * (-0.25 - 0.5 * 0.1) / 1.1)
        for part in (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8)
    ]
    assert evidence_above(drawn, 0.1) == pytest.approx(sum(by_hand) / 7)
    assert evidence_above({}, 0.1) == 1.0
    assert evidence_above({(1.0, 1.0): 100_000}, 0.0) > 1e300, "as much as a number can hold, and no error"


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize(
    ("value", "margin", "claim", "null"),
    [
        (1.0, 0.0, "better", 0.0),
        (1.0, 0.3, "non-inferior", -0.3),  # certain before it is better by more than the margin
        (-1.0, 0.0, "worse", 0.0),
        (-1.0, 0.3, "worse", 0.3),
        (0.0, 0.3, "non-inferior", -0.3),
        (0.2, 0.3, "non-inferior", -0.3),
    ],
)
def test_a_claim_is_made_with_the_first_case_that_brings_the_evidence_to_two_over_alpha(
    value, margin, claim, null, alpha
):
    bets = PairedBets(alpha, margin)
    added = 1
    while bets.add(value) is None:
        added += 1
        assert added < 500
    assert bets.drawn == added
    against = abs(value) if claim != "non-inferior" else value
    before, after = (evidence_above({(against, 1.0): number}, null) for number in (bets.drawn - 1, bets.drawn))
    assert bets.claim == claim
    assert before < 2 / alpha <= after


def test_bounds_are_where_the_evidence_is_two_over_alpha():
    low, high = {(0.5, 1.0): 30, (-0.5, 1.0): 10}, {(1.0, 1.0): 30, (-0.5, 1.0): 10}
    ends = confidence_bounds(low, high, 0.1)
    turned = {(-total, weight): number for (total, weight), number in high.items()}
    assert evidence_above(low, ends[0]) == pytest.approx(20, rel=1e-6)
    assert evidence_above(turned, -ends[1]) == pytest.approx(20, rel=1e-6)
    assert confidence_bounds({}, {}, 0.05) == (-1.0, 1.0)
    assert mean_of({}) == 0.0


def test_what_is_known_within_bounds_only_is_drawn_at_its_worst_and_at_its_best():
    bets = PairedBets()
    bets.add(-0.25, 0.5, 0.5)
    bets.add(0.1 + 0.2)
    assert (bets.low, bets.high) == ({(-0.25, 0.5): 1, (0.3, 1.0): 1}, {(0.5, 0.5): 1, (0.3, 1.0): 1})
    assert bets.bounds == confidence_bounds(bets.low, bets.high, 0.05)


def test_cases_drawn_together_are_one_bet_and_weigh_by_their_number():
    alone = confidence_bounds({(-0.5, 1.0): 20}, {(-0.5, 1.0): 20}, 0.05)
    half = confidence_bounds({(-0.25, 0.5): 20}, {(-0.25, 0.5): 20}, 0.05)
    assert mean_of({(-0.25, 0.5): 20}) == -0.5
    assert half[0] <= alone[0] < alone[1] <= half[1]


def test_what_is_not_known_counts_at_its_worst_for_every_claim():
    sure, unsure = PairedBets(), PairedBets()
    for _ in range(30):
        sure.add(-1.0)
        unsure.add(-1.0, 1.0)
    assert (sure.claim, unsure.claim) == ("worse", None)
    assert unsure.bounds[0] < 0 < unsure.bounds[1]


def test_a_claim_stays_and_counts_what_was_drawn_up_to_it():
    bets = PairedBets()
    for _ in range(60):
        if bets.add(-1.0) is not None:
            break
    drawn = bets.drawn
    assert drawn < 20
    assert [bets.add(1.0) for _ in range(100)] == ["worse"] * 100
    assert (bets.drawn, bets.low) == (drawn, {(-1.0, 1.0): drawn})


@pytest.mark.parametrize(("difference", "changing"), [(0.0, 0.2), (0.0, 0.6)])
def test_looked_at_after_every_case_claims_are_wrong_less_often_than_alpha(difference, changing):
    # benchmarks/sequential_comparison.py with other numbers; at a true rate of 5%, 11 of 120 has a probability of 3%
    dice = random.Random(11)
    wrong = 0
    for _ in range(120):
        bets = PairedBets()
        wins, losses = (changing + difference) / 2, (changing - difference) / 2
        for one in dice.choices([1.0, -1.0, 0.0], [wins, losses, 1 - changing], k=250):
            if bets.add(one):
                break
        wrong += bets.claim is not None
    assert wrong <= 10
