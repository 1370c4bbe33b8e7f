"""Calls of promptfoo's `call_api(prompt, options, context)`, `callApi(prompt, context, options)`: values, process."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.ports import TargetRequest

if TYPE_CHECKING:
    from agentv.user_code.javascript.host import JavaScriptHost


def prompt_of(request: TargetRequest) -> str:
    """The prompt: the text of a lone user message, or else the messages as JSON, which providers parse."""
    lone = request.messages[0] if len(request.messages) == 1 else None
    if lone is not None and lone.role == "user" and isinstance(lone.as_json().get("content"), str):
        return request.prompt
    return json.dumps([message.as_json() for message in request.messages], ensure_ascii=False, default=str)


def options_of(name: str, config: Mapping[str, Json]) -> dict[str, Any]:
    """The options: `id` and `label`, both the target's name, and its `config`."""
    return {"id": name, "label": name, "config": config}


def context_of(request: TargetRequest) -> dict[str, Any]:
    """The context: `vars`, `prompt`, `test` and the numbers of the call."""
    return {
        "vars": request.vars,
        "prompt": {"raw": request.prompt, "label": request.prompt_id or request.prompt},
        "test": {
            "vars": request.vars,
            "metadata": request.metadata,
            "description": request.case_id,
        },
        "testCaseId": request.case_id,
        "repeatIndex": request.sample - 1,
    }


PATIENCE_S = 10.0
"""Seconds that a file may keep its process busy, such as by imports, before its calls are made on other processes."""

_CODES = {"assertion-raised": "target-raised", "assertion-crashed": "target-raised", "bad-result": "bad-answer"}


class JavaScriptProcesses:
    """Calls the JavaScript of one target. Nothing is started before the first call."""

    def __init__(self) -> None:
        self._hosts: dict[frozenset[tuple[str, str]], JavaScriptHost] = {}

    async def call(self, env: Mapping[str, str], source: str, payload: Mapping[str, Json]) -> Json | Failure:
        """The value of a call. The engine cancels it when its time is up, and a process that it keeps busy is killed.

        Args:
            env: of the process.
            source: as `JavaScriptHost.call` takes it.
            payload: likewise.
        """
        found = await self._host(env).call(source, payload, math.inf)
        return Failure(_CODES.get(found.code, found.code), found.message) if isinstance(found, Failure) else found

    def _host(self, env: Mapping[str, str]) -> JavaScriptHost:
        key = frozenset(env.items())
        if key not in self._hosts:
            from agentv.user_code.javascript.host import JavaScriptHost

            self._hosts[key] = JavaScriptHost(env, patience_s=PATIENCE_S)
        return self._hosts[key]

    async def close(self) -> None:
        """End the processes."""
        for host in self._hosts.values():
            await host.close()
