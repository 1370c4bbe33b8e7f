"""Convert streams of the Agent Client Protocol (agentclientprotocol.com), one JSON-RPC message per line, to traces.

The reader uses `session/prompt`, `session/update`, `session/request_permission` and their responses. A record may
contain `at_ms` or `timestamp`, or be `{"message": …}` with one of these next to it. The bare `params` of an update are
accepted as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentv.extensions.agents.traces.values import (
    Problems,
    arguments_of,
    epoch_ms,
    first,
    items,
    mapping,
    number,
    records_of,
    string,
    text_of,
    tokens_of,
    with_valid_parents,
)
from agentv.model.values.json_text import compact
from agentv.model.values.message import Role
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import TOOLS, canonical_name
from agentv.model.values.trace import MessageStep, PermissionStep, Step, ToolCallStep, ToolStatus, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject, lazy_pattern

NATIVE_NAME = "acp.jsonl"

_AGENT_REQUESTS = frozenset({"initialize", "authenticate", "session/new", "session/load", "session/prompt"})
"""Requests that the agent answers; it sends the others."""


def read_acp(data: bytes) -> Trace | Failure:
    """Return the trace of a stream, or a Failure if it contains no update."""
    problems = Problems()
    reader = AcpReader(problems)
    for line, record in records_of(data, problems):
        reader.add(record, f"line {line}")
    return reader.trace(data)


class AcpReader:
    """Builds a trace from the records of a stream, in order.

    Args:
        problems: collects what cannot be read.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._steps = AcpSteps()
        self._permission_requests: dict[str, JsonObject] = {}
        self._about: dict[str, str] = {"agent": "", "agent_version": "", "session_id": ""}
        self._started: float | None = None
        self._methods: dict[str, list[str]] = {}
        self._error = ""
        self._is_waiting = False
        self._calls_before = 0
        self._stop_reason = ""

    def add(self, record: Any, where: str) -> None:
        """Add a record; `where` is its place for problems."""
        row = mapping(record)
        message = mapping(row.get("message")) or row
        self._set_time(row, message)
        method = string(message.get("method"))
        if method and "id" in message:
            self._methods.setdefault(repr(message["id"]), []).append(method)
        params = mapping(message.get("params"))
        if method == "session/update" or "update" in message or "sessionUpdate" in message:
            fields = mapping(first({**message, **params}, "update") or message)
            self._set_session(params or message)
            fault = self._steps.update(fields)
            if fault is not None:
                self._problems.note(f"{where}: a session/update {fault}")
        elif method == "session/request_permission":
            self._set_session(params)
            self._steps.call(mapping(params.get("toolCall")))
            self._permission_requests[repr(message.get("id"))] = params
        elif method == "session/prompt":
            self._set_session(params)
            self._steps.say("user", text_of(params.get("prompt")))
            self._is_waiting, self._stop_reason, self._error = True, "", ""
            self._calls_before = len(self._steps.calls)
        elif method == "initialize":
            self._is_waiting = True
        elif not method and ("result" in message or "error" in message):
            self._response(message)
        elif not method:
            self._problems.note(f"{where} is no message of the protocol")

    def trace(self, native: bytes = b"") -> Trace | Failure:
        """Return the trace of all records so far, or a Failure if there was no update."""
        if not self._steps.parts:
            why = f": {self._problems}" if self._problems else ""
            return Failure("bad-trace", f"the stream has no session update of the Agent Client Protocol{why}")
        if self._is_waiting:
            self._problems.note_unfinished("stream")
        steps = self._steps.steps(cancelled=self._stop_reason == "cancelled")
        return Trace(
            with_valid_parents(steps, self._problems),
            source="acp",
            agent=self._about["agent"],
            agent_version=self._about["agent_version"],
            session_id=self._about["session_id"],
            stop_reason=self._stop_reason,
            error=self._error,
            session_cost_usd=self._steps.cost_usd,
            duration_ms=self._steps.now_ms,
            native=native,
            native_name=NATIVE_NAME if native else "",
            partial=str(self._problems),
        )

    def _set_time(self, row: JsonObject, message: JsonObject) -> None:
        at = number(first(row, "at_ms"))
        if at is None:
            at = epoch_ms(first({**message, **row}, "timestamp", "time", "ts"))
        if at is None:
            return
        self._started = at if self._started is None else self._started
        self._steps.at_ms = round(max(at - self._started, self._steps.at_ms or 0.0), 3)

    def _set_session(self, params: JsonObject) -> None:
        self._about["session_id"] = self._about["session_id"] or string(params.get("sessionId"))

    def _add_permission(self, key: str, outcome: JsonObject) -> None:
        params = self._permission_requests.pop(key, None)
        if params is None:
            return
        option = string(outcome.get("optionId"))
        options = map(mapping, items(params.get("options")))
        kinds = {string(one.get("optionId")): string(one.get("kind")) for one in options}
        allowed = outcome.get("outcome") == "selected" and not kinds.get(option, option).startswith("reject")
        identity = string(mapping(params.get("toolCall")).get("toolCallId"))
        reason = option or string(outcome.get("outcome")) or None
        self._steps.permission(identity, allowed=allowed, reason=reason)

    def _response(self, message: JsonObject) -> None:
        result, error = mapping(message.get("result")), mapping(message.get("error"))
        methods = self._methods.get(repr(message.get("id")), [])
        method = methods.pop() if methods else "session/prompt"
        if error:
            if method not in _AGENT_REQUESTS:
                return  # the client has no such file or terminal, and the agent continues
            reason = string(error.get("message")) or "the agent answered with an error"
            self._steps.parts.append(UsageStep(error=reason, started_ms=self._steps.now_ms))
            self._is_waiting, self._stop_reason, self._error = False, "error", reason
        elif "outcome" in result:
            self._add_permission(repr(message.get("id")), mapping(result["outcome"]))
        elif "stopReason" in result:
            self._end_turn(result)
        elif "protocolVersion" in result:
            about = mapping(first(result, "agentInfo", "info"))
            self._about["agent"], self._about["agent_version"] = string(about.get("name")), string(about.get("version"))
            self._is_waiting = True
        else:
            self._set_session(result)

    def _end_turn(self, fields: JsonObject) -> None:
        self._stop_reason = string(fields.get("stopReason")) or self._stop_reason
        self._is_waiting, steps = False, self._steps
        reported = tokens_of(first({**mapping(fields.get("_meta")), **fields}, "usage"))
        called = len(steps.calls) > self._calls_before
        tokens = usage_of_turn(self._about["agent"], reported, called_tools=called)
        steps.end_message()
        if tokens is not None:
            steps.parts.append(UsageStep(steps.model or None, tokens, started_ms=steps.now_ms))


