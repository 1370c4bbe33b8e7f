"""Lists, selections and trends of stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from agentv.model.run.matrix import Interval
from agentv.model.run.summary import PartialRun, Summary
from agentv.model.run.trial import Status, TrialResult

LONGEST_NAME = 200
"""Maximum characters of a run's name."""

RunState = Literal["finished", "interrupted", "being written", "unreadable"]
"""State of a stored run; `interrupted`: it was killed, or stopped before every trial had a row."""


class ListedRun(Struct, frozen=True):
    """A run in a list.

    Attributes:
        directory: absolute path.
        suites, targets: names in the order of the files; for a finished run, only those with results.
        done: number of trials with a row.
        planned: number of planned trials; None if unknown.
        summary: totals; None if the run is being written or cannot be read.
        duration_ms: None for a killed run.
        started: start time, ISO 8601 in UTC; empty if unknown.
        partial: which part of its suites it ran; None for all.
        problem: why it is unreadable.
    """

    run_id: str
    directory: str
    state: RunState
    suites: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    done: int = 0
    planned: int | None = None
    summary: Summary | None = None
    duration_ms: float | None = None
    started: str = ""
    partial: PartialRun | None = None
    problem: str | None = None


class ListedCase(Struct, frozen=True):
    """One case on one target, with one prompt and one variant if there are several.

    Attributes:
        place: absolute path of the file that defines it, and the line; None if created in Python.
        eval_path: absolute path of its eval file; None likewise.
        trials: number of samples to run: `repeat` minus those that a resumed run already has.
        judge_calls: number of verdicts that its trials would request.
        script_calls: maximum number of additional judge calls by scripts.
    """

    test_id: str
    suite: str
    eval_path: str | None
    place: tuple[str, int] | None
    target: str
    prompt_id: str | None
    repeat: int
    trials: int
    judge_calls: int = 0
    script_calls: int = 0
    variant: str | None = None


class ListedTotals(Struct):
    """Totals of a listing, which grow while the cases are listed.

    Attributes:
        target_calls, judge_calls: one per trial, and one per verdict; a judge's unreadable reply costs another call.
        script_calls: maximum number of additional judge calls by scripts.
        cost_usd: estimate from the cost of earlier runs; None if unknown.
        unpriced: number of trials whose cost is not known from earlier runs.
        at_most: whether there may be fewer trials and calls, because sampling may stop early.
        generators: functions that were called to generate cases, as `file.py:name`.
    """

    cases: int = 0
    trials: int = 0
    target_calls: int = 0
    judge_calls: int = 0
    script_calls: int = 0
    cost_usd: float | None = None
    unpriced: int = 0
    at_most: bool = False
    generators: tuple[str, ...] = ()


class Selection(Struct, frozen=True):
    """Filters for trials. Values of the same kind are ORed and different kinds are ANDed; an empty filter matches all.

    Attributes:
        statuses: statuses of trials.
        cases, suites, targets, tags: names or shell-style patterns (`*`, `?`, `[a-z]`), case-sensitive.
    """

    statuses: tuple[Status, ...] = ()
    cases: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


Place = tuple[str, str | None, str | None]
"""Target, prompt and variant of an answer."""


class CaseAnswers(Struct, frozen=True):
    """All answers to one case.

    Attributes:
        path: absolute path of its eval file.
        answers: (target, prompt, variant) → samples; combinations that did not run are missing.
    """

    suite: str
    path: str
    case_id: str
    answers: Mapping[Place, tuple[TrialResult, ...]]


class SideBySide(Struct, frozen=True):
    """Cases of a run with their answers.

    Attributes:
        matching: number of cases that match the selection, shown or not.
        targets, prompts, variants: those of the shown answers, in the order of the run.
    """

    cases: tuple[CaseAnswers, ...]
    matching: int
    targets: tuple[str, ...]
    prompts: tuple[str | None, ...]
    variants: tuple[str | None, ...]


Followed = Literal["pass rate", "mean score"]
Direction = Literal["higher", "lower"]


class RunDifference(Struct, frozen=True):
    """The paired difference between a run and an earlier one, over the cases that were graded in both.

    Attributes:
        before: id of the earlier run.
        cases: number of pairs.
        difference: mean difference, -1..1.
        interval: 95% interval of the difference, for this comparison alone.
        p: two-sided p-value of no difference; not corrected.
        level: significance level: the part of the error rate that this comparison may use.
        direction: direction of a significant difference; None if it is not significant.
        errors_decide: whether the difference would be significant only for some possible scores of the errored samples.
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
    """A run of the whole suite on the target.

    Attributes:
        commit: git commit that was checked out; None if unknown.
        value: pass rate or mean score, as in the run's own report.
        interval: 95% interval of the value; None if unknown.
        judged, total: number of graded cases, and of all cases.
        change: difference from the previous run; None for the first one, or if they have no case in common.
        notes: other differences from the previous run.
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
        """The standard error, from the width of the interval: width / (2 × 1.96)."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 3.919928


class LeftOutRun(Struct, frozen=True):
    """A run of the suite that is left out of the series, and the reason."""

    run_id: str
    reason: str


class Trend(Struct, frozen=True):
    """A series of runs of one suite on one target.

    Attributes:
        runs: the newest whole runs, oldest first; at least one.
        earlier: number of whole runs before these.
        baseline: id of the run that the latest one is compared with.
        pinned: whether the baseline was chosen by `results pin`; otherwise it is the first of `runs`.
        from_baseline: difference of the latest run from the baseline; None if it is the baseline, or if they have no
            case in common.
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
