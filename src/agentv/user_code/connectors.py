"""Pools of connections for HTTP, which no unasked response can confuse. Import this module where HTTP is used."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler


class _Protocol(ResponseHandler):
    def is_connected(self) -> bool:
        """Whether a kept connection can be used again: not if the server has sent something that nobody asked for.

        Such a response would be taken for that of the next request.
        """
        return super().is_connected() and not self.should_close


def unlimited_connector(**options: Any) -> TCPConnector:
    """A pool without a limit of its own: how many calls there are at once the engine decides."""
    made = TCPConnector(limit=0, **options)
    # aiohttp offers no other way
    made._factory = partial(_Protocol, loop=asyncio.get_running_loop())  # type: ignore[assignment]  # noqa: SLF001
    return made
