"""Diagnostics and errors, written to the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from agentv.errors import AgentvError, Diagnostic, LoadError, PluginError, UsageError
from agentv.reports.text import one_line, safe

if TYPE_CHECKING:
    from agentv.app.planning.preparation import Prepared
    from agentv.model.redaction import Redactor
    from agentv.user_code.files import Made


PIPED = 200
"""Columns of output that is no terminal."""


def print_diagnostics(found: Sequence[Diagnostic]) -> None:
    """Write diagnostics to stderr, in the form of SPEC section 14."""
    if found:
        from agentv.app.authored.validate import source_of
        from agentv.reports.diagnostics import render_diagnostics

        color = takes_color(sys.stderr)
        click.echo(render_diagnostics(found, source_of, color=color), err=True, color=color)


def print_error(error: AgentvError) -> None:
    """Write what ended a command to stderr."""
    if isinstance(error, LoadError):
        print_diagnostics(error.diagnostics)
        return
    click.echo(f"error: {safe(without_secrets(str(error)))}", err=True)
    if isinstance(error, UsageError | PluginError) and error.hint:
        click.echo(f"  {safe(without_secrets(error.hint))}", err=True)


def without_secrets(message: str) -> str:
    """An error message without the secrets of the environment, for errors before a suite is loaded."""
    from agentv.authoring.source.masking import environment_secrets
    from agentv.model.redaction import Redactor

    return Redactor(environment_secrets(os.environ)).redact(message)


def paths_of_project(*, allow_outside: bool) -> tuple[str, ...]:
    """The eval files of a command that names none; which ones is written to stderr."""
    from agentv.app.planning.default_paths import default_paths  # most commands name theirs

    found = default_paths(os.getcwd(), os.environ, allow_outside=allow_outside)  # noqa: PTH109  # text, as all paths are
    for note in found.notes:
        click.echo(f"note: {one_line(without_secrets(note))}", err=True)
    return found.paths


def print_sample(prepared: Prepared) -> None:
    """Write to stderr which sample was drawn, so that it can be drawn again."""
    sample = prepared.plan.settings.sample
    if sample is not None:
        click.echo(f"sample: {sample.size} of {sample.of} cases; repeat with --seed {sample.seed}", err=True)


def print_json(value: object) -> None:
    """Write a value as JSON to stdout: in ASCII, so that nothing in it steers a terminal."""
    click.echo(json.dumps(value, indent=2, default=str))


_PIECES = 100
"""Pieces of a text that are written together."""


def print_pieces(pieces: Iterable[str]) -> None:
    """Write a long text to stdout, as its pieces are made."""
    remaining = iter(pieces)
    while some := list(islice(remaining, _PIECES)):
        click.echo("".join(some), nl=False)


def print_made(made: Made, shown: Callable[[Path], str]) -> None:
    """Write to stderr which files were made."""
    for path in made.written:
        click.echo(f"wrote {shown(path)}", err=True)
    for path in made.kept:
        click.echo(f"kept {shown(path)}, which already existed", err=True)


def for_people() -> bool:
    """Whether stderr is a terminal in front of a person."""
    return sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def width_and_color() -> tuple[int, bool]:
    """Columns of stdout, and whether it takes colours; wide and plain if it is no terminal."""
    from shutil import get_terminal_size  # which loads three compressors

    is_terminal = sys.stdout.isatty()
    width = get_terminal_size().columns if is_terminal else PIPED
    return width, takes_color(sys.stdout)


def takes_color(stream: TextIO | None) -> bool:
    """Whether a stream takes colours: a terminal does, unless NO_COLOR is set; FORCE_COLOR colours any other, too.

    Source: https://no-color.org, https://force-color.org.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


class ChangedStream:
    """A stream that changes what is written to it.

    Args:
        stream: where the text goes.
        change: what is written of a text.
    """

    def __init__(self, stream: TextIO, change: Callable[[str], str]) -> None:
        self._stream = stream
        self._change = change

    def write(self, text: str) -> int:
        """Write what becomes of a text."""
        self._stream.write(self._change(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write them one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked for is the stream's."""
        return getattr(self._stream, name)


@contextmanager
def streams(made: Callable[[TextIO], Any]) -> Iterator[None]:
    """Within, stdout and stderr are what is made of them; one that is closed stays so."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = ((None if one is None else made(one)) for one in (out, err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


@contextmanager
def redacted(redactor: Redactor) -> Iterator[None]:
    """All that is printed within, to stdout and to stderr, holds no secret."""
    if not redactor:
        yield
        return
    with streams(lambda stream: ChangedStream(stream, redactor.redact)):
        yield
