"""Rows read back from the files of a run, and which of them later rows replaced."""

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
from agentv.store.files.whole_file import refusals

T = TypeVar("T")


class _Version(msgspec.Struct, gc=False):
    schema_version: int = SCHEMA_VERSION


_NO_ROW = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_OF_INTERRUPTED = f'"error":{{"code":"{RUN_INTERRUPTED}"'.encode()
"""How a row begins its error; a text in which this stands has its quotes escaped."""


class RowHead(RowKey, gc=False):
    """How the trial of a row ended, for readers that do not need the rest."""

    status: Status = "skipped"
    error: FailureRow | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def is_finished(self) -> bool:
        """Whether the trial passed, failed or errored, and need not run again.

        Interrupted ones do, and those that stopped a target: whatever made it refuse everything, such as a wrong key,
        is fixed before the run is resumed.
        """
        error = self.error
        again = error is not None and (error.stops or error.code == RUN_INTERRUPTED)
        return self.status != "skipped" and not again


K = TypeVar("K", Row, RowHead)


def row_in(line: bytes) -> Row:
    """The row in a line.

    Raises:
        ValueError: it is not a row; the message says why.
        StoreError: a newer agentv wrote it.
    """
    return _row_as(Row, line)


def _row_as(kind: type[K], line: bytes) -> K:
    try:
        row = decoder_of(kind).decode(line)
    except _NO_ROW as error:
        refuse_newer(_version_of(line))  # which explains any other shape
        raise ValueError(str(error)) from error
    refuse_newer(row.schema_version)
    return row


def _version_of(line: bytes) -> int:
    try:
        return decoder_of(_Version).decode(line).schema_version
    except _NO_ROW:
        return SCHEMA_VERSION


def refuse_newer(version: int) -> None:
    """Raise a StoreError if the version of a row's format is above ours."""
    if version > SCHEMA_VERSION:
        raise StoreError(f"written by a newer agentv (format {version}; this one reads up to {SCHEMA_VERSION})")


def key_in(line: bytes) -> RowKey | None:
    """What identifies the trial of a line of `index.jsonl`; None if it is not a row."""
    try:
        return decoder_of(RowKey).decode(line)
    except _NO_ROW:
        return None


def key_of_row(line: bytes) -> str | None:
    """The trial key in a line of `index.jsonl`; None if it is not a row."""
    found = key_in(line)
    return found.key if found is not None else None


def read_rows(path: Path) -> Iterator[Row]:
    """Iterate over the rows of an `index.jsonl`; a missing file has none. See `read_lines_as`."""
    return (row for _, row in read_placed_rows(path))


def read_placed_rows(path: Path, without: Container[int] = ()) -> Iterator[tuple[int, Row]]:
    """The rows of an `index.jsonl`, each after the byte offset of its line. See `read_lines_as`."""
    return read_lines_as(row_in, path, without)


def read_lines_as(read: Callable[[bytes], T], path: Path, without: Container[int] = ()) -> Iterator[tuple[int, T]]:
    """What each line of a file of rows contains, after the byte offset of the line.

    An incomplete last line is skipped: its writer was interrupted, or is still writing.

    Args:
        read: returns what a line contains; raises as `row_in`.
        path: of the file; a missing file has no lines.
        without: numbers of lines, from 1, that are skipped.

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
    """Return true if a line has no end: its writer was cut off, or is about to write the rest."""
    return not line.endswith(b"\n")


def not_a_row(path: Path, number: int, error: Exception) -> StoreError:
    """The error for a line that cannot be read."""
    return StoreError(f"{path}:{number}: not a row of a run: {error}")


def read_heads(path: Path) -> Iterator[RowHead]:
    """How the trials of an `index.jsonl` ended. See `read_lines_as`."""
    return (head for _, head in read_lines_as(partial(_row_as, RowHead), path))


def finished_keys(path: Path) -> Iterator[str]:
    """The keys of the trials that need not run again. See `read_lines_as`."""
    return (head.key for head in read_heads(path) if head.is_finished)


def count_interrupted(path: Path) -> int:
    """The number of rows of agents that were interrupted, whose trials run again.

    Raises:
        StoreError: the file cannot be read.
    """
    with refusals("read", path), suppress(FileNotFoundError), path.open("rb") as file:
        end = b""
        while piece := file.read(_AT_ONCE):
            if _OF_INTERRUPTED in end + piece:
                file.seek(0)
                return sum(map(is_of_interrupted, file))
            end = piece[-len(_OF_INTERRUPTED) :]
    return 0


_AT_ONCE = 1 << 16
"""Bytes that are searched at once: few enough that their memory is used again, not allocated again."""


def is_of_interrupted(line: bytes) -> bool:
    """Whether a line is the row of a trial that was interrupted."""
    return _OF_INTERRUPTED in line


def replaced_lines(path: Path) -> frozenset[int]:
    """The numbers, from 1, of the lines whose trial has a row further down. They are few: reruns move them away.

    Raises:
        StoreError: the file cannot be read.
    """
    numbers = NumberedHashes()
    last: list[int] = []
    replaced: set[int] = set()
    for number, line in read_lines(path):
        key = key_in(line)
        if key is None:
            continue  # whoever reads the row says what is wrong with it
        place = numbers.number(text_hash(key.trial))
        if place == len(last):
            last.append(number)
        else:
            replaced.add(last[place])
            last[place] = number
    return frozenset(replaced)


def replaced_rows(run: Path) -> Iterator[Row]:
    """The rows of `history.jsonl`, each once, without those that stand in `index.jsonl` too.

    A process that is killed while it moves rows leaves them in both files, and the next one moves them once more.

    Raises:
        StoreError: a file cannot be read, or a line is no row; the text names it.
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
                    return  # cut off while rows were moved: they still stand in the index
                raise not_a_row(path, number, error) from error


