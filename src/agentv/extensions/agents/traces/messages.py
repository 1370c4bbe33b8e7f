"""Read the messages of a conversation in the formats of known APIs, frameworks and conventions, and build a trace.

The formats are OpenAI's chat messages and Responses API items, Anthropic's and Gemini's content, message parts of
OpenTelemetry's GenAI conventions, messages of LangChain and pydantic-ai, events of Google's ADK, and agentv's
transcripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.extensions.agents.traces.values import (
    Problems,
    arguments_of,
    as_json,
    first,
    items,
    mapping,
    number,
    string,
    text_of,
    tokens_of,
)
from agentv.model.values.json_text import compact, plain
from agentv.model.values.message import Role
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import names_of_call
from agentv.model.values.trace import MessageStep, Step, ToolCallStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "response": "assistant",
    "tool": "tool",
    "function": "tool",
    "system-prompt": "system",
    "user-prompt": "user",
    "request": "user",
}
"""Role, type or kind of a message → role. The last three are pydantic-ai's."""

_CALL_ITEMS: Mapping[str, str] = {
    "function_call": "",
    "custom_tool_call": "",
    "mcp_call": "",
    "local_shell_call": "local_shell_call",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
    "web_search_call": "web_search_call",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "computer_call": "computer",
    "image_generation_call": "image_generation",
}
"""Type of a Responses API item → name of its tool if the item does not give one."""

_CALLS = frozenset({"tool_call", "tool_use", "server_tool_use", "mcp_tool_use", "tool-call", "builtin-tool-call"})
_RETRY = "retry-prompt"
"""Kind of the part that pydantic-ai sends to the model after a failed call."""

_RESULTS = frozenset(
    {"tool_call_response", "tool_result", "mcp_tool_result", "tool-return", "builtin-tool-return", _RETRY}
)
_REASONING = frozenset({"reasoning", "thinking"})
_FAILED = frozenset({"error", "failed", "retried", "denied", "interrupted"})

_HIDDEN_ERROR = "An error occurred while running the tool"
"""Prefix of the result of a tool that raised in the OpenAI Agents SDK, and the only sign of the error."""


class ParsedResult(Struct, frozen=True):
    """The result of a tool call. Without a call's id, it belongs to the first open call, of its name if it has one."""

    call: str
    value: Any
    failed: bool = False
    name: str = ""


class ParsedMessage(Struct, frozen=True):
    """A message to or from a model, with the tool calls that it requests. Its `results` precede it."""

    role: Role
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCallStep, ...] = ()
    results: tuple[ParsedResult, ...] = ()
    tokens: TokenUsage | None = None
    model: str | None = None
    cost_usd: float | None = None


def messages_in(value: Any, default: Role | None = None, problems: Problems | None = None) -> Iterator[ParsedMessage]:
    """Yield the messages in a value: a message or a list of them, either of which may be JSON text, or plain text.

    Args:
        value: value from an untrusted source.
        default: role of plain text and of messages without a role.
        problems: collects what cannot be read.
    """
    notes = Problems() if problems is None else problems
    found = as_json(value)
    for place, row in enumerate([found] if isinstance(found, Mapping | str) else items(found), 1):
        where = f"message {place}"
        if isinstance(row, str) and default is not None:
            yield ParsedMessage(default, row)
        elif isinstance(row, list | tuple) and len(row) == 2 and string(row[0]) in _ROLES:  # LangChain's ("user", "hi")
            yield ParsedMessage(_ROLES[row[0]], text_of(row[1]))
        elif isinstance(row, Mapping):
            yield from _message(_unwrapped(row), default, where, notes)
        else:
            notes.note(f"{where} is no object")


def _unwrapped(row: JsonObject) -> JsonObject:
    """The fields of a message, without the wrapper of LangChain's serialization or of an ADK event."""
    inner = first(row, "data", "kwargs")
    if isinstance(inner, Mapping) and "role" not in row:
        return {"type": row.get("type"), **inner}
    content = row.get("content")
    return {**row, **content} if isinstance(content, Mapping) and "parts" in content else row


