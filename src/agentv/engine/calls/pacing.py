"""Pacing of calls to a server: adaptive concurrency, and a target's own `rate`. Pure: time is an argument.

The number of concurrent calls adapts: it is halved when the server is at capacity, once for all calls that were running
together, and grows by one for each round of calls that succeed (additive increase, multiplicative decrease: Chiu
and Jain, 1989). It starts at the maximum, since most servers have capacity. Calls are also spaced by a learned rate.

Times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from agentv.model.suite.suite import Rate

RATE_FALL = 0.8
"""Factor by which the rate falls when the server is at capacity."""

BACK_S = 10.0
"""Seconds until the rate is back at its measured value."""

DOUBLES_S = 5.0
"""Seconds in which the rate doubles from then on."""

WINDOW_S = 5.0
"""Seconds over which the rate of answers is measured."""

LEAST = 5
"""Minimum number of answers for a measurement of the rate."""


class LearnedRate(Struct):
    """Learned rate of a server, in calls per second; unlimited until the server was at capacity."""

    _answers: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    _reached: float | None = None
    _since: float = 0.0

    def answer(self, now: float) -> None:
        """Record that a call was answered."""
        self._answers.append(now)

    def limit(self, now: float) -> None:
        """Lower the rate, because the server is at capacity for the first time in a round of calls."""
        while self._answers and self._answers[0] < now - WINDOW_S:
            self._answers.popleft()
        if len(self._answers) >= LEAST and now > self._answers[0]:
            measured = (len(self._answers) - 1) / (now - self._answers[0])
            at_most = self.rate(now)
            self._reached = measured if at_most is None else min(measured / RATE_FALL, at_most)
            self._since = now
        elif self._reached is not None:
            self._reached, self._since = self._reached * RATE_FALL, now

    def rate(self, now: float) -> float | None:
        """Return how many calls per second may start now; None: any number."""
        if self._reached is None:
            return None
        passed = now - self._since
        if passed < BACK_S:
            return self._reached * (RATE_FALL + (1 - RATE_FALL) * passed / BACK_S)
        return self._reached * float(2 ** min((passed - BACK_S) / DOUBLES_S, 100))


FALL = 0.5
"""Factor by which the number of concurrent calls falls when the server is at capacity."""

_LONG_AGO = 0.0


class Permit(Struct, frozen=True):
    """Permit of a call. `epoch`: number of reductions of the concurrency before its admission."""

    epoch: int


class AdaptiveConcurrency(Struct):
    """Estimated capacity of one server.

    Attributes:
        most: maximum number of concurrent calls.
        width: number of concurrent calls currently allowed, rounded down.
        running: number of running calls.
        paused_until: time before which no call starts.
    """

    most: int
    width: float = 0.0
    running: int = 0
    paused_until: float = _LONG_AGO
    _epoch: int = 0
    _started: float = _LONG_AGO
    _learned: LearnedRate = field(default_factory=LearnedRate)

    def __post_init__(self) -> None:
        self.width = float(self.most)

    def wait_s(self, now: float) -> float | None:
        """Return the seconds until one more call may start, or None if a running call must end first."""
        if self.running >= int(self.width):
            return None
        rate = self._learned.rate(now)
        next_at = self._started if rate is None else self._started + 1 / rate
        return max(0.0, self.paused_until - now, next_at - now)

    def start(self, now: float) -> Permit:
        """Record the start of a call and return its permit."""
        self.running += 1
        self._started = now
        return Permit(self._epoch)

    def abandon(self) -> None:
        """Record the end of a call that tells nothing about capacity: cancelled, or failed for another reason."""
        self.running -= 1

    def succeed(self, permit: Permit, now: float) -> None:
        """Record that a call with this permit was answered."""
        if permit.epoch == self._epoch and self.running >= int(self.width):
            self.width = min(float(self.most), self.width + 1 / self.width)
        self.running -= 1
        self._learned.answer(now)

    def is_news(self, permit: Permit) -> bool:
        """Return whether a refused call was admitted after the last reduction of the concurrency."""
        return permit.epoch == self._epoch

    def limit(self, permit: Permit, now: float, retry_after_s: float | None) -> None:
        """Reduce the concurrency, because the server is at capacity, and pause for as long as it asks."""
        if permit.epoch == self._epoch:
            self._epoch += 1
            self.width = max(1.0, min(self.width, self.running) * FALL)
            self._learned.limit(now)
        self.running -= 1
        if retry_after_s is not None:
            self.paused_until = max(self.paused_until, now + retry_after_s)


BURST_S = 1.0
"""Seconds' worth of a rate that may be spent at once."""

CHARACTERS_A_TOKEN = 4
"""Characters of English text per token: only an estimate, corrected by the usage that a provider reports."""


class Bucket(Struct):
    """Token bucket that fills by `per_s` up to `size`. It may be overdrawn, and then has to refill first."""

    per_s: float
    size: float
    level: float = 0.0
    _at: float | None = None

    def __post_init__(self) -> None:
        self.level = self.size

    def wait_s(self, now: float, amount: float) -> float:
        """Return the seconds until an amount may be spent; one larger than the bucket needs a full bucket."""
        self._fill(now)
        return max(0.0, min(amount, self.size) - self.level) / self.per_s

    def spend(self, now: float, amount: float) -> None:
        """Spend an amount, or give back a negative one."""
        self._fill(now)
        self.level = min(self.size, self.level - amount)

    def _fill(self, now: float) -> None:
        if self._at is not None:
            self.level = min(self.size, self.level + (now - self._at) * self.per_s)
        self._at = now


class RateLimiter:
    """Token buckets for the `rate` of one target."""

    def __init__(self, rate: Rate) -> None:
        self._requests = _bucket(rate.requests_per_minute)
        self._tokens = _bucket(rate.tokens_per_minute)

    def wait_s(self, now: float, tokens: float) -> float:
        """Return the seconds until a call with this many tokens may start."""
        return max(
            self._requests.wait_s(now, 1.0) if self._requests else 0.0,
            self._tokens.wait_s(now, tokens) if self._tokens else 0.0,
        )

    def start(self, now: float, tokens: float) -> None:
        """Record the start of a call with about this many tokens."""
        if self._requests:
            self._requests.spend(now, 1.0)
        if self._tokens:
            self._tokens.spend(now, tokens)

    def correct(self, now: float, estimated: float, used: float) -> None:
        """Replace the estimated tokens of a call with the number that it used."""
        if self._tokens:
            self._tokens.spend(now, used - estimated)


def _bucket(per_minute: float | None) -> Bucket | None:
    """Return a bucket with a small burst, or None without a rate."""
    if per_minute is None:
        return None
    per_s = per_minute / 60
    return Bucket(per_s, max(1.0, per_s * BURST_S))
