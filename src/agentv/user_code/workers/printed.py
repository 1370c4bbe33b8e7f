"""What a worker prints reaches stderr by way of this process, whose stderr leaves out secrets."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from threading import Thread
from typing import Self

_CHUNK = 1 << 16
_LONGEST = 1 << 20
"""Bytes of a line, all of which have to be there before secrets are looked for; a longer one is left out."""

_LEFT_OUT = b"[a printed line of more than 1 MiB was left out]"


class Printed:
    """A pipe for standard output and stderr of a process, and the thread that hands on what comes out of it.

    It reads no faster than stderr takes, so that nothing piles up. In its `with` block the process is started.

    Attributes:
        to: the end for the process.
    """

    def __init__(self) -> None:
        self._from, self.to = os.pipe()
        self._ended, self._ends = os.pipe()
        os.set_blocking(self._from, False)
        self._thread = Thread(target=self._relay, name="agentv-printed", daemon=True)
        self._held = bytearray()
        self._leaves_out = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.to)
        if error[0] is not None:
            for one in (self._from, self._ended, self._ends):
                os.close(one)

    def start(self) -> None:
        """Hand on what is printed from now on."""
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """The process has ended: hand on what is left. What it leaves running may hold the pipe open."""
        os.write(self._ends, b".")
        self._thread.join(seconds)
        if not self._thread.is_alive():
            for one in (self._from, self._ended, self._ends):
                os.close(one)

    def _relay(self) -> None:
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        is_open = True
        while is_open and self._ended not in (ready := [one for one, _ in poll.poll()]):
            if self._from in ready:
                is_open = self._read()
        left = _LONGEST // _CHUNK  # as much as a pipe can hold
        while is_open and left:
            with suppress(BlockingIOError):
                is_open = self._read()
                left -= 1
                continue
            break
        if self._held or self._leaves_out:
            self._write((_LEFT_OUT if self._leaves_out else bytes(self._held)) + b"\n")

    def _read(self) -> bool:
        """Hand on the lines that have arrived; whether the pipe is open."""
        chunk = os.read(self._from, _CHUNK)
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if end:
            begins = chunk[:end]
            if self._leaves_out:
                begins = _LEFT_OUT + begins[len(begins.splitlines()[0]) :]
                self._leaves_out = False
            self._write(bytes(self._held) + begins)
            self._held.clear()
        if not self._leaves_out:
            self._held += chunk[end:]
        if len(self._held) > _LONGEST:
            self._held.clear()
            self._leaves_out = True
        return bool(chunk)

    def _write(self, lines: bytes) -> None:
        with suppress(OSError, ValueError, AttributeError):  # nobody reads stderr, or it is closed
            sys.stderr.write(lines.decode(errors="backslashreplace"))
            sys.stderr.flush()
