import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

import pytest

from agentv.engine.calls.budget import Budget, BudgetLimiter, ObservedCost, refusal_message
from agentv.engine.calls.call_throttle import CallThrottle
from agentv.model.suite.suite import Retry, TargetSpec
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import UNKNOWN, Amount, Ceiling, TokenUsage
from agentv.ports import TargetRequest
from agentv.user_code.deadline import LIMIT, Deadline
from doubles.virtual_time import run_at_once


@dataclass(frozen=True)
class Priced:
    """Settings of a target with a maximum cost per call."""

    usd: float | None = 0.1
    place: str | None = None
    free: ClassVar[bool] = False

    def endpoint(self) -> str | None:
        return self.place

    def ceiling(self, request: TargetRequest) -> Ceiling:
        return UNKNOWN if self.usd is None else Ceiling(self.usd)

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        return Ceiling(self.usd)


@dataclass
class Shop:
    """A target whose calls take a second and have a given cost; it counts concurrent calls."""

    costs: Sequence[Any] = (0.1,)
    takes_s: float = 1.0
    asked: list[str] = field(default_factory=list)
    inside: int = 0
    most: int = 0

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        given = self.costs[min(len(self.asked), len(self.costs) - 1)]
        self.asked.append(request.case_id)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.inside -= 1
        if isinstance(given, Failure | TargetResponse):
            return given
        return TargetResponse("yes", cost_usd=given)

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings:
        return Embeddings(tuple((1.0,) for _ in texts), cost_usd=None)

    async def close(self) -> None:
        return


def request(case: str = "case") -> TargetRequest:
    return TargetRequest(case, "hi", ())


def spec(settings: Any = Priced(), **given: Any) -> TargetSpec:  # frozen
    return TargetSpec(given.pop("name", "shop"), "x", settings, **given)


async def said(target: Any, case: str = "case") -> Any:
    given = target.answer(request(case))
    return given if isinstance(given, TargetResponse | Failure) else await given


def bought(shop: Shop, budget: Budget, *, calls: int, **given: Any) -> tuple[list[Any], BudgetLimiter]:
    """Return the outcomes of this many concurrent calls, and the limiter."""

    async def main() -> list[Any]:
        target = CallThrottle(50, lambda: 1.0, budget_limiter).wrap(spec(**given), shop)
        return list(await asyncio.gather(*(said(target, f"c{number}") for number in range(calls))))

    budget_limiter = BudgetLimiter(budget)
    return run_at_once(main()), budget_limiter


def codes(found: Sequence[Any]) -> list[str]:
    return [one.code if isinstance(one, Failure) else "yes" for one in found]


@pytest.mark.parametrize("place", [None, "x http://x"])
def test_calls_wait_for_what_others_did_not_need_and_no_more_is_spent_than_there_is(place):
    shop = Shop([0.04])
    found, budget_limiter = bought(shop, Budget(usd=0.3), calls=20, settings=Priced(0.1, place))
    assert shop.most == 3
    # the seventh might have cost more than the remaining 6 cents
    assert codes(found) == ["yes"] * 6 + ["budget-spent"] * 14
    assert budget_limiter.budget.spent.usd == pytest.approx(0.24)
    assert budget_limiter.use().used_up
    assert budget_limiter.budget.held.usd == 0


def test_what_is_under_way_never_overshoots_whatever_it_costs():
    dice = random.Random(7)
    for _ in range(50):
        costs = [dice.uniform(0, 0.1) for _ in range(60)]
        budget = Budget(usd=dice.uniform(0.05, 3))
        found, budget_limiter = bought(Shop(costs, takes_s=dice.uniform(0.1, 1)), budget, calls=60)
        assert budget_limiter.budget.spent.usd <= (budget.usd or 0) + 1e-9
        left = (budget.usd or 0) - budget_limiter.budget.spent.usd
        assert left < 0.1 or codes(found) == ["yes"] * 60  # and what is left would not pay for another call


