"""Stored runs as lists, selections and trends show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from agentv.model.run.matrix import Interval
from agentv.model.run.summary import PartialRun, Summary
from agentv.model.run.trial import Status, TrialResult

LONGEST_NAME = 200
"""Characters of the name that somebody gives a run."""

RunState = Literal["finished", "interrupted", "being written", "unreadable"]
"""`interrupted`: it was killed, or stopped before every trial had its row."""


class ListedRun(Struct, frozen=True):
    """One run in a list.

    Attributes:
        directory: its absolute path.
        suites, targets: their names, in the order of the files; of a finished run those with results.
        done: number of trials with a row.
        planned: number of planned trials; None if unknown.
        summary: its totals; None if the run is being written, or cannot be read.
        duration_ms: None for a killed run.
        started: time in ISO 8601, in UTC; empty if unknown.
        partial: which part of the suites it is of; None: all.
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
        place: absolute path of its file, and its line; None if it was created in Python.
        eval_path: absolute path of its eval file; None as above.
        trials: number of samples to run: `repeat`, less those that a resumed run already has.
        judge_calls: number of verdicts that all its trials would request.
        script_calls: maximum number of additional judge calls by its scripts.
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
    """Totals of a listing. They grow while the cases are listed.

    Attributes:
        target_calls, judge_calls: one per trial, one per verdict; a judge with an unreadable reply is called once more.
        script_calls: maximum number of additional judge calls by scripts.
        cost_usd: based on the cost of earlier runs; None if unknown.
        unpriced: number of trials whose cost no earlier run shows.
        at_most: samples of cases may end early, so there may be fewer trials and calls.
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
    """Filters for trials. Values of the same kind are ORed, different kinds are ANDed; an empty filter matches all.

    Attributes:
        statuses: outcomes.
        cases, suites, targets, tags: names, or patterns as in a shell (`*`, `?`, `[a-z]`), case-sensitive.
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
        path: absolute, of its eval file.
        answers: target, prompt and variant → its samples; what did not run is not there.
    """

    suite: str
    path: str
    case_id: str
    answers: Mapping[Place, tuple[TrialResult, ...]]


class SideBySide(Struct, frozen=True):
    """Cases of a run with their answers.

    Attributes:
        matching: number of cases that match the selection, shown or not.
        targets, prompts, variants: of the shown answers, in the order of the run.
    """

    cases: tuple[CaseAnswers, ...]
    matching: int
    targets: tuple[str, ...]
    prompts: tuple[str | None, ...]
    variants: tuple[str | None, ...]


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
