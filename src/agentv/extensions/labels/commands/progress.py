"""Progress of verdicts: one line of a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

import click


class VerdictProgress:
    """Counts verdicts on stderr, where that is a terminal. A context manager, which says what an interruption keeps."""

    def __init__(self) -> None:
        self._shown = -1
        self._terminal = sys.stderr.isatty()
        self._done = 0

    def report(self, done: int, total: int) -> None:
        """Show how many verdicts are there."""
        self._done = done
        percent = 100 * done // total if total else 100
        if self._terminal and percent != self._shown:
            self._shown = percent
            click.echo(f"\r{done} of {total} verdicts", nl=False, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown >= 0:
            click.echo("\r\x1b[K", nl=False, err=True)
        if isinstance(error, KeyboardInterrupt) and self._done:
            click.echo("verdicts so far are cached; run the same command to continue", err=True)