def test_a_server_that_is_taken_to_be_free_and_reports_a_cost_does_not_overshoot():
    found, budget_limiter = bought(Shop([0.1]), Budget(usd=0.45), calls=9, settings=Priced(0.0))
    assert codes(found) == ["yes"] * 4 + ["budget-spent"] * 5
    assert budget_limiter.budget.spent.usd == pytest.approx(0.4)


def test_attempts_that_failed_cost_what_was_reserved_for_them_but_those_that_were_refused():
    late = CallFailure("bad-answer", "half of it", retryable=True)
    busy = CallFailure("http-status", "HTTP 503", retryable=True, status=503)
    found, budget_limiter = bought(Shop([late, busy, 0.05]), Budget(usd=1.0), calls=1)
    assert codes(found) == ["yes"]
    assert budget_limiter.budget.spent.usd == pytest.approx(0.15)


def test_another_attempt_that_nobody_can_pay_is_not_made():
    shop = Shop([CallFailure("bad-answer", "half of it", retryable=True)])
    found, budget_limiter = bought(shop, Budget(usd=0.15), calls=1, retry=Retry(max_retries=5))
    assert codes(found) == ["budget-spent"]
    assert len(shop.asked) == 1
    shown = budget_limiter.refused
    assert shown == "$0.1000 of the budget of $0.1500 is spent, and a call of 'shop' may take up to $0.1000"


def test_a_call_that_is_given_up_counts_in_full():
    async def main() -> list[str]:
        target = CallThrottle(50, lambda: 1.0, budget_limiter).wrap(spec(), Shop(takes_s=5))
        calls = [asyncio.ensure_future(said(target)) for _ in range(2)]
        await asyncio.sleep(1)
        calls[0].cancel()
        return codes([await calls[1]])

    budget_limiter = BudgetLimiter(Budget(usd=0.15))
    assert run_at_once(main()) == ["budget-spent"]
    assert budget_limiter.budget.spent.usd == pytest.approx(0.1)


def test_who_gives_up_waiting_is_not_let_in():
    async def main() -> list[str]:
        shop = Shop([0.05], takes_s=5)
        target = CallThrottle(50, lambda: 1.0, budget_limiter).wrap(spec(), shop)
        calls = [asyncio.ensure_future(said(target, name)) for name in "abc"]
        await asyncio.sleep(1)
        calls[1].cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return shop.asked

    budget_limiter = BudgetLimiter(Budget(usd=0.15))
    assert run_at_once(main()) == ["a", "c"]
    assert budget_limiter.budget.spent.usd == pytest.approx(0.1)


def test_what_judges_an_answer_goes_before_what_asks_for_a_new_one():
    async def main() -> list[str]:
        shop = Shop([0.1], takes_s=1)
        throttle = CallThrottle(50, lambda: 1.0, BudgetLimiter(Budget(usd=0.1 + 0.1)))
        target = throttle.wrap(spec(), shop)
        started = [asyncio.ensure_future(said(target, name)) for name in ("one", "two", "new")]
        await asyncio.sleep(0.5)
        LIMIT.set(Deadline(10.0))
        started.append(asyncio.ensure_future(said(target, "judge")))
        throttle.budget_limiter.budget.usd += 0.1
        await asyncio.gather(*started)
        return shop.asked

    assert run_at_once(main()) == ["one", "two", "judge"]


def test_an_interrupted_run_waits_for_no_budget():
    async def main() -> list[str]:
        throttle = CallThrottle(50, lambda: 1.0, BudgetLimiter(Budget(usd=0.1)))
        target = throttle.wrap(spec(), Shop(takes_s=5))
        calls = [asyncio.ensure_future(said(target)) for _ in range(2)]
        await asyncio.sleep(1)
        throttle.interrupt()
        return codes(await asyncio.gather(*calls))

    assert run_at_once(main()) == ["yes", "interrupted"]


