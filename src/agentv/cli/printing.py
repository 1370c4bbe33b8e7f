"""Printing of diagnostics, errors, JSON and files, and the streams that change what is printed."""

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
    from agentv.user_code.files import WrittenFiles


PIPED_WIDTH = 200
"""Width, in columns, of output that does not go to a terminal."""


def print_diagnostics(found: Sequence[Diagnostic]) -> None:
    """Write diagnostics to stderr, in the form of SPEC section 14."""
    if found:
        from agentv.app.authored.validate import source_of
        from agentv.reports.diagnostics import render_diagnostics

        color = takes_color(sys.stderr)
        click.echo(render_diagnostics(found, source_of, color=color), err=True, color=color)


def print_error(error: AgentvError) -> None:
    """Write the error that ended a command to stderr."""
    if isinstance(error, LoadError):
        print_diagnostics(error.diagnostics)
        return
    click.echo(f"error: {safe(without_secrets(str(error)))}", err=True)
    if isinstance(error, UsageError | PluginError) and error.hint:
        click.echo(f"  {safe(without_secrets(error.hint))}", err=True)


def without_secrets(message: str) -> str:
    """Return an error message with the environment's secrets redacted, for errors before a suite is loaded."""
    from agentv.authoring.source.masking import environment_secrets
    from agentv.model.redaction import Redactor

    return Redactor(environment_secrets(os.environ)).redact(message)


def paths_of_project(*, allow_outside: bool) -> tuple[str, ...]:
    """Return the eval files for a command line that names none, and print to stderr which ones they are."""
    from agentv.app.planning.default_paths import default_paths  # most command lines name theirs

    found = default_paths(os.getcwd(), os.environ, allow_outside=allow_outside)  # noqa: PTH109  # paths are strings
    for note in found.notes:
        click.echo(f"note: {one_line(without_secrets(note))}", err=True)
    return found.paths


def print_sample(prepared: Prepared) -> None:
    """Write the size and the seed of a drawn sample to stderr, so that it can be drawn again."""
    sample = prepared.plan.settings.sample
    if sample is not None:
        click.echo(f"sample: {sample.size} of {sample.of} cases; repeat with --seed {sample.seed}", err=True)


def print_json(value: object) -> None:
    """Write a value as JSON to stdout, in ASCII, so that it cannot contain control sequences for a terminal."""
    click.echo(json.dumps(value, indent=2, default=str))


_PIECES_AT_ONCE = 100
"""Number of pieces that are written at once."""


def print_pieces(pieces: Iterable[str]) -> None:
    """Write a long text to stdout while its pieces are produced."""
    remaining = iter(pieces)
    while batch := list(islice(remaining, _PIECES_AT_ONCE)):
        click.echo("".join(batch), nl=False)


def print_created(made: WrittenFiles, shown: Callable[[Path], str]) -> None:
    """Write to stderr which files were created and which already existed."""
    for path in made.written:
        click.echo(f"wrote {shown(path)}", err=True)
    for path in made.kept:
        click.echo(f"kept {shown(path)}, which already existed", err=True)


def is_interactive() -> bool:
    """Return whether stderr is a terminal that a person reads."""
    return sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def width_and_color() -> tuple[int, bool]:
    """Return the width of stdout in columns, and whether to write colors to it; wide if it is not a terminal."""
    from shutil import get_terminal_size  # shutil imports three compression libraries

    is_terminal = sys.stdout.isatty()
    width = get_terminal_size().columns if is_terminal else PIPED_WIDTH
    return width, takes_color(sys.stdout)


def takes_color(stream: TextIO | None) -> bool:
    """Return whether to write colors to a stream: by default to terminals, except in CI.

    NO_COLOR turns colors off, and FORCE_COLOR turns them on. Source: https://no-color.org, https://force-color.org.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


class ChangedStream:
    """A stream that changes the text that is written to it.

    Args:
        stream: the stream to write to.
        change: returns the text to write instead of a text.
    """

    def __init__(self, stream: TextIO, change: Callable[[str], str]) -> None:
        self._stream = stream
        self._change = change

    def write(self, text: str) -> int:
        """Write the changed text."""
        self._stream.write(self._change(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the changed lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def replaced_streams(made: Callable[[TextIO], Any]) -> Iterator[None]:
    """Replace stdout and stderr by what `made` returns for them within this context; a closed one stays None."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = ((None if one is None else made(one)) for one in (out, err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


@contextmanager
def redacted(redactor: Redactor) -> Iterator[None]:
    """Redact secrets in everything that is printed to stdout and stderr within this context."""
    if not redactor:
        yield
        return
    with replaced_streams(lambda stream: ChangedStream(stream, redactor.redact)):
        yield
