"""Inputs of a stored run, suite by suite, as its rows record them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any

import msgspec
from msgspec import Struct

from agentv.model.run.clusters import ClusterId, cluster_of
from agentv.model.run.sampling import Stopped
from agentv.model.run.trial import SCHEMA_VERSION, Status
from agentv.model.suite.suite import DEFAULT_THRESHOLD, Aggregate
from agentv.store.files.lines import read_placed_lines
from agentv.store.rows.reading import is_torn, newer_row, not_a_row

CaseName = tuple[str, str | None]
"""The id of a case, and of its prompt."""

JudgedCase = tuple[str, str | None, str, float]
"""The id of a case, and of its prompt; what it asks and how it is graded, as a hash; its threshold."""


Held = dict[Any, Any]
"""Each name as it was first met."""


class _Row(Struct, gc=False):
    test_id: str
    target: str
    suite: str = ""
    prompt_id: str | None = None
    score: float | None = None
    case_sha256: str = ""
    repeat: int = 1
    alpha: float | None = None
    status: Status = "skipped"
    threshold: float = DEFAULT_THRESHOLD
    aggregate: Aggregate = "mean"
    stopped: Stopped | None = None
    eval_path: str | None = None
    conversation_id: str | None = None
    cluster_key: str | None = None
    cluster: str | None = None
    reused: bool = False
    schema_version: int = SCHEMA_VERSION


@dataclass(slots=True)
class JudgedSamples:
    """Samples of one case, on all targets: how many were judged, how many of them passed, the sum of their scores.

    `rates`: where samples end as soon as the case is decided, unbiased estimates of its rate, one of each target.
    """

    cluster: ClusterId
    judged: int = 0
    passed: int = 0
    score: float = 0.0
    rates: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        """The share that passed; at least one was judged."""
        return sum(self.rates) / len(self.rates) if self.rates else self.passed / self.judged

    @property
    def mean(self) -> float:
        """The mean score."""
        return self.score / self.judged


@dataclass(slots=True)
class SuiteInputs:
    """Of one suite in one run.

    Attributes:
        hashes: of the cases: what each asks, and how it is graded.
        targets: their names.
        scores: of each case, on all prompts and targets: how many there are, and their sum.
        judged: of each case, as it was asked and judged, what its samples came to.
        rules: thresholds, repeats and aggregates of its cases, by name.
        ends_early: samples of a case ended as soon as it was decided.
        is_reused: all answers were there before: another run, a cassette or the cache gave them.
    """

    hashes: dict[CaseName, str] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)
    scores: dict[str, tuple[int, float]] = field(default_factory=dict)
    ends_early: bool = False
    is_reused: bool = True
    judged: dict[JudgedCase, JudgedSamples] = field(default_factory=dict)
    rules: dict[str, set[str]] = field(default_factory=dict)

    def add(self, row: _Row, held: Held) -> None:
        """One more row."""
        row.test_id, row.case_sha256 = intern(row.test_id), intern(row.case_sha256)
        case = (row.test_id, row.prompt_id)
        self.hashes[held.setdefault(case, case)] = row.case_sha256
        self.targets.add(row.target)
        self.ends_early |= row.alpha is not None and row.repeat > 1
        self.is_reused &= row.reused
        for name, rule in (("threshold", f"{row.threshold:g}"), ("repeat", str(row.repeat)), ("rule", row.aggregate)):
            self.rules.setdefault(name, set()).add(rule)
        self._judge(row, held)
        if row.score is not None:
            count, total = self.scores.get(row.test_id, (0, 0.0))
            self.scores[row.test_id] = count + 1, total + row.score

    def _judge(self, row: _Row, held: Held) -> None:
        if row.status not in ("passed", "failed"):
            return
        case = (row.test_id, row.prompt_id, row.case_sha256, row.threshold)
        found = self.judged.get(case)
        if found is None:
            cluster = cluster_of(row)
            found = self.judged[held.setdefault(case, case)] = JudgedSamples(held.setdefault(cluster, cluster))
        found.judged += 1
        found.passed += row.status == "passed"
        found.score += row.score or 0.0
        if row.stopped is not None and row.alpha is not None:
            from agentv.stats.samples.stopped import unbiased_rate  # few runs end samples early

            terms = {"threshold": row.threshold, "alpha": row.alpha}
            rate = unbiased_rate(row.stopped, **terms, repeat=row.repeat)
            found.rates += () if rate is None else (rate,)

    @property
    def means(self) -> list[float]:
        """The mean score of each case that has one."""
        return [total / count for count, total in self.scores.values()]


def read_asked(path: Path, held: Held | None = None) -> Mapping[str, SuiteInputs]:
    """Suite → its inputs, from an `index.jsonl`; empty if there is no file.

    A last line that was cut off is passed over.

    Args:
        path: of the file.
        held: names that other runs have, too, and that are held once: hundreds of runs may be looked at together.

    Raises:
        StoreError: a line is no row, or a newer agentv wrote it; the text names the line.
    """
    found: dict[str, SuiteInputs] = {}
    held = {} if held is None else held
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
        found.setdefault(row.suite, SuiteInputs()).add(row, held)
    return found
