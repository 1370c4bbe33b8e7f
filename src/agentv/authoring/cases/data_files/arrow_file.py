"""Parquet and Arrow files, and the text files of datasets, read batch by batch by pyarrow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentv.authoring.cases.data_files.rows import TableRow, Value, WrongValue, report_unreadable
from agentv.authoring.source.files import PARQUET
from agentv.authoring.source.nodes import WrittenFloat
from agentv.authoring.source.report import Report

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS = {
    ".csv": "a CSV file",
    ".jsonl": "a JSON Lines file",
    ".json": "a JSON Lines file",
    ".parquet": "a Parquet file",
}
ROWS = 1024
"""Rows that are turned into values at once."""


class ArrowTable:
    """A Parquet file, an Arrow file or stream, or a text file of a dataset.

    Args:
        path: of the file.
    """

    code = "bad-table"
    header_line = 1

    def __init__(self, path: str) -> None:
        self.path = path

    def header(self, report: Report) -> Sequence[str] | None:
        """The names of the columns; None if the file cannot be read, which is reported."""
        try:
            return [str(name) for name in _opened(self.path)[0].names]
        except _errors() as error:
            report_unreadable(self.path, _message(self.path, error), report)
            return None

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value]]]:
        """The rows, counted from 1."""
        number = 0
        try:
            for batch in _opened(self.path)[1]:
                batch.validate(full=True)  # what a file says of its own memory is not believed
                for start in range(0, batch.num_rows, ROWS):
                    part = batch.slice(start, ROWS)
                    columns = [_values(column) for column in part.columns]
                    for values in zip(*columns, strict=True) if columns else [()] * part.num_rows:
                        number += 1
                        yield number, values
        except _errors() as error:
            report_unreadable(self.path, f"after row {number}: {_message(self.path, error)}", report)

    def place(self, row: TableRow, column: int | None) -> str:
        """The row by its number; a column is named by what refers to it."""
        del column
        return f"row {row.line}"


def _opened(path: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    suffix = Path(path).suffix
    if suffix in PARQUET:
        from pyarrow import parquet

        file = parquet.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(batch_size=ROWS)
    if suffix in _KINDS:  # of a dataset on the Hub; the types are inferred
        from pyarrow import csv, json

        reader = csv.open_csv(path) if suffix == ".csv" else json.open_json(path)
        return reader.schema, iter(reader)
    source = pa.OSFile(path)  # not mapped: a file that gets shorter would end the process
    try:
        found = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream)
    return found.schema, (found.get_batch(place) for place in range(found.num_record_batches))


def _values(column: pa.Array) -> list[Value]:
    import pyarrow.types as t

    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    if t.is_string(column.type) or t.is_integer(column.type) or t.is_boolean(column.type):
        return values
    if t.is_float32(column.type) or t.is_float16(column.type):
        import numpy as np

        # with the digits that it was written with: 0.1, not 0.10000000149011612
        values = [value if value is None else float(str(np.float32(value))) for value in values]
    return [_checked(value) for value in values]


def _checked(value: Any) -> Value:
    try:
        plain: Value = _plain(value)
    except ValueError as error:
        return WrongValue(str(error), "write null, convert the column to text or numbers, or drop it")
    return plain


def _plain(value: Any) -> Any:
    """A value of Python's as one of JSON's.

    Raises:
        ValueError: it has no form in JSON.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Decimal):
        number = WrittenFloat(f"{value:f}")
        if Decimal(repr(float(number))) != value:
            raise ValueError(f"{value:f} has more digits than a number keeps; store the column as text")
        return number
    found = {"nan": "NaN", "inf": "an infinite number", "-inf": "an infinite number"}.get(str(value))
    raise ValueError(f"{found or f'a value of the type {type(value).__name__}'} is not a value of JSON")


def _errors() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, MemoryError, ValueError, KeyError)  # the last: an unknown time zone


def _message(path: str, error: Exception) -> str:
    kind = _KINDS.get(Path(path).suffix, "an Arrow file")
    return f"this is not {kind} that can be read: {str(error) or type(error).__name__}"
