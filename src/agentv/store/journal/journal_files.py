"""The two files that a run appends to: `journal.jsonl` and `index.jsonl`.

`append_answer` returns after write(2), and the answer is on disk at most 100 ms later. Rows are buffered. A row is
written after its checksum in the journal, because it does not count without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Lock, Thread

import msgspec
from msgspec import Struct, field

from agentv.errors import StoreError
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, REJECTED
from agentv.store.files.lines import LineFile, cut_torn_end, move_lines, read_lines
from agentv.store.journal.answers import (
    HEADER,
    VERSION,
    discard_line,
    row_checksum_line,
    summary_checksum_line,
    verified,
)


class BackgroundFlusher(Struct):
    """A thread that calls `work` soon after `wake`, at most once in `every_s` seconds.

    Attributes:
        failure: the error raised by `work`, after which it is not called again.
    """

    work: Callable[[], None]
    every_s: float
    failure: StoreError | None = None
    _wanted: Event = field(default_factory=Event)
    _stopping: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def wake(self) -> None:
        """Request a call of `work`."""
        if not self._wanted.is_set():
            self._wanted.set()
            if self._thread is None:
                self._thread = Thread(target=self._run, name="agentv-store", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop the thread after its current work, and wait for it."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self.failure is None:
            self._wanted.wait()
            if self._stopping.is_set():
                return
            self._wanted.clear()
            try:
                self.work()
            except StoreError as error:
                self.failure = error
            self._stopping.wait(self.every_s)


SYNC_EVERY_S = 0.1
"""Seconds between two fsyncs of the journal, and maximum time of a row in the buffer."""

BUFFERED_BYTES = 256_000
"""Size of buffered rows from which they are written without waiting for the next flush."""


class JournalFiles:
    """The journal and the index of a run, open for appending.

    Args:
        run: directory of the run.

    Raises:
            StoreError: a file cannot be opened. Methods raise it if a file cannot be read or written.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._answers = LineFile(run / JOURNAL)
        self._index = LineFile(run / INDEX)
        self._rows: list[bytes] = []
        self._checksums: list[bytes] = []
        self._buffered = 0
        self._lock = Lock()
        self._open = True
        self._flusher = BackgroundFlusher(self.flush, SYNC_EVERY_S)
        if self._answers.size == 0:
            self._answers.append(HEADER)

    def check(self) -> None:
        """Raise the error of the last flush in the background, if it failed.

        Raises:
            StoreError: the flush failed.
        """
        if self._flusher.failure is not None:
            raise self._flusher.failure

    def append_answer(self, line: bytes) -> None:
        """Append the line of an answer to the journal."""
        self.check()
        self._answers.append(line)
        self._flusher.wake()

    def append_row(self, key: str, row: bytes, at_ms: float) -> None:
        """Buffer a row and its checksum.

        Args:
            key: key of the trial.
            row: line of the index, without the line end.
            at_ms: time since the run started.
        """
        with self._lock:
            self._rows.append(row)
            self._checksums.append(row_checksum_line(key, row, at_ms))
            self._buffered += len(row)
        if self._buffered >= BUFFERED_BYTES:
            self.write_rows()
        else:
            self._flusher.wake()

    def discard_answers(self, cases: Sequence[str]) -> None:
        """Record in the journal, and on disk, that earlier answers for these cases are discarded."""
        self._answers.append(discard_line(cases))
        self._answers.sync()

    def append_summary_checksum(self, summary: bytes) -> None:
        """Write buffered rows, then record the checksum of their `summary.json` in the journal, and on disk."""
        self.write_rows()
        self._answers.append(summary_checksum_line(summary, self._index.size))
        self._answers.sync()

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of the index, each with its number from 1, without buffered ones."""
        return read_lines(self._run / INDEX)

    def move_rows(self, chosen: Callable[[int, bytes], bool], file: str) -> int:
        """Move rows to another file of the run, and return their number.

        Args:
            chosen: decides whether to move a row, from the number of its line and the line without the line end.
            file: name of the other file.
        """
        self._index.close()
        try:
            return move_lines(self._run / INDEX, chosen, self._run / file)
        finally:
            self._index = LineFile(self._run / INDEX)

    def write_rows(self) -> None:
        """Write the buffered rows, after their checksums. If that fails, they stay buffered."""
        with self._lock:
            if self._rows:
                self._answers.append(b"".join(self._checksums))
                self._index.append(b"\n".join(self._rows) + b"\n")
                self._rows.clear()
                self._checksums.clear()
                self._buffered = 0

    def flush(self) -> None:
        """Write the buffered rows, and flush the journal to disk."""
        self.write_rows()
        self._answers.sync()

    def close(self) -> None:
        """Write the buffered rows, flush both files to disk, and close them."""
        if not self._open:
            return
        self._open = False
        self._flusher.stop()
        with ExitStack() as closing:
            closing.callback(self._answers.close)
            closing.callback(self._index.close)
            self.flush()
            self._index.sync()


def cut_torn_lines(run: Path) -> Iterator[str]:
    """Remove incomplete last lines, and yield a message for each.

    Raises:
        StoreError: the file is not a journal, or a file cannot be read or written.
    """
    for name, is_whole in ((JOURNAL, _is_journal_line), (INDEX, _is_json), (HISTORY, _is_json)):
        cut = cut_torn_end(run / name, is_whole)
        if cut:
            yield f"{run / name}: removed {cut} bytes of an incomplete line"
    for _, line in read_lines(run / JOURNAL):
        if line != HEADER:
            raise StoreError(f"{run / JOURNAL} is not a journal of format {VERSION}")
        return


def _is_journal_line(line: bytes) -> bool:
    return line + b"\n" == HEADER or verified(line) is not None


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def quarantine_message(rows: int) -> str:
    """Return the message about rows that were moved to `rejected.jsonl` because their checksum is wrong."""
    if rows == 1:
        return f"{INDEX}: 1 row was changed after it was written: moved to {REJECTED}; its trial is graded again"
    reason = "rows were changed after they were written"
    return f"{INDEX}: {rows:,} {reason}: moved to {REJECTED}; their trials are graded again"
