"""The message stream of an agent that speaks the Agent Client Protocol: transport, permissions, trace of an answer.

The SDK handles requests and responses. Session notifications go straight to the trace, in the order of their arrival,
so that updates that the SDK cannot parse are not lost. Agents access files and run commands by themselves, in their
sandbox, so neither client capability is announced.
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from acp import RequestPermissionResponse
from acp.schema import AllowedOutcome, DeniedOutcome

from agentv.extensions.agents.adapters.process import AgentProcess, TooLargeStreamError
from agentv.extensions.agents.adapters.settings import Decision, PermissionRule
from agentv.extensions.agents.traces.acp import AcpCall, AcpSteps
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep

MASK = "***"
_SHOWN = 200


class AcpTransport:
    """A `Transport` of the SDK over an agent's standard streams.

    Args:
        process: the agent.
        on_update: called with the session id and the content of each `session/update`; returns what is wrong with it,
            or None.

    Attributes:
        broken: Failure for output that is too large or violates the protocol, at which reading stops; None at first.
        ended: set when reading has ended.
        native: the raw stream of both directions, one message per line; secrets in `session/new` are masked.
        noise: number of lines that are not messages, such as logs on stdout.
    """

    def __init__(self, process: AgentProcess, on_update: Callable[[object, Mapping[str, Any]], str | None]) -> None:
        self._process = process
        self._on_update = on_update
        self.native = bytearray()
        self.broken: Failure | None = None
        self.noise = 0
        self.ended = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message.

        Raises:
            ConnectionError: the message is a request and the agent no longer reads. Any other message is dropped.
        """
        line = json.dumps(message, separators=(",", ":"), ensure_ascii=True).encode()
        secret = message.get("method") == "session/new"
        self.native += (json.dumps(masked(message), separators=(",", ":")).encode() if secret else line) + b"\n"
        try:
            await self._process.write(line)
        except OSError as error:
            if "method" in message and "id" in message:
                raise ConnectionError("the agent reads no more") from error

    async def receive(self) -> dict[str, Any] | None:
        """Return the next request or response, or None if the stream has ended or is broken."""
        while self.broken is None:
            try:
                line = await self._process.line()
            except TooLargeStreamError:
                self.broken = Failure("output-too-large", "the agent printed more than is allowed")
                break
            except OSError:
                line = None
            if line is None:
                self._end()
                break
            message = self._message(line)
            if message is None:
                continue
            if "method" not in message or "id" in message:
                return message
            if message["method"] != "session/update":
                continue
            params = message.get("params")
            known = params if isinstance(params, Mapping) else {}
            update = known.get("update")
            fault = self._on_update(known.get("sessionId"), update) if isinstance(update, Mapping) else "has no update"
            if fault is not None:
                self.broken = _not_protocol(f"a session/update {fault}", json.dumps(message).encode())
        self.ended.set()
        return None

    async def close(self) -> None:
        """Do nothing: the session ends the process."""

    def _end(self) -> None:
        rest = self._process.partial.strip()
        if rest:
            self.native += rest + b"\n"
            if self._message(rest) is not None or _looks_like_message(rest):
                self.broken = _not_protocol("the stream ends in the middle of a message", rest)

    def _message(self, line: bytes) -> dict[str, Any] | None:
        """Return the message in a line, or None if it has none. A malformed message sets `broken`."""
        line = line.strip()
        if not line:
            return None
        self.native += line + b"\n"
        value: Any = None
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
        if isinstance(value, dict) and ("method" in value or "id" in value):
            return value
        if _looks_like_message(line):
            self.broken = _not_protocol("a line on stdout is malformed JSON-RPC", line)
        else:
            self.noise += 1
        return None


def _looks_like_message(line: bytes) -> bool:
    return line.startswith(b"{") or b'"jsonrpc"' in line


def _not_protocol(what: str, line: bytes) -> Failure:
    return Failure("agent-protocol", f"{what}: {line[:_SHOWN].decode(errors='replace')}")


