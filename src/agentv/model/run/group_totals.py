"""Totals of one suite, target, prompt, variant or tag of a run."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace


class Counts(Struct, frozen=True):
    """Number of each outcome."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    shown: int = 0


Interval = tuple[float, float]


class MeasuredShare(Struct, frozen=True):
    """A share and its confidence interval, in 0..1."""

    value: float
    interval: Interval


class GroupTotals(Struct, frozen=True):
    """The totals of one suite, target, prompt, variant or tag; its attributes are as those of `Summary`."""

    cases: Counts
    pass_rate: float | None
    mean_score: float | None
    pass_rate_interval: Interval | None = None
    pass_rate_bounds: Interval | None = None
    judged: int = 0
    interval_clusters: int | None = None
    clustered_by: tuple[str, ...] = ()
    rule_pass_rate: float | None = None
    rule_pass_rate_interval: Interval | None = None
    rule_pass_rate_bounds: Interval | None = None
    mean_score_interval: Interval | None = None

    def cut_short(self) -> GroupTotals:
        """Without intervals: none is valid for a run that stopped because of its results."""
        return replace(self, pass_rate_interval=None, rule_pass_rate_interval=None, mean_score_interval=None)