def test_tokens_whose_price_nobody_knows_end_a_budget_in_dollars_after_one_call():
    told = TargetResponse("yes", token_usage=TokenUsage(total=10))
    found, budget_limiter = bought(Shop([told]), Budget(usd=5.0), calls=4, settings=Priced(None))
    assert codes(found) == ["yes"] + ["budget-spent"] * 3
    said = "'shop' does not report what its calls cost, so a budget in dollars cannot be enforced"
    assert budget_limiter.refused == f"{said}; use a budget in tokens (--budget-tokens)"


def test_beside_a_budget_in_tokens_it_goes_on():
    told = TargetResponse("yes", token_usage=TokenUsage(total=10))
    found, budget_limiter = bought(Shop([told]), Budget(usd=5.0, tokens=35), calls=4, settings=Priced(None))
    assert codes(found) == ["yes"] * 3 + ["budget-spent"]
    assert list(budget_limiter.silent()) == [("shop", "usd")]


def test_embeddings_are_paid_too_where_the_server_tells_no_price_by_the_list():
    async def main() -> list[Any]:
        target = CallThrottle(50, lambda: 1.0, budget_limiter).wrap(spec(Priced(0.4)), Shop())
        return [await target.embed(["a"], 5.0) for _ in range(3)]

    budget_limiter = BudgetLimiter(Budget(usd=1.0))
    found = run_at_once(main())
    assert [isinstance(one, Embeddings) for one in found] == [True, True, False]
    assert budget_limiter.budget.spent.usd == pytest.approx(0.8)


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
    budget, seen = Budget(usd=1.0), ObservedCost()
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
        assert ObservedCost().taken(UNKNOWN, answered(0.0, usage)).tokens == tokens, usage


def test_the_first_call_of_which_nothing_is_known_is_made_alone_with_all_that_is_left():
    budget, seen = Budget(usd=1.0, spent=Amount(0.25)), ObservedCost()
    assert seen.need(UNKNOWN, budget) == Amount(0.75)
    budget.hold(Amount(0.1))
    assert seen.need(UNKNOWN, budget) == Amount(inf)


def test_a_price_that_was_told_once_stands_in_where_it_is_not():
    seen = ObservedCost()
    seen.taken(UNKNOWN, answered(0.1, TEN))
    assert seen.taken(UNKNOWN, answered(None, TEN)) == Amount(0.1, 10)
    assert not seen.unpriced


def test_who_tells_nothing_counts_as_nothing_and_is_remembered():
    seen = ObservedCost()
    assert seen.taken(UNKNOWN, answered()) == Amount()
    assert (seen.silent, seen.unpriced) == ({"usd", "tokens"}, False)
    assert seen.need(UNKNOWN, Budget(usd=1.0)) == Amount()


def test_a_failed_first_call_teaches_nothing():
    seen = ObservedCost()
    assert seen.taken(UNKNOWN, Failure("timeout", "late")) == Amount()
    assert seen.need(UNKNOWN, Budget(usd=2.0)) == Amount(2.0)


def test_why_a_call_is_not_made():
    budget = Budget(usd=12.0, tokens=2000, spent=Amount(11.9, 1990))
    said = "$11.90 of the budget of $12.00 is spent, and a call of 'gpt' may take up to $0.5000"
    assert refusal_message(budget, Amount(0.5), "gpt") == said
    said = "1,990 of the budget of 2,000 tokens are spent, and a call of 'gpt' may take up to 50 tokens"
    assert refusal_message(budget, Amount(0.0, 50), "gpt") == said
    assert refusal_message(budget, Amount(inf), "gpt") == "$11.90 of the budget of $12.00 is spent"
    assert refusal_message(Budget(usd=0.0), Amount(inf), "gpt") == "$0.00 of the budget of $0.00 is spent"
    assert refusal_message(budget, Amount(0.0, inf), "gpt") == "1,990 of the budget of 2,000 tokens are spent"
    enough = Amount(budget.left.usd, 50)
    assert refusal_message(budget, enough, "gpt").startswith(
        "1,990 of the budget of 2,000 tokens are spent, and a call"
    )
