"""The two files that a run appends to: `journal.jsonl` and `index.jsonl`.

An answer is with the system (write(2)) when `append_answer` returns, and on the disk at most 100 ms later. Rows are
buffered, and a row is written after the checksum that the journal holds of it: without one it does not count.
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
    """Does `work` soon after `wake`, and then at most once in `every_s` seconds.

    Attributes:
        failure: the error that the work failed with; nothing is done after it.
    """

    work: Callable[[], None]
    every_s: float
    failure: StoreError | None = None
    _wanted: Event = field(default_factory=Event)
    _stopping: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def wake(self) -> None:
        """There is something to do."""
        if not self._wanted.is_set():
            self._wanted.set()
            if self._thread is None:
                self._thread = Thread(target=self._beat, name="agentv-store", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread, once what it does now is done."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _beat(self) -> None:
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
"""Seconds between two fsyncs of the journal, and for which a row may stay in the buffer."""

BUFFERED_BYTES = 256_000
"""Bytes of rows that are written without waiting for the next flush."""


class JournalFiles:
    """The journal and the index of a run, open for appending.

    Args:
        run: the directory of the run.

    Raises:
        StoreError: a file cannot be opened; so for every method, when the system refuses.
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
        """Raise what the last flush in the background failed with.

        Raises:
            StoreError: it failed.
        """
        if self._flusher.failure is not None:
            raise self._flusher.failure

    def append_answer(self, line: bytes) -> None:
        """Append the line of an answer to the journal."""
        self.check()
        self._answers.append(line)
        self._flusher.wake()

    def append_row(self, key: str, row: bytes, at_ms: float) -> None:
        """Buffer a row, given without its line end, and its checksum.

        Args:
            key: of the trial.
            row: the line of the index.
            at_ms: time since the run began.
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
        """Note in the journal, on the disk, that the answers for these cases are not to be used again."""
        self._answers.append(discard_line(cases))
        self._answers.sync()

    def append_summary_checksum(self, summary: bytes) -> None:
        """Write what is buffered, and note in the journal, on the disk, which `summary.json` belongs to the rows."""
        self.write_rows()
        self._answers.append(summary_checksum_line(summary, self._index.size))
        self._answers.sync()

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """The lines of the index, each with its number from 1; what is buffered is not among them."""
        return read_lines(self._run / INDEX)

    def move_rows(self, chosen: Callable[[int, bytes], bool], file: str) -> int:
        """Move rows to another file of the run; how many.

        Args:
            chosen: whether a row moves, given the number of its line and the line without its end.
            file: name of the other file.
        """
        self._index.close()
        try:
            return move_lines(self._run / INDEX, chosen, self._run / file)
        finally:
            self._index = LineFile(self._run / INDEX)

    def write_rows(self) -> None:
        """Write the buffered rows, after their checksums. If the system refuses, they stay buffered for another try."""
        with self._lock:
            if self._rows:
                self._answers.append(b"".join(self._checksums))
                self._index.append(b"\n".join(self._rows) + b"\n")
                self._rows.clear()
                self._checksums.clear()
                self._buffered = 0

    def flush(self) -> None:
        """Write the buffered rows, and have the journal on the disk."""
        self.write_rows()
        self._answers.sync()

    def close(self) -> None:
        """Write what is buffered, have both files on the disk, and close them."""
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
    """Remove incomplete last lines; one sentence for each removed line.

    Raises:
        StoreError: the file is not a journal, or the system refuses.
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


def quarantined(rows: int) -> str:
    """Description of rows that were moved to `rejected.jsonl` because their checksum is wrong."""
    if rows == 1:
        return f"{INDEX}: 1 row was changed after it was written: moved to {REJECTED}; its trial is graded again"
    reason = "rows were changed after they were written"
    return f"{INDEX}: {rows:,} {reason}: moved to {REJECTED}; their trials are graded again"
