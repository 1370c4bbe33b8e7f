"""Transcripts as traces: chat messages and Responses items of OpenAI's API, content blocks of Anthropic's, our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.extensions.agents.traces.values import (
    Problems,
    arguments_of,
    first,
    items,
    mapping,
    number,
    string,
    text_of,
    tokens_of,
)
from agentv.model.values.json_text import plain
from agentv.model.values.message import Role
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import canonical_name
from agentv.model.values.trace import MessageStep, Step, ToolCallStep, Trace, UsageStep
from agentv.model.values.values import Json

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "developer": "system",
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "function": "tool",
}

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
"""Type of an item of the Responses API → the name of its tool, where the item does not give one."""


def trace_of_messages(rows: Sequence[Json], source: str = "transcript") -> Trace | Failure:
    """The trace that a transcript gives.

    Args:
        rows: chat messages with `tool_calls`, items of the Responses API, or both.
        source: of the trace.

    Returns:
        A Failure where no row is a message or a call; a partial trace where some are not.
    """
    try:
        rows = plain(rows)
    except ValueError as error:
        return Failure("bad-trace", f"the transcript cannot be read: {error}")
    reader = _Reader()
    for place, row in enumerate(rows, 1):
        reader.add(row, f"message {place}")
    if not reader.steps:
        why = f": {reader.problems}" if reader.problems else ""
        return Failure("bad-trace", f"the transcript has no messages{why}")
    return Trace(tuple(reader.steps), source=source, partial=str(reader.problems))


class _Reader:
    """Takes rows in their order. A result finds its call by its id; without one, the first call that has none yet."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.problems = Problems()
        self._open: list[int] = []

    def add(self, row: Any, where: str) -> None:
        if not isinstance(row, Mapping):
            self.problems.note(f"{where} is no object")
            return
        kind, role = string(row.get("type")), _ROLES.get(string(row.get("role")).lower())
        if kind in _CALL_ITEMS:
            self._call(row, _CALL_ITEMS[kind])
        elif kind.endswith("_call_output"):
            self._result(string(row.get("call_id")), row.get("output"), failed=False)
        elif kind == "reasoning":
            text = text_of(first(row, "summary", "content"))
            self.steps += [MessageStep("assistant", "", text)] if text else []
        elif role is None:
            self.problems.note(f"{where} has no known role and no known type")
        elif role == "tool":
            self._result(_id(row), row.get("content"), failed=_is_error(row))
        else:
            self._message(role, row)

    def _message(self, role: Role, row: Mapping[str, Any]) -> None:
        content = row.get("content")
        blocks = [block for block in items(content) if isinstance(block, Mapping)]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        thoughts = [text_of(first(block, "thinking", "text")) for block in blocks if block.get("type") == "thinking"]
        said = [one for one in items(content) if not _is_part(one)] if blocks else content
        for block in results:
            self._result(_id(block), block.get("content"), failed=_is_error(block))
        text = text_of(said)
        reasoning = string(first(row, "reasoning_content", "reasoning")) or "\n".join(filter(None, thoughts)) or None
        calls += _calls_of(row)
        if text or reasoning or not (calls or results):
            self.steps.append(MessageStep(role, text, reasoning))
        tokens = tokens_of(first(row, "usage", "token_usage"))
        if tokens is not None:
            self.steps.append(UsageStep(string(row.get("model")) or None, tokens))
        for call in calls:
            self._call(call, "")

    def _call(self, call: Any, named: str) -> None:
        row = mapping(call)
        inner = {**row, **mapping(row.get("function"))}
        native = string(first(inner, "name", "tool", "tool_name", "toolName")) or named
        if not native:
            self.problems.note("a tool call has no name")
            return
        server = string(inner.get("server_label"))
        output, error = first(inner, "output", "result"), inner.get("error")
        status = string(inner.get("status"))
        native = f"mcp__{server}__{native}" if server else native
        step = ToolCallStep(
            name=canonical_name(native),
            arguments=arguments_of(first(inner, "arguments", "input", "args", "action")),
            native_name=string(inner.get("native_name")) or native,
            id=string(first(inner, "call_id", "id", "tool_call_id")) or None,
            result=output,
            error=None if error is None else text_of(error),
            status="failed"
            if error is not None or status == "failed"
            else "unknown"
            if output is None
            else "completed",
            duration_ms=number(inner.get("duration_ms")),
        )
        if output is None and error is None:
            self._open.append(len(self.steps))
        self.steps.append(step)

    def _result(self, identity: str, content: Any, *, failed: bool) -> None:
        place = next(self._matching(identity), None)
        if place is None:
            self.problems.note("a tool's result belongs to no call")
            return
        self._open.remove(place)
        step = self.steps[place]
        if isinstance(step, ToolCallStep):
            said = content if isinstance(content, str) else text_of(content)
            self.steps[place] = (
                replace(step, error=said or "the tool failed", status="failed")
                if failed
                else replace(step, result=said, status="completed")
            )

    def _matching(self, identity: str) -> Iterator[int]:
        for place in self._open:
            step = self.steps[place]
            if isinstance(step, ToolCallStep) and (not identity or not step.id or step.id == identity):
                yield place


def _id(row: Mapping[str, Any]) -> str:
    return string(first(row, "tool_call_id", "tool_use_id", "call_id"))


def _is_error(row: Mapping[str, Any]) -> bool:
    return row.get("is_error") is True or row.get("isError") is True or row.get("status") == "error"


def _is_part(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in {"tool_use", "tool_result", "thinking"}


def _calls_of(row: Mapping[str, Any]) -> list[Any]:
    calls = [*items(first(row, "tool_calls", "toolCalls"))]
    single = first(row, "function_call", "functionCall")
    return [*calls, single] if single is not None else calls
