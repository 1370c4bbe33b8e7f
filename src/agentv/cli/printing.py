"""Diagnostics and errors, written to the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from agentv.app.excerpts import source_of
from agentv.errors import AgentvError, Diagnostic, LoadError, UsageError
from agentv.reports.diagnostics import render_diagnostics
from agentv.reports.text import safe

if TYPE_CHECKING:
    from agentv.app.preparation import Prepared


def print_diagnostics(found: Sequence[Diagnostic]) -> None:
    """Write diagnostics to stderr, in the form of SPEC section 14."""
    if found:
        click.echo(render_diagnostics(found, source_of), err=True)


def print_error(error: AgentvError) -> None:
    """Write what ended a command to stderr."""
    if isinstance(error, LoadError):
        print_diagnostics(error.diagnostics)
        return
    click.echo(f"error: {safe(str(error))}", err=True)
    if isinstance(error, UsageError) and error.hint:
        click.echo(f"  {safe(error.hint)}", err=True)


def print_sample(prepared: Prepared) -> None:
    """Write to stderr which sample was drawn, so that it can be drawn again."""
    sample = prepared.plan.settings.sample
    if sample is not None:
        from agentv.reports.words import sample_line  # only a run has samples, and validate prints too

        click.echo(sample_line(sample.size, sample.of, sample.seed), err=True)


def for_people() -> bool:
    """Whether stderr is a terminal in front of a person."""
    import os

    return sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
