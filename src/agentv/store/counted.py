"""Answers that a row has told the cost of already: graded anew, they cost nothing again.

An answer is written before the row of its trial is, and the journal's line that vouches for the row stands behind both.
So an answer that stands before such a line of its own trial is in that row. One behind it was not graded before the
process ended, and counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from agentv.ports import Call
from agentv.store.reading import row_in
from agentv.store.recall import Recall


class Counted:
    """Which of the answers of a journal stand in rows that do not count any more, but for what they cost.

    Args:
        recall: the journal.
        rows: lines of `history.jsonl`.
    """

    def __init__(self, recall: Recall, rows: Iterable[bytes]) -> None:
        self._recall = recall
        self._last: dict[tuple[str | int | None, ...], int] = {}
        for line in rows:
            self._add(line.rstrip(b"\n"))

    def _add(self, line: bytes) -> None:
        place = self._recall.vouched_at(line)
        if place is None:
            return
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # whoever sums up says what is wrong with it
            row = row_in(line)
            # a judge is not told which target it judges, so any row of the case will do
            for spot in ((row.suite, row.test_id, row.target, row.prompt_id, row.sample), (row.test_id,)):
                self._last[spot] = max(place, self._last.get(spot, 0))

    def __contains__(self, call: Call) -> bool:
        """Whether the answer to a call is in one of the rows."""
        place = self._recall.answered_at(call.key)
        return place is not None and place < self._last.get(_spot(call), 0)


def _spot(call: Call) -> tuple[str | int | None, ...]:
    request = call.request
    if request.nonces:  # only judges are asked with texts that are new for each call
        return (request.case_id,)
    return (request.suite.partition("\0")[0], request.case_id, call.target, request.prompt_id, request.sample)
