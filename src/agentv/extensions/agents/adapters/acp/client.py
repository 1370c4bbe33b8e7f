"""What an agent may ask of us: permissions by policy, files and commands inside its workspace."""

from __future__ import annotations

import asyncio
import fnmatch
import os
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from acp import (
    CreateTerminalResponse,
    KillTerminalResponse,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestError,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from acp.schema import AllowedOutcome, DeclineElicitationResponse, DeniedOutcome, TerminalExitStatus

from agentv.extensions.agents.adapters.process import environment_of
from agentv.extensions.agents.adapters.settings import AgentSettings, Decision, PermissionRule
from agentv.extensions.agents.adapters.workspace_files import (
    NoFileError,
    OutsideWorkspaceError,
    inside,
    read_text,
    write_text,
)
from agentv.model.values.response import Failure
from agentv.ports import TargetRequest
from agentv.registry.fields import Command
from agentv.user_code.processes.processes import end_program, start_program

if TYPE_CHECKING:
    from agentv.extensions.agents.adapters.acp.trace_builder import TraceBuilder


OUTPUT_LIMIT = 1_000_000
"""Bytes of output that are kept where the agent does not say, the last ones."""

MOST_TERMINALS = 64
"""Terminals of one session at a time."""

_CHUNK = 1 << 16
_GRACE_S = 1.0


class Terminal:
    """A command that runs, or has ended; stdout and stderr are one text."""

    def __init__(self, process: Process, limit: int) -> None:
        self._process = process
        self._limit = limit
        self._output = bytearray()
        self.truncated = False
        self._readers = [asyncio.ensure_future(self._read(one)) for one in (process.stdout, process.stderr) if one]

    @property
    def output(self) -> str:
        """What it has printed, as far as it is kept."""
        return self._output.decode(errors="ignore" if self.truncated else "replace")

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal; None: it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Its exit status once it has ended, and all that it printed is read."""
        status = await self._process.wait()
        await asyncio.wait(self._readers, timeout=_GRACE_S)
        return status

    async def end(self) -> None:
        """End it, with all that it started."""
        await end_program(self._process, _GRACE_S)
        for one in self._readers:
            one.cancel()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(_CHUNK):
            self._output += chunk
            if len(self._output) > self._limit:
                self.truncated = True
                del self._output[: len(self._output) - self._limit]


class Terminals:
    """The terminals of one session."""

    def __init__(self, request: TargetRequest, root: str) -> None:
        self._request = request
        self._root = root
        self._numbers = count(1)
        self._open: dict[str, Terminal] = {}

    async def create(
        self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str, output_limit: int | None
    ) -> str | Failure:
        """Start a command; its id.

        Raises:
            OutsideWorkspaceError: its directory is outside.
        """
        cwd = inside(self._root, cwd) if cwd else self._root
        if len(self._open) >= MOST_TERMINALS:
            return Failure("cannot-start", f"more than {MOST_TERMINALS} terminals are open")
        is_line = not args and any(letter in command for letter in " |&;<>$")
        argv = ("/bin/sh", "-c", command) if is_line else (command, *args)
        sandbox = self._request.sandbox
        confined = argv if sandbox is None else tuple(sandbox.argv(argv, cwd))
        try:
            process = await start_program(Command(confined, cwd=cwd), env=environment_of(self._request, env))
        except (OSError, ValueError) as error:
            return Failure("cannot-start", f"cannot start {command}: {error}")
        if process.stdin is not None:
            process.stdin.close()
        limit = OUTPUT_LIMIT if output_limit is None else min(output_limit, OUTPUT_LIMIT)
        identity = f"terminal-{next(self._numbers)}"
        self._open[identity] = Terminal(process, limit)
        return identity

    def find(self, identity: str) -> Terminal | None:
        """The terminal of that id."""
        return self._open.get(identity)

    async def release(self, identity: str) -> None:
        """End a terminal, and forget it."""
        found = self._open.pop(identity, None)
        if found is not None:
            await found.end()

    async def close(self) -> None:
        """End all of them."""
        for identity in tuple(self._open):
            await self.release(identity)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What an agent asks to do.

    Attributes:
        names: of the tool: canonical and native.
        kind: such as `edit`, as the agent says.
        paths: absolute paths of the files that it names.
    """

    names: tuple[str, ...]
    kind: str = ""
    paths: tuple[str, ...] = ()


def decide(policy: Decision | Sequence[PermissionRule], use: ToolUse, root: str) -> tuple[bool, str]:
    """Whether it may, and why: the first rule that applies; none does: it may not.

    Args:
        policy: of the target.
        use: what is asked for.
        root: the workspace, which the paths of rules count from.
    """
    if isinstance(policy, str):
        return policy == "allow", f"permissions: {policy}"
    for number, rule in enumerate(policy, 1):
        if _applies(rule, use, root):
            return rule.action == "allow", f"rule {number}: {rule.action}"
    return False, "no rule applies"


def _applies(rule: PermissionRule, use: ToolUse, root: str) -> bool:
    if rule.kind is not None and rule.kind != use.kind:
        return False
    if rule.tool is not None and not any(fnmatch.fnmatchcase(name, rule.tool) for name in use.names):
        return False
    if rule.path is None:
        return True
    matches = [_is_under(rule.path, one, root) for one in use.paths]
    return bool(matches) and (all(matches) if rule.action == "allow" else any(matches))


def _is_under(pattern: str, path: str, root: str) -> bool:
    """Whether a file's true place matches a glob: a symbolic link counts as what it leads to."""
    true_root = os.path.realpath(root)
    true_path = os.path.realpath(path if os.path.isabs(path) else os.path.join(root, path))  # noqa: PTH117, PTH118  # text in, text out
    inside = true_path == true_root or true_path.startswith(true_root + os.sep)
    seen = os.path.relpath(true_path, true_root) if inside else true_path
    if pattern.startswith("**/") and fnmatch.fnmatchcase(seen, pattern[3:]):
        return True
    return fnmatch.fnmatchcase(seen, pattern) and (inside or pattern.startswith(("/", "*")))


_WANTED = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
"""Kinds of options for either decision, the narrower first."""


class AcpClient:
    """The client of one session; a `Client` of the SDK.

    Args:
        settings: of the target.
        request: whose sandbox and environment hold.
        root: the workspace.

    Attributes:
        trace: of the answer that is being given; set before each prompt.
    """

    trace: TraceBuilder

    def __init__(self, settings: AgentSettings, request: TargetRequest, root: str) -> None:
        self._policy = settings.permissions
        self._root = root
        self._granted: set[str] = set()
        self._may_run = False
        self.terminals = Terminals(request, root)

    def on_connect(self, conn: Any) -> None:
        """Nothing: the session talks to the agent."""

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:  # noqa: ARG002  # the SDK's signature
        """Answer by the policy, with an option of the agent's."""
        fields: Mapping[str, Any] = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        call = self.trace.use(fields)
        use = ToolUse((call.names.name, call.names.native_name, call.title), call.kind, call.paths)
        allowed, reason = decide(self._policy, use, self._root)
        chosen = next((one for kind in _WANTED[allowed] for one in options if one.kind == kind), None)
        if allowed and chosen is None:
            allowed, reason = False, "the agent offers no option that allows it"
        if allowed:
            self._granted.update(use.paths)
            self._may_run = self._may_run or call.kind == "execute"
        self.trace.permission(fields, allowed=allowed, reason=reason)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Nothing: updates reach the trace as JSON."""

    async def read_text_file(
        self,
        session_id: str,  # noqa: ARG002  # the SDK's signature
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        """The text of a file of the workspace."""
        try:
            return ReadTextFileResponse(content=read_text(self._root, path, line, limit))
        except OutsideWorkspaceError:
            raise self._outside("fs/read_text_file", path) from None
        except NoFileError as error:
            raise RequestError(-32002, str(error)) from None

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> WriteTextFileResponse:  # noqa: ARG002  # the SDK's signature
        """Write a file of the workspace."""
        self._check_policy("fs/write_text_file", ToolUse(("fs/write_text_file", "write"), "edit", (path,)))
        try:
            write_text(self._root, path, content)
        except OutsideWorkspaceError:
            raise self._outside("fs/write_text_file", path) from None
        except NoFileError as error:
            raise RequestError(-32603, str(error)) from None
        return WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,  # noqa: ARG002  # as above
        command: str,
        args: list[str] | None = None,
        env: list[Any] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        """Run a command in the workspace."""
        if not self._may_run:
            self._check_policy("terminal/create", ToolUse(("terminal/create", "shell"), "execute"))
        variables = {one.name: one.value for one in env or ()}
        try:
            made = await self.terminals.create(command, args or (), variables, cwd or "", output_byte_limit)
        except OutsideWorkspaceError:
            raise self._outside("terminal/create", cwd or "") from None
        if isinstance(made, Failure):
            raise RequestError(-32603, made.message)
        return CreateTerminalResponse(terminal_id=made)

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> TerminalOutputResponse:  # noqa: ARG002  # the SDK's signature
        """What a command has printed."""
        terminal = self._terminal(terminal_id)
        status = None if terminal.status is None else TerminalExitStatus(**_ended(terminal.status))
        return TerminalOutputResponse(output=terminal.output, truncated=terminal.truncated, exit_status=status)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> WaitForTerminalExitResponse:  # noqa: ARG002  # the SDK's signature
        """Wait for a command."""
        return WaitForTerminalExitResponse(**_ended(await self._terminal(terminal_id).wait()))

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> KillTerminalResponse:  # noqa: ARG002  # the SDK's signature
        """End a command; its output stays."""
        await self._terminal(terminal_id).end()
        return KillTerminalResponse()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> ReleaseTerminalResponse:  # noqa: ARG002  # the SDK's signature
        """End a command, and forget it."""
        await self.terminals.release(terminal_id)
        return ReleaseTerminalResponse()

    async def create_elicitation(self, **_: Any) -> DeclineElicitationResponse:
        """There is nobody to ask."""
        return DeclineElicitationResponse(action="decline")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002  # as above
        """Extensions are not known here."""
        raise RequestError.method_not_found(method)

    def _terminal(self, identity: str) -> Terminal:
        found = self.terminals.find(identity)
        if found is None:
            raise RequestError.invalid_params({"terminalId": identity})
        return found

    def _check_policy(self, method: str, use: ToolUse) -> None:
        """Refuse what the policy denies, where no permission was asked for it before.

        Raises:
            RequestError: it is denied.
        """
        if use.paths and self._granted.issuperset(use.paths):
            return
        allowed, reason = decide(self._policy, use, self._root)
        if allowed or reason == "no rule applies":
            return
        self.trace.access(method, allowed=False, reason=reason)
        raise RequestError(-32603, f"permission denied ({reason})")

    def _outside(self, method: str, path: str) -> RequestError:
        self.trace.access(method, allowed=False, reason=f"outside the workspace: {path[:200]}")
        return RequestError(-32602, f"{path}: outside the workspace")


def _ended(status: int) -> dict[str, Any]:
    if status >= 0:
        return {"exit_code": status}
    import signal

    try:
        return {"signal": signal.Signals(-status).name}
    except ValueError:
        return {"signal": str(-status)}
