"""The JavaScript host for callers that are not asynchronous: files are read before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.user_code.javascript.host import JavaScriptHost
from agentv.user_code.loop_thread import LoopThread


class BlockingHost:
    """A host on an event loop of its own.

    Args:
        env: of its process.
        timeout_s: seconds that each call may take.
    """

    def __init__(self, env: Mapping[str, str], timeout_s: float) -> None:
        self._host = JavaScriptHost(env, patience_s=timeout_s)
        self._timeout_s = timeout_s
        self._loop = LoopThread("agentv-authoring-javascript")

    def call(self, source: str, payload: JsonObject) -> Json | Failure:
        """What `JavaScriptHost.call` gives."""
        calling = self._host.call(source, payload, self._timeout_s)
        return self._loop.start(calling).result()

    def close(self) -> None:
        """End its process."""
        self._loop.start(self._host.close()).result()
        self._loop.close()
