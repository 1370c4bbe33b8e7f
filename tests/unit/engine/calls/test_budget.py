from math import inf

from agentv.engine.calls.budget import Budget, Experience, exhausted
from agentv.model.run.budget import UNKNOWN, Amount, Ceiling
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage

TEN = TokenUsage(input=6, output=4, total=10)


def answered(usd: float | None = None, usage: TokenUsage | None = None) -> TargetResponse:
    return TargetResponse("yes", cost_usd=usd, token_usage=usage)


def test_what_is_reserved_is_not_there_for_others_and_what_was_not_needed_is_again():
    budget = Budget(usd=1.0)
    budget.hold(Amount(0.7))
    assert not budget.fits(Amount(0.4))
    budget.settle(Amount(0.7), Amount(0.2))
    assert budget.fits(Amount(0.8))
    assert not budget.fits(Amount(0.81))


def test_a_call_that_ends_gives_back_its_own_reservation_and_no_other():
    budget = Budget(usd=1.0, tokens=100)
    for _ in range(3):
        budget.hold(Amount(0.25, 30))
    budget.settle(Amount(0.25, 30), Amount(0.125, 10))
    assert (budget.held, budget.left, budget.underway) == (Amount(0.5, 60), Amount(0.375, 30), 2)


def test_ten_tenths_fit_into_one():
    budget = Budget(usd=1.0)
    for _ in range(10):
        assert budget.fits(Amount(0.1))
        budget.hold(Amount(0.1))
    assert not budget.fits(Amount(0.1))


def test_a_ceiling_that_is_known_is_reserved_and_a_dearer_call_before_it_is_believed():
    budget, seen = Budget(usd=1.0), Experience()
    assert seen.need(Ceiling(0.2), budget) == Amount(0.2)
    seen.taken(Ceiling(0.2), answered(0.3))
    assert seen.need(Ceiling(0.2), budget) == Amount(0.3)


def test_a_total_below_its_parts_is_not_believed():
    for usage, tokens in (
        (TokenUsage(input=600, output=400, total=0), 1000),
        (TokenUsage(input=600, output=400, total=1500), 1500),
        (TokenUsage(input=600), 600),
        (TokenUsage(output=400), 400),
        (TokenUsage(total=7), 7),
        (TokenUsage(input=0, output=0), 0),
    ):
        assert Experience().taken(UNKNOWN, answered(0.0, usage)).tokens == tokens, usage


def test_the_first_call_of_which_nothing_is_known_is_made_alone_with_all_that_is_left():
    budget, seen = Budget(usd=1.0, spent=Amount(0.25)), Experience()
    assert seen.need(UNKNOWN, budget) == Amount(0.75)
    budget.hold(Amount(0.1))
    assert seen.need(UNKNOWN, budget) == Amount(inf)


def test_a_price_that_was_told_once_stands_in_where_it_is_not():
    seen = Experience()
    seen.taken(UNKNOWN, answered(0.1, TEN))
    assert seen.taken(UNKNOWN, answered(None, TEN)) == Amount(0.1, 10)
    assert not seen.unpriced


def test_who_tells_nothing_counts_as_nothing_and_is_remembered():
    seen = Experience()
    assert seen.taken(UNKNOWN, answered()) == Amount()
    assert (seen.silent, seen.unpriced) == ({"usd", "tokens"}, False)
    assert seen.need(UNKNOWN, Budget(usd=1.0)) == Amount()


def test_a_failed_first_call_teaches_nothing():
    seen = Experience()
    assert seen.taken(UNKNOWN, Failure("timeout", "late")) == Amount()
    assert seen.need(UNKNOWN, Budget(usd=2.0)) == Amount(2.0)


def test_why_a_call_is_not_made():
    budget = Budget(usd=12.0, tokens=2000, spent=Amount(11.9, 1990))
    said = "$11.90 of the budget of $12.00 is spent, and a call of 'gpt' may take up to $0.5000"
    assert exhausted(budget, Amount(0.5), "gpt") == said
    said = "1,990 of the budget of 2,000 tokens are spent, and a call of 'gpt' may take up to 50 tokens"
    assert exhausted(budget, Amount(0.0, 50), "gpt") == said
    assert exhausted(budget, Amount(inf), "gpt") == "$11.90 of the budget of $12.00 is spent"
    assert exhausted(Budget(usd=0.0), Amount(inf), "gpt") == "$0.00 of the budget of $0.00 is spent"
    assert exhausted(budget, Amount(0.0, inf), "gpt") == "1,990 of the budget of 2,000 tokens are spent"
    enough = Amount(budget.left.usd, 50)
    assert exhausted(budget, enough, "gpt").startswith("1,990 of the budget of 2,000 tokens are spent, and a call")
