"""Pacing of calls to a server: adaptive concurrency, and a target's own `rate`. Pure: time is an argument.

The number of calls at once adapts: it falls by half when the server has no room, once for all the calls that were under
way together, and grows by one for each round of calls that succeed (additive increase, multiplicative decrease: Chiu
and Jain, 1989). It starts wide open, since most servers have room. Calls are also spaced by a learned rate.

Times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from agentv.model.suite.suite import Rate

RATE_FALL = 0.8
"""What is left of the rate."""

BACK_S = 10.0
"""Seconds until the rate is what it was."""

DOUBLES_S = 5.0
"""Seconds in which it doubles from then on."""

WINDOW_S = 5.0
"""Seconds over which answers are counted."""

LEAST = 5
"""Answers without which nothing can be said."""


class LearnedRate(Struct):
    """The rate in calls per second; None before the server was at capacity."""

    _answers: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    _reached: float | None = None
    _since: float = 0.0

    def answer(self, now: float) -> None:
        """A call was answered."""
        self._answers.append(now)

    def limit(self, now: float) -> None:
        """The server is at capacity, for the first time in a round of calls."""
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
        """Calls a second that may start now; None: as many as like."""
        if self._reached is None:
            return None
        passed = now - self._since
        if passed < BACK_S:
            return self._reached * (RATE_FALL + (1 - RATE_FALL) * passed / BACK_S)
        return self._reached * float(2 ** min((passed - BACK_S) / DOUBLES_S, 100))


FALL = 0.5
"""What is left of the calls at once when the server has no room."""

_LONG_AGO = 0.0


class Permit(Struct, frozen=True):
    """Permit of a call. `epoch`: number of reductions of the concurrency before it."""

    epoch: int


class AdaptiveConcurrency(Struct):
    """Estimated capacity of one server. `most`: maximum number of concurrent calls.

    Attributes:
        width: current number of concurrent calls; a fraction counts only when it reaches a whole number.
        running: number of running calls.
        paused_until: no call starts before.
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
        """Seconds until one more call may start: 0, now; None: not before one of those under way has ended."""
        if self.running >= int(self.width):
            return None
        rate = self._learned.rate(now)
        next_at = self._started if rate is None else self._started + 1 / rate
        return max(0.0, self.paused_until - now, next_at - now)

    def start(self, now: float) -> Permit:
        """A call starts."""
        self.running += 1
        self._started = now
        return Permit(self._epoch)

    def abandon(self) -> None:
        """A call ended without information about the server: it was cancelled, or failed for another reason."""
        self.running -= 1

    def succeed(self, permit: Permit, now: float) -> None:
        """A call with this permit was answered."""
        if permit.epoch == self._epoch and self.running >= int(self.width):
            self.width = min(float(self.most), self.width + 1 / self.width)
        self.running -= 1
        self._learned.answer(now)

    def is_news(self, permit: Permit) -> bool:
        """Whether a call that finds no room was let in after the last time that there was none."""
        return permit.epoch == self._epoch

    def limit(self, permit: Permit, now: float, retry_after_s: float | None) -> None:
        """The server is at capacity. If it reports how long, no call starts before."""
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
"""Of English text; only an estimate, which the usage that a provider reports corrects."""


class Bucket(Struct):
    """Token bucket: it fills with `per_s` up to `size`. It may be overdrawn, and then has to refill first."""

    per_s: float
    size: float
    level: float = 0.0
    _at: float | None = None

    def __post_init__(self) -> None:
        self.level = self.size

    def wait_s(self, now: float, amount: float) -> float:
        """Seconds until an amount may be spent; one larger than the bucket needs a full one."""
        self._fill(now)
        return max(0.0, min(amount, self.size) - self.level) / self.per_s

    def spend(self, now: float, amount: float) -> None:
        """Spend it. A negative amount gives back."""
        self._fill(now)
        self.level = min(self.size, self.level - amount)

    def _fill(self, now: float) -> None:
        if self._at is not None:
            self.level = min(self.size, self.level + (now - self._at) * self.per_s)
        self._at = now


class RateLimiter:
    """The buckets of one target."""

    def __init__(self, rate: Rate) -> None:
        self._requests = _bucket(rate.requests_per_minute)
        self._tokens = _bucket(rate.tokens_per_minute)

    def wait_s(self, now: float, tokens: float) -> float:
        """Seconds until a call with this many tokens may start."""
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
        """A call took another number of tokens than it was estimated to."""
        if self._tokens:
            self._tokens.spend(now, used - estimated)


def _bucket(per_minute: float | None) -> Bucket | None:
    """A bucket with a small burst; None without a rate."""
    if per_minute is None:
        return None
    per_s = per_minute / 60
    return Bucket(per_s, max(1.0, per_s * BURST_S))
