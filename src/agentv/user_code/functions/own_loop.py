"""Event loops whose own descriptors users' code does not reach by chance: one that is closed would never wake again."""

from __future__ import annotations

import asyncio
import os
import select
import selectors
import socket
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from agentv.user_code.processes.descriptors import keep_private

T = TypeVar("T")


class OwnSelector(selectors.DefaultSelector):
    """The system's selector, under a private number."""

    def __init__(self) -> None:
        super().__init__()
        if sys.platform == "linux":
            with suppress(AttributeError):  # its name is Python's own business
                found: select.epoll = self._selector  # type: ignore[has-type]
                self._selector = select.epoll.fromfd(keep_private(os.dup(found.fileno())))
                found.close()


class OwnLoop(asyncio.SelectorEventLoop):
    """A loop that other threads wake through sockets with private numbers."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        super().__init__(selector or OwnSelector())
        with suppress(AttributeError):  # as above
            self._move_up()

    def _move_up(self) -> None:
        before: tuple[socket.socket, socket.socket] = (self._ssock, self._csock)  # type: ignore[has-type]
        self._remove_reader(before[0].fileno())  # type: ignore[attr-defined]
        self._ssock, self._csock = (socket.socket(fileno=keep_private(one.detach())) for one in before)
        for one in (self._ssock, self._csock):
            one.setblocking(False)
        self._add_reader(self._ssock.fileno(), self._read_from_self)  # type: ignore[attr-defined]


def run_on_own_loop(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on such a loop."""
    with asyncio.Runner(loop_factory=OwnLoop) as runner:
        return runner.run(main)
