"""Options that choose trials of a stored run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from agentv.model.run.selection import Selection
from agentv.model.run.trial import Status

if TYPE_CHECKING:
    from agentv.app.results.selecting import SelectedTrials
    from agentv.app.results.stored import StoredRun

_LONG = 100_000_000
"""Bytes of rows that take more than a second to be indexed."""

_NAMES = {"case": "cases", "suite": "suites", "target": "targets", "tag": "tags"}
_STATUSES: tuple[Status, ...] = ("failed", "errored", "passed", "skipped", "shown")

_OPTIONS = (
    click.option("--failed", is_flag=True, help="Include failed trials."),
    click.option("--errored", is_flag=True, help="Include errored trials."),
    click.option("--passed", is_flag=True, help="Include passed trials."),
    click.option("--skipped", is_flag=True, help="Include trials skipped because a dependency did not pass."),
    click.option("--shown", is_flag=True, help="Include trials that were shown and not checked."),
    click.option("--case", multiple=True, metavar="GLOB", help="Include cases whose id matches."),
    click.option("--suite", multiple=True, metavar="GLOB", help="Include suites whose name matches."),
    click.option("--target", multiple=True, metavar="GLOB", help="Include targets whose name matches."),
    click.option("--tag", multiple=True, metavar="GLOB", help="Include cases with a matching tag."),
)

Command = Callable[..., int]


def choosing(command: Command) -> Command:
    """The command with the options that choose trials."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def selection_of(chosen: dict[str, Any]) -> Selection:
    """The selection of the options; all trials if none is given."""
    statuses = tuple(status for status in _STATUSES if chosen[status])
    return Selection(statuses, **{field: tuple(chosen[name]) for name, field in _NAMES.items()})


def chosen_of(
    run: StoredRun, selection: Selection, limit: int | None, *, failures_first: bool = False
) -> SelectedTrials:
    """The chosen trials of a run. A person who has to wait for it sees why."""
    from agentv.app.results.selecting import bytes_to_index, choose

    size = bytes_to_index(run)
    if size > _LONG:
        click.echo(f"reading {size / 1e9:.1f} GB of rows into a search index; this happens once", err=True)
    return choose(run, selection, limit, failures_first=failures_first)
