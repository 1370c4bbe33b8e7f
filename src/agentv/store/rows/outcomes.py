"""Rows read for a comparison: outcomes and inputs of trials, without the answers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from agentv.model.run.grade import TOLERANCE
from agentv.model.run.trial import SCHEMA_VERSION, Status
from agentv.model.suite.suite import DEFAULT_THRESHOLD, Aggregate
from agentv.store.files.lines import read_placed_lines
from agentv.store.rows.reading import is_torn, newer_row, not_a_row

_Unit = Annotated[float, Meta(ge=-TOLERANCE, le=1 + TOLERANCE)]
"""A score, as far as rounding lets it be told. Rows are written by others, too, and one score of 7 decides any mean."""


class Graded(Struct, gc=False, frozen=True, rename={"passed": "pass"}):
    """One assertion of a row. `score` and `passed` are None where it errored."""

    name: str
    type: str
    weight: float
    required: bool | float
    score: _Unit | None = None
    passed: bool | None = None


class OutcomeRow(Struct, gc=False):
    """A finished trial. `input` and `metadata` are JSON as it stands in the row."""

    test_id: str
    target: str
    status: Status
    suite: str = ""
    eval_path: str | None = None
    prompt_id: str | None = None
    score: _Unit | None = None
    threshold: _Unit = DEFAULT_THRESHOLD
    input: Raw = Raw(b"[]")
    scores: Sequence[Graded] = ()
    metadata: Raw = Raw(b"{}")
    case_sha256: str = ""
    schema_version: int = SCHEMA_VERSION
    tags: tuple[str, ...] = ()
    repeat: int = 1
    aggregate: Aggregate = "mean"
    alpha: float | None = None
    conversation_id: str | None = None
    turns: Raw = Raw(b"")
    cluster_key: str | None = None
    cluster: str | None = None


decode_outcome = msgspec.json.Decoder(OutcomeRow).decode


def read_outcomes(path: Path, without: Container[int] = ()) -> Iterator[tuple[int, OutcomeRow]]:
    """The rows of an `index.jsonl`, each with the place where its line begins, in bytes.

    A last line that was cut off, or is being written, is passed over.

    Args:
        path: of the file; one that is missing holds nothing.
        without: numbers of lines, from 1, that are passed over.

    Raises:
        StoreError: a line is no row, or a newer agentv wrote it; the text names the line.
    """
    for place, number, line in read_placed_lines(path):
        if number in without:
            continue
        try:
            row = decode_outcome(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if is_torn(line):
                return
            raise not_a_row(path, number, error) from error
        if row.schema_version > SCHEMA_VERSION:
            raise newer_row(path, number, row.schema_version)
        yield place, row