_NAMES_OF_KINDS: Mapping[str, tuple[str, ...]] = {
    "execute": ("shell",),
    "read": ("read", "list"),
    "edit": ("edit", "write"),
    "delete": ("delete",),
    "move": ("move",),
    "search": ("search", "find", "list", "web_search"),
    "fetch": ("fetch", "web_search"),
}
"""Kind of a call → canonical names of tools of this kind. The first is used for unknown tools."""

_THOUGHTS = frozenset({"think", "switch_mode"})
_COMMAND_KEYS = ("command", "cmd", "commands", "script")
_IDENTIFIER = lazy_pattern(r"[A-Za-z_][\w.:-]*")
_ID_WITH_NAME = lazy_pattern(r"([A-Za-z_]\w*?)-\d{6,}.*")
_TITLE_WITH_SERVER = lazy_pattern(r"(?P<tool>[\w.-]+) \((?P<server>[\w.-]+) MCP Server\).*", re.DOTALL)
_TITLE_WITH_SLASH = lazy_pattern(r"Tool: (?P<server>[\w.-]+)/(?P<tool>[\w.-]+)")
"""Titles of MCP tools as Gemini CLI and Codex write them."""


_COUNT_LAST_CALL = frozenset({"OpenCode"})
"""Agents that report only the usage of a turn's last model call."""


