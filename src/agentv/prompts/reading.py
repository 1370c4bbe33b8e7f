"""Read a prompt's log. Invalid lines are skipped and reported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from agentv.errors import Diagnostic, StoreError
from agentv.model.suite.exam import ExamRow
from agentv.model.values.values import Span
from agentv.prompts.rows import exam_row_of, in_time, is_object, time_at_begin
from agentv.user_code.files import store_error

LOG = ".eval.jsonl"
"""Name of the log in the prompt's directory."""

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Log:
    """The exam attempts of a prompt, oldest first, and diagnostics on invalid lines.

    An incomplete last line is only a warning: the next exam moves it away.
    """

    rows: tuple[ExamRow, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def log_path(directory: str) -> Path:
    """Return the path of a prompt's log."""
    return Path(directory) / LOG


def read_log(directory: str) -> Log:
    """Return the log of a prompt; an empty one if the file is missing.

    Raises:
        StoreError: the log cannot be read.
    """
    path = log_path(directory)
    rows: list[ExamRow] = []
    diagnostics: list[Diagnostic] = []
    for number, line, ended in _lines(_read(path)):
        found = exam_row_of(line, number)
        if isinstance(found, ExamRow):
            rows.append(found)
            continue
        span = Span(str(path), number, found.column, number, found.column + 1)
        if ended or is_object(line):
            diagnostics.append(Diagnostic("bad-log", found.message, span, hint=found.hint))
        else:
            message = "the line is incomplete: an exam was stopped while writing it"
            diagnostics.append(Diagnostic("bad-log", message, span, "warning", "the next exam moves it away"))
    return Log(tuple(in_time(rows)), tuple(diagnostics))


def last_exam_row(directory: str) -> ExamRow | None:
    """Return the most recent row, or None. Invalid lines are ignored.

    If all lines begin with their times, only a few of them are parsed.

    Raises:
        StoreError: the log cannot be read.
    """
    timed = [(time_at_begin(line), number, line) for number, line, _ in _lines(_read(log_path(directory)))]
    if any(time is None and isinstance(exam_row_of(line, number), ExamRow) for time, number, line in timed):
        found = (exam_row_of(line, number) for _, number, line in timed)
        rows = in_time(row for row in found if isinstance(row, ExamRow))
        return rows[-1] if rows else None
    known = sorted(((time, number, line) for time, number, line in timed if time is not None), key=lambda one: one[0])
    for _, number, line in reversed(known):
        exam_row = exam_row_of(line, number)
        if isinstance(exam_row, ExamRow):
            return exam_row
    return None


def _lines(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the lines that are not blank: number from 1, bytes without the line end, and whether it has one."""
    *whole, rest = data.removeprefix(BOM).split(b"\n")
    for number, line in enumerate(whole, 1):
        if line and not line.isspace():
            yield number, line.rstrip(b"\r"), True
    if rest and not rest.isspace():
        yield len(whole) + 1, rest, False


def _read(path: Path) -> bytes:
    """Return the bytes of a log; empty if the file is missing."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)  # opening a pipe would wait for a writer

    try:
        with open(path, "rb", opener=opener) as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                raise StoreError(f"cannot read {path}: it is not a file")
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise store_error("read", path, error) from error
