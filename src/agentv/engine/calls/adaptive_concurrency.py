"""Adaptive concurrency and pacing of calls to a server. Pure: time is an argument.

The number of calls at once adapts: it falls by half when the server has no room, once for all the calls that were under
way together, and grows by one for each round of calls that succeed (additive increase, multiplicative decrease: Chiu
and Jain, 1989). It starts wide open, since most servers have room. Calls are also spaced by the limits that replies
tell; and where a server only says that it is overloaded, by a learned rate.

Times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from agentv.model.values.response import RateLimits

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

    def next_at(self, now: float, last: float) -> float:
        """When the next call may start, given when the last one did."""
        rate = self.rate(now)
        return last if rate is None else last + 1 / rate


FALL = 0.5
"""What is left of the calls at once when the server has no room."""

LONGEST_HINT_S = 60.0
"""Maximum seconds that a successful reply can delay calls; then a call checks whether the limit still applies."""

_LONG_AGO = 0.0


class Permit(Struct, frozen=True):
    """Permit of a call. `epoch`: number of reductions of the concurrency before it."""

    epoch: int


class Allowance(Struct):
    """Remaining amount of one of a provider's limits, requests or tokens, and when it refills.

    Providers report the remaining amount and the time until the limit is full. Of the two kinds of limits, one refills
    steadily (OpenAI's, Anthropic's), one all at once. The missing amount divided by that time is the rate of
    the first kind, and two replies show it: (left₁ − left₂) / (reset₂ − reset₁). If the reset does not grow as the
    amount shrinks, it is the second kind, and the amount must suffice until then.

    A limit that is full again only in hours is just a hint: it delays calls by `LONGEST_HINT_S` once, and not
    at all if the server has answered a call for which it reported no capacity.
    """

    left: float | None = None
    full_at: float = _LONG_AGO
    _fullest: tuple[float, float] | None = None
    _per_s: float | None = None
    _hinted: bool = False

    def read(self, now: float, left: int | None, reset_s: float | None, pending: float = 0.0) -> None:
        """Process a reply; `pending` is the usage of running calls, which it may not include."""
        if left is None or reset_s is None:
            return
        if reset_s > LONGEST_HINT_S:
            self._hint(now, left)
            return
        self._hinted = False
        self.left, self.full_at = max(0.0, left - pending), now + reset_s
        if self._fullest is None or left >= self._fullest[0]:
            self._fullest = (float(left), reset_s)
            return
        missing, longer = self._fullest[0] - left, reset_s - self._fullest[1]
        self._per_s = missing / longer if longer > 0 else None

    def _hint(self, now: float, left: float) -> None:
        """Take in that the limit is full again long from now."""
        self._fullest = self._per_s = None
        if left > 0 or self._hinted:
            self.left = None
        else:
            self._hinted, self.left, self.full_at = True, 0.0, now + LONGEST_HINT_S

    def take(self, need: float) -> None:
        """A call starts that needs so much."""
        if self.left is not None:
            self.left = max(0.0, self.left - need)

    def next_at(self, now: float, last: float, need: float, width: float) -> float:
        """When the next call may start that needs so much, given when the last one did.

        At once where plenty is left: enough for two rounds of as many calls as there are at once. Else calls are
        spaced so that what is left, or what comes in, suffices; the less is left, the closer to that.
        """
        if self.left is None or need <= 0:
            return _LONG_AGO
        if now >= self.full_at:
            self.left = None  # full again; the next reply says how full that is
            return _LONG_AGO
        plenty = 2 * width * need
        if self.left >= plenty:
            return _LONG_AGO
        if self._per_s is not None:
            return min(last + need / self._per_s * (1 - self.left / plenty), self.full_at)
        if self.left < need:
            return self.full_at
        return last + (self.full_at - now) * need / self.left


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
    _requests: Allowance = field(default_factory=Allowance)
    _tokens: Allowance = field(default_factory=Allowance)
    _tokens_per_call: float = 0.0
    _learned: LearnedRate = field(default_factory=LearnedRate)

    def __post_init__(self) -> None:
        self.width = float(self.most)

    def wait_s(self, now: float) -> float | None:
        """Seconds until one more call may start: 0, now; None: not before one of those under way has ended."""
        if self.running >= int(self.width):
            return None
        at = max(
            self.paused_until,
            self._learned.next_at(now, self._started),
            self._requests.next_at(now, self._started, 1.0, self.width),
            self._tokens.next_at(now, self._started, self._tokens_per_call, self.width),
        )
        return max(0.0, at - now)

    def start(self, now: float) -> Permit:
        """A call starts."""
        self.running += 1
        self._started = now
        self._requests.take(1.0)
        self._tokens.take(self._tokens_per_call)
        return Permit(self._epoch)

    def abandon(self, permit: Permit) -> None:
        """A call ended without information about the server: it was cancelled, or failed for another reason."""
        del permit
        self.running -= 1

    def succeed(self, permit: Permit, now: float, limits: RateLimits | None = None, tokens: int | None = None) -> None:
        """A call was answered.

        Args:
            permit: what `start` gave for it.
            now: the time.
            limits: what the server says is left.
            tokens: that it took.
        """
        if permit.epoch == self._epoch and self.running >= int(self.width):
            self.width = min(float(self.most), self.width + 1 / self.width)
        self.running -= 1
        self._learned.answer(now)
        if tokens:
            share = 0.2 if self._tokens_per_call else 1.0
            self._tokens_per_call += share * (tokens - self._tokens_per_call)
        self.learn(now, limits)

    def is_news(self, permit: Permit) -> bool:
        """Whether a call that finds no room was let in after the last time that there was none."""
        return permit.epoch == self._epoch

    def limit(self, permit: Permit, now: float, retry_after_s: float | None, limits: RateLimits | None = None) -> None:
        """The server is at capacity. If it reports how long, no call starts before."""
        if permit.epoch == self._epoch:
            self._epoch += 1
            self.width = max(1.0, min(self.width, self.running) * FALL)
            self._learned.limit(now)
        self.running -= 1
        if retry_after_s is not None:
            self.paused_until = max(self.paused_until, now + retry_after_s)
        self.learn(now, limits)

    def learn(self, now: float, limits: RateLimits | None) -> None:
        """Process the limits in a reply."""
        if limits is None:
            return
        self._requests.read(now, limits.requests, limits.requests_reset_s, self.running)
        self._tokens.read(now, limits.tokens, limits.tokens_reset_s, self.running * self._tokens_per_call)
