"""`transform` of an `http` target: what makes the answer of a reply, in any form of a transform."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentv.model.suite.assertion import Transform
from agentv.model.values import json_path
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import Json
from agentv.ports import CodeCall, Executor, Raised, TargetRequest
from agentv.targets.http.connection import HttpReply
from agentv.targets.promptfoo.calls import JavaScriptProcesses, context_of
from agentv.targets.promptfoo.responses import from_provider
from agentv.templating import RenderError, Scope, evaluate

_ANSWER_KEYS = frozenset({"output", "error"})


class ResponseTransform:
    """Makes answers of replies.

    Args:
        transform: an expression or a path over `json`, or code that takes `json`, `text` and `context`.
        executor: runs Python functions.
    """

    def __init__(self, transform: Transform, executor: Executor) -> None:
        self._transform = transform
        self._executor = executor
        self._processes = JavaScriptProcesses()

    async def answer(
        self, request: TargetRequest, reply: HttpReply, text: str, value: Json
    ) -> TargetResponse | Failure:
        """The answer. An object with `output` or `error` is promptfoo's response; nothing is an empty answer.

        Args:
            request: what was asked.
            reply: what came back.
            text: of the reply.
            value: the reply's JSON, or its text if it is not JSON.
        """
        response: Json = {"status": reply.status, "headers": dict(reply.headers), "data": value}
        context = {**context_of(request), "response": response}
        parsed = None if value is text else value
        try:
            found = await self._value({"json": parsed, "text": text, "context": context}, request.env)
        except (RenderError, LookupError, ValueError) as error:
            return Failure("bad-answer", f"the transform {self._transform.expression!r} failed: {error}")
        if isinstance(found, Failure):
            return found
        if found is None or isinstance(found, str) or (isinstance(found, Mapping) and _ANSWER_KEYS & found.keys()):
            return from_provider(found)
        return from_provider({"output": found})

    async def _value(self, given: Mapping[str, Any], env: Mapping[str, str]) -> Any | Failure:
        transform = self._transform
        match transform.kind:
            case "javascript" | "javascript-file":
                return await self._in_javascript(given, env)
            case "function":
                return await self._in_python(given, env)
            case "path":
                found = json_path.read(json_path.parse(transform.expression), given["json"])
                return Failure("bad-answer", found.message) if isinstance(found, json_path.Missing) else found
        return evaluate(transform.expression, Scope({"json": given["json"], "text": given["text"]}, env))

    async def _in_javascript(self, given: Mapping[str, Any], env: Mapping[str, str]) -> Any | Failure:
        transform = self._transform
        if transform.kind == "javascript":
            what, source = repr(transform.expression), f"expression:json, text, context:{transform.expression}"
        else:
            what, source = Path(transform.file or "").name, f"call:{transform.expression}:{transform.file}"
        found = await self._processes.call(env, source, {"arguments": list(given.values())})
        return Failure(found.code, f"the transform {what} {found.message}") if isinstance(found, Failure) else found

    async def _in_python(self, given: Mapping[str, Any], env: Mapping[str, str]) -> Any | Failure:
        transform = self._transform
        what = f"the transform {transform.expression}"
        call = CodeCall(
            "tested",
            "agentv.user_code.workers.adapters:by_name",
            {"offered": given, "single": "json"},
            code="target-raised",
            what=what,
            function=transform.expression,
            file=transform.file,
            env=env or None,
        )
        found = await self._executor.python(call)
        if isinstance(found, Raised):
            unsendable = found.code == "bad-result"
            return Failure("bad-answer", f"{what} did not return JSON: {found.cause}") if unsendable else found
        return found.value

    async def close(self) -> None:
        """End the JavaScript process, if one was started."""
        await self._processes.close()
