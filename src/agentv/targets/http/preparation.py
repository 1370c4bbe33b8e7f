"""Preparation that a target runs once before its first answer, such as imports or a healthcheck."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Generic, Literal, TypeVar

from msgspec.structs import replace

from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor
from agentv.registry.fields import Alias, Command, Declared, DirectoryPath, Doc, Issue, Seconds, Text
from agentv.user_code.deadline import LIMIT
from agentv.user_code.excerpts import tail
from agentv.user_code.processes import run_program

T = TypeVar("T")


class Once(Generic[T]):
    """A preparation that many calls wait for. Cancelling one call does not cancel it for the others."""

    def __init__(self) -> None:
        self._task: asyncio.Future[T] | None = None

    async def result(self, prepare: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the first call's `prepare`. It is not retried."""
        if self._task is None:
            self._task = asyncio.ensure_future(prepare())
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Cancel a preparation that is still running, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


class Imports(Generic[T]):
    """Imports that a target needs before its first call, such as an SDK and the price list.

    They can take more than a second.

    Args:
        executor: runs `load` on a thread.
        load: imports the modules and returns what the target needs.
    """

    def __init__(self, executor: Executor, load: Callable[[], T]) -> None:
        self._executor, self._load = executor, load
        self._once: Once[T] = Once()

    async def ready(self) -> T:
        """Wait for the imports and return their result.

        The wait can take minutes on a busy machine, and does not count as time of the call.
        """
        limit = LIMIT.get()
        with nullcontext() if limit is None else limit.held(asyncio.get_running_loop().time):
            return await self._once.result(lambda: self._executor.call(self._load))


async def timed(answering: Awaitable[TargetResponse | Failure]) -> TargetResponse | Failure:
    """Await an answer and set its duration, so that earlier waits of the call do not count."""
    started = perf_counter()
    answer = await answering
    if isinstance(answer, Failure) or answer.duration_ms is not None:
        return answer
    return replace(answer, duration_ms=(perf_counter() - started) * 1000)


URL = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Healthcheck(Declared):
    """A command that must exit with 0, or a URL that must answer with a status below 400."""

    command: Annotated[Command | None, Alias(("command_template",)), Doc("a program that must exit with 0")] = None
    url: Annotated[Text | None, Doc("a URL that must respond with a status below 400")] = None
    cwd: Annotated[DirectoryPath | None, Doc("working directory of the program; defaults to the target's")] = None
    timeout_s: Annotated[Seconds, Alias(("timeout_seconds",)), Doc("time limit in seconds")] = 30.0
    type: Annotated[Literal["command", "http"] | None, Doc("older; implied by 'command' or 'url'")] = None

    def validate(self) -> Iterable[Issue]:
        """Report a healthcheck that does not have exactly one of `command` and `url`."""
        if (self.command is None) == (self.url is None):
            yield Issue((), "a healthcheck needs either 'command' or 'url'", "missing-key")
        if self.url is not None and not URL.fullmatch(self.url):
            yield Issue(("url",), "'url' must start with http:// or https://")

    @classmethod
    def of(cls, given: Command | Healthcheck) -> Healthcheck:
        """Return the healthcheck for a setting that may be in short form: a command, or a URL as text."""
        if isinstance(given, Healthcheck):
            return given
        if given.shell is not None and URL.fullmatch(given.shell.strip()):
            return cls(url=given.shell.strip())
        return cls(command=given)

    async def failed(self, env: Mapping[str, str]) -> Failure | None:
        """Run the check. Return None if it passes, or a Failure with the code `unhealthy`."""
        if self.command is None:
            wrong = await self._url_error(self.url or "")
        else:
            ended = await run_program(self.command, stdin=b"", env=env, timeout_s=self.timeout_s)
            if isinstance(ended, Failure):
                wrong = ended.message
            else:
                output = tail(ended.stderr or ended.stdout) or "it printed nothing"
                wrong = f"exit {ended.status}: {output}" if ended.status else None
        return Failure("unhealthy", f"healthcheck failed: {wrong}") if wrong else None

    async def _url_error(self, url: str) -> str | None:
        from agentv.targets.http.connection import Connection

        connection = Connection()
        try:
            reply = await connection.ask("GET", url, timeout_s=self.timeout_s)
        finally:
            await connection.close()
        if isinstance(reply, Failure):
            return reply.message
        return f"HTTP {reply.status}" if reply.status >= 400 else None