def usage_of_turn(agent: str, reported: TokenUsage | None, *, called_tools: bool) -> TokenUsage | None:
    """The tokens of a turn; None if the agent counts one model call only, and there was more than one."""
    return None if called_tools and agent in _COUNT_LAST_CALL else reported


def acp_tool_names(identity: str, titles: tuple[str, ...], kind: str, named: str, raw_input: Any) -> tuple[str, str]:
    """Return the canonical and the native name of a call's tool.

    Args:
        identity: id of the call, which contains the tool's name in Gemini CLI.
        titles: titles of the call, latest first.
        kind: the protocol's kind of the call; empty if unknown.
        named: name that the agent reports in addition; empty if none exists.
        raw_input: arguments of the call.
    """
    given = raw_input if isinstance(raw_input, Mapping) else {}
    mcp = named if named.startswith("mcp_") else _mcp_name(titles, given)
    runs_command = kind == "execute" and any(given.get(key) for key in _COMMAND_KEYS)
    if mcp and (named == mcp or not runs_command):
        return canonical_name(mcp), mcp
    of_id = _ID_WITH_NAME.fullmatch(identity)
    first_words = (title.partition(" ")[0].rstrip(":") for title in titles)
    words = (named,) if named else (of_id[1] if of_id is not None else "", *first_words)
    names = [(canonical_name(word), word) for word in words if word]
    known = [(name, word) for name, word in names if name != word or word in TOOLS]
    title = named or next(iter(titles), "")
    of_kind = _NAMES_OF_KINDS.get(kind)
    if of_kind is not None:
        found = next(((name, word) for name, word in known if name in of_kind), None)
        if found is None and named and not runs_command:
            return canonical_name(named), named
        return found or (of_kind[0], title or of_kind[0])
    if known:
        return known[0]
    if named or _IDENTIFIER.fullmatch(title):
        return canonical_name(title), title
    name = kind if kind in _THOUGHTS else title or kind or "tool"
    return name, title or name


def _mcp_name(titles: tuple[str, ...], given: Mapping[str, Any]) -> str:
    """The name of an MCP tool, from the arguments or titles of a call; empty for other tools."""
    server, tool = given.get("server"), given.get("tool")
    if isinstance(server, str) and isinstance(tool, str) and server and tool:
        return f"{server}.{tool}"
    for title in titles:
        of_title = _TITLE_WITH_SLASH.fullmatch(title) or _TITLE_WITH_SERVER.fullmatch(title)
        if of_title is not None:
            return f"{of_title['server']}.{of_title['tool']}"
        if title.startswith("mcp_") and canonical_name(title) != title:
            return title
    return ""


class AcpMessage:
    """A message that arrives in chunks."""

    def __init__(self, role: Role, identity: Any, started_ms: float | None) -> None:
        self.role, self.identity, self.started_ms = role, identity, started_ms
        self.texts: list[str] = []
        self.thoughts: list[str] = []

    @property
    def text(self) -> str:
        """The text received so far."""
        return "".join(self.texts)

    def step(self) -> MessageStep:
        """Return the message as a step of the trace."""
        return MessageStep(self.role, self.text, "".join(self.thoughts) or None, self.started_ms)


_FIELDS: Mapping[str, tuple[str, type]] = {
    "title": ("title", str),
    "kind": ("kind", str),
    "status": ("status", str),
    "name": ("named", str),
    "content": ("content", list),
    "locations": ("locations", list),
}
"""Key of an update → (field that a non-empty value replaces, type of the value)."""

_PATH_KEYS = ("path", "file_path", "filePath", "abs_path", "absolute_path", "notebook_path", "destination")


