"""Answers whose cost a row reports already: graded again, they cost nothing again.

An answer is written before the row of its trial, and the checksum of the row after both. So an answer that stands
before the checksum of a row of its own trial is in that row. One behind it was not graded before the process ended, and
counts.

Several trials of a case may share a verdict, whose cost is in the row of one of them. So the cost of judges is computed
by the case: as much of it counts as the journal reports and no row does.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from agentv.model.run.row import Row
from agentv.model.values.usage import Amount
from agentv.ports import USER, Call
from agentv.store.journal.journal_reader import JournalReader, amount_of
from agentv.store.rows.reading import row_in

_ROUNDING_USD = 1e-10
"""What sums of floats may differ by."""


class AccountedAnswers:
    """The answers of a journal that are in superseded rows, which count for nothing but what they cost.

    Args:
        reader: of the journal.
        superseded: lines of `history.jsonl`.
        current: lines of `index.jsonl`.
    """

    def __init__(self, reader: JournalReader, superseded: Iterable[bytes], current: Iterable[bytes] = ()) -> None:
        self._reader = reader
        self._last: dict[tuple[str | int | None, ...], int] = {}
        self._unreported = dict(reader.judged)
        self._priced = {case for case, amount in reader.judged.items() if amount.usd}
        for line in superseded:
            self._add(line.rstrip(b"\n"))
        for line in current if self._unreported else ():
            with suppress(ValueError):
                self._subtract(row_in(line))

    def _subtract(self, row: Row) -> None:
        """A row reports what its judges took."""
        case = hash(row.test_id)
        if case in self._unreported:
            reported = amount_of(row.judge_cost_usd, row.judge_token_usage)
            self._unreported[case] = _difference(self._unreported[case], reported)

    def _add(self, line: bytes) -> None:
        position = self._reader.checksum_position(line)
        if position is None:
            return
        with suppress(ValueError):  # whoever sums up reports what is wrong with it
            row = row_in(line)
            self._subtract(row)
            # a judge does not know which target it judges, so any row of the case will do
            for trial in ((row.suite, row.test_id, row.target, row.prompt_id, row.sample), (row.test_id,)):
                self._last[trial] = max(position, self._last.get(trial, 0))

    def __contains__(self, call: Call) -> bool:
        """Whether the answer to a call is in one of the rows; a judge's is taken to be in one from then on."""
        case = hash(call.request.case_id)
        if call.request.nonces and case in self._unreported:
            return self._is_reported(call, case)
        position = self._reader.answer_position(call.key)
        return position is not None and position < self._last.get(_trial_of(call), 0)

    def _is_reported(self, call: Call, case: int) -> bool:
        answer = self._reader.answer(call.key)
        if answer is None:
            return False
        unreported, took = self._unreported[case], amount_of(answer.cost_usd, answer.token_usage)
        priced = case in self._priced
        enough = unreported.usd >= took.usd - _ROUNDING_USD if priced else unreported.tokens >= took.tokens
        if enough:
            self._unreported[case] = _difference(unreported, took)
        return not enough


def _difference(whole: Amount, part: Amount) -> Amount:
    return Amount(whole.usd - part.usd, whole.tokens - part.tokens)


def _trial_of(call: Call) -> tuple[str | int | None, ...]:
    request = call.request
    if request.nonces:  # only judges are asked with texts that are new for each call
        return (request.case_id,)
    suite, *about = request.suite.split("\0")
    target = about[-1] if about[:1] == [USER] else call.target
    return (suite, request.case_id, target, request.prompt_id, request.sample)
