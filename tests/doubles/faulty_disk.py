"""A Disk whose nth call fails, falls short or ends the process."""

import errno
import os
from collections.abc import Callable
from typing import Any

from agentv.prompts.disk import Disk

CALLS = tuple(name for name in vars(Disk) if not name.startswith("_"))


class CountingDisk(Disk):
    """Records the name of every call in `calls`; `at` is called before each one."""

    def __init__(self, at: Callable[[int, str], None] = lambda _number, _name: None) -> None:
        self.calls: list[str] = []
        self._at = at

    def __getattribute__(self, name: str) -> Any:
        if name not in CALLS:
            return super().__getattribute__(name)
        made = super().__getattribute__(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if name == "close":  # close(2) releases the descriptor even if it fails
                made(*arguments)
            self._at(len(self.calls) - 1, name)
            return None if name == "close" else made(*arguments)

        return call


def failing_disk(number: int, code: int = errno.EIO) -> CountingDisk:
    """Return a disk whose nth call, from 0, raises an OSError."""

    def at(place: int, _name: str) -> None:
        if place == number:
            raise OSError(code, os.strerror(code))

    return CountingDisk(at)


def refusing_disk(code: int, *names: str) -> CountingDisk:
    """Return a disk that refuses every call with one of these names."""

    def at(_place: int, name: str) -> None:
        if name in names:
            raise OSError(code, os.strerror(code))

    return CountingDisk(at)


def dying_disk(number: int) -> CountingDisk:
    """Return a disk that ends the process before the nth call, without any cleanup."""

    def at(place: int, _name: str) -> None:
        if place == number:
            os._exit(9)

    return CountingDisk(at)


class FullDisk(Disk):
    """Accepts `room` bytes in total and is full after that."""

    def __init__(self, room: int) -> None:
        self._room = room

    def write(self, descriptor: int, data: bytes) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = super().write(descriptor, data[: self._room])
        self._room -= taken
        return taken
