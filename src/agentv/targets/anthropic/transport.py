"""The replies that Anthropic's SDK gets: unpacked a piece at a time, and bounded.

Import this module in the function that needs it: httpx2 takes its time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from httpx2 import AsyncByteStream, Request, Response

from agentv.targets.http.bodies import ENCODINGS, bounded


class _Body(AsyncByteStream):
    def __init__(self, stream: AsyncByteStream, packed: str) -> None:
        self._stream = stream
        self._packed = packed

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded(self._stream, self._packed)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _asked(request: Request) -> None:
    request.headers["Accept-Encoding"] = ENCODINGS


async def _replied(response: Response) -> None:
    """Take the unpacking over before anybody reads: the library would unpack all of a piece at once."""
    assert isinstance(response.stream, AsyncByteStream)  # noqa: S101  # what an async client gets
    response.stream = _Body(response.stream, response.headers.pop("content-encoding", ""))


HOOKS: dict[str, list[Callable[..., Any]]] = {"request": [_asked], "response": [_replied]}
