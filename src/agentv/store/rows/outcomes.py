"""Rows read for a comparison: outcomes and inputs of trials, without the answers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from agentv.model.run.grade import TOLERANCE
from agentv.model.run.trial import Status
from agentv.model.suite.suite import DEFAULT_THRESHOLD
from agentv.store.rows.reading import StoredRow, decoded_rows

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


class OutcomeRow(StoredRow, gc=False, kw_only=True):
    """A finished trial. `input` and `metadata` are JSON as it stands in the row."""

    status: Status
    score: _Unit | None = None
    threshold: _Unit = DEFAULT_THRESHOLD
    input: Raw = Raw(b"[]")
    scores: Sequence[Graded] = ()
    metadata: Raw = Raw(b"{}")
    case_sha256: str = ""
    tags: tuple[str, ...] = ()
    turns: Raw = Raw(b"")


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
    return decoded_rows(path, decode_outcome, without)
