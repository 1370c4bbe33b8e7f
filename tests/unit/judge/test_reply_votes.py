import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.judge.reply import UsageTotal, outcome_of
from agentv.model.run.rubric import JudgeFailure, Verdict
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage


def vote(score, **more):
    return Verdict(score, (), f"about {score}", "{}", **more)


def test_the_median_counts_and_all_are_shown():
    found = outcome_of([vote(0.9), vote(0.1), vote(0.4)])
    assert (found.score, found.reason, found.votes) == (0.4, "about 0.4", (0.9, 0.1, 0.4))


def test_a_failed_required_item_makes_a_vote_count_0():
    found = outcome_of([vote(0.9, satisfied=False), vote(0.8, satisfied=True), vote(0.85, satisfied=False)])
    assert (found.counted, found.satisfied, found.votes) == (0, False, (0, 0.8, 0))


def test_one_vote_that_failed_leaves_no_median():
    failure = JudgeFailure("unreadable-verdict", "no", reply="Fine!", cost_usd=0.25)
    found = outcome_of([vote(1, cost_usd=0.5), failure, vote(1, token_usage=TokenUsage(3))])
    assert (found.code, found.message, found.reply) == ("unreadable-verdict", "vote 2 of 3: no", "Fine!")
    assert (found.cost_usd, found.token_usage) == (None, TokenUsage(3))  # those 3 have no price


def test_a_vote_on_a_scale_that_cannot_be_read_fails_the_whole():
    found = outcome_of([vote(1, passed=True), vote(0, passed=False, undecided=True), vote(1, passed=True)])
    assert (found.undecided, found.passed, found.votes) == (True, False, (1, 0, 1))


@pytest.mark.parametrize(("shared", "all_of_them"), [((True, True, True), True), ((True, False, True), False)])
def test_it_is_shared_when_nothing_was_asked(shared, all_of_them):
    assert outcome_of([vote(1, shared=one) for one in shared]).shared is all_of_them


@given(st.lists(st.floats(0, 1), min_size=3, max_size=9).filter(lambda scores: len(scores) % 2))
def test_as_many_votes_lie_above_the_median_as_below(scores):
    found = outcome_of([vote(score) for score in scores])
    assert sum(score <= found.score for score in scores) * 2 > len(scores)
    assert sum(score >= found.score for score in scores) * 2 > len(scores)


def test_what_is_unknown_stays_so():
    usage = UsageTotal().plus(TargetResponse("?")).plus(vote(1))
    assert usage == UsageTotal()
    assert usage.plus(vote(1, cost_usd=0.5)).plus(vote(1)) == UsageTotal(None, 0.5)


def test_what_all_calls_took_is_summed_and_what_a_call_does_not_say_adds_nothing():
    priced = vote(1, cost_usd=0.5, token_usage=TokenUsage(3, 4))
    found = outcome_of([priced, vote(1), replace(priced, cost_usd=0.25)])
    assert (found.cost_usd, found.token_usage) == (0.75, TokenUsage(3, 4) + TokenUsage(3, 4))
    assert outcome_of([vote(1), priced, vote(1)]).token_usage == TokenUsage(3, 4)
