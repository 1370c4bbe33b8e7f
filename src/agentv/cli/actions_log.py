"""The log of GitHub Actions, in which lines can be commands: printed text never becomes one by accident.

The runner obeys a line that starts, after white space, with `::`, and a `##[` anywhere in a line. Both may occur in
an answer, a name or a file, so everything that a process prints goes through a stream that escapes them.

Source: GitHub's page "Workflow commands for GitHub Actions", and `ActionCommand.cs` of actions/runner.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, TextIO

import click

from agentv.model.values.values import lazy_pattern

_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_COMMAND = lazy_pattern(rf"(?P<begin>[{_LINE_ENDS}][^\S{_LINE_ENDS}]*:):|(?P<inside>##)\[")


def print_commands(text: str) -> None:
    """Print commands that the runner shall obey."""
    obeyed = getattr(sys.stdout, "obeyed", None)
    if obeyed is not None:
        obeyed(f"{text}\n")
    else:
        click.echo(text)


class ActionsStream:
    """A stream whose lines are no commands.

    Args:
        stream: where the text goes.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._behind = "\n"

    def write(self, text: str) -> int:
        """Write a text, with a letter spelled out where it would make a command."""
        behind = self._behind
        self._stream.write(_COMMAND.sub(_spelled, behind + text)[len(behind) :])
        self._behind = _begun(behind + text)
        return len(text)

    def obeyed(self, commands: str) -> None:
        """Write whole lines unchanged."""
        self._stream.write(commands if self._behind == "\n" else f"\n{commands}")
        self._stream.flush()
        self._behind = "\n"

    def writelines(self, lines: Any) -> None:
        """Write them one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked for is the stream's."""
        return getattr(self._stream, name)


def without_commands(text: str, env: Mapping[str, str]) -> str:
    """A text that another program prints, such as pytest, without commands where the runner would obey them."""
    return _COMMAND.sub(_spelled, f"\n{text}")[1:] if env.get("GITHUB_ACTIONS") == "true" else text


def _spelled(found: re.Match[str]) -> str:
    """The command with its last letter as JSON and Python spell it, so that a document of JSON stays what it was."""
    begin = found["begin"]
    return f"{begin}\\u003a" if begin is not None else f"{found['inside']}\\u005b"


def _begun(text: str) -> str:
    """What a text ends with that a command may begin with."""
    end = max(text.rfind(one) for one in _LINE_ENDS)
    line = text[end + 1 :]
    if end >= 0 and line.strip() in ("", ":") and not line[:-1].strip():
        return f"\n{line.strip()}"
    return line[-2:] if line.endswith("##") else line[-1:] if line.endswith("#") else ""


def _is_file(stream: TextIO) -> bool:
    """Whether what is printed goes into a file: that is no log, and stays as it is."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False


@contextmanager
def guarded(env: Mapping[str, str]) -> Iterator[None]:
    """Under GitHub Actions, all that is printed within is guarded."""
    if env.get("GITHUB_ACTIONS") != "true":
        yield
        return
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_stream_of(one) for one in (out, err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def _stream_of(stream: Any) -> Any:
    if stream is None or isinstance(stream, ActionsStream) or _is_file(stream):
        return stream
    if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name == "ascii":
        stream.reconfigure(encoding="utf-8", errors="replace")  # click would write past us otherwise
    return ActionsStream(stream)
