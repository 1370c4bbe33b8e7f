"""A rate limit as a token bucket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Left:
    """Remaining requests of a rate limit.

    Attributes:
        allowed: whether the current request is accepted.
        limit: requests that are accepted at once if none were used.
        remaining: requests that are accepted now.
        next_s: seconds until the next one is accepted.
        full_s: seconds until the limit is full again.
    """

    allowed: bool
    limit: int
    remaining: int
    next_s: float
    full_s: float


class TokenBucket:
    """Accepts `rate` requests per second, with a burst of one second's worth, at least one."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        if not rate > 0:
            raise ValueError(f"rate must be above 0 requests per second, found {rate}")
        self._rate = rate
        self._clock = clock
        self._limit = max(1, int(rate))
        self._tokens = float(self._limit)
        self._at = clock()

    def take(self) -> Left:
        """Request one token; a refused request uses none."""
        now = self._clock()
        self._tokens = min(self._limit, self._tokens + (now - self._at) * self._rate)
        self._at = now
        allowed = self._tokens >= 1 - 1e-9  # a caller that waited exactly as long as requested is let in
        if allowed:
            self._tokens = max(0.0, self._tokens - 1)
        return Left(
            allowed=allowed,
            limit=self._limit,
            remaining=int(self._tokens),
            next_s=max(0.0, 1 - self._tokens) / self._rate,
            full_s=(self._limit - self._tokens) / self._rate,
        )
