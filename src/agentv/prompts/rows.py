"""Read and write rows of `.eval.jsonl`: an exam attempt is one line of JSON (SPEC section 11).

Rows are ordered by their times, since a merge that keeps both sides may mix the lines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import asdict

from agentv.model.suite.exam import ExamRow
from agentv.model.values.formatting import shorten
from agentv.model.values.json_text import without_breaks
from agentv.prompts.gates import prompt_sha256

_BEGIN = re.compile(rb'\{\s*"ts"\s*:\s*"([^"\\]*)"')


def time_of(ts: str) -> float | None:
    """Return an ISO 8601 time, by default in UTC, as seconds since 1970; None for any other text and for a date."""
    if "T" not in ts and " " not in ts:
        return None
    try:
        found = datetime.fromisoformat(ts)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def in_time(rows: Iterable[ExamRow]) -> list[ExamRow]:
    """Return the rows sorted by time; rows with the same time keep their order.

    A row without a time, as eva may write it, stays after the row before it.
    """
    timed = []
    last = float("-inf")
    for row in rows:
        time = time_of(row.ts)
        last = last if time is None else time
        timed.append((last, row))
    return [row for _, row in sorted(timed, key=lambda one: one[0])]


def time_at_begin(line: bytes) -> float | None:
    """Return the time at the beginning of a line, where agentv writes it, or None; the rest is not parsed."""
    found = _BEGIN.match(line)
    return time_of(found[1].decode(errors="replace")) if found else None


_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHOWN = 40
"""Maximum length of a value quoted in a message."""

_MERGE_MARKS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")


@dataclass(frozen=True, slots=True)
class InvalidRow:
    """Why a line is not a valid row.

    Attributes:
        column: column in characters, from 1.
    """

    message: str
    column: int = 1
    hint: str | None = None


def line_of(exam_row: ExamRow) -> bytes:
    """Return the row as a line with its line end; keys in the order of SPEC section 11.

    With a lone surrogate, which UTF-8 cannot encode, the line is written in ASCII with escapes.
    """
    row = asdict(exam_row) | {"files": dict(exam_row.files)}
    del row["line"]
    try:
        return without_breaks(json.dumps(row, ensure_ascii=False).encode()) + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row).encode() + b"\n"


def exam_row_of(line: bytes, number: int) -> ExamRow | InvalidRow:
    """Return the exam attempt in a line, or why the line is invalid.

    Args:
        line: the line without its line end.
        number: number of the line in the log.
    """
    twice: list[str] = []
    row = _json(line, twice)
    if isinstance(row, InvalidRow):
        return row
    if twice:
        return InvalidRow(f"'{shorten(twice[0], _SHOWN)}' appears twice", _column(line, twice[0], last=True))
    for key, (wanted, holds) in _KEYS.items():
        if key not in row and key in _NEEDED:
            return InvalidRow(f"a row needs '{key}'")
        if key in row and not holds(row[key]):
            return InvalidRow(f"'{key}' must be {wanted}, found {_shown(row[key])}", _column(line, key))
    known = {key: row[key] for key in _KEYS if key in row}
    known |= {"failed_cases": tuple(known["failed_cases"]), "files": known.get("files") or {}}
    exam_row = ExamRow(**known, line=number)
    for key, wrong in _contradictions(exam_row):
        return InvalidRow(wrong, _column(line, key))
    return exam_row


def is_object(line: bytes) -> bool:
    """Return whether a line is a complete JSON object."""
    return not isinstance(_json(line, []), InvalidRow)


def _json(line: bytes, twice: list[str]) -> dict[str, Any] | InvalidRow:
    """Return the JSON object in a line; keys that are repeated in it or in a nested object are added to `twice`."""

    def paired(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return found

    if line.startswith(_MERGE_MARKS):
        return InvalidRow("a merge conflict marker", hint="keep the rows of both sides, and remove the markers")
    try:
        found = json.loads(line.decode(), object_pairs_hook=paired)
    except UnicodeDecodeError as error:
        return InvalidRow(f"not UTF-8 (byte {error.start + 1} of the line)")
    except json.JSONDecodeError as error:
        return InvalidRow(f"not JSON: {error.msg}", error.colno)
    except (ValueError, RecursionError):  # a number with thousands of digits, or thousands of brackets
        return InvalidRow("not valid JSON")
    return found if isinstance(found, dict) else InvalidRow(f"a row must be a JSON object, found {_shown(found)}")


def _contradictions(exam_row: ExamRow) -> Iterator[tuple[str, str]]:
    """Yield each contradiction in a row as key and message, so that a failed exam cannot look like a passed one."""
    if exam_row.passed > exam_row.total:
        yield "all_passed", f"{exam_row.passed} of {exam_row.total} passed"
    if exam_row.all_passed and (exam_row.passed < exam_row.total or exam_row.errored or exam_row.failed_cases):
        failed = exam_row.total - exam_row.passed or exam_row.errored or len(exam_row.failed_cases)
        yield "all_passed", f"'all_passed' is true, but {failed} of {exam_row.total} did not pass"
    if exam_row.prompt_sha256 is not None and exam_row.prompt_sha256 != prompt_sha256(exam_row.files):
        yield "prompt_sha256", "'prompt_sha256' does not match 'files'"
    if exam_row.run_id is not None and time_of(exam_row.ts) is None:
        yield "ts", f"with a 'run_id', 'ts' must be an ISO 8601 time, found {_shown(exam_row.ts)}"


def _column(line: bytes, key: str, *, last: bool = False) -> int:
    text = line.decode(errors="replace")
    return (text.rfind if last else text.find)(json.dumps(key)) + 1 or 1


def _shown(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), _SHOWN)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


_Kind = tuple[str, Callable[[object], bool]]
_BOOLEAN: _Kind = ("true or false", lambda value: isinstance(value, bool))
_COUNT: _Kind = ("a whole number of at least 0", lambda value: type(value) is int and value >= 0)
_TEXT_OR_NONE: _Kind = ("text", lambda value: value is None or isinstance(value, str))
_NEEDED: Final[Mapping[str, _Kind]] = {
    "ts": ("text", lambda value: isinstance(value, str)),
    "all_passed": _BOOLEAN,
    "total": _COUNT,
    "passed": _COUNT,
    "failed_cases": (
        "a list of texts",
        lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    ),
}
_FURTHER: Final[Mapping[str, _Kind]] = {
    "run_id": _TEXT_OR_NONE,
    "prompt_sha256": ("64 hexadecimal digits", lambda value: value is None or _is_digest(value)),
    "files": (
        "an object of sha256 digests",
        lambda value: value is None or (isinstance(value, dict) and all(map(_is_digest, value.values()))),
    ),
    "model": _TEXT_OR_NONE,
    "judge": _TEXT_OR_NONE,
    "errored": _COUNT,
    "partial": _BOOLEAN,
}
_KEYS = {**_NEEDED, **_FURTHER}
"""Key of a row → description and check of its value. Keys of newer versions are ignored."""
