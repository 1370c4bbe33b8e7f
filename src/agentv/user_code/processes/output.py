"""Standard output that lives in the process in front: what the process behind prints reaches it in lines of its own.

Each carries a word that users' code was not told, and is written at once, so that what others write into the pipe
stands between two of them and is dropped. Where standard output is a terminal, or the same file as stderr, all that is
printed goes there in its order, and nothing reads it as data: there the process behind writes to it itself.
"""

from __future__ import annotations

import io
import os
import select
import signal
from binascii import Error, a2b_base64, b2a_base64
from contextlib import suppress
from typing import Any

_WORD_BYTES = 32
_PIECE = (select.PIPE_BUF - _WORD_BYTES - 8) // 4 * 3
"""Bytes of text whose line a pipe takes in one: what others write cannot come between."""

_AHEAD = 1 << 20
"""Bytes that are held while whoever reads them is slow; of lines without an end, too."""


def is_relayed() -> bool:
    """Whether standard output is for programs, and apart from stderr."""
    with suppress(OSError):
        return not os.isatty(1) and not os.path.sameopenfile(1, 2)
    return False


def wake(front: int) -> None:
    """Have the process in front go on, should somebody have stopped it: it is needed now."""
    with suppress(OSError):
        os.kill(front, signal.SIGCONT)


class Relay(io.RawIOBase):
    """The end behind: a stream of bytes.

    Attributes:
        printed: how many bytes were handed on.

    Args:
        descriptor: of the pipe.
        word: what each line begins with.
    """

    def __init__(self, descriptor: int, word: bytes) -> None:
        self._descriptor = descriptor
        self._word = word
        self._front = os.getppid()
        self.printed = 0

    def writable(self) -> bool:
        """It is for writing."""
        return True

    def fileno(self) -> int:
        """The pipe's."""
        return self._descriptor

    def write(self, data: Any, /) -> int:
        """Hand on a piece."""
        if not self.printed:
            wake(self._front)
        piece = bytes(data[:_PIECE])
        os.write(self._descriptor, b"\n%b %b\n" % (self._word, b2a_base64(piece, newline=False)))
        self.printed += len(piece)
        return len(piece)


class Outlet:
    """The end in front.

    Attributes:
        received: how many bytes arrived in lines with the word.
        failure: what the system said when standard output took no more.

    Args:
        descriptor: of the pipe, which does not block.
        word: as of `Relay`.
    """

    def __init__(self, descriptor: int, word: bytes) -> None:
        self.descriptor = descriptor
        self.received = 0
        self.failure: OSError | None = None
        self._begins = word + b" "
        self._read = b""
        self._waiting = bytearray()
        self._is_open = True

    @property
    def reads(self) -> bool:
        """Whether more can be taken."""
        return self._is_open and len(self._waiting) < _AHEAD

    @property
    def writes(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._waiting)

    def take(self) -> bool:
        """Read what has arrived; whether there may be more."""
        if not self.reads:
            return False
        try:
            chunk = os.read(self.descriptor, 65_536)
        except BlockingIOError:
            return False
        if not chunk:
            self._close()
        *lines, self._read = (self._read + chunk).split(b"\n")
        self._read = self._read[-_AHEAD:]
        for line in lines:
            if line.startswith(self._begins):
                with suppress(Error):
                    piece = a2b_base64(line.removeprefix(self._begins), strict_mode=True)
                    self.received += len(piece)
                    self._waiting += piece
        return bool(chunk)

    def give(self) -> None:
        """Write what standard output takes without waiting, once it is known to take some."""
        try:
            written = os.write(1, self._waiting[: select.PIPE_BUF])
        except OSError as error:
            self.fail(error)
        else:
            del self._waiting[:written]

    def fail(self, error: OSError) -> None:
        """Whoever read has gone, or the disk is full: the process behind finds the pipe closed."""
        self.failure = error
        self._waiting.clear()
        self._close()

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.descriptor)
