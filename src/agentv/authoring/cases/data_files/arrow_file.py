"""Parquet and Arrow files, and the text files of datasets, read batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentv.authoring.cases.data_files.arrow_values import Convert, UnsupportedTypeError, conversion, converted
from agentv.authoring.cases.data_files.files import PARQUET
from agentv.authoring.cases.data_files.rows import LARGEST_VALUE, TableRow, Value, WrongValue, report_unreadable
from agentv.authoring.source.report import Report
from agentv.model.values.span import Span

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = (".csv", ".jsonl", ".json")
_KINDS = {
    ".csv": "a CSV file",
    ".jsonl": "a JSON Lines file",
    ".json": "a JSON Lines file",
    ".parquet": "a Parquet file",
}

_END = b"\xff\xff\xff\xff\0\0\0\0"
"""The end of an Arrow stream."""

ROWS = 1024
"""Rows that are turned into values at once."""

LARGEST_BATCH = 64_000_000
"""Bytes of text in such rows; where they are more, there are fewer rows."""


class ArrowTable:
    """A Parquet file, an Arrow file or stream, or a text file of a dataset.

    Args:
        path: of the file.
    """

    code = "bad-table"
    header_line = 1

    def __init__(self, path: str) -> None:
        self.path = path
        self._converts: list[Convert | None] = []

    def header(self, report: Report) -> Sequence[str] | None:
        """The names of the columns; reports those whose type no value of a case can have."""
        try:
            schema, _ = _opened(self.path)
            return self._names(schema, report.section())
        except _errors() as error:
            report_unreadable(self.path, _message(self.path, error), report)
            return None

    def _names(self, schema: pa.Schema, report: Report) -> Sequence[str] | None:
        self._converts = []
        for place, field in enumerate(schema, 1):
            try:
                self._converts.append(conversion(field.type))
            except UnsupportedTypeError as error:
                at = Span(self.path, 1, place, 1, place)
                message = f"column '{field.name}' has the type {error}, which has no form in JSON"
                report.error("bad-table", at, message, hint=error.hint)
        return None if report.failed else [field.name for field in schema]

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value]]]:
        """The rows, counted from 1."""
        number = 0
        try:
            _, batches = _opened(self.path)
            for batch in batches:
                for values in self._values(batch):
                    number += 1
                    yield number, values
        except _errors() as error:
            report_unreadable(self.path, f"after row {number}: {_message(self.path, error)}", report)

    def place(self, row: TableRow, column: int | None) -> str:
        """The row by its number; a column is named by what refers to it."""
        del column
        return f"row {row.line}"

    def _values(self, batch: pa.RecordBatch) -> Iterator[Sequence[Value]]:
        batch.validate(full=True)  # what a file says of its own memory is not believed
        for start in range(0, batch.num_rows, ROWS):
            for part in _in_bounds(batch.slice(start, ROWS)):
                columns = [self._column(column, place) for place, column in enumerate(part.columns)]
                yield from zip(*columns, strict=True) if columns else ([()] * part.num_rows)

    def _column(self, column: pa.Array, place: int) -> list[Value]:
        if _widest(column) > LARGEST_VALUE:  # alone in its part
            return [WrongValue(f"this text is longer than {LARGEST_VALUE // 1_000_000} MB")] * len(column)
        convert, values = self._converts[place], _in_microseconds(column).to_pylist()
        return values if convert is None else [converted(value, convert) for value in values]


def _in_microseconds(column: pa.Array) -> pa.Array:
    """A column whose times Python can hold; those with nanoseconds are refused."""
    import pyarrow as pa

    kind = column.type
    if "[ns" not in str(kind):
        return column
    try:
        return column.cast(_rounded(kind))
    except pa.ArrowInvalid as error:
        raise ValueError(f"a time has nanoseconds; round the column to microseconds ({error})") from None


def _rounded(kind: pa.DataType) -> pa.DataType:
    """The type with microseconds in place of nanoseconds, at every depth."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if t.is_time64(kind):
        return pa.time64("us")
    if t.is_struct(kind):
        return pa.struct([field.with_type(_rounded(field.type)) for field in kind])
    if t.is_map(kind):
        return pa.map_(kind.key_type, _rounded(kind.item_type))
    is_list = t.is_list(kind) or t.is_fixed_size_list(kind) or t.is_large_list(kind)
    return pa.large_list(_rounded(kind.value_type)) if is_list else kind


def _opened(path: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    suffix = Path(path).suffix
    if suffix in PARQUET:
        return _parquet(path)
    if suffix in _TEXTS:
        return _text(path, suffix)
    import pyarrow as pa

    source = pa.OSFile(path)  # not mapped: a file that gets shorter would end the process
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, _to_its_end(path, stream)
    return file.schema, (file.get_batch(place) for place in range(file.num_record_batches))


def _to_its_end(path: str, stream: pa.RecordBatchStreamReader) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, which ends with a mark: one that was cut between two batches would read as whole.

    Source: Arrow columnar format, "IPC streaming format".
    """
    yield from stream
    with Path(path).open("rb") as file:
        file.seek(-min(len(_END), Path(path).stat().st_size), os.SEEK_END)
        if file.read() != _END:
            raise ValueError("it has no end mark: it was cut off, or its writer was not closed")


def _text(path: str, suffix: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """A file whose types are found out, as of datasets on the Hub."""
    import pyarrow as pa
    from pyarrow import csv, json

    with pa.OSFile(path) as file:
        begin = file.read(64).lstrip()
    if suffix == ".json" and begin.startswith(b"["):
        raise ValueError("it is one list; only JSON with one object per line is read")
    reader = csv.open_csv(path) if suffix == ".csv" else json.open_json(path)
    return reader.schema, iter(reader)


def _parquet(path: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow.parquet as pq
    import pyarrow.types as t

    with pq.ParquetFile(path) as file:
        names = [field.name for field in file.schema_arrow if t.is_string(field.type) or t.is_large_string(field.type)]
    # a text that is repeated a million times is one text in the file, and stays one in memory
    file = pq.ParquetFile(path, read_dictionary=names)

    def batches() -> Iterator[pa.RecordBatch]:
        with file:
            yield from file.iter_batches(batch_size=ROWS)

    return file.schema_arrow, batches()


def _in_bounds(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in parts whose texts fit into memory."""
    if batch.num_rows <= 1 or sum(map(_bytes, batch.columns)) <= LARGEST_BATCH:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _in_bounds(batch.slice(0, half))
    yield from _in_bounds(batch.slice(half))


def _lengths(column: pa.Array) -> Any:
    """The bytes of each text of a column; None: it holds no texts."""
    import pyarrow.compute as pc
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        lengths = _lengths(column.dictionary)
        return None if lengths is None else lengths.take(column.indices)
    if t.is_string(column.type) or t.is_large_string(column.type):
        return pc.binary_length(column)
    return None


def _bytes(column: pa.Array) -> int:
    import pyarrow.compute as pc

    lengths = _lengths(column)
    return int(column.nbytes) if lengths is None else int(pc.sum(lengths).as_py() or 0)


def _widest(column: pa.Array) -> int:
    import pyarrow.compute as pc

    lengths = _lengths(column)
    return 0 if lengths is None else int(pc.max(lengths).as_py() or 0)


def _errors() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, MemoryError, ValueError, KeyError)  # the last: an unknown time zone


def _message(path: str, error: Exception) -> str:
    kind = _KINDS.get(Path(path).suffix, "an Arrow file")
    return f"this is not {kind} that can be read: {str(error) or type(error).__name__}"
