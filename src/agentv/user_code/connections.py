"""HTTP connections: pools that no unasked response can confuse, and the proxies of the environment."""

from __future__ import annotations

import asyncio
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from aiohttp import TCPConnector
    from aiohttp.client_proto import ResponseHandler


def unlimited_connector(**options: Any) -> TCPConnector:
    """A pool without a limit of its own: how many calls there are at once the engine decides."""
    from aiohttp import TCPConnector

    made = TCPConnector(limit=0, **options)
    # aiohttp offers no other way
    made._factory = partial(_protocol(), loop=asyncio.get_running_loop())  # noqa: SLF001
    return made


@cache
def _protocol() -> type[ResponseHandler]:
    from aiohttp.client_proto import ResponseHandler

    class Protocol(ResponseHandler):
        def is_connected(self) -> bool:
            """Whether a kept connection can be used again: not if the server has sent something that nobody asked for.

            Such a response would be taken for that of the next request.
            """
            return super().is_connected() and not self.should_close

    return Protocol


@lru_cache(maxsize=64)
def proxy_for(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name; aiohttp would ask two threads a call."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
