"""Rows read back. Every reader takes the keys that it needs; the rest is skipped.

`StoredRow` declares the keys that all readers take, with what stands for those that a row leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from agentv.errors import StoreError
from agentv.model.run.cases import RequiredGrade
from agentv.model.run.trial import SCHEMA_VERSION, Status
from agentv.model.suite.suite import DEFAULT_THRESHOLD, Aggregate
from agentv.model.values.response import RUN_INTERRUPTED
from agentv.model.values.usage import TokenUsage
from agentv.store.files.lines import read_placed_lines
from agentv.user_code.os_errors import store_error

R = TypeVar("R", bound="StoredRow")


class StoredRow(Struct, gc=False):
    """The keys of a row that every reader takes; others, known and unknown, are ignored."""

    test_id: str
    target: str
    suite: str = ""
    eval_path: str | None = None
    prompt_id: str | None = None
    score: float | None = None
    threshold: float = DEFAULT_THRESHOLD
    repeat: int = 1
    aggregate: Aggregate = "mean"
    alpha: float | None = None
    conversation_id: str | None = None
    cluster_key: str | None = None
    cluster: str | None = None
    schema_version: int = SCHEMA_VERSION
    variant: str | None = None


class ErrorFacts(Struct, gc=False):
    """The keys of an error that a resume needs: they decide if its trial runs again."""

    code: str | None = None
    stops: bool = False


class RowFacts(StoredRow, gc=False, kw_only=True):
    """The keys of a row that totals and a resume need."""

    status: Status
    key: str
    sample: int = 1
    duration_ms: float = 0.0
    cost_usd: float | None = None
    judge_cost_usd: float | None = None
    token_usage: TokenUsage | None = None
    judge_token_usage: TokenUsage | None = None
    tags: tuple[str, ...] = ()
    reused: bool = False
    scores: Raw = Raw(b"[]")
    error: ErrorFacts | None = None

    @property
    def gates(self) -> tuple[RequiredGrade, ...]:
        """The required grades of the row, in the order of its scores."""
        found = (
            RequiredGrade.of(score.required, score.score or 0.0, score.passed or False)
            for score in _scores.decode(self.scores)
        )
        return tuple(gate for gate in found if gate is not None)


class _ScoreFacts(Struct, gc=False, rename={"passed": "pass"}):
    score: float | None = None
    passed: bool | None = None
    required: bool | float = False


_OF_INTERRUPTED = f'"error":{{"code":"{RUN_INTERRUPTED}"'.encode()
"""How a row begins its error; a text in which this stands has its quotes escaped."""

_scores = msgspec.json.Decoder(list[_ScoreFacts])
_rows = msgspec.json.Decoder(RowFacts)

row_in = _rows.decode
"""The facts of a line. Raises `msgspec.DecodeError` or `UnicodeDecodeError` where it is no row."""


def read_rows(path: Path) -> Iterator[RowFacts]:
    """Iterate over the rows of an `index.jsonl`; empty if it does not exist.

    A last line that was cut off, or is being written, is passed over.

    Raises:
        StoreError: a line is no row, or a newer agentv wrote it; the text names the line.
    """
    return (row for _, row in read_placed_rows(path))


def read_placed_rows(path: Path) -> Iterator[tuple[int, RowFacts]]:
    """Read as `read_rows` does; the offset of each line, in bytes, stands first."""
    return decoded_rows(path, _rows.decode)


def decoded_rows(path: Path, decode: Callable[[bytes], R], without: Container[int] = ()) -> Iterator[tuple[int, R]]:
    """Read as `read_placed_rows` does, for readers that take other keys.

    Args:
        path: of an `index.jsonl`; one that is missing holds nothing.
        decode: of a decoder of a struct.
        without: numbers of lines, from 1, that are skipped.
    """
    for place, number, line in read_placed_lines(path):
        if number in without:
            continue
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if is_torn(line):
                return
            raise not_a_row(path, number, error) from error
        if row.schema_version > SCHEMA_VERSION:
            known = f"(format {row.schema_version}; this one reads up to {SCHEMA_VERSION})"
            raise StoreError(f"{path}:{number}: written by a newer agentv {known}")
        yield place, row


def is_torn(line: bytes) -> bool:
    """Return true if a line has no end: its writer was cut off, or is about to write the rest."""
    return not line.endswith(b"\n")


class _KeyOf(Struct, gc=False):
    key: str
    eval_path: str | None = None


class _CaseOf(Struct, gc=False):
    test_id: str


_key = msgspec.json.Decoder(_KeyOf)
_case = msgspec.json.Decoder(_CaseOf)


def key_of_row(line: bytes) -> str | None:
    """The trial key in a line of `index.jsonl`; None if it is not a row."""
    try:
        return _key.decode(line).key
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def case_of_row(line: bytes) -> str | None:
    """The case id in a line of `index.jsonl`; None if it is not a row."""
    try:
        return _case.decode(line).test_id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def trial_of_row(line: bytes) -> str | None:
    """The trial that a line is of, as one text; None for a line that is no row.

    A key is not enough: two files may hold the same case, and then two trials have one key.
    """
    try:
        row = _key.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return f"{row.eval_path}\0{row.key}"


def not_a_row(path: Path, number: int, error: Exception) -> StoreError:
    """The error for a line that cannot be read."""
    return StoreError(f"{path}:{number}: not a row of a run: {error}")


def finished_keys(path: Path) -> Iterator[str]:
    """The keys of the trials that passed, failed or errored, but for interrupted ones and those that stopped a target.

    Whatever made it refuse everything, such as a wrong key, is fixed before the run is resumed.

    Raises:
        StoreError: as `read_rows`.
    """
    return (row.key for row in read_rows(path) if row.status != "skipped" and not _runs_again(row.error))


def count_interrupted(path: Path) -> int:
    """The number of rows of agents that were interrupted, whose trials run again.

    Raises:
        StoreError: the file cannot be read.
    """
    found = 0
    try:
        with path.open("rb") as file:
            while lines := file.readlines(_AT_ONCE):
                if _OF_INTERRUPTED in b"".join(lines):
                    found += sum(_OF_INTERRUPTED in line for line in lines)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise store_error("read", path, error) from error
    return found


_AT_ONCE = 1 << 20
"""Bytes of lines that are searched at once."""


def _runs_again(error: ErrorFacts | None) -> bool:
    return error is not None and (bool(error.stops) or error.code == RUN_INTERRUPTED)
