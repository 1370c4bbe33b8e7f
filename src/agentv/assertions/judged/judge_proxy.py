"""A local proxy to the judge for one run of a script: on loopback, with a token and a limit on calls."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler, Middleware
    from aiohttp.web import Request, Response, StreamResponse

    from agentv.model.run.context import Judge

URL = "AGENTV_TARGET_PROXY_URL"
TOKEN = "AGENTV_TARGET_PROXY_TOKEN"  # noqa: S105  # the name of the variable, not a token
_LARGEST = 20_000_000


@asynccontextmanager
async def judge_proxy(judge: Judge, max_calls: int) -> AsyncIterator[JudgeAccessServer]:
    """Serve while the body runs, and yield the server, with `env` for the script and the cost of its calls.

    `POST /invoke {"question", "systemPrompt"?}` → `{"output", "rawText"}`, `POST /invokeBatch {"requests": […]}` →
    `{"responses": […]}`, `GET /info` → `{"maxCalls", "callCount", …}`: AgentV's protocol, so that scripts written
    for it work. Errors are 401 without the token, 429 beyond `max_calls`, 400 for an invalid request, and 502 if the
    judge fails.
    """
    from aiohttp import web

    access = JudgeAccessServer(judge, max_calls)
    app = web.Application(client_max_size=_LARGEST, middlewares=[access.middleware])
    app.router.add_post("/invoke", access.guarded(access.invoke))
    app.router.add_post("/invokeBatch", access.guarded(access.invoke_batch))
    app.router.add_get("/info", access.guarded(access.info))
    logger = logging.getLogger(__name__)
    logger.disabled = True  # the response tells the sender about a bad request
    runner = web.AppRunner(app, access_log=None, logger=logger, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        access.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        access.env = {URL: f"http://127.0.0.1:{port}", TOKEN: access.token}
        yield access
    finally:
        await runner.cleanup()


class _ProxyRefusedError(Exception):
    """A request is refused; `status` is the HTTP status of the response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class JudgeAccessServer:
    """The HTTP handlers by which one script calls the judge.

    Attributes:
        env: environment variables with its URL and token.
        cost_usd, token_usage: totals of all calls; None until a call reports them.
        hosts: accepted Host headers. A web page that reaches this server by DNS rebinding sends another one.
    """

    judge: Judge
    max_calls: int
    calls: int = 0
    env: dict[str, str] = field(default_factory=dict, repr=False)
    cost_usd: float | None = None
    token_usage: TokenUsage | None = None
    hosts: frozenset[str] = frozenset()
    token: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    @property
    def middleware(self) -> Middleware:
        """Middleware of every handler: each response is JSON, and never a 500."""
        from aiohttp import web

        @web.middleware
        async def answer(request: Request, handler: Handler) -> StreamResponse:
            if request.headers.get("Host", "").lower() not in self.hosts:
                return web.json_response({"error": "The Host header names another host"}, status=400)
            try:
                return await handler(request)
            except _ProxyRefusedError as refused:
                return web.json_response({"error": str(refused)}, status=refused.status)
            except web.HTTPException as error:  # unknown path, wrong method, body too large
                allowed = {name: value for name, value in error.headers.items() if name == "Allow"}
                return web.json_response({"error": error.reason}, status=error.status, headers=allowed)
            except (web.RequestPayloadError, UnicodeError):
                return web.json_response({"error": "The request cannot be parsed"}, status=400)

        return answer

    def guarded(self, handle: Callable[[Request], Awaitable[object]]) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler with a check of the token. Refused requests get AgentV's `{"error": …}`."""
        from aiohttp import web

        async def answer(request: Request) -> Response:
            shown = request.headers.get("Authorization", "").encode(errors="surrogateescape")
            if not hmac.compare_digest(shown, f"Bearer {self.token}".encode()):
                return web.json_response({"error": "Unauthorized"}, status=401)
            return web.json_response(await handle(request))

        return answer

    async def invoke(self, request: Request) -> object:
        """Answer one question."""
        prompt = _prompt(await _body_of(request))
        self._reserve(1)
        return await self._ask(prompt)

    async def invoke_batch(self, request: Request) -> object:
        """Answer several questions in order, or none of them if they exceed the limit."""
        rows = (await _body_of(request)).get("requests")
        if not isinstance(rows, list):
            raise _ProxyRefusedError(400, "Missing required field: requests (array)")
        prompts = [_prompt(row) for row in rows]
        self._reserve(len(prompts))
        return {"responses": [await self._ask(prompt) for prompt in prompts]}

    async def info(self, request: Request) -> object:
        """Return the limit and the number of calls so far."""
        del request
        return {
            "targetName": "judge",
            "maxCalls": self.max_calls,
            "callCount": self.calls,
            "availableTargets": ["judge"],
        }

    async def _ask(self, prompt: str) -> object:
        answer = await self.judge.ask(prompt)
        if isinstance(answer, Failure):
            raise _ProxyRefusedError(502, answer.message)
        self._spend(answer)
        return {"output": [{"role": "assistant", "content": answer.output}], "rawText": answer.output}

    def _spend(self, answer: TargetResponse) -> None:
        if answer.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + answer.cost_usd
        if answer.token_usage is not None:
            self.token_usage = answer.token_usage + (self.token_usage or TokenUsage())

    def _reserve(self, more: int) -> None:
        if self.calls + more > self.max_calls:
            raise _ProxyRefusedError(429, f"Max calls exceeded (limit: {self.max_calls})")
        self.calls += more


async def _body_of(request: Request) -> dict[str, object]:
    try:
        body = json.loads((await request.read()).decode("utf-8"))
    except (ValueError, RecursionError):  # RecursionError if brackets are nested too deeply
        body = None
    if not isinstance(body, dict):
        raise _ProxyRefusedError(400, "The body must be a JSON object")
    return body


def _prompt(row: object) -> str:
    question = row.get("question") if isinstance(row, dict) else None
    if not isinstance(question, str) or not question:
        raise _ProxyRefusedError(400, "Missing required field: question")
    system = row.get("systemPrompt") if isinstance(row, dict) else None
    if system is not None and not isinstance(system, str):
        raise _ProxyRefusedError(400, "systemPrompt must be a string")
    prompt = f"{system}\n\n{question}" if system else question
    prompt.encode()  # raises UnicodeEncodeError for a lone surrogate
    return prompt