@dataclass(slots=True)
class AcpCall:
    """A tool call as known so far. Each update replaces the fields that it contains."""

    id: str
    started_ms: float | None = None
    title: str = ""
    first_title: str = ""
    kind: str = ""
    status: str = ""
    raw_input: Any = None
    raw_output: Any = None
    content: Sequence[Any] = ()
    locations: Sequence[Any] = ()
    named: str = ""
    ended_ms: float | None = None
    denied: bool = False
    parent: str | None = None

    def update(self, fields: Mapping[str, Any], at_ms: float | None) -> None:
        """Apply an update."""
        for key, (name, kind) in _FIELDS.items():
            if isinstance(fields.get(key), kind) and fields[key]:
                setattr(self, name, fields[key])
        self.raw_input = self.raw_input if fields.get("rawInput") is None else fields["rawInput"]
        self.raw_output = self.raw_output if fields.get("rawOutput") is None else fields["rawOutput"]
        self.first_title = self.first_title or self.title
        self.named = _in_meta(fields.get("_meta"), "toolName") or self.named
        self.parent = _in_meta(fields.get("_meta"), "parentToolUseId") or self.parent
        if self.ended and self.ended_ms is None:
            self.ended_ms = at_ms

    @property
    def ended(self) -> bool:
        """Whether the agent reports that the call has completed or failed."""
        return self.status in {"completed", "failed"}

    @property
    def names(self) -> tuple[str, str]:
        """The canonical and the native name of its tool."""
        return acp_tool_names(self.id, (self.title, self.first_title), self.kind, self.named, self.raw_input)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths in its locations, diffs and arguments."""
        found = [one.get("path") for one in (*self.locations, *self.content) if isinstance(one, Mapping)]
        if isinstance(self.raw_input, Mapping):
            found += [self.raw_input.get(key) for key in _PATH_KEYS]
        return tuple(dict.fromkeys(one for one in found if isinstance(one, str) and one))

    def step(self, *, cancelled: bool) -> ToolCallStep:
        """Return the call as a step of the trace. If `cancelled`, this is the status of an unfinished call."""
        failed, (name, native), given = self.status == "failed", self.names, self.raw_input
        output = self.raw_output if self.raw_output is not None else "\n".join(_texts_in(self.content)) or None
        known = self.started_ms is not None and self.ended_ms is not None
        return ToolCallStep(
            name=name,
            arguments=arguments_of({"path": self.paths[0]} if given is None and self.paths else given),
            native_name=native,
            id=self.id,
            result=None if failed else output,
            error="\n".join(_texts_in(output)) or "the tool failed" if failed else None,
            status=self._status(cancelled=cancelled),
            started_ms=self.started_ms,
            duration_ms=round(max((self.ended_ms or 0.0) - (self.started_ms or 0.0), 0.0), 3) if known else None,
            parent=self.parent,
        )

    def _status(self, *, cancelled: bool) -> ToolStatus:
        if self.denied and self.status != "completed":
            return "denied"
        if self.ended:
            return "completed" if self.status == "completed" else "failed"
        return "cancelled" if cancelled else "unknown"


_CALLS = frozenset({"tool_call", "tool_call_update"})
_CHUNKS: Mapping[str, Role] = {
    "user_message_chunk": "user",
    "agent_message_chunk": "assistant",
    "agent_thought_chunk": "assistant",
}


class AcpSteps:
    """Builds steps from the updates of a session as they arrive.

    Attributes:
        at_ms: time of the next update, in milliseconds since the start; None if unknown.
        turns: model calls that the updates imply: one begins with a message or tool call after results of tools.
        cost_usd: cost of the session so far; None if the agent does not report it.
        model: name of the model; empty if the agent does not report it.
        latest: the call that was updated last.
    """

    def __init__(self) -> None:
        self.at_ms: float | None = None
        self.parts: list[AcpMessage | AcpCall | Step] = []
        self.calls: dict[str, AcpCall] = {}
        self.turns = 0
        self.cost_usd: float | None = None
        self.model = ""
        self.latest: AcpCall | None = None
        self._open: AcpMessage | None = None
        self._after_result = True

    @property
    def now_ms(self) -> float | None:
        """Milliseconds since the start; None if unknown."""
        return self.at_ms

    def update(self, fields: Mapping[str, Any]) -> str | None:
        """Apply an update and return what is wrong with it, or None. Irrelevant kinds are ignored."""
        kind = string(fields.get("sessionUpdate"))
        if is_call(fields):
            return self.call(fields)
        if kind in _CHUNKS:
            return self._chunk(fields, _CHUNKS[kind], thought="thought" in kind)
        if kind == "usage_update":
            cost = mapping(fields.get("cost"))
            self.cost_usd = (number(cost.get("amount")) if cost.get("currency") == "USD" else None) or self.cost_usd
        elif kind == "config_option_update":
            self.model = model_in(fields.get("configOptions")) or self.model
        return None if kind else "has no 'sessionUpdate'"

    def say(self, role: Role, text: str) -> None:
        """Add a complete message."""
        message = AcpMessage(role, None, self.now_ms)
        message.texts.append(text)
        self.parts.append(message)
        self._open = None

    def end_message(self) -> None:
        """End the current message. The next chunk begins another one."""
        self._open = None

    def call(self, fields: Mapping[str, Any]) -> str | None:
        """Apply an update of a tool call and return what is wrong with it, or None."""
        identity = string(fields.get("toolCallId"))
        if not identity:
            return "has no 'toolCallId'"
        self._open = None
        call = self.calls.get(identity)
        if call is None:
            call = self.calls[identity] = AcpCall(identity, self.now_ms)
            self.parts.append(call)
            self._count_turn()
        call.update(fields, self.now_ms)
        self.latest = call
        self._after_result = self._after_result or call.ended
        return None

    def permission(self, identity: str, *, allowed: bool, reason: str | None) -> None:
        """Add the answer to a permission request."""
        call = self.calls.get(identity)
        if call is not None:
            call.denied = not allowed
        name = "tool" if call is None else call.names[0]
        self.parts.append(PermissionStep(name, allowed, reason, self.now_ms))

    @property
    def answer(self) -> str:
        """The text of the agent's last message that has one."""
        messages = (one for one in reversed(self.parts) if isinstance(one, AcpMessage) and one.role == "assistant")
        return next((one.text for one in messages if one.texts), "")

    def steps(self, *, cancelled: bool) -> tuple[Step, ...]:
        """Return all steps so far. If `cancelled`, this is the status of unfinished calls."""
        steps = (one.step(cancelled=cancelled) if isinstance(one, AcpCall) else one for one in self.parts)
        return tuple(one.step() if isinstance(one, AcpMessage) else one for one in steps)

    def _chunk(self, fields: Mapping[str, Any], role: Role, *, thought: bool) -> str | None:
        content = fields.get("content")
        if not isinstance(content, str | Mapping | list):
            return "has no 'content'"
        if isinstance(content, Mapping) and content.get("type") == "text" and not isinstance(content.get("text"), str):
            return "has a 'text' that is not text"
        message, identity = self._open, fields.get("messageId")
        known = None if message is None else message.identity
        follows = message is not None and message.role == role and (None in (known, identity) or known == identity)
        if message is None or not follows or (thought and message.texts):
            message = self._open = AcpMessage(role, identity, self.now_ms)
            self.parts.append(message)
        self._count_turn()
        (message.thoughts if thought else message.texts).append(text_of(content))
        message.identity = identity if message.identity is None and not thought else message.identity
        return None

    def _count_turn(self) -> None:
        self.turns += self._after_result
        self._after_result = False


def is_call(fields: Mapping[str, Any]) -> bool:
    """Whether an update is about a tool call."""
    return string(fields.get("sessionUpdate")) in _CALLS


def model_in(options: Any) -> str:
    """The selected model in a session's options; empty if they do not include one."""
    models = (one for one in map(mapping, items(options)) if one.get("category") == "model")
    return next((found for one in models if (found := string(one.get("currentValue")))), "")


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a result: a string, the texts of its blocks, or the JSON of any other value."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _texts_in(one)
    elif isinstance(value, Mapping) and "type" in value:
        inner = value.get("text", value.get("content"))
        yield from _texts_in(inner) if isinstance(inner, str | Mapping) else ()
    elif value is not None:
        yield value if isinstance(value, str) else compact(value)


def _in_meta(meta: Any, key: str) -> str:
    """The text that an agent puts into `_meta` under a key, directly or under its own name; empty if none exists."""
    fields = meta if isinstance(meta, Mapping) else {}
    places = (fields, *(one for one in fields.values() if isinstance(one, Mapping)))
    return next((found for place in places if isinstance(found := place.get(key), str) and found), "")
