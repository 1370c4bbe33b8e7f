"""The JavaScript host for callers that are not asynchronous: files are read before anything runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from threading import Thread

from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.user_code.javascript.host import JavaScriptHost


class BlockingHost:
    """A host on a thread with an event loop of its own: the caller's thread may run one already.

    Args:
        env: of its process.
        timeout_s: seconds that each call may take.
    """

    def __init__(self, env: Mapping[str, str], timeout_s: float) -> None:
        self._host = JavaScriptHost(env, patience_s=timeout_s)
        self._timeout_s = timeout_s
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="agentv-authoring-javascript", daemon=True)
        self._thread.start()

    def call(self, source: str, payload: JsonObject) -> Json | Failure:
        """What `JavaScriptHost.call` gives."""
        calling = self._host.call(source, payload, self._timeout_s)
        return asyncio.run_coroutine_threadsafe(calling, self._loop).result()

    def close(self) -> None:
        """End its process."""
        asyncio.run_coroutine_threadsafe(self._host.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