def _message(row: JsonObject, default: Role | None, where: str, problems: Problems) -> Iterator[ParsedMessage]:
    kind = string(row.get("type"))
    if kind in _CALL_ITEMS:
        call = _call(row, _CALL_ITEMS[kind], problems)
        if call is not None:
            yield ParsedMessage("assistant", calls=(call,))
        return
    if kind.endswith("_call_output"):
        yield ParsedMessage("tool", results=(_result(row),))
        return
    if kind == "reasoning":
        thought = text_of(first(row, "summary", "content"))
        if thought:
            yield ParsedMessage("assistant", reasoning=thought)
        return
    named = (_lower(row, key) for key in ("role", "type", "kind"))
    role = next((_ROLES[one] for one in named if one in _ROLES), default)
    if role is None:
        problems.note(f"{where} has no known role and no known type")
    else:
        yield from _chat_messages(role, row, problems)


class _Parts:
    """The parts of a message by kind, and its texts by role."""

    def __init__(self) -> None:
        self.texts: dict[Role, list[Any]] = {}
        self.calls: list[Any] = []
        self.thoughts: list[str] = []
        self.results: list[ParsedResult] = []

    def add(self, part: Any, role: Role) -> None:
        """Add a part of a message that has this role."""
        block = mapping(part)
        kind = string(first(block, "type", "part_kind"))
        call = first(block, "functionCall", "function_call")
        result = first(block, "functionResponse", "function_response")
        if kind in _CALLS or call is not None:
            self.calls.append(block if call is None else call)
        elif result is not None:
            self.results.append(_result(mapping(result)))
        elif kind in _RESULTS and (kind != _RETRY or block.get("tool_name")):
            self.results.append(_result(block, failed=kind == _RETRY))
        elif kind in _REASONING or block.get("thought") is True:
            self.thoughts.append(text_of(first(block, "thinking", "content", "text")))
        else:
            self.texts.setdefault(_ROLES.get(kind, role), []).append(part)


def _chat_messages(role: Role, row: JsonObject, problems: Problems) -> Iterator[ParsedMessage]:
    content = as_json(first(row, "parts", "content", "text"))
    found = _Parts()
    if row.get("kind") == "request" and row.get("instructions"):
        found.texts["system"] = [row["instructions"]]
    for part in items(content) or [content]:
        found.add(part, role)
    if found.results or role == "tool":
        yield ParsedMessage("tool", results=tuple(found.results or [_result(row)]))
    if role == "tool":
        return
    single = first(row, "function_call", "functionCall")
    calls = [*found.calls, *items(as_json(first(row, "tool_calls", "toolCalls")))]
    calls += [] if single is None else [single]
    usage = first(row, "usage", "usage_metadata", "token_usage")
    about = {**mapping(row.get("response_metadata")), **row}
    *others, (last, text) = [(one, text_of(parts)) for one, parts in found.texts.items()] or [(role, "")]
    for other, words in others:
        yield ParsedMessage(other, words)
    message = ParsedMessage(
        last,
        text,
        string(first(row, "reasoning_content", "reasoning")) or "\n".join(filter(None, found.thoughts)),
        tuple(call for one in calls if (call := _call(one, "", problems)) is not None),
        tokens=tokens_of(usage),
        model=string(first(about, "model", "model_name", "model_version")) or None,
        cost_usd=number(mapping(usage).get("cost")),
    )
    if message.text or message.reasoning or message.calls or message.tokens or not (found.results or calls):
        yield message


