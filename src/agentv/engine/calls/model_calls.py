"""Model calls of agents that come through the gateway: admitted, paced and retried like calls of targets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv.engine.calls.attempts import AttemptAllowance, RetriedCall
from agentv.engine.calls.budget import BudgetLimiter, Reservation, is_free
from agentv.engine.calls.pacing import CHARACTERS_A_TOKEN
from agentv.engine.calls.retry_policy import UNAFFORDABLE
from agentv.engine.calls.server_limiter import Waiter
from agentv.engine.calls.target_channel import TargetChannel
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import Ceiling

REPLY_S = 600.0
"""Timeout until a reply begins, in seconds: the default of OpenAI's and Anthropic's SDKs."""

LIMIT_REACHED: Final = "agent-limit"
"""Code of a call that the trial's own budget does not allow."""


class JointReservation(Struct):
    """Reservation of one call in several budgets: in all of them or in none. It goes before calls of new trials."""

    parts: tuple[tuple[Reservation, Literal["budget-spent", "agent-limit"]], ...]

    def try_reserve(self) -> bool:
        """Reserve without waiting; return whether that was possible."""
        for number, (part, _) in enumerate(self.parts):
            if not part.try_reserve():
                for other, _ in self.parts[:number]:
                    other.give_back()
                return False
        return True

    async def reserve(self, *, first: bool) -> Failure | None:
        """Wait until the call may be made; return a Failure if it may not."""
        del first
        for number, (part, code) in enumerate(self.parts):
            refused: Failure | None = None
            try:
                refused = await part.reserve(first=True)
            except BaseException:
                self._give_back(number)
                raise
            if refused is not None:
                self._give_back(number)
                return replace(refused, code=code) if refused.code == UNAFFORDABLE else refused
        return None

    def _give_back(self, number: int) -> None:
        for part, _ in self.parts[:number]:
            part.give_back()

    def give_back(self) -> None:
        """Release the reservations, because the attempt was not made."""
        self._give_back(len(self.parts))

    def settle(self, outcome: TargetResponse | Embeddings | Failure | None) -> None:
        """Replace the reservations with the cost of the ended attempt, or count them in full if it broke off."""
        broke_off = outcome is None or (isinstance(outcome, Failure) and not is_free(outcome))
        for part, _ in self.parts:
            if broke_off:
                part.settle_in_full()
            else:
                part.settle(outcome)


class TrialModelCalls:
    """The model calls of one trial. Implements the gateway's `ModelCalls`.

    Args:
        channel: channel of the target, with the limiter of the API's endpoint.
        own: the trial's own budget; None: only the run's budget applies.
    """

    def __init__(self, channel: TargetChannel, own: BudgetLimiter | None) -> None:
        self._channel = channel
        self._own = None if own is None else own.target_spend("trial", channel.spec, "answers")

    async def call(
        self, ask: Callable[[], Awaitable[TargetResponse | Failure]], ceiling: Ceiling, size: int
    ) -> TargetResponse | Failure:
        """Make a call once it may be made, and return its outcome."""
        channel = self._channel

        def attempt(_: AttemptAllowance) -> Awaitable[TargetResponse | Failure]:
            return ask()

        parts: list[tuple[Reservation, Literal["budget-spent", "agent-limit"]]] = []
        if self._own is not None:
            parts.append((Reservation(self._own, ceiling), LIMIT_REACHED))
        if channel.answer_spend is not None:
            parts.append((Reservation(channel.answer_spend, ceiling), UNAFFORDABLE))
        reservation = JointReservation(tuple(parts)) if parts else None
        waiter = Waiter() if channel.rate_limiter is None else Waiter(size / CHARACTERS_A_TOKEN, channel.rate_limiter)
        call: RetriedCall[TargetResponse] = RetriedCall(
            channel, attempt, REPLY_S, waiter, reservation, _outer_deadline=None
        )
        found, _ = await call.outcome()
        return found

    def stop(self, failure: CallFailure) -> None:
        """Stop the target, because no call of it can succeed."""
        self._channel.note(failure)