_PACKED = Packed(">6I")
_PLACE = Packed(">Q")


class FileOrder:
    """Orders rows by eval file, case, prompt, target, variant and sample, each as the suites of a run have them.

    Args:
        record: `run.json` of the run.
        root: absolute path of the repository root, which paths in it are relative to; empty: all paths are.
    """

    def __init__(self, record: JsonObject, root: str = "") -> None:
        self._root = f"{root}/"
        suites = objects_in(record.get("suites"))
        self._suites = _ranks((one.get("path") or None, one.get("name")) for one in suites)
        self._prompts = _ranks(_names(suites, "prompts", "id"))
        self._targets = _ranks(_names(suites, "targets", "name"))
        self._variants = _ranks(_names(suites, "variants", "name"))

    def key(self, row: Row) -> bytes:
        """A key to sort by. Rows that do not say their case's position stay in the order of the file."""
        suite = self.suite(row.eval_path, row.suite)
        if not row.position:
            return _PACKED.pack(suite, 0, 0, 0, 0, 0)
        column = self.column(row.prompt_id, row.target, row.variant)
        return _PACKED.pack(suite, row.position, *column, row.sample)

    def suite(self, path: str | None, name: str) -> int:
        """What to sort a suite by."""
        return _rank(self._suites, (path and path.removeprefix(self._root), name))

    def column(self, prompt: str | None, target: str, variant: str | None) -> tuple[int, int, int]:
        """What to sort the prompts, targets and variants of a case by."""
        return _rank(self._prompts, prompt), _rank(self._targets, target), _rank(self._variants, variant)


def places_in_order(
    rows: Iterable[tuple[int, Row]], record: JsonObject, rank: Callable[[Row], int] = lambda _: 0
) -> array[int]:
    """Where rows of an `index.jsonl` begin, in bytes, in the order of the eval files.

    Args:
        rows: each after the byte offset of its line.
        record: `run.json` of the run.
        rank: rows with a lower one, of 0 to 255, come first.
    """
    order = FileOrder(record)
    keys = [bytes((rank(row),)) + order.key(row) + _PLACE.pack(place) for place, row in rows]
    keys.sort()
    return array("q", (_PLACE.unpack(key[-_PLACE.size :])[0] for key in keys))


def variable_names(index: Path, places: Iterable[int]) -> list[str]:
    """The names of the variables of rows, in the order in which they appear.

    Args:
        index: the `index.jsonl`.
        places: where the rows begin, in bytes.
    """
    return list(dict.fromkeys(name for _, line in lines_at(index, places) for name in row_in(line).vars))


def _names(suites: Iterable[Mapping[str, Any]], kind: str, name: str) -> Iterator[Any]:
    return (one.get(name) for suite in suites for one in objects_in(suite.get(kind)))


def _ranks(names: Iterable[Any]) -> dict[Any, int]:
    return {name: rank for rank, name in enumerate(dict.fromkeys(names))}


def _rank(ranks: dict[Any, int], name: Any) -> int:
    """The rank of a name; of one that is new, after all others."""
    return ranks.setdefault(name, len(ranks))
