"""A loopback HTTP server that misbehaves as the first part of the path says.

It runs in a thread of its own, so that tests of commands can use it as well as tests of coroutines.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from aiohttp import web

HUGE = 10_000_001


class MisbehavingServer:
    """The server; `url("hang")` is the address at which it hangs.

    Attributes:
        seen: the requests so far, in the form that `/echo` returns.
        at: their times, in seconds of the monotonic clock.
        retry_after: the Retry-After header of every error, if not None.
        answer: the final reply of paths such as `/429/2`.
    """

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.at: list[float] = []
        self.retry_after: str | None = "0.01"
        self.answer = "at last"
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._left: dict[str, int] = {}

    def url(self, way: str) -> str:
        return f"http://127.0.0.1:{self.port}/{way}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        way, _, rest = request.path.strip("/").partition("/")
        seen = {
            "method": request.method,
            "path": request.path_qs,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": (await request.read()).decode(errors="replace"),
        }
        self.seen.append(seen)
        self.at.append(time.monotonic())
        if way.isdecimal():
            return self._status(int(way), rest)
        return await getattr(self, f"_{way.replace('-', '_')}")(request, seen, rest)

    def _status(self, status: int, times: str) -> web.Response:
        """Reply to `/429` with this status always, and to `/429/2` twice before an answer."""
        left = self._left.setdefault(f"{status}/{times}", int(times or 1_000_000))
        self._left[f"{status}/{times}"] = left - 1
        if left <= 0:
            return web.json_response({"output": self.answer})
        headers = {} if self.retry_after is None else {"Retry-After": self.retry_after}
        return web.Response(status=status, text=f"no {status}", headers=headers)

    async def _ok(self, _request: web.Request, seen: dict[str, Any], _rest: str) -> web.Response:
        prompt = json.loads(seen["body"])["prompt"]
        return web.json_response({"output": prompt, "token_usage": {"input": 3, "output": 4}, "cost_usd": 0.25})

    async def _text(self, _request: web.Request, _seen: dict[str, Any], rest: str) -> web.Response:
        return web.Response(text=rest)

    async def _json(self, request: web.Request, _seen: dict[str, Any], _rest: str) -> web.Response:
        return web.Response(text=request.query["body"], content_type=request.query.get("type", "application/json"))

    async def _echo(self, _request: web.Request, seen: dict[str, Any], _rest: str) -> web.Response:
        return web.json_response(seen)

    async def _redirect(self, request: web.Request, _seen: dict[str, Any], rest: str) -> web.Response:
        return web.Response(status=307, headers={"Location": request.query.get("to", f"/{rest}")})

    async def _bad_json(self, _request: web.Request, _seen: dict[str, Any], _rest: str) -> web.Response:
        return web.Response(text='{"output": "cut o', content_type="application/json")

    async def _not_utf_8(self, _request: web.Request, _seen: dict[str, Any], _rest: str) -> web.Response:
        return web.Response(body=b"caf\xe9")

    async def _huge(self, _request: web.Request, _seen: dict[str, Any], _rest: str) -> web.Response:
        return web.Response(body=b"a" * HUGE)

    async def _huge_stream(self, request: web.Request, _seen: dict[str, Any], _rest: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(HUGE // 100_000 + 1):
            await response.write(b"a" * 100_000)
        return response

    async def _closed(self, request: web.Request, _seen: dict[str, Any], _rest: str) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _cut(self, request: web.Request, _seen: dict[str, Any], _rest: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half an ans")
        assert request.transport is not None
        request.transport.close()
        return response

    async def _hang(self, _request: web.Request, _seen: dict[str, Any], _rest: str) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    async def _serve(self) -> web.AppRunner:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{way:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        return runner


@contextmanager
def misbehaving_server() -> Iterator[MisbehavingServer]:
    """Yield a server that runs during the block."""
    server = MisbehavingServer()
    loop = server._loop
    runner = loop.run_until_complete(server._serve())
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()
