"""The runs of one suite and target, each compared with the one before it, and the latest with a baseline."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentv.model.run.matrix import Interval

Followed = Literal["pass rate", "mean score"]
Direction = Literal["higher", "lower"]


class RunDifference(Struct, frozen=True):
    """The paired difference of a run from an earlier one, over the cases that both judged.

    Attributes:
        before: id of the earlier run.
        cases: number of pairs.
        difference: mean, -1..1.
        interval: of the difference at 95 %, of this comparison alone.
        p: two-sided, of no difference; not corrected.
        level: p up to which a difference is shown: the part of the error rate that this comparison may spend.
        direction: what is shown; None: nothing.
        errors_decide: a difference would be shown, but not whatever the errored samples had scored.
    """

    before: str
    cases: int
    difference: float
    interval: Interval
    p: float
    level: float
    direction: Direction | None = None
    errors_decide: bool = False


class TrendRun(Struct, frozen=True):
    """One whole run of the suite on the target.

    Attributes:
        commit: git commit that was checked out; None: unknown.
        value: pass rate or mean score, as the run's own report shows it.
        interval: of that, at 95 %; None: unknown.
        judged, total: cases that were judged, and that there are.
        change: from the run before it; None: the first one, or it has no case in common with that one.
        notes: what else differs from the run before it.
    """

    run_id: str
    commit: str | None
    value: float
    interval: Interval | None
    judged: int
    total: int
    change: RunDifference | None = None
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float | None:
        """The standard error that belongs to the interval: its width over 2 × 1.96."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 3.919928


class LeftOutRun(Struct, frozen=True):
    """A run of the suite that is not part of the series, and why."""

    run_id: str
    reason: str


class Trend(Struct, frozen=True):
    """A series of runs.

    Attributes:
        runs: the newest whole runs, oldest first; at least one.
        earlier: number of whole runs before these.
        baseline: id of the run that the latest is compared with.
        pinned: it was chosen by `results pin`; else it is the first run shown.
        from_baseline: None: the latest run is the baseline, or they have no case in common.
    """

    suite: str
    target: str
    measure: Followed
    runs: tuple[TrendRun, ...]
    earlier: int
    baseline: str
    pinned: bool
    from_baseline: RunDifference | None
    left_out: tuple[LeftOutRun, ...] = ()
