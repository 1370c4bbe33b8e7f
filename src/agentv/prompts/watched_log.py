"""A prompt's log during its exam: rows written or changed by the system under test are not evidence."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_ISREG

from agentv.errors import StoreError
from agentv.model.suite.exam import ExamRow
from agentv.model.values.formatting import plural
from agentv.prompts.disk import DISK, put, write_all
from agentv.prompts.order import time_of
from agentv.prompts.reading import LOG, log_path
from agentv.prompts.rows import exam_row_of
from agentv.user_code.os_errors import store_error

REJECTED = ".eval.jsonl.rejected"
"""Where rows go that cannot be of an exam."""

_CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class WatchedLog:
    """Content of a log when an exam began.

    Attributes:
        directory: of the prompt.
        before: its bytes.
        linked: it is a symbolic link.
    """

    directory: str
    before: bytes
    linked: bool = False

    @classmethod
    def of(cls, directory: str) -> WatchedLog:
        """The current content. A log that cannot be read is reported when the row is appended."""
        path = log_path(directory)
        return cls(directory, _bytes(path) or b"", path.is_symlink())

    def restored(self, run_id: str, now: datetime) -> tuple[str, ...]:
        """Put the log right before a row is appended to it; what was wrong, a sentence each.

        What stood there when the exam began stays. Of what has come since, a row that claims to be of this run, or of
        a time to come, is set aside; so is one of a time to come that stood there before, for it would stay the newest.

        Args:
            run_id: of the run that has not written its row yet.
            now: when it does.

        Raises:
            StoreError: the system refuses.
        """
        path = log_path(self.directory)
        found = _bytes(path)
        notes: list[str] = []
        rows = found or b""
        if not rows.startswith(self.before) or (path.is_symlink() and not self.linked):
            notes.append(f"{LOG} was changed or removed: its earlier rows are restored")
            rows = self.before + b"".join(line for line in _lines(rows) if line not in _lines(self.before))
        old = _lines(self.before)
        forged = [
            line
            for line in _lines(rows)
            if (_is_ahead(line, now + _CLOCKS_DIFFER) if line in old else _is_ahead(line, now) or _is_of(line, run_id))
        ]
        if forged:
            number = plural(len(forged), "row")
            notes.append(f"{number} in {LOG} not written by an exam: moved to {REJECTED}")
        if notes:
            data = b"".join(line for line in _lines(rows) if line not in forged)
            self._write(path, data, forged)
        return tuple(notes)

    def _write(self, path: Path, data: bytes, forged: list[bytes]) -> None:
        try:
            if forged:
                aside = path.with_name(REJECTED)
                content = (_bytes(aside) or b"") + b"".join(forged)
                put(DISK, aside, lambda descriptor: write_all(DISK, descriptor, content))
            put(DISK, path, lambda descriptor: write_all(DISK, descriptor, data))
        except OSError as error:
            raise store_error("restore", path, error) from error


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _exam_row(line: bytes) -> ExamRow | None:
    found = exam_row_of(line.strip(), 1) if line.strip() else None
    return found if isinstance(found, ExamRow) else None


def _is_ahead(line: bytes, of: datetime) -> bool:
    """Whether a row is of a later time, so that it would stay the newest whatever follows it."""
    found = _exam_row(line)
    when = None if found is None else time_of(found.ts)
    return when is not None and when > of.timestamp()


def _is_of(line: bytes, run_id: str) -> bool:
    found = _exam_row(line)
    return found is not None and found.run_id == run_id


def _bytes(path: Path) -> bytes | None:
    """The content of a file, or None if the path is not a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor has no path
        try:
            return file.read()
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error}") from error
