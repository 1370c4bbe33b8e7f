"""JavaScript processes of one target: one for each environment that its calls are made in, nearly always one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentv.model.values.response import Failure
from agentv.model.values.values import Json

if TYPE_CHECKING:
    from agentv.user_code.javascript.host import JavaScriptHost

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
