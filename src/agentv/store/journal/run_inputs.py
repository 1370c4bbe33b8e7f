"""Inputs of a stored run, suite by suite, as its rows record them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from sys import intern
from typing import Any

import msgspec

from agentv.lazy_dataclass import dataclass
from agentv.model.run.clusters import ClusterId, cluster_of
from agentv.model.run.sampling import SamplingStop
from agentv.model.run.trial import Status
from agentv.store.rows.reading import StoredRow, decoded_rows

CaseName = tuple[str, str | None]
"""The id of a case, and of its prompt."""

JudgedCase = tuple[str, str | None, str, float]
"""The id of a case, and of its prompt; what it asks and how it is graded, as a hash; its threshold."""


InputsCache = dict[Any, Any]
"""Each name as it was first met."""


class InputsRow(StoredRow, gc=False, kw_only=True):
    """The keys of a row that the inputs of a run need."""

    status: Status = "skipped"
    case_sha256: str = ""
    stopped: SamplingStop | None = None
    reused: bool = False


_decode = msgspec.json.Decoder(InputsRow).decode


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

    def add(self, row: InputsRow, cache: InputsCache) -> None:
        """One more row."""
        row.test_id, row.case_sha256 = intern(row.test_id), intern(row.case_sha256)
        case = (row.test_id, row.prompt_id)
        self.hashes[cache.setdefault(case, case)] = row.case_sha256
        self.targets.add(row.target)
        self.ends_early |= row.alpha is not None and row.repeat > 1
        self.is_reused &= row.reused
        for name, rule in (("threshold", f"{row.threshold:g}"), ("repeat", str(row.repeat)), ("rule", row.aggregate)):
            self.rules.setdefault(name, set()).add(rule)
        self._judge(row, cache)
        if row.score is not None:
            count, total = self.scores.get(row.test_id, (0, 0.0))
            self.scores[row.test_id] = count + 1, total + row.score

    def _judge(self, row: InputsRow, cache: InputsCache) -> None:
        if row.status not in ("passed", "failed"):
            return
        case = (row.test_id, row.prompt_id, row.case_sha256, row.threshold)
        found = self.judged.get(case)
        if found is None:
            cluster = cluster_of(row)
            found = self.judged[cache.setdefault(case, case)] = JudgedSamples(cache.setdefault(cluster, cluster))
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


def read_suite_inputs(
    path: Path, cache: InputsCache | None = None, target: str | None = None
) -> Mapping[str, SuiteInputs]:
    """Suite → its inputs, from an `index.jsonl`; empty if there is no file.

    A last line that was cut off is passed over.

    Args:
        path: of the file.
        cache: names that other runs have, too, and that are held once: hundreds of runs may be looked at together.
        target: of its rows alone; None: of all.

    Raises:
        StoreError: a line is no row, or a newer agentv wrote it; the text names the line.
    """
    found: dict[str, SuiteInputs] = {}
    cache = {} if cache is None else cache
    for _, row in decoded_rows(path, _decode):
        if target is None or row.target == target:
            found.setdefault(row.suite, SuiteInputs()).add(row, cache)
    return found
