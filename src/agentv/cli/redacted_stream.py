"""Redaction of everything that a run prints, and of what users' code prints, which comes by way of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from agentv.model.secrets.redaction import Redactor


class RedactedStream:
    """A stream that takes secrets out of what is written to it.

    Args:
        stream: where the text goes.
        redactor: knows the secrets.
    """

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor

    def write(self, text: str) -> int:
        """Write a text without secrets."""
        self._stream.write(self._redactor.redact(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write them one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked for is the stream's."""
        return getattr(self._stream, name)


@contextmanager
def redacted(redactor: Redactor) -> Iterator[None]:
    """All that is printed within, to stdout and to stderr, holds no secret."""
    if not redactor:
        yield
        return
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_stream_of(one, redactor) for one in (out, err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def _stream_of(stream: Any, redactor: Redactor) -> Any:
    return None if stream is None else RedactedStream(stream, redactor)
