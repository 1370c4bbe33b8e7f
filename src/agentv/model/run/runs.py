"""Stored runs, as shown in lists."""

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
