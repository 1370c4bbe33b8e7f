"""Reader of the journal of a run: the positions of its answers, and the checksums of its rows.

It holds about 40 bytes for each in memory, so that a million fit.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct

from agentv.model.run.row import Row
from agentv.model.values.hashes import NumberedHashes
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import UNKNOWN, Amount, Ceiling, TokenUsage, total_tokens
from agentv.ports import USER, Call
from agentv.store.files.lines import read_lines
from agentv.store.files.whole_file import as_store_error
from agentv.store.journal.answers import (
    HEADER,
    AnswerFacts,
    answer_of,
    discarded_in,
    facts_in,
    is_redacted,
    is_spent_line,
    is_summary_checksum,
    row_checksum_in,
    verified,
)
from agentv.store.rows.reading import key_of_row, row_in

_NOTHING = Amount()


def amount_of(cost_usd: float | None, tokens: TokenUsage | None) -> Amount:
    """Return the cost of a call in US dollars and its tokens; zero if not reported."""
    total = 0 if tokens is None else total_tokens(tokens)
    return Amount(cost_usd or 0.0, total)


class _AnswerPositions:
    """Offsets of the answers in a journal by the hashes of their keys; the last one if a key has several."""

    def __init__(self) -> None:
        self._numbers = NumberedHashes()
        self._offsets = array("Q")
        self._cases = array("q")
        self._discarded: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, key: str, case: int, offset: int) -> None:
        """Add the offset of an answer. `case` is the hash of the case's id."""
        number = self._numbers.number(hash(key))
        if number == len(self._offsets):
            self._offsets.append(offset)
            self._cases.append(case)
        else:
            self._offsets[number] = offset

    def discard(self, cases: list[str], offset: int) -> None:
        """Discard the answers for these cases before the offset."""
        self._discarded.update(dict.fromkeys(map(hash, cases), offset))

    def find(self, key: str) -> int | None:
        """Return the byte offset of the answer under a key, or None if none exists that may be used."""
        number = self._numbers.find(hash(key))
        if number is None or self._discarded.get(self._cases[number], -1) > self._offsets[number]:
            return None
        return self._offsets[number]


class _RowChecksums:
    """Checksums of rows in a journal, each with the offset of its first line."""

    def __init__(self) -> None:
        self._numbers = NumberedHashes()
        self._offsets = array("Q")

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, checksum: tuple[str, int], offset: int) -> None:
        """Add the checksum of a row (trial key, CRC-32) with the offset of its line."""
        if self._numbers.number(hash(checksum)) == len(self._offsets):
            self._offsets.append(offset)

    def find(self, row: bytes) -> int | None:
        """Return the byte offset of the checksum of a row, given without the line end, or None."""
        number = self._numbers.find(hash((key_of_row(row), crc32(row))))
        return None if number is None else self._offsets[number]


class JournalReader:
    """The answers in a `journal.jsonl` by their keys; the last one if a key has several.

    Attributes:
        run: directory of the run.
        run_id: id of the run, from the name of its directory.
        judged: hash of a case → usage of the answers of judges for it, including discarded ones.
        damaged: number of lines whose checksum is wrong, or that do not belong in a journal.
        redacted: keys of calls whose answers contained a secret, and are therefore not returned.

    Args:
        path: path of the journal; later additions are not read.

    Raises:
        StoreError: it cannot be read. Also from `answer`.
    """

    def __init__(self, path: Path) -> None:
        self.run_id = path.parent.name
        self.run = path.parent
        self.damaged = 0
        self.redacted: set[str] = set()
        self.judged: dict[int, Amount] = {}
        self._path = path
        self._answers = _AnswerPositions()
        self._rows = _RowChecksums()
        with as_store_error("read", path):
            self._file = path.open("rb")
            self._read()

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, key: str) -> bool:
        return self._answers.find(key) is not None

    def _read(self) -> None:
        offset = 0
        for line in self._file:
            if line != HEADER and not line.isspace():
                try:
                    self._add(line, offset)
                except (ValueError, msgspec.DecodeError):  # it has a valid checksum, but was not written by agentv
                    self.damaged += 1
            offset += len(line)

    def _add(self, line: bytes, offset: int) -> None:
        if verified(line.rstrip(b"\n")) is None:
            self.damaged += 1
        elif (checksum := row_checksum_in(line)) is not None:
            self._rows.add(checksum, offset)
        elif (cases := discarded_in(line)) is not None:
            self._answers.discard(cases, offset)
        elif not is_spent_line(line) and not is_summary_checksum(line):
            self._add_answer(line, facts_in(line), offset)

    def _add_answer(self, line: bytes, facts: AnswerFacts, offset: int) -> None:
        case = hash(facts.case)
        if facts.judge and not facts.earlier:
            self.judged[case] = self.judged.get(case, _NOTHING) + amount_of(facts.cost_usd, facts.token_usage)
        if is_redacted(line.rstrip(b"\n")):  # not the original answer
            self.redacted.add(facts.key)
        else:
            self._answers.add(facts.key, case, offset)

    def answer(self, key: str) -> TargetResponse | None:
        """Return the answer under a key, or None if it is missing or damaged, or if a secret was removed from it."""
        offset = self._answers.find(key)
        if offset is None:
            return None
        with as_store_error("read", self._path):
            self._file.seek(offset)
            line = self._file.readline()
        body = verified(line.rstrip(b"\n"))
        if body is None:
            return None
        found_key, answer = answer_of(body)
        return answer if found_key == key else None

    @property
    def has_checksums(self) -> bool:
        """Whether the journal has any checksums of rows; it has none if it was emptied."""
        return len(self._rows) > 0

    def checksum_position(self, row: bytes) -> int | None:
        """Return the byte offset of the checksum of a row, given without the line end; None if the row was changed."""
        return self._rows.find(row)

    def answer_position(self, key: str) -> int | None:
        """Return the byte offset of the answer under a key, or None if none exists that may be used."""
        return self._answers.find(key)

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """Return the answer to a call, or None."""
        return self.answer(call.key)

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Do nothing, because this is the journal of another run."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_ROUNDING_USD = 1e-10
"""Tolerance when comparing sums of floats."""


