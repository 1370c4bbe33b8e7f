"""How often the verdict of a judge changes, though the content of an answer does not."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from agentv.stats.intervals.design_effect import ClusterSum, estimated_rate


@dataclass(frozen=True, slots=True)
class Flips:
    """Changed verdicts among answers with the same verdict before.

    Attributes:
        interval: of their share, 95%; None with too few answers.
    """

    answers: int
    flipped: int
    interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, outcomes: Iterable[tuple[bool, Hashable]]) -> Flips:
        """From whether the verdict of each answer changed, and the cluster of the answer."""
        clusters: dict[Hashable, list[bool]] = {}
        for flipped, cluster in outcomes:
            clusters.setdefault(cluster, []).append(flipped)
        if not clusters:
            return cls(0, 0)
        found = estimated_rate([ClusterSum(len(one), sum(one)) for one in clusters.values()])
        flips = sum(map(sum, clusters.values()))
        return cls(sum(map(len, clusters.values())), flips, found.interval)

    @property
    def share(self) -> float | None:
        """Of the answers; None without any."""
        return self.flipped / self.answers if self.answers else None


@dataclass(frozen=True, slots=True)
class FlippedVerdict:
    """An answer whose verdict changed.

    Attributes:
        output: the changed answer; None: it was the same.
        reason: of the judge, for the second verdict.
    """

    case: str
    suite: str
    passed_before: bool
    output: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """What one probe shows.

    Attributes:
        to_pass: of answers that the judge failed before.
        to_fail: of answers that it passed before.
        unfit: answers that the probe does not fit.
        errors: answers without a second verdict.
        error: why, for the first of them.
        flips: those from fail to pass first.
    """

    probe: str
    to_pass: Flips
    to_fail: Flips
    unfit: int = 0
    errors: int = 0
    error: str | None = None
    flips: tuple[FlippedVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbedJudge:
    """The judge of one assertion, probed.

    Attributes:
        answers: with a first verdict.
        passed: of these by that verdict.
        errors: answers without a first verdict.
        error: why, for the first of them.
        notes: answers that were left out.
    """

    assertion: str
    judge: str
    model: str
    answers: int
    passed: int
    probes: tuple[ProbeOutcome, ...]
    errors: int = 0
    error: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeProbing:
    """The judges of a run, probed.

    Attributes:
        new_calls: calls that were made; the others were stored.
        spent_usd: what these cost; None if it is not known.
        is_complete: whether every judge gave enough verdicts.
    """

    run: str
    new_calls: int
    spent_usd: float | None
    judges: tuple[ProbedJudge, ...]
    is_complete: bool
