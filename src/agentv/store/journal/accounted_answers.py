"""Answers whose cost is already in a row: graded again, they are not paid for twice.

An answer is written before the row of its trial is, and the journal's line that vouches for the row stands behind both.
So an answer that stands before such a line of its own trial is in that row. One behind it was not graded before the
process ended, and counts.

Several trials of a case may share a verdict, whose cost is in the row of one of them. So what judges took is reckoned
by the case: as much of it counts as the journal tells of and no row does.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from agentv.model.run.budget import Amount
from agentv.ports import Call
from agentv.store.journal.journal_reader import JournalReader, amount_of
from agentv.store.rows.reading import RowFacts, row_in

_CENT = 1e-10
"""US dollars that are nothing: sums of floats differ by less."""


class AccountedAnswers:
    """Which of the answers of a journal stand in rows that do not count any more, but for what they cost.

    Args:
        recall: the journal.
        rows: lines of `history.jsonl`.
        standing: lines of `index.jsonl`.
    """

    def __init__(self, recall: JournalReader, rows: Iterable[bytes], standing: Iterable[bytes] = ()) -> None:
        self._recall = recall
        self._last: dict[tuple[str | int | None, ...], int] = {}
        self._untold = dict(recall.judged)
        self._costs = {case for case, amount in recall.judged.items() if amount.usd}
        for line in rows:
            self._add(line.rstrip(b"\n"))
        for line in standing if self._untold else ():
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                self._tell(row_in(line))

    def _tell(self, row: RowFacts) -> None:
        """Record the judge cost in a row."""
        case = hash(row.test_id)
        if case in self._untold:
            told = amount_of(row.judge_cost_usd, row.judge_token_usage)
            untold = self._untold[case]
            self._untold[case] = Amount(untold.usd - told.usd, untold.tokens - told.tokens)

    def _add(self, line: bytes) -> None:
        place = self._recall.vouched_at(line)
        if place is None:
            return
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # whoever sums up says what is wrong with it
            row = row_in(line)
            self._tell(row)
            # a judge is not told which target it judges, so any row of the case will do
            for spot in ((row.suite, row.test_id, row.target, row.prompt_id, row.sample), (row.test_id,)):
                self._last[spot] = max(place, self._last.get(spot, 0))

    def __contains__(self, call: Call) -> bool:
        """Whether the answer to a call is in one of the rows; a judge's is taken to be in one from then on."""
        case = hash(call.request.case_id)
        if call.request.nonces and case in self._untold:
            return self._is_told(call, case)
        place = self._recall.answered_at(call.key)
        return place is not None and place < self._last.get(_spot(call), 0)

    def _is_told(self, call: Call, case: int) -> bool:
        answer = self._recall.answer(call.key)
        if answer is None:
            return False
        untold, took = self._untold[case], amount_of(answer.cost_usd, answer.token_usage)
        enough = untold.usd >= took.usd - _CENT if case in self._costs else untold.tokens >= took.tokens
        if enough:
            self._untold[case] = Amount(untold.usd - took.usd, untold.tokens - took.tokens)
        return not enough


def _spot(call: Call) -> tuple[str | int | None, ...]:
    request = call.request
    if request.nonces:  # only judges are asked with texts that are new for each call
        return (request.case_id,)
    return (request.suite.partition("\0")[0], request.case_id, call.target, request.prompt_id, request.sample)
