"""A target's own `rate`: requests and tokens a minute, as buckets that fill steadily. Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentv.model.suite.suite import Rate

BURST_S = 1.0
"""Seconds' worth of a rate that may be spent at once."""

CHARACTERS_A_TOKEN = 4
"""Of English text; only an estimate, which the usage that a provider reports corrects."""


@dataclass(slots=True)
class Bucket:
    """Token bucket: it fills with `per_s` up to `size`. It may be overdrawn, and then has to refill first."""

    per_s: float
    size: float
    level: float = field(init=False)
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
        self._requests = _bucket(rate.requests_per_minute, 1.0)
        self._tokens = _bucket(rate.tokens_per_minute, 1.0)

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


def tokens_in(text: str) -> float:
    """About how many tokens a text has."""
    return len(text) / CHARACTERS_A_TOKEN


def _bucket(per_minute: float | None, least: float) -> Bucket | None:
    """A bucket with a small burst; None without a rate."""
    if per_minute is None:
        return None
    per_s = per_minute / 60
    return Bucket(per_s, max(least, per_s * BURST_S))
