"""Retry policy: is a failed call made again, and when? Pure (SPEC sections 10 and 12).

Backoff is exponential with full jitter: a random share of initial × factor^n, so that calls that failed together do not
come back together (Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015). A server that says when to
come back is not asked sooner.
"""

from __future__ import annotations

from msgspec import Struct

from agentv.model.suite.suite import Retry
from agentv.model.values.response import CallFailure, Failure

LIMITED = frozenset({429, 529})
"""Statuses by which a server says that it gets too many requests: 429 of HTTP, and 529, "overloaded", of Anthropic."""

TRUSTED = 3
"""How often in a row a server is taken at its word when it says how long to wait; then backoff comes on top."""

PROBE_S = 30.0
"""Seconds after which a server is asked once more that wants a longer wait than a call has: one reply may be wrong."""

SHORTEST_PATIENCE_S = 120.0
"""Seconds that a call has beyond its first attempt, however short attempts may be: rate limits are by the minute."""


class Tries(Struct, frozen=True):
    """Attempts of one call so far: failed ones, and those at which the server was at capacity."""

    failed: int = 0
    limited: int = 0

    @property
    def total(self) -> int:
        """Number of attempts."""
        return self.failed + self.limited

    def and_one(self, failure: Failure) -> Tries:
        """With one more attempt, which ended in this failure."""
        if is_limited(failure):
            return Tries(self.failed, self.limited + 1)
        return Tries(self.failed + 1, self.limited)


class Again(Struct, frozen=True):
    """Retry the call after this many seconds."""

    after_s: float


class GiveUp(Struct, frozen=True):
    """Make no further call. `why` ends the message of the failure; empty where the failure says it all."""

    why: str = ""


def is_limited(failure: Failure) -> bool:
    """Whether the server gets too many requests: it says so, or it is unavailable and says until when."""
    if not isinstance(failure, CallFailure):
        return False
    return failure.status in LIMITED or (failure.status == 503 and failure.retry_after_s is not None)


def decide(failure: Failure, tries: Tries, retry: Retry, left_s: float, chance: float) -> Again | GiveUp:
    """Decide what to do after an attempt without an answer.

    An attempt at a server without capacity slows the call down but uses no retry; only time limits it.

    Args:
        failure: of the last attempt.
        tries: all attempts so far, including the last one.
        retry: the target's settings; `max_retries: 0` means a single attempt.
        left_s: seconds until the call's deadline.
        chance: a random number, 0..1.
    """
    if not failure.retryable or retry.max_retries == 0:
        return GiveUp()
    limited = is_limited(failure)
    if not limited and tries.failed > retry.max_retries:
        return GiveUp(f"gave up after {tries.total} attempts")
    retry_after_s = failure.retry_after_s if isinstance(failure, CallFailure) else None
    wait_s = _wait_s(retry_after_s, tries.limited if limited else tries.failed, retry, chance)
    if wait_s < left_s:
        return Again(wait_s)
    after = f"gave up after {tries.total} attempt{'s' if tries.total > 1 else ''}"
    if retry_after_s is not None and retry_after_s >= left_s:
        return GiveUp(
            f"{after}: the server asks to wait {retry_after_s:g} s, but the call has {max(left_s, 0):.3g} s left"
        )
    return GiveUp(f"{after}: no time left for the call")


def _wait_s(retry_after_s: float | None, number: int, retry: Retry, chance: float) -> float:
    """Seconds to wait after the attempt of this number, from 1."""
    if retry_after_s is None:
        return chance * backoff_s(number, retry)
    if number <= TRUSTED:
        return retry_after_s
    return max(retry_after_s, chance * backoff_s(number - TRUSTED, retry))


def backoff_s(number: int, retry: Retry) -> float:
    """The longest wait after the attempt of this number, from 1: min(max, initial × factor^(number − 1)) seconds."""
    longest_s, factor = retry.max_delay_ms / 1000, retry.backoff_factor
    delay_s = retry.initial_delay_ms / 1000
    for _ in range(number - 1):
        if delay_s >= longest_s or factor <= 1:
            break
        delay_s *= factor
    return min(delay_s, longest_s)


def patience_s(timeout_s: float) -> float:
    """Seconds from the begin of a call's first attempt to the end of its last.

    Twice what one may take, and at least two minutes more than that.
    """
    return timeout_s + max(timeout_s, SHORTEST_PATIENCE_S)
