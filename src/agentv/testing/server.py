"""`ModelServer`: serves the providers' protocols on loopback, in its own thread."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from threading import Thread
from typing import TYPE_CHECKING, Self, TypeAlias

from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.delivery import deliver
from agentv.testing.openai import CREATED
from agentv.testing.replies import ModelApi, Reply, TokenBucket, encoded
from agentv.testing.routes import ADDRESSES, Route, error_reply, over_limit, provider_of, reply_of, route_of
from agentv.testing.steps import (
    ANSWER_STEPS,
    Answer,
    ModelCall,
    Script,
    Status,
    Step,
    StoppedStream,
    Together,
    Truncated,
    script_of,
    text_of,
)

if TYPE_CHECKING:
    from aiohttp.web import AppRunner, Request, StreamResponse

    Handle: TypeAlias = Callable[[Request], Awaitable[StreamResponse]]

_NO_WEBSOCKET = Status(426, "This server speaks HTTP only; there is no WebSocket.", headers={"Connection": "close"})


class ModelServer:
    """A model provider for tests, which returns the answers and errors that you specify.

    `with ModelServer("hello") as server:` serves during the block; `async with` works too. Pass `server.openai` (or
    `anthropic`, `gemini`, `azure`, `ollama`) to an SDK or a target as its base URL.

    Args:
        reply: what calls return. A text or a step is returned by every call. Items of a sequence are returned in order,
            one per call; the last one is repeated. A function takes the call and returns a text or a step; if it
            raises, the call gets an error 500 with the error's text. The function is called in the server's thread.
        rate: accepted requests per second; others get 429 with `Retry-After`.
        delay_s: seconds before each step's reply.
        keys: accepted API keys; any other gets the provider's error. None accepts any key, and requests without one.
        clock: monotonic seconds, used by `rate` and `ModelCall.at`.
        keep: number of the latest calls that `calls` keeps; None keeps all.
    """

    def __init__(
        self,
        reply: Script = "",
        *,
        rate: float | None = None,
        delay_s: float = 0.0,
        keys: Collection[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        keep: int | None = None,
    ) -> None:
        self._script = script_of(reply)
        self._bucket = None if rate is None else TokenBucket(rate, clock)
        self._delay_s = delay_s
        self._keys = None if keys is None else frozenset(keys)
        self._clock = clock
        self._log = _CallLog(keep)
        self._running: Running | None = None

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
        """`http://127.0.0.1:PORT/gemini`: `/v1beta/models/MODEL:generateContent` and similar."""
        return self._address("gemini")

    @property
    def azure(self) -> str:
        """`http://127.0.0.1:PORT/azure`: `/openai/deployments/NAME/…` and `/openai/v1/…`."""
        return self._address("azure")

    @property
    def ollama(self) -> str:
        """`http://127.0.0.1:PORT/ollama`: `/v1/…`, in OpenAI's protocol."""
        return self._address("ollama")

    @property
    def calls(self) -> list[ModelCall]:
        """The calls so far, including those refused for their key or the rate limit."""
        return list(self._log.calls)

    @property
    def statuses(self) -> Mapping[int, int]:
        """Number of replies that were started, by status."""
        return dict(self._log.statuses)

    @property
    def most_at_once(self) -> int:
        """The largest number of calls that waited for their reply at the same time."""
        return self._log.most_waiting

    @property
    def tokens(self) -> TokenUsage:
        """Tokens reported by the replies so far, except truncated ones."""
        return self._log.tokens

    def start(self, port: int = 0) -> Self:
        """Serve until `stop`.

        Args:
            port: port on 127.0.0.1; 0 chooses a free one.

        Raises:
            OSError: the port is taken.
            RuntimeError: the server is already running.
        """
        if self._running is not None:
            raise RuntimeError("this ModelServer is already running; create another one")
        self._running = Running(self._handle, port)
        return self

    def stop(self) -> None:
        """Cancel pending replies and release the port. Does nothing if the server is not running."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    def _address(self, protocol: str) -> str:
        if self._running is None:
            raise RuntimeError("a ModelServer has URLs only while it runs: `with ModelServer(…) as server:`")
        return f"http://127.0.0.1:{self._running.port}{ADDRESSES[protocol]}"

    async def _handle(self, request: Request) -> StreamResponse:
        route = route_of(request.path) if request.method == "POST" else None
        if route is None:
            return await self._reply_without_step(request)
        body = _object(await request.read())
        if body is None:
            return await self._send_error(request, Status(400, "The body is not a JSON object."))
        call = ModelCall(
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
        number = self._log.arrived(call)
        try:
            return await self._reply(request, route, call, number)
        finally:
            self._log.waiting -= 1

    async def _reply(self, request: Request, route: Route, call: ModelCall, number: int) -> StreamResponse:
        if not self._accepted(request, route.provider):
            return await self._send(request, error_reply(route.provider, call, route.provider.bad_key))
        wait_s = 0.0 if self._bucket is None else self._bucket.take()
        if wait_s:
            return await self._send(request, over_limit(route.provider, call, wait_s))
        step = self._script(call)
        while isinstance(step, Together) and self._log.most_waiting < step.requests:
            await self._log.arrival.wait()
        delay = self._delay_s + (step.delay_s if isinstance(step, Answer) else 0.0)
        if delay > 0:
            await asyncio.sleep(delay)
        # count before sending, so that a client that has its answer finds it counted; truncated replies report no usage
        answer = step.answer if isinstance(step, ANSWER_STEPS) and not isinstance(step, _TRUNCATED) else step
        if isinstance(answer, Answer) and answer.usage is not None:
            self._log.tokens += answer.usage
        return await self._send(request, reply_of(route, call, step, number), step)

    async def _send(self, request: Request, reply: Reply, step: Step | None = None) -> StreamResponse:
        if reply.pieces:
            self._log.statuses[reply.status] += 1
        return await deliver(request, reply, step)

    def _accepted(self, request: Request, provider: ModelApi) -> bool:
        return self._keys is None or key_in(provider.name, request.headers, request.query) in self._keys

    async def _reply_without_step(self, request: Request) -> StreamResponse:
        """Reply to a request that uses no step: model lists, token counts, unknown paths."""
        provider = provider_of(request.path)
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._send_error(request, _NO_WEBSOCKET)
        if request.method == "POST":
            listed = count_of(request.path, _object(await request.read()) or {})
        else:
            listed = listing_of(request.path) if request.method in ("GET", "HEAD") else None
        if listed is None:
            unknown = f"Unknown request URL: {request.method} {request.path}"
            return await self._send_error(request, Status(404, unknown))
        if not self._accepted(request, provider):
            return await self._send_error(request, provider.bad_key)
        return await deliver(request, Reply(200, (encoded(listed),)), None)

    async def _send_error(self, request: Request, status: Status) -> StreamResponse:
        call = ModelCall("", "", request.path, "", "", {}, {}, {}, self._clock())
        return await deliver(request, error_reply(provider_of(request.path), call, status), None)


class _CallLog:
    """The calls and replies so far; written only by the server's thread.

    Attributes:
        waiting: number of calls that wait for their reply; `most_waiting` is its maximum so far.
        arrival: set when the next call arrives, and then replaced.
    """

    def __init__(self, keep: int | None) -> None:
        self.calls: deque[ModelCall] = deque(maxlen=keep)
        self.number = 0
        self.statuses: Counter[int] = Counter()
        self.tokens = TokenUsage(input=0, output=0, total=0, cached=0, reasoning=0)
        self.most_waiting = 0
        self.waiting = 0
        self.arrival = asyncio.Event()

    def arrived(self, call: ModelCall) -> int:
        """Record a call and return its number, counted from 1."""
        self.calls.append(call)
        self.number += 1
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        self.arrival.set()
        self.arrival = asyncio.Event()
        return self.number


def _object(raw: bytes) -> JsonObject | None:
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


_HEADERS = {"anthropic": "x-api-key", "azure": "api-key", "gemini": "x-goog-api-key"}


def key_in(provider: str, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """The API key of a request: from its provider's header, a bearer token, or the URL (Gemini); "" without one.

    Args:
        provider: name of the provider.
        headers: headers of the request, with case-insensitive names.
        query: query parameters of the URL.
    """
    own = headers.get(_HEADERS.get(provider, ""), "")
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return own or bearer or (query.get("key", "") if provider == "gemini" else "")


MODEL = "fake-model"
_MODELS = re.compile(
    r"/(openai/v1|azure/openai(/v1)?|ollama/v1|(?P<anthropic>anthropic/v1)|(?P<gemini>gemini/v1\w*))"
    r"/models(?:/(?P<name>.+))?"
)


def listing_of(path: str) -> JsonObject | None:
    """The reply to a GET of a model or of the list of models; None for other paths."""
    found = _MODELS.fullmatch(path)
    if found is None:
        return None
    name = found["name"] or MODEL
    if found["anthropic"]:
        made = {"created_at": "2025-10-09T08:53:20Z", "lifecycle": "active"}
        one: JsonObject = {"type": "model", "id": name, "display_name": name, **made}
        many: JsonObject = {"data": [one], "has_more": False, "first_id": name, "last_id": name}
    elif found["gemini"]:
        methods = ["generateContent", "embedContent"]
        one = {"name": f"models/{name}", "version": "1", "displayName": name, "supportedGenerationMethods": methods}
        many = {"models": [one]}
    else:
        one = {"id": name, "object": "model", "created": CREATED, "owned_by": "agentv"}
        many = {"object": "list", "data": [one]}
    return one if found["name"] else many


_LETTERS = 4
"""Approximate number of characters per token in English."""


def count_of(path: str, body: JsonObject) -> JsonObject | None:
    """The reply to a POST that counts tokens; None for other paths.

    Args:
        path: path of the URL.
        body: body of the request, which Gemini may wrap in `generateContentRequest`.
    """
    inner = body.get("generateContentRequest")
    count = -(-len(text_of(inner if isinstance(inner, Mapping) else body)) // _LETTERS)
    if path == "/anthropic/v1/messages/count_tokens":
        return {"input_tokens": count}
    if re.fullmatch(r"/gemini/v1\w*/\w+/[^/:]+:countTokens", path):
        return {"totalTokens": count}
    return None


_TRUNCATED = (Truncated, StoppedStream)
_LARGEST = 1 << 30
_GRACE_S = 0.01  # for pending calls; 0 means no limit in aiohttp
_BACKLOG = 4096  # thousands of clients may connect at once


class Running:
    """A running server: its thread, event loop and open port on 127.0.0.1, until `stop`.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, handle: Handle, port: int) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            self._runner = self._loop.run_until_complete(_serving(handle, port))
        except OSError:
            self._loop.close()
            raise
        self.port: int = self._runner.addresses[0][1]
        self._thread = Thread(target=self._loop.run_forever, name="agentv-model-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cancel pending replies, close the port, end the thread."""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _serving(handle: Handle, port: int) -> AppRunner:
    from aiohttp import web

    app = web.Application(client_max_size=_LARGEST)
    app.router.add_route("*", "/{path:.*}", handle)
    # handler_cancellation: a client that disconnects ends its handler, so that it no longer counts as waiting
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GRACE_S, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=_BACKLOG).start()
    return runner
