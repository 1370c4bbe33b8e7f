"""Tables of labels that people filled in: CSV or JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentv.errors import StoreError, UsageError
from agentv.user_code.os_errors import store_error

_NEEDED = ("case", "assertion", "label", "output_sha256", "rubric_sha256")


def label_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a file, each with its number from 1.

    Raises:
        UsageError: the file is no table, or columns are missing.
        StoreError: it cannot be read.
    """
    form = checked_form(path)
    try:
        text = path.read_text(encoding="utf-8-sig", errors="strict")
    except UnicodeDecodeError as error:
        raise StoreError(f"cannot read {path}: it is not UTF-8; save it as CSV in UTF-8") from error
    except OSError as error:
        raise store_error("read", path, error) from error
    if form == ".jsonl":
        yield from _json_rows(path, text)
        return
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    csv.field_size_limit(1 << 28)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    _check_columns(path, reader.fieldnames or ())
    try:
        for row in reader:
            yield reader.line_num, {name: cell or "" for name, cell in row.items() if isinstance(name, str)}
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not CSV: {error}") from error


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise UsageError(f"{path}:{number}: expected an object")
        if number == 1:
            _check_columns(path, list(row))
        yield number, {str(name): "" if cell is None else str(cell) for name, cell in row.items()}


def _check_columns(path: Path, names: Sequence[str]) -> None:
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        hint = "export again with 'agentv label RUN --export FILE', and keep its columns"
        raise UsageError(f"{path}: no column {', '.join(missing)}", hint)


def checked_form(path: Path) -> str:
    """The format of a file by its name: `.csv` or `.jsonl`.

    Raises:
        UsageError: it is another one.
    """
    form = path.suffix.lower()
    if form not in (".csv", ".jsonl"):
        raise UsageError(f"cannot tell the format of {path}", "name it .csv or .jsonl")
    return form
