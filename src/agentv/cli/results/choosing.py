"""Options that choose trials of a stored run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from agentv.model.selection import Selection
from agentv.model.trial import Status

_NAMES = {"case": "cases", "suite": "suites", "target": "targets", "tag": "tags"}
_STATUSES: tuple[Status, ...] = ("failed", "errored", "passed", "skipped")

_OPTIONS = (
    click.option("--failed", is_flag=True, help="Trials that failed."),
    click.option("--errored", is_flag=True, help="Trials that errored."),
    click.option("--passed", is_flag=True, help="Trials that passed."),
    click.option("--skipped", is_flag=True, help="Trials that were held back because of others."),
    click.option("--case", multiple=True, metavar="GLOB", help="Cases whose id matches."),
    click.option("--suite", multiple=True, metavar="GLOB", help="Suites whose name matches."),
    click.option("--target", multiple=True, metavar="GLOB", help="Targets whose name matches."),
    click.option("--tag", multiple=True, metavar="GLOB", help="Cases with a tag that matches."),
)

Command = Callable[..., int]


def choosing(command: Command) -> Command:
    """The command with the options that choose trials."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def selection_of(chosen: dict[str, Any]) -> Selection:
    """What the options say; all trials where they say nothing."""
    statuses = tuple(status for status in _STATUSES if chosen[status])
    return Selection(statuses, **{field: tuple(chosen[name]) for name, field in _NAMES.items()})
