"""Reading of rows from the files of a run, and finding those that were replaced by later rows."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from struct import Struct as Packed
from typing import Any, TypeVar

import msgspec

from agentv.errors import StoreError
from agentv.model.run.row import FailureRow, Row, RowKey
from agentv.model.run.trial import SCHEMA_VERSION, Status
from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.model.values.response import RUN_INTERRUPTED
from agentv.model.values.values import JsonObject, objects_in
from agentv.store.files.directory import HISTORY, INDEX
from agentv.store.files.encoding import decoder_of
from agentv.store.files.lines import lines_at, read_lines, read_placed_lines
from agentv.store.files.whole_file import as_store_error

T = TypeVar("T")


class _Version(msgspec.Struct, gc=False):
    schema_version: int = SCHEMA_VERSION


_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_INTERRUPTED = f'"error":{{"code":"{RUN_INTERRUPTED}"'.encode()
"""Start of the error in the row of an interrupted trial. It cannot occur in texts, where quotes are escaped."""


class RowHead(RowKey, gc=False):
    """The keys of a row that say how its trial ended, for readers that do not need the rest."""

    status: Status = "skipped"
    error: FailureRow | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def is_finished(self) -> bool:
        """Whether the trial passed, failed or errored, and need not run again.

        Interrupted trials run again, and so do those that stopped a target: its problem, such as a wrong key, is
        presumably fixed when the run is resumed.
        """
        error = self.error
        again = error is not None and (error.stops or error.code == RUN_INTERRUPTED)
        return self.status != "skipped" and not again


K = TypeVar("K", Row, RowHead)


def row_in(line: bytes) -> Row:
    """Return the row in a line.

    Raises:
        ValueError: it is not a row; the message says why.
        StoreError: a newer agentv wrote it.
    """
    return _row_as(Row, line)


def _row_as(kind: type[K], line: bytes) -> K:
    try:
        row = decoder_of(kind).decode(line)
    except _DECODE_ERRORS as error:
        refuse_newer(_version_of(line))  # a newer version may have another structure
        raise ValueError(str(error)) from error
    refuse_newer(row.schema_version)
    return row


def _version_of(line: bytes) -> int:
    try:
        return decoder_of(_Version).decode(line).schema_version
    except _DECODE_ERRORS:
        return SCHEMA_VERSION


def refuse_newer(version: int) -> None:
    """Raise a `StoreError` if a row has a newer format version than ours."""
    if version > SCHEMA_VERSION:
        raise StoreError(f"written by a newer agentv (format {version}; this one reads up to {SCHEMA_VERSION})")


def key_in(line: bytes) -> RowKey | None:
    """Return the keys that identify the trial of a line of `index.jsonl`, or None if it is not a row."""
    try:
        return decoder_of(RowKey).decode(line)
    except _DECODE_ERRORS:
        return None


def key_of_row(line: bytes) -> str | None:
    """Return the trial's key in a line of `index.jsonl`, or None if it is not a row."""
    found = key_in(line)
    return found.key if found is not None else None


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of an `index.jsonl`; none if the file is missing. See `read_lines_as`."""
    return (row for _, row in read_placed_rows(path))


def read_placed_rows(path: Path, without: Container[int] = ()) -> Iterator[tuple[int, Row]]:
    """Yield (byte offset, row) for the rows of an `index.jsonl`. See `read_lines_as`."""
    return read_lines_as(row_in, path, without)


def read_lines_as(read: Callable[[bytes], T], path: Path, without: Container[int] = ()) -> Iterator[tuple[int, T]]:
    """Yield (byte offset, content) for each line of a file of rows.

    An incomplete last line is skipped, because the writer was interrupted or is still writing it.

    Args:
        read: returns the content of a line; raises as `row_in` does.
        path: path of the file; a missing file has no lines.
        without: numbers of lines to skip, from 1.

    Raises:
        StoreError: a line is not a row, or a newer agentv wrote it; the message names the line.
    """
    for place, number, line in read_placed_lines(path):
        if number in without:
            continue
        try:
            found = read(line)
        except ValueError as error:
            if is_torn(line):
                return
            raise not_a_row(path, number, error) from error
        except StoreError as error:
            raise StoreError(f"{path}:{number}: {error}") from error
        yield place, found


def is_torn(line: bytes) -> bool:
    """Whether a line has no line end, because the writer was interrupted or is still writing it."""
    return not line.endswith(b"\n")


def not_a_row(path: Path, number: int, error: Exception) -> StoreError:
    """Return the error for a line that is not a row."""
    return StoreError(f"{path}:{number}: not a row of a run: {error}")


def read_heads(path: Path) -> Iterator[RowHead]:
    """Yield the heads of the rows of an `index.jsonl`. See `read_lines_as`."""
    return (head for _, head in read_lines_as(partial(_row_as, RowHead), path))


def finished_keys(path: Path) -> Iterator[str]:
    """Yield the keys of the trials that need not run again. See `read_lines_as`."""
    return (head.key for head in read_heads(path) if head.is_finished)


def count_interrupted(path: Path) -> int:
    """Return the number of rows of interrupted trials, which run again.

    Raises:
        StoreError: the file cannot be read.
    """
    with as_store_error("read", path), suppress(FileNotFoundError), path.open("rb") as file:
        end = b""
        while piece := file.read(_BLOCK_BYTES):
            if _INTERRUPTED in end + piece:
                file.seek(0)
                return sum(map(is_interrupted_row, file))
            end = piece[-len(_INTERRUPTED) :]
    return 0


_BLOCK_BYTES = 1 << 16
"""Size of a block to search, small enough that its memory is reused."""


def is_interrupted_row(line: bytes) -> bool:
    """Whether a line is the row of a trial that was interrupted."""
    return _INTERRUPTED in line


def replaced_lines(path: Path) -> frozenset[int]:
    """Return the numbers, from 1, of lines whose trial has a later row. They are few, because reruns move them away.

    Raises:
        StoreError: the file cannot be read.
    """
    numbers = NumberedHashes()
    last: list[int] = []
    replaced: set[int] = set()
    for number, line in read_lines(path):
        key = key_in(line)
        if key is None:
            continue  # readers of the rows report it
        place = numbers.number(text_hash(key.trial))
        if place == len(last):
            last.append(number)
        else:
            replaced.add(last[place])
            last[place] = number
    return frozenset(replaced)


def replaced_rows(run: Path) -> Iterator[Row]:
    """Yield the rows of `history.jsonl` without duplicates and without those that are also in `index.jsonl`.

    A process that is killed while moving rows leaves them in both files, and the next one moves them again.

    Raises:
        StoreError: a file cannot be read, or a line is not a row; the message names it.
    """
    path = run / HISTORY
    pending = {hash(line) for _, line in read_lines(path)}
    if not pending:
        return
    pending.difference_update(hash(line) for _, line in read_lines(run / INDEX))
    for number, line in read_lines(path):
        if hash(line) in pending:
            pending.discard(hash(line))
            try:
                yield row_in(line)
            except ValueError as error:
                if is_torn(line):
                    return  # interrupted while moving rows, which are still in the index
                raise not_a_row(path, number, error) from error


_PACKED = Packed(">6I")
_PLACE = Packed(">Q")


class FileOrder:
    """Sort order of rows: by eval file, case, prompt, target, variant and sample, each in the order of the suites.

    Args:
        record: content of the run's `run.json`.
        root: absolute path of the repository root, for absolute paths of rows; empty if paths of rows are relative.
    """

    def __init__(self, record: JsonObject, root: str = "") -> None:
        self._root = f"{root}/"
        suites = objects_in(record.get("suites"))
        self._suites = _ranks((one.get("path") or None, one.get("name")) for one in suites)
        self._prompts = _ranks(_names(suites, "prompts", "id"))
        self._targets = _ranks(_names(suites, "targets", "name"))
        self._variants = _ranks(_names(suites, "variants", "name"))

    def key(self, row: Row) -> bytes:
        """Return the sort key of a row. Rows without the position of their case keep the order of the file."""
        suite = self.suite(row.eval_path, row.suite)
        if not row.position:
            return _PACKED.pack(suite, 0, 0, 0, 0, 0)
        column = self.column(row.prompt_id, row.target, row.variant)
        return _PACKED.pack(suite, row.position, *column, row.sample)

    def suite(self, path: str | None, name: str) -> int:
        """Return the rank of a suite."""
        return _rank(self._suites, (path and path.removeprefix(self._root), name))

    def column(self, prompt: str | None, target: str, variant: str | None) -> tuple[int, int, int]:
        """Return the ranks of a prompt, a target and a variant."""
        return _rank(self._prompts, prompt), _rank(self._targets, target), _rank(self._variants, variant)


def places_in_order(
    rows: Iterable[tuple[int, Row]], record: JsonObject, rank: Callable[[Row], int] = lambda _: 0
) -> array[int]:
    """Return the byte offsets of rows of an `index.jsonl`, in the order of the eval files.

    Args:
        rows: (byte offset, row) of each row.
        record: content of the run's `run.json`.
        rank: a number from 0 to 255 for each row; rows with lower ones come first.
    """
    order = FileOrder(record)
    keys = [bytes((rank(row),)) + order.key(row) + _PLACE.pack(place) for place, row in rows]
    keys.sort()
    return array("q", (_PLACE.unpack(key[-_PLACE.size :])[0] for key in keys))


def variable_names(index: Path, places: Iterable[int]) -> list[str]:
    """Return the names of the variables in rows, in order of first appearance.

    Args:
        index: path of the `index.jsonl`.
        places: byte offsets of the rows.
    """
    return list(dict.fromkeys(name for _, line in lines_at(index, places) for name in row_in(line).vars))


def _names(suites: Iterable[Mapping[str, Any]], kind: str, name: str) -> Iterator[Any]:
    return (one.get(name) for suite in suites for one in objects_in(suite.get(kind)))


def _ranks(names: Iterable[Any]) -> dict[Any, int]:
    return {name: rank for rank, name in enumerate(dict.fromkeys(names))}


def _rank(ranks: dict[Any, int], name: Any) -> int:
    """Return the rank of a name; new names are ranked after all others."""
    return ranks.setdefault(name, len(ranks))