class AccountedAnswers:
    """The answers in a journal whose cost is already included in superseded rows.

    Args:
        reader: reader of the journal.
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
        """Subtract the judges' usage that a row reports from what is unreported."""
        case = hash(row.test_id)
        if case in self._unreported:
            reported = amount_of(row.judge_cost_usd, row.judge_token_usage)
            self._unreported[case] -= reported

    def _add(self, line: bytes) -> None:
        position = self._reader.checksum_position(line)
        if position is None:
            return
        with suppress(ValueError):  # the code that computes totals reports invalid rows
            row = row_in(line)
            self._subtract(row)
            # a judge's call does not depend on the target, so any row of the case may include it
            for trial in ((row.suite, row.test_id, row.target, row.prompt_id, row.sample), (row.test_id,)):
                self._last[trial] = max(position, self._last.get(trial, 0))

    def __contains__(self, call: Call) -> bool:
        """Whether a row includes the cost of the answer to a call. A judge's answer counts as reported from then on."""
        case = hash(call.request.case_id)
        if call.request.nonces and case in self._unreported:
            return self._is_reported(call, case)
        position = self._reader.answer_position(call.key)
        return position is not None and position < self._last.get(_trial_of(call), 0)

    def _is_reported(self, call: Call, case: int) -> bool:
        answer = self._reader.answer(call.key)
        if answer is None:
            return False
        unreported, usage = self._unreported[case], amount_of(answer.cost_usd, answer.token_usage)
        priced = case in self._priced
        enough = unreported.usd >= usage.usd - _ROUNDING_USD if priced else unreported.tokens >= usage.tokens
        if enough:
            self._unreported[case] = unreported - usage
        return not enough


def _trial_of(call: Call) -> tuple[str | int | None, ...]:
    request = call.request
    if request.nonces:  # only calls of judges have nonces
        return (request.case_id,)
    suite, *about = request.suite.split("\0")
    target = about[-1] if about[:1] == [USER] else call.target
    return (suite, request.case_id, target, request.prompt_id, request.sample)


class _AnswerCost(Struct, gc=False):
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    earlier: bool = False
    metered: bool = False
    target: str = ""
    spent: str = ""


@dataclass(frozen=True, slots=True)
class JournalSpending:
    """The cost and tokens of the answers in a journal.

    Attributes:
        total: total of all answers.
        largest: name of a target → largest reported usage of one of its answers; lines without a target are under an
            empty name.
    """

    total: Amount
    largest: Mapping[str, Ceiling]


_answer_cost = msgspec.json.Decoder(_AnswerCost)


def spent_in(journal: Path) -> JournalSpending:
    """Return the spending on all answers that a run received, including those that were discarded later.

    Answers from other runs and damaged lines do not count.

    Raises:
        StoreError: the file cannot be read.
    """
    total = Amount()
    largest: dict[str, Ceiling] = {}
    for _, line in read_lines(journal):
        body = verified(line.rstrip(b"\n"))
        try:
            if body is None or is_summary_checksum(line):
                continue
            if row_checksum_in(line) is not None or discarded_in(line) is not None:
                continue
            answer = _answer_cost.decode(body)
        except (ValueError, msgspec.DecodeError):  # it has a valid checksum, but was not written by agentv
            continue
        if not answer.earlier and not answer.metered:
            target = answer.target or answer.spent
            usage = answer.token_usage
            tokens = None if usage is None else total_tokens(usage)
            total += Amount(answer.cost_usd or 0.0, tokens or 0)
            largest[target] = largest.get(target, UNKNOWN).at_least(answer.cost_usd, tokens)
    return JournalSpending(total, largest)
