"""The store of a run: answers in `journal.jsonl`, rows in `index.jsonl` (SPEC section 13).

An answer is with the system (write(2)) when `keep` returns, and on the disk at most 100 ms later: a crash of the
process loses none, a power cut at most those. Rows are buffered: one that is lost is made again from its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from agentv.errors import StoreError
from agentv.model.run.sequential import NOT_DRAWN
from agentv.model.run.trial import TrialResult
from agentv.model.values.response import TargetResponse
from agentv.model.values.values import JsonObject
from agentv.ports import Call
from agentv.store.files.background_flush import BackgroundFlusher
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, REJECTED, RUN, SUMMARY, RunDirectory
from agentv.store.files.encoding import to_json
from agentv.store.files.lines import LineFile, Restored, append_private, cut_torn_end, read_lines, set_aside
from agentv.store.journal.answers import HEADER, VERSION, anew_line, answer_line, row_seal, unsealed
from agentv.store.journal.journal_reader import JournalReader
from agentv.store.journal.watched import Watched
from agentv.store.rows.current import replaced_lines
from agentv.store.rows.reading import RowFacts, case_of_row, finished_keys, key_of_row, read_rows, row_in
from agentv.store.rows.rows import RelativePaths, row_of
from agentv.user_code.os_errors import store_error

if TYPE_CHECKING:
    from agentv.store.journal.accounted_answers import AccountedAnswers

SYNC_EVERY_S = 0.1
"""Seconds between two fsyncs of the journal, and for which a row may stay in the buffer."""

_NAMED = 5
"""Cases that are named where their rows were changed."""

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
        counts: gets every row as it is written, so that totals need not be read from where others can reach them.
        clock: seconds from some point, which no setting of the date moves.
        before_ms: how long the processes before this one took.

    Raises:
        StoreError: a file cannot be opened, or is none of ours; so for every method, when the system refuses.
    """

    def __init__(
        self,
        directory: RunDirectory,
        root: str,
        counts: Callable[[RowFacts], None] | None = None,
        *,
        clock: Callable[[], float] = monotonic,
        before_ms: float = 0.0,
    ) -> None:
        self._path = directory.path
        self._redactor = directory.redactor
        self._directory = directory
        self._places = RelativePaths(root)
        self._counts = counts
        self._clock = clock
        self._began_s = clock() - before_ms / 1000
        self._watched: Watched | None = None
        self.mended = (*directory.mended, *_mend(directory))
        self.damaged = 0
        self._recall: JournalReader | None = None
        self._counted: AccountedAnswers | None = None
        self._answers = LineFile(self._path / JOURNAL, HEADER)
        self._index = LineFile(self._path / INDEX)
        self._rows: list[bytes] = []
        self._seals: list[bytes] = []
        self._buffered = 0
        self._lock = Lock()
        self._open = True
        self._heartbeat = BackgroundFlusher(self._beat, SYNC_EVERY_S)
        if self._answers.size == 0:
            self._answers.append(HEADER)

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Keep an answer: it is with the system when this returns."""
        if answer.earlier and self.holds(call.key):
            return
        case, judge = call.request.case_id, bool(call.request.nonces)
        line = answer_line(call.key, case, answer, target=call.target, judge=judge)
        if self._redactor.found_in(line):
            case, target = self._redactor.redact(case), self._redactor.redact(call.target)
            redacted = self._redactor.redact_answer(answer)
            line = answer_line(call.key, case, redacted, target=target, redacted=True, judge=judge)
        if self._heartbeat.failure is not None:
            raise self._heartbeat.failure
        self._answers.append(line)
        self._heartbeat.wake()

    def kept(self, call: Call) -> TargetResponse | None:
        """What this run was answered before it was resumed, once that is recalled.

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
            StoreError: there are rows, and the journal knows neither of them nor of any answer.
        """
        if self._recall is not None:
            self._recall.close()
        self._recall = JournalReader(self._path / JOURNAL)
        self.damaged = self._recall.damaged
        recall = self._recall
        if not recall.vouches and not len(recall) and any(True for _ in self._lines()):
            what = "was removed, emptied or replaced, so that they cannot be verified"
            raise StoreError(f"{self._path / INDEX} contains rows, but {JOURNAL} {what}: start a new run")
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

    def draw_again(self) -> None:
        """Move the rows of trials that were not drawn to `history.jsonl`: who resumes the run draws them, or not."""
        if any(row.status == "skipped" for row in read_rows(self._path / INDEX)):
            self._move(lambda _, line: row_in(line).status == "skipped", HISTORY)

    def retire(self, standing: Container[str]) -> int:
        """Move the rows that do not count any more to `history.jsonl`; how many trials they are of.

        Those are the rows of trials that do not stand, and of several rows of one trial all but the last.
        """
        replaced = replaced_lines(self._path / INDEX)
        gone = {key for _, line in self._lines() if (key := key_of_row(line)) is not None and key not in standing}
        if gone or replaced:
            self._move(lambda number, line: number in replaced or key_of_row(line) in gone, HISTORY)
        if self._recall is not None:
            from agentv.store.journal.accounted_answers import AccountedAnswers  # only of a run that is resumed

            history = (line for _, line in read_lines(self._path / HISTORY))
            self._counted = AccountedAnswers(self._recall, history, (line for _, line in self._lines()))
        return len(gone)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        return read_lines(self._path / INDEX)

    def _move(self, chosen: Callable[[int, bytes], bool], elsewhere: str) -> int:
        self._index.close()
        try:
            return set_aside(self._path / INDEX, chosen, self._path / elsewhere)
        finally:
            self._index = LineFile(self._path / INDEX)

    def finish(self, result: TrialResult) -> TrialResult:
        """Keep the row of a finished trial. One that was skipped has no row, so that a resume runs it.

        One that was not needed has a row, which says so.
        """
        if result.status == "skipped" and (result.error is None or result.error.code != NOT_DRAWN):
            return self._redactor.redact_result(result) if self._redactor else result
        line = to_json(row_of(result, self._places))
        if self._redactor.found_in(line):
            result = self._redactor.redact_result(result)
            line = to_json(row_of(result, self._places))
        if self._heartbeat.failure is not None:
            raise self._heartbeat.failure
        if self._counts is not None:
            self._counts(row_in(line))
        with self._lock:
            self._rows.append(line)
            self._seals.append(row_seal(result.trial.key, line, self._elapsed_ms()))
            self._buffered += len(line)
        if self._buffered >= BUFFERED_BYTES:
            self._write_rows()
        else:
            self._heartbeat.wake()
        return result

    def finished(self) -> Iterator[str]:
        """The keys of the trials that have a row, in the order of the file."""
        self._write_rows()
        return finished_keys(self._path / INDEX)

    def begin(self, record: JsonObject) -> None:
        """Write `run.json`. From now on, nothing else may write to the files of the run: `restored` finds out.

        Raises:
            StoreError: the system refuses.
        """
        self._directory.write(RUN, record)
        path = self._path / RUN
        try:
            self._watched = Watched(self._path, path.read_bytes())
        except OSError as error:
            raise store_error("read", path, error) from error
        self._answers.sign()
        self._index.sign()

    def sum_up(self, summary: JsonObject) -> None:
        """Write `summary.json`.

        Raises:
            StoreError: the system refuses.
        """
        content = self._directory.replace(SUMMARY, summary)
        if self._watched is not None:
            self._watched.wrote(SUMMARY, content)

    def restored(self) -> tuple[str, ...]:
        """Put to right what something else wrote to the files of the run since it began; what that was, for people.

        What is buffered is written out first.

        Raises:
            StoreError: the system refuses.
        """
        if self._watched is None:
            return ()
        self._beat()
        try:
            found = [*self._watched.restored()]
        except OSError as error:
            raise store_error("restore", self._path, error) from error
        rows, answers = self._index.restore(), self._answers.restore()
        if answers is not None:
            self._directory.lock_again()
            found.append(_of_answers(answers))
            if answers.lost:  # what vouches for the rows may be among it, and the rows are known
                lines = ((key_of_row(line), line.rstrip(b"\n")) for _, line in self._lines())
                at_ms = self._elapsed_ms()
                self._answers.append(b"".join(row_seal(key, line, at_ms) for key, line in lines if key is not None))
        if rows is not None:
            append_private(self._path / REJECTED, rows.foreign)
            self._watched.appended(REJECTED)
            found.append(_of_rows(rows))
        return tuple(found)

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

    def _elapsed_ms(self) -> float:
        return (self._clock() - self._began_s) * 1000

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


def _of_rows(found: Restored) -> str:
    """Messages about rows that something else changed."""
    told = []
    if found.foreign:
        names = dict.fromkeys(name for line in found.foreign if (name := case_of_row(line)) is not None)
        listed = ", ".join([*names][:_NAMED]) + (" and others" if len(names) > _NAMED else "")
        whose = f" ({listed})" if names else ""
        told.append(f"{_lines(len(found.foreign))}{whose} not written by agentv, moved to {REJECTED}")
    if found.lost:
        rows = "1 row is" if found.lost == 1 else f"{found.lost:,} rows are"
        told.append(f"{rows} lost; --resume grades their trials again from the answers")
    return f"{INDEX} was changed: {'; '.join(told) or 'its rows are in their place again'}"


def _of_answers(found: Restored) -> str:
    told = []
    if found.foreign:
        told.append(f"{_lines(len(found.foreign))} not written by agentv, removed")
    if found.lost:
        told.append(f"{_lines(found.lost)} lost; --resume makes these calls again")
    return f"{JOURNAL} was changed: {'; '.join(told) or 'its lines are in their place again'}"


def _lines(number: int) -> str:
    return "1 line" if number == 1 else f"{number:,} lines"


def _rejected(rows: int) -> str:
    if rows == 1:
        return f"{INDEX}: 1 row was changed after it was written: moved to {REJECTED}; its trial is graded again"
    return (
        f"{INDEX}: {rows:,} rows were changed after they were written: moved to {REJECTED}; their trials are "
        "graded again"
    )


def _mend(directory: RunDirectory) -> Iterator[str]:
    """Cut torn ends, and make sure that the journal is ours; what was cut, in words."""
    for name, whole in ((JOURNAL, _is_journal_line), (INDEX, _is_json), (HISTORY, _is_json)):
        cut = cut_torn_end(directory.path / name, whole)
        if cut:
            yield f"{directory.path / name}: removed {cut} bytes of an incomplete line"
    for _, line in read_lines(directory.path / JOURNAL):
        if line != HEADER:
            raise StoreError(f"{directory.path / JOURNAL} is not a journal of format {VERSION}")
        return


def _is_journal_line(line: bytes) -> bool:
    return line + b"\n" == HEADER or unsealed(line) is not None


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
