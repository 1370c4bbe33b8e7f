"""`ModelServer`: the providers' protocols on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from agentv.model.values import JsonObject
from agentv.testing.calls import ModelCall, text_of
from agentv.testing.delivery import deliver
from agentv.testing.keys import key_in
from agentv.testing.plan import over_limit, refusal, reply_of
from agentv.testing.rate import Left, TokenBucket
from agentv.testing.replies import Reply
from agentv.testing.routes import ADDRESSES, Route, provider_of, route_of
from agentv.testing.steps import Answer, Status, Step

if TYPE_CHECKING:
    from aiohttp.web import AppRunner, Request, StreamResponse

Told: TypeAlias = "str | Step | Sequence[str | Step] | Callable[[ModelCall], str | Step]"
_LARGEST = 1 << 30


class ModelServer:
    """A model provider for tests: it answers as it is told, and misbehaves as it is told.

    `with ModelServer("hello") as server:` serves while the block runs; `async with` as well. Give `server.openai` (or
    `anthropic`, `gemini`, `azure`, `ollama`) to an SDK or a target as its base URL.

    Args:
        reply: what the calls get. A text or a step: all of them. A sequence of them: one each, in their order, and
            the last one again and again. A function of the call: what it returns; one that raises is an error 500
            that tells so. It is called on the server's thread.
        rate: requests a second that pass; those beyond get 429 with `Retry-After`. All requests carry the provider's
            rate headers.
        delay_s: seconds before each reply of a step.
        keys: the API keys that are accepted; any other gets the provider's error. None accepts all, and none.
        clock: seconds, never going back; what `rate` and `ModelCall.at` go by.
        port: to listen at on 127.0.0.1; 0 takes a free one.
    """

    def __init__(
        self,
        reply: Told = "",
        *,
        rate: float | None = None,
        delay_s: float = 0.0,
        keys: Collection[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        port: int = 0,
    ) -> None:
        self._told = _script(reply)
        self._bucket = None if rate is None else TokenBucket(rate, clock)
        self._delay_s = delay_s
        self._keys = None if keys is None else frozenset(keys)
        self._clock = clock
        self._port = port
        self._seen = _Seen()
        self._running: _Running | None = None

    @property
    def openai(self) -> str:
        """`http://127.0.0.1:PORT/openai/v1`: chat completions, responses, embeddings, models."""
        return self._address("openai")

    @property
    def anthropic(self) -> str:
        """`http://127.0.0.1:PORT/anthropic`: `/v1/messages`, `/v1/models`."""
        return self._address("anthropic")

    @property
    def gemini(self) -> str:
        """`http://127.0.0.1:PORT/gemini`: `/v1beta/models/MODEL:generateContent` and its like."""
        return self._address("gemini")

    @property
    def azure(self) -> str:
        """`http://127.0.0.1:PORT/azure`: `/openai/deployments/NAME/…` and `/openai/v1/…`."""
        return self._address("azure")

    @property
    def ollama(self) -> str:
        """`http://127.0.0.1:PORT/ollama`: `/v1/…` in OpenAI's protocol, `/api/…` in Ollama's own."""
        return self._address("ollama")

    @property
    def calls(self) -> list[ModelCall]:
        """The requests to models so far, those that were refused for their key or the rate limit too."""
        return list(self._seen.calls)

    @property
    def statuses(self) -> Mapping[int, int]:
        """How many replies of each status began."""
        return dict(self._seen.statuses)

    @property
    def most_at_once(self) -> int:
        """The largest number of requests that waited for their reply at the same time."""
        return self._seen.most

    def start(self) -> Self:
        """Serve until `stop`.

        Raises:
            OSError: the port is taken.
            RuntimeError: the server runs already.
        """
        if self._running is not None:
            raise RuntimeError("this ModelServer runs already; make another one")
        self._running = _Running(self._handle, self._port)
        return self

    def stop(self) -> None:
        """End all that hangs, and give the port back. Nothing happens where it does not run."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _address(self, protocol: str) -> str:
        if self._running is None:
            raise RuntimeError("a ModelServer has addresses while it runs: `with ModelServer(…) as server:`")
        return f"http://127.0.0.1:{self._running.port}{ADDRESSES[protocol]}"

    async def _handle(self, request: Request) -> StreamResponse:
        route = route_of(request.path) if request.method == "POST" else None
        call = await self._call(request, route)
        if route is None or call is None:
            return await self._refused(request, 400 if route else 404)
        number = self._seen.arrived(call)
        try:
            return await self._reply(request, route, call, number)
        finally:
            self._seen.left()

    async def _call(self, request: Request, route: Route | None) -> ModelCall | None:
        body = _object(await request.read())
        if route is None or body is None:
            return None
        return ModelCall(
            protocol=route.provider.name,
            operation=route.operation.name,
            path=request.path,
            model=route.model or str(body.get("model", "")),
            text=text_of(body),
            body=body,
            headers={name.lower(): value for name, value in request.headers.items()},
            query={name: value for name, value in request.query.items() if name != "key"},
            at=self._clock(),
        )

    async def _reply(self, request: Request, route: Route, call: ModelCall, number: int) -> StreamResponse:
        left = None if self._bucket is None else self._bucket.take()
        headers = {} if left is None else dict(route.provider.rate_headers(left))
        refused = self._refusal(request, route, call, left)
        if refused is not None:
            return await self._send(request, refused, None, headers)
        step = self._told(call)
        delay = self._delay_s + (step.delay_s if isinstance(step, Answer) else 0.0)
        if delay > 0:
            await asyncio.sleep(delay)
        return await self._send(request, reply_of(route, call, step, number), step, headers)

    def _refusal(self, request: Request, route: Route, call: ModelCall, left: Left | None) -> Reply | None:
        if self._keys is not None and key_in(call, request.query) not in self._keys:
            return refusal(route.provider, call, Status(route.provider.bad_key))
        if left is not None and not left.allowed:
            return over_limit(route.provider, call, left)
        return None

    async def _send(
        self, request: Request, reply: Reply, step: Step | None, headers: Mapping[str, str]
    ) -> StreamResponse:
        self._seen.statuses[reply.status] += 1
        return await deliver(request, reply, step, headers)

    async def _refused(self, request: Request, status: int) -> StreamResponse:
        """For what is no call: an unknown path, or a body that is no JSON object."""
        message = f"Unknown request URL: {request.method} {request.path}" if status == 404 else "The body is no JSON."
        call = ModelCall("", "", request.path, "", "", {}, {}, {}, self._clock())
        return await deliver(request, refusal(provider_of(request.path), call, Status(status, message)), None, {})


