"""What the rows of a run say of what was asked, and of whom, suite by suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from agentv.model.trial import SCHEMA_VERSION
from agentv.store.lines import read_placed_lines
from agentv.store.reading import is_torn, newer_row, not_a_row

CaseName = tuple[str, str | None]
"""The id of a case, and of its prompt."""


class _Row(Struct, gc=False):
    test_id: str
    target: str
    suite: str = ""
    prompt_id: str | None = None
    score: float | None = None
    case_sha256: str = ""
    repeat: int = 1
    alpha: float | None = None
    reused: bool = False
    schema_version: int = SCHEMA_VERSION


@dataclass(slots=True)
class Asked:
    """Of one suite in one run.

    Attributes:
        hashes: of the cases: what each asks, and how it is graded.
        targets: their names.
        scores: of each case, on all prompts and targets: how many there are, and their sum.
        ends_early: samples of a case ended as soon as it was decided.
        is_reused: all answers were there before: another run, a cassette or the cache gave them.
    """

    hashes: dict[CaseName, str] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)
    scores: dict[str, tuple[int, float]] = field(default_factory=dict)
    ends_early: bool = False
    is_reused: bool = True

    def add(self, row: _Row) -> None:
        """One more row."""
        self.hashes[row.test_id, row.prompt_id] = row.case_sha256
        self.targets.add(row.target)
        self.ends_early |= row.alpha is not None and row.repeat > 1
        self.is_reused &= row.reused
        if row.score is not None:
            count, total = self.scores.get(row.test_id, (0, 0.0))
            self.scores[row.test_id] = count + 1, total + row.score

    @property
    def means(self) -> list[float]:
        """The mean score of each case that has one."""
        return [total / count for count, total in self.scores.values()]


def read_asked(path: Path) -> Mapping[str, Asked]:
    """Suite → what was asked of it, by an `index.jsonl`; none where there is no file.

    A last line that was cut off is passed over.

    Raises:
        StoreError: a line is no row, or a newer agentv wrote it; the text names the line.
    """
    found: dict[str, Asked] = {}
    decode = msgspec.json.Decoder(_Row).decode
    for _, number, line in read_placed_lines(path):
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if is_torn(line):
                break
            raise not_a_row(path, number, error) from error
        if row.schema_version > SCHEMA_VERSION:
            raise newer_row(path, number, row.schema_version)
        found.setdefault(row.suite, Asked()).add(row)
    return found
