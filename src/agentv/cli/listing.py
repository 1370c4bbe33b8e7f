"""`agentv eval --list`, shown."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import click
from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared, prepare
from agentv.app.running.listing import PlanListing
from agentv.app.settings import EvalSettings
from agentv.app.wiring import redactor_for
from agentv.cli.printing import print_diagnostics, print_sample, redacted
from agentv.errors import ExitStatus, UsageError
from agentv.reports.commands.listing import listed_json, listed_line, listed_totals

AT_ONCE = 500
"""Lines that are written together."""


def show_listing(settings: EvalSettings, *, as_json: bool, quiet: bool) -> int:
    """List what the settings would run: cases on stdout and totals on stderr, or everything as JSON on stdout."""
    if sys.stdout is None:
        raise UsageError("--list cannot write to stdout: it is closed")
    prepared = prepare(replace(settings, asks=False))
    with redacted(redactor_for(prepared.suites)):
        return _shown(prepared, as_json=as_json, quiet=quiet)


def _shown(prepared: Prepared, *, as_json: bool, quiet: bool) -> int:
    print_diagnostics([found for found in prepared.diagnostics if found.severity == "warning"])
    print_sample(prepared)
    listing = PlanListing(prepared)
    if as_json:
        _write(listed_json(listing, listing.totals, str(Path.cwd())))
        return ExitStatus.PASSED
    lines = map(listed_line, listing)
    if quiet:
        deque(lines, maxlen=0)
    else:
        _write(lines)
    click.echo("\n".join(listed_totals(listing.totals)), err=True)
    return ExitStatus.PASSED


def _write(lines: Iterable[str]) -> None:
    """A line at a time is slow, and all of them at once may not fit."""
    remaining = iter(lines)
    while chunk := list(islice(remaining, AT_ONCE)):
        click.echo("\n".join(chunk))
