"""When a run that goes on sends its next batch of rows: a few new rows at once, many new rows together."""

from __future__ import annotations

from dataclasses import dataclass

_BATCH_SHARE = 300
"""Between two batches of rows lies at least one part of so many of the time that the run took so far."""

_MANY = 1 << 16
"""New bytes of rows from which on more are waited for: nobody reads so many rows one by one."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a live push waits, in seconds.

    Attributes:
        first, longest: between two batches; they become rarer in a long run, so that they stay few.
        look: between two looks at the size of the index, after which a batch is sent if it has grown.
        many: for more rows, after the shortest wait, while many rows come. What has come by the end of the run is sent
            behind it, so that a long wait would make the command take longer.
        retry, longest_retry: until the server is tried again; each time twice as long.
        idle, end: after the run, for the last rows: without progress, and altogether.
        away: after the run, if the server was away before.
    """

    first: float = 0.1
    longest: float = 2.0
    look: float = 0.05
    many: float = 0.3
    retry: float = 1.0
    longest_retry: float = 15.0
    idle: float = 5.0
    end: float = 30.0
    away: float = 1.5


class NextBatch:
    """The time of one batch.

    Args:
        waits: how long to wait.
        size: of the index, of which all rows were sent, or were about to be.
        now: any clock.
        age: seconds since the run began.
    """

    def __init__(self, waits: Waits, size: int, now: float, age: float) -> None:
        self._waits = waits
        self._size = self._before = size
        self._first = now + min(waits.longest, max(waits.first, age / _BATCH_SHARE))
        self._latest = now + waits.longest

    def wait_s(self, size: int, now: float) -> float:
        """Seconds until the index is looked at again; 0: send the batch.

        Args:
            size: of the index now.
            now: by the same clock.
        """
        if now < self._first:
            return self._first - now
        few = size - self._size < _MANY
        is_quiet, self._before = size == self._before, size
        if now >= self._latest or (size != self._size and (few or is_quiet or now >= self._first + self._waits.many)):
            return 0.0
        return self._waits.look