def masked(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `session/new` message with the environment and header values of its MCP servers masked."""
    params = dict(message["params"])
    servers = [dict(server) for server in params.get("mcpServers", ())]
    for server in servers:
        for key in {"env", "headers"} & server.keys():
            server[key] = [{**pair, "value": MASK} for pair in server[key]]
    params["mcpServers"] = servers
    return {**message, "params": params}


class TraceBuilder(AcpSteps):
    """The trace of one answer, built from `session/update` notifications as they arrive.

    Args:
        prompt: text of the prompt.
        on_progress: called after each update from the agent.
    """

    def __init__(self, prompt: str, on_progress: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._start = time.monotonic()
        self._on_progress = on_progress
        self.parts.append(MessageStep("user", prompt, started_ms=0.0))

    @property
    def now_ms(self) -> float:
        """Milliseconds since the start."""
        return round((time.monotonic() - self._start) * 1000, 3)

    def update(self, fields: Mapping[str, Any]) -> str | None:
        """Add an update and return what is wrong with it, or None. Echoes of the prompt are ignored."""
        if fields.get("sessionUpdate") == "user_message_chunk":
            return None
        fault = super().update(fields)
        self._on_progress()
        return fault

    def use(self, fields: Mapping[str, Any]) -> AcpCall:
        """Return the call that a permission request is about, adding it if it is new."""
        self.call(fields)
        self._on_progress()
        return self.calls[str(fields.get("toolCallId"))]


def decide(policy: Decision | Sequence[PermissionRule], call: AcpCall, root: str) -> tuple[bool, str]:
    """Return whether an agent may make a call, and why.

    The first rule that applies decides. If none applies, the call is denied.

    Args:
        policy: `permissions` of the target.
        call: the call that needs permission.
        root: the workspace, to which the paths of rules are relative.
    """
    if isinstance(policy, str):
        return policy == "allow", f"permissions: {policy}"
    for number, rule in enumerate(policy, 1):
        if _applies(rule, call, root):
            return rule.action == "allow", f"rule {number}: {rule.action}"
    return False, "no rule applies"


def _applies(rule: PermissionRule, call: AcpCall, root: str) -> bool:
    if rule.kind is not None and rule.kind != call.kind:
        return False
    names = (*call.names, call.title)
    if rule.tool is not None and not any(fnmatch.fnmatchcase(name, rule.tool) for name in names):
        return False
    if rule.path is None:
        return True
    matches = [_matches_path(rule.path, one, root) for one in call.paths]
    return bool(matches) and (all(matches) if rule.action == "allow" else any(matches))


def _matches_path(pattern: str, path: str, root: str) -> bool:
    """Whether the path of a file matches a glob, after symbolic links are resolved."""
    true_root = os.path.realpath(root)
    true_path = os.path.realpath(path if os.path.isabs(path) else os.path.join(root, path))  # noqa: PTH117, PTH118
    inside = true_path == true_root or true_path.startswith(true_root + os.sep)
    seen = os.path.relpath(true_path, true_root) if inside else true_path
    if pattern.startswith("**/") and fnmatch.fnmatchcase(seen, pattern[3:]):
        return True
    return fnmatch.fnmatchcase(seen, pattern) and (inside or pattern.startswith(("/", "*")))


_OPTION_KINDS = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
"""Whether a call is allowed → kinds of options that say so, the narrower first."""


class AcpClient:
    """The client of one session: the part of the SDK's `Client` that is needed; the SDK refuses other methods.

    Args:
        policy: `permissions` of the target.
        root: the workspace.

    Attributes:
        trace: trace of the current answer; set before each prompt.
    """

    trace: TraceBuilder

    def __init__(self, policy: Decision | Sequence[PermissionRule], root: str) -> None:
        self._policy = policy
        self._root = root

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:  # noqa: ARG002  # signature of the SDK
        """Answer a permission request by the policy, with one of the options that the agent offers."""
        fields: Mapping[str, Any] = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        call = self.trace.use(fields)
        allowed, reason = decide(self._policy, call, self._root)
        chosen = next((one for kind in _OPTION_KINDS[allowed] for one in options if one.kind == kind), None)
        if allowed and chosen is None:
            allowed, reason = False, "the agent offers no option that allows it"
        self.trace.permission(call.id, allowed=allowed, reason=reason)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))
