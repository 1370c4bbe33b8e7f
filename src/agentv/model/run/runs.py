"""Stored runs, and the cases of a run that is not executed, as shown in lists."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentv.model.run.summary import PartialRun, Summary

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
