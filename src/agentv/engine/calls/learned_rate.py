"""Learned request rate of a server that only reports that it is overloaded. Pure: time is an argument.

Fewer concurrent calls do not help if a single one at a time is too many. So calls are also spaced: after a
round without capacity to four fifths of their rate, which grows back within ten seconds, and then doubles every
five, because the server may have recovered (as TCP CUBIC probes: RFC 9438). The rate is measured by the
answers that arrived.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

FALL = 0.8
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
            self._reached = measured if at_most is None else min(measured / FALL, at_most)
            self._since = now
        elif self._reached is not None:
            self._reached, self._since = self._reached * FALL, now

    def rate(self, now: float) -> float | None:
        """Calls a second that may start now; None: as many as like."""
        if self._reached is None:
            return None
        passed = now - self._since
        if passed < BACK_S:
            return self._reached * (FALL + (1 - FALL) * passed / BACK_S)
        return self._reached * float(2 ** min((passed - BACK_S) / DOUBLES_S, 100))

    def next_at(self, now: float, last: float) -> float:
        """When the next call may start, given when the last one did."""
        rate = self.rate(now)
        return last if rate is None else last + 1 / rate
