"""The store of a run: answers in `journal.jsonl`, rows in `index.jsonl` (SPEC section 13).

An answer is with the system (write(2)) when `keep` returns, and on the disk at most 100 ms later: a crash of the
process loses none, a power cut at most those. Rows are buffered: one that is lost is made again from its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from agentv.errors import StoreError
from agentv.model.response import TargetResponse
from agentv.model.trial import TrialResult
from agentv.ports import Call
from agentv.store.answers import HEADER, VERSION, anew_line, answer_line, row_seal, unsealed
from agentv.store.current import replaced_lines
from agentv.store.directory import HISTORY, INDEX, JOURNAL, REJECTED, RunDirectory
from agentv.store.encoding import to_json
from agentv.store.heartbeat import Heartbeat
from agentv.store.lines import LineFile, cut_torn_end, read_lines, set_aside
from agentv.store.reading import RowFacts, finished_keys, key_of_row, read_rows
from agentv.store.recall import Recall
from agentv.store.rows import Places, row_of

if TYPE_CHECKING:
    from agentv.store.counted import Counted

SYNC_EVERY_S = 0.1
"""Seconds between two fsyncs of the journal, and for which a row may stay in the buffer."""

BUFFERED_BYTES = 256_000
"""Bytes of rows that are written out without waiting for the next beat."""


class Journal:
    """The store on disk, a `agentv.ports.Store`. A context manager; use it from one thread.

    Attributes:
        mended: what was found torn at the end of a file and cut off, one line each, for people.
        damaged: how many lines of the journal were passed over.

    Args:
        directory: of the run, and locked.
        root: absolute path of the repository root; rows show paths below it relative to it.

    Raises:
        StoreError: a file cannot be opened, or is none of ours; so for every method, when the system refuses.
    """

    def __init__(self, directory: RunDirectory, root: str) -> None:
        self._path = directory.path
        self._redactor = directory.redactor
        self._places = Places(root)
        self.mended = tuple(_mend(directory))
        self.damaged = 0
        self._recall: Recall | None = None
        self._counted: Counted | None = None
        self._answers = LineFile(self._path / JOURNAL)
        self._index = LineFile(self._path / INDEX)
        self._rows: list[bytes] = []
        self._seals: list[bytes] = []
        self._buffered = 0
        self._lock = Lock()
        self._open = True
        self._heartbeat = Heartbeat(self._beat, SYNC_EVERY_S)
        if self._answers.size == 0:
            self._answers.append(HEADER)

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Keep an answer: it is with the system when this returns."""
        if answer.earlier and self.holds(call.key):
            return
        case = call.request.case_id
        line = answer_line(call.key, case, answer, target=call.target)
        if self._redactor.found_in(line):
            case, target = self._redactor.redact(case), self._redactor.redact(call.target)
            line = answer_line(call.key, case, self._redactor.redact_answer(answer), target=target, redacted=True)
        if self._heartbeat.failure is not None:
            raise self._heartbeat.failure
        self._answers.append(line)
        self._heartbeat.wake()

    def kept(self, call: Call) -> TargetResponse | None:
        """What this run was answered before it was gone on with, once that is recalled.

        It is an `earlier` one where a row tells its cost already.
        """
        found = None if self._recall is None else self._recall.answer(call.key)
        if found is None or self._counted is None or call not in self._counted:
            return found
        return replace(found, earlier=True)

    def holds(self, key: str) -> bool:
        """Whether there is such an answer, by its hash alone: it is not read."""
        return self._recall is not None and key in self._recall

    def recall(self) -> int:
        """Look up what this run was answered before; how many answers it was.

        A line whose checksum does not agree is passed over and counted in `damaged`: its call is made again. A row that
        is not as it was written is set aside: its trial is graded again.

        Raises:
            StoreError: there are rows, and the journal knows of none.
        """
        if self._recall is not None:
            self._recall.close()
        self._recall = Recall(self._path / JOURNAL)
        self.damaged = self._recall.damaged
        recall = self._recall
        if not recall.vouches and any(True for _ in self._lines()):
            what = "was removed, emptied or replaced, so that nobody vouches for them"
            raise StoreError(f"{self._path / INDEX} holds rows, and {JOURNAL} {what}: begin a new run")
        if any(not recall.vouches_for(line.rstrip(b"\n")) for _, line in self._lines()):
            moved = self._move(lambda _, row: not recall.vouches_for(row), REJECTED)
            self.mended = (*self.mended, _rejected(moved))
        return len(recall)

    def begin_anew(self, chosen: Callable[[RowFacts], bool]) -> int:
        """Move rows to `history.jsonl` and forget the answers of their cases, so that they are asked again; how many.

        Interrupted in the middle, the rows stand as they did.
        """
        wanted = {row.key: row.test_id for row in read_rows(self._path / INDEX) if chosen(row)}
        if not wanted:
            return 0
        self._answers.append(anew_line(sorted(set(wanted.values()))))
        self._answers.sync()
        moved = self._move(lambda _, line: key_of_row(line) in wanted, HISTORY)
        self.recall()
        return moved

    def retire(self, standing: Container[str]) -> int:
        """Move the rows that do not count any more to `history.jsonl`; how many trials they are of.

        Those are the rows of trials that do not stand, and of several rows of one trial all but the last.
        """
        replaced = replaced_lines(self._path / INDEX)
        gone = {key for _, line in self._lines() if (key := key_of_row(line)) is not None and key not in standing}
        if gone or replaced:
            self._move(lambda number, line: number in replaced or key_of_row(line) in gone, HISTORY)
        if self._recall is not None:
            from agentv.store.counted import Counted  # only of a run that is gone on with

            self._counted = Counted(self._recall, (line for _, line in read_lines(self._path / HISTORY)))
        return len(gone)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        return read_lines(self._path / INDEX)

    def _move(self, chosen: Callable[[int, bytes], bool], elsewhere: str) -> int:
        self._index.close()
        try:
            return set_aside(self._path / INDEX, chosen, self._path / elsewhere)
        finally:
            self._index = LineFile(self._path / INDEX)

    def finish(self, result: TrialResult) -> None:
        """Keep the row of a finished trial. One that was skipped has no row, so that a resume runs it."""
        if result.status == "skipped":
            return
        line = to_json(row_of(result, self._places))
        if self._redactor.found_in(line):
            line = to_json(row_of(self._redactor.redact_result(result), self._places))
        if self._heartbeat.failure is not None:
            raise self._heartbeat.failure
        with self._lock:
            self._rows.append(line)
            self._seals.append(row_seal(result.trial.key, line))
            self._buffered += len(line)
        if self._buffered >= BUFFERED_BYTES:
            self._write_rows()
        else:
            self._heartbeat.wake()

    def finished(self) -> Iterator[str]:
        """The keys of the trials that have a row, in the order of the file."""
        self._write_rows()
        return finished_keys(self._path / INDEX)

    def close(self) -> None:
        """Write out what is buffered, have it all on the disk, and let go."""
        if not self._open:
            return
        self._open = False
        self._heartbeat.stop()
        with ExitStack() as closing:
            closing.callback(self._answers.close)
            closing.callback(self._index.close)
            if self._recall is not None:
                closing.callback(self._recall.close)
            self._beat()
            self._index.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _beat(self) -> None:
        self._write_rows()
        self._answers.sync()

    def _write_rows(self) -> None:
        with self._lock:
            if self._rows:
                self._answers.append(b"".join(self._seals))  # first: a row that nobody vouches for counts for nothing
                self._index.append(b"\n".join(self._rows) + b"\n")  # refused, they stay for another try
                self._rows.clear()
                self._seals.clear()
                self._buffered = 0


def _rejected(rows: int) -> str:
    if rows == 1:
        return f"{INDEX}: 1 row is not as it was written: it is set aside in {REJECTED}, and its trial is graded anew"
    return f"{INDEX}: {rows:,} rows are not as they were written: set aside in {REJECTED}, their trials are graded anew"


def _mend(directory: RunDirectory) -> Iterator[str]:
    """Cut torn ends, and make sure that the journal is ours; what was cut, in words."""
    for name, whole in ((JOURNAL, _is_journal_line), (INDEX, _is_json), (HISTORY, _is_json)):
        cut = cut_torn_end(directory.path / name, whole)
        if cut:
            yield f"{directory.path / name}: cut off {cut} bytes of a line that was not written to its end"
    for _, line in read_lines(directory.path / JOURNAL):
        if line != HEADER:
            raise StoreError(f"{directory.path / JOURNAL} is no journal of format {VERSION}")
        return


def _is_journal_line(line: bytes) -> bool:
    return line + b"\n" == HEADER or unsealed(line) is not None


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