class _Seen:
    """What has come in so far; written on the server's thread alone."""

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        self.statuses: Counter[int] = Counter()
        self.most = 0
        self._here = 0

    def arrived(self, call: ModelCall) -> int:
        """The number of the call, from 1."""
        self.calls.append(call)
        self._here += 1
        self.most = max(self.most, self._here)
        return len(self.calls)

    def left(self) -> None:
        """A call has got all that it gets."""
        self._here -= 1


class _Running:
    """The thread, its loop and the open port, from when it can be called until `stop`."""

    def __init__(self, handle: Callable[[Request], object], port: int) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            self._runner = self._loop.run_until_complete(_serving(handle, port))
        except BaseException:
            self._loop.close()
            raise
        self.port: int = self._runner.addresses[0][1]
        self._thread = Thread(target=self._loop.run_forever, name="agentv-model-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _serving(handle: Callable[[Request], object], port: int) -> AppRunner:
    from aiohttp import web

    app = web.Application(client_max_size=_LARGEST)
    app.router.add_route("*", "/{path:.*}", handle)  # type: ignore[arg-type]  # it is a coroutine function
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return runner


def _script(told: Told) -> Callable[[ModelCall], Step]:
    """Whatever says what to reply, as a function from calls to steps."""
    if isinstance(told, str):
        answer = Answer(told)
        return lambda _call: answer
    if callable(told):
        return lambda call: _asked(told, call)
    if isinstance(told, Sequence):
        return _InOrder(told).next
    return lambda _call: told


def _asked(function: Callable[[ModelCall], str | Step], call: ModelCall) -> Step:
    try:
        step = function(call)
    except Exception as error:  # noqa: BLE001  # a user's function; the caller is told
        return Status(500, f"the reply function raised {type(error).__name__}: {error}")
    return Answer(step) if isinstance(step, str) else step


class _InOrder:
    """Called on the server's thread alone. Each call gets the next step; when they are used up, the last."""

    def __init__(self, steps: Sequence[str | Step]) -> None:
        if not steps:
            raise ValueError("a ModelServer needs at least one step to reply with")
        self._steps = tuple(Answer(step) if isinstance(step, str) else step for step in steps)
        self._next = 0

    def next(self, _call: ModelCall) -> Step:
        step = self._steps[min(self._next, len(self._steps) - 1)]
        self._next += 1
        return step


def _object(raw: bytes) -> JsonObject | None:
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
