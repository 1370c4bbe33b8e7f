"""HTTP connection pools that detect unsolicited responses, and the environment's proxies."""

from __future__ import annotations

import asyncio
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from aiohttp import TCPConnector
    from aiohttp.client_proto import ResponseHandler


def unlimited_connector(**options: Any) -> TCPConnector:
    """Return a connection pool without a limit of its own: the engine limits concurrent calls."""
    from aiohttp import TCPConnector

    made = TCPConnector(limit=0, **options)
    # aiohttp has no public option for the protocol class
    made._factory = partial(_protocol(), loop=asyncio.get_running_loop())  # noqa: SLF001
    return made


@cache
def _protocol() -> type[ResponseHandler]:
    from aiohttp.client_proto import ResponseHandler

    class Protocol(ResponseHandler):
        def is_connected(self) -> bool:
            """Whether an idle connection can be reused: not if the server has sent an unsolicited response.

            That response would be read as the reply to the next request.
            """
            return super().is_connected() and not self.should_close

    return Protocol


@lru_cache(maxsize=64)
def proxy_for(url: str) -> str | None:
    """Return the proxy for a URL by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, or None.

    Results are cached: aiohttp's own lookup would use two threads for each call.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
