"""Diagnostics and errors, written to the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.errors import AgentvError, Diagnostic, LoadError, UsageError
from agentv.reports.diagnostics import render_diagnostics
from agentv.reports.text import safe

_NAME = re.compile(r"\s*(?:export\s+)?[A-Z_][A-Z0-9_.-]*\s*=")
"""The name in a line of a `.env`. In capitals: other text before a `=` may be the end of a key's base64."""
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


def source_of(path: str) -> str | None:
    """The text of an authored file, for an excerpt; None where it cannot be read. Of a `.env` only names are shown."""
    if not Path(path).is_file():
        return None
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None
    return "\n".join(map(_masked, text.split("\n"))) if Path(path).name.startswith(".env") else text


def _masked(line: str) -> str:
    """A line of a `.env` with its value hidden: it may be a secret, and so may a line without a name."""
    name = _NAME.match(line)
    return f"{name[0]}…" if name else "…" if line.strip() else ""


def for_people() -> bool:
    """Whether stderr is a terminal in front of a person."""
    import os

    return sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