def _call(call: Any, named: str, problems: Problems) -> ToolCallStep | None:
    row = mapping(call)
    inner = {**row, **mapping(as_json(row.get("function")))}
    native = string(first(inner, "name", "tool", "tool_name", "toolName")) or named
    if not native:
        problems.note("a tool call has no name")
        return None
    server = string(inner.get("server_label"))
    native = f"mcp__{server}__{native}" if server else native
    output, error = first(inner, "output", "result"), inner.get("error")
    failed = error is not None or inner.get("status") == "failed"
    arguments = arguments_of(first(inner, "arguments", "input", "args", "action"))
    name, native = names_of_call(native, arguments)
    return ToolCallStep(
        name,
        arguments,
        string(inner.get("native_name")) or native,
        string(first(inner, "call_id", "id", "tool_call_id")) or None,
        result=output,
        error=None if error is None else text_of(error),
        status="failed" if failed else "unknown" if output is None else "completed",
        duration_ms=number(inner.get("duration_ms")),
    )


def _result(row: JsonObject, *, failed: bool = False) -> ParsedResult:
    value = first(row, "content", "output", "response", "result", "parts")
    flags = [row.get(key) is True for key in ("is_error", "isError")]
    flags += [_lower(row, key) in _FAILED for key in ("status", "outcome")]
    hidden = isinstance(value, str) and value.startswith(_HIDDEN_ERROR)
    if isinstance(value, Mapping) and value.keys() == {"error"}:  # the form of errors in Gemini's API
        value, failed = value["error"], True
    identity = string(first(row, "tool_call_id", "tool_use_id", "call_id", "id"))
    return ParsedResult(identity, value, failed or hidden or any(flags), string(first(row, "name", "tool_name")))


def _lower(row: JsonObject, key: str) -> str:
    return string(row.get(key)).lower()


def trace_of_messages(rows: Sequence[Json], source: str = "transcript") -> Trace | Failure:
    """Build a trace from a transcript.

    Args:
        rows: messages in any of the formats of this module.
        source: the `source` of the trace.

    Returns:
        The trace, partial if some rows cannot be read, or a Failure if no row is a message or a call.
    """
    try:
        rows = plain(rows)
    except ValueError as error:
        return Failure("bad-trace", f"the transcript cannot be read: {error}")
    conversation = Conversation()
    for one in messages_in(rows, None, conversation.problems):
        conversation.add(one)
    steps, problems = conversation.steps, str(conversation.problems)
    if not steps:
        return Failure("bad-trace", f"the transcript has no messages{f': {problems}' if problems else ''}")
    return Trace(tuple(steps), source=source, partial=problems)


class Conversation:
    """Builds steps from messages, in order. A result is matched to a call by id, by name, or to the first open call."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.problems = Problems()
        self._open: dict[int, ToolCallStep] = {}
        self._system = ""

    def add(self, message: ParsedMessage) -> None:
        """Add a message with its calls and results."""
        for result in message.results:
            self._result(result)
        if message.role == "tool" or (message.role == "system" and message.text == self._system):
            return  # pydantic-ai repeats its instructions in each request
        self._system = message.text if message.role == "system" else self._system
        if message.text or message.reasoning or not (message.calls or message.tokens):
            self.steps.append(MessageStep(message.role, message.text, message.reasoning or None))
        if message.tokens is not None:
            self.steps.append(UsageStep(message.model, message.tokens, message.cost_usd))
        for call in message.calls:
            if call.status == "unknown":
                self._open[len(self.steps)] = call
            self.steps.append(call)

    def _result(self, result: ParsedResult) -> None:
        for place, step in self._open.items():
            is_named = bool(result.call) or not result.name or step.native_name == result.name
            if is_named and (step.id == result.call or not (result.call and step.id)):
                del self._open[place]
                self.steps[place] = with_result(step, result)
                return
        self.problems.note("a tool's result belongs to no call")


def with_result(step: ToolCallStep, result: ParsedResult) -> ToolCallStep:
    """Return a tool call with its result as text."""
    value = result.value
    text = compact(value) if isinstance(value, Mapping) and "type" not in value else text_of(value)
    if result.failed:
        return replace(step, error=text or "the tool failed", status="failed")
    return replace(step, result=text, status="completed")
