"""Health check of a target, once before its first call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from agentv.model.values.response import Failure
from agentv.registry.fields import Alias, Command, Declared, DirectoryPath, Doc, Issue, Seconds, Text
from agentv.user_code.excerpts import tail
from agentv.user_code.processes import run_program

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
        """Exactly one of the two must be given."""
        if (self.command is None) == (self.url is None):
            yield Issue((), "a healthcheck needs either 'command' or 'url'", "missing-key")
        if self.url is not None and not URL.fullmatch(self.url):
            yield Issue(("url",), "'url' must start with http:// or https://")

    @classmethod
    def of(cls, given: Command | Healthcheck) -> Healthcheck:
        """The check behind its short form, which is a command or the text of a URL."""
        if isinstance(given, Healthcheck):
            return given
        if given.shell is not None and URL.fullmatch(given.shell.strip()):
            return cls(url=given.shell.strip())
        return cls(command=given)

    async def failed(self, env: Mapping[str, str]) -> Failure | None:
        """Run it: None when all is well, else a Failure with the code `unhealthy`."""
        wrong = await (self._command_error(self.command, env) if self.command else self._url_error(self.url or ""))
        return Failure("unhealthy", f"healthcheck failed: {wrong}") if wrong else None

    async def _command_error(self, command: Command, env: Mapping[str, str]) -> str | None:
        ended = await run_program(command, stdin=b"", env=env, timeout_s=self.timeout_s)
        if isinstance(ended, Failure):
            return ended.message
        output = tail(ended.stderr or ended.stdout) or "it printed nothing"
        return f"exit {ended.status}: {output}" if ended.status else None

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
