"""What agents mean by what they report over the Agent Client Protocol (agentclientprotocol.com).

The protocol gives a call a kind, and a title for people. The kind says what the call did, so it decides; the title is
believed only where it names a tool of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from agentv.model.values.json_text import compact, parse
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.message import Role
from agentv.model.values.tool_names import TOOLS, canonical_name
from agentv.model.values.trace import MessageStep, ToolCallStep, ToolStatus
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject

_NAMES_OF_KINDS: Mapping[str, tuple[str, ...]] = {
    "execute": ("shell",),
    "read": ("read", "list"),
    "edit": ("edit", "write"),
    "delete": ("delete",),
    "move": ("move",),
    "search": ("search", "find", "list", "web_search"),
    "fetch": ("fetch", "web_search"),
}
"""Kind of a call → the canonical names of the tools that do this. The first one is that of a tool nobody knows."""

_THOUGHTS = frozenset({"think", "switch_mode"})
_COMMAND_KEYS = ("command", "cmd", "commands", "script")
_IDENTIFIER = lazy_pattern(r"[A-Za-z_][\w.:-]*")
_ID_WITH_NAME = lazy_pattern(r"([A-Za-z_]\w*?)-\d{6,}.*")
_TITLE_WITH_SERVER = lazy_pattern(r"(?P<tool>[\w.-]+) \((?P<server>[\w.-]+) MCP Server\).*", re.DOTALL)
_TITLE_WITH_SLASH = lazy_pattern(r"Tool: (?P<server>[\w.-]+)/(?P<tool>[\w.-]+)")
"""Titles of MCP tools as Gemini CLI and Codex write them."""


_COUNT_LAST_CALL = frozenset({"OpenCode"})
"""Agents whose usage of a turn is that of its last model call."""


def usage_of_turn(agent: str, reported: TokenUsage | None, *, called_tools: bool) -> TokenUsage | None:
    """The tokens of a turn; None if the agent counts one model call only, and there was more than one."""
    return None if called_tools and agent in _COUNT_LAST_CALL else reported


class AcpToolNames(Struct, frozen=True):
    """The names of a tool: canonical, and as the agent calls it."""

    name: str
    native_name: str


def acp_tool_names(identity: str, titles: tuple[str, ...], kind: str, named: str, raw_input: Any) -> AcpToolNames:
    """The names of the tool of a call.

    Args:
        identity: id of the call, which Gemini CLI makes of the tool's name.
        titles: that the call has had, the latest first.
        kind: as the protocol has it; empty if unknown.
        named: the name that the agent gives besides; empty: none.
        raw_input: arguments of the call.
    """
    given = raw_input if isinstance(raw_input, Mapping) else {}
    mcp = named if named.startswith("mcp_") else _mcp_name(titles, given)
    runs_command = kind == "execute" and any(given.get(key) for key in _COMMAND_KEYS)
    if mcp and (named == mcp or not runs_command):
        return AcpToolNames(canonical_name(mcp), mcp)
    of_id = _ID_WITH_NAME.fullmatch(identity)
    first_words = (title.partition(" ")[0].rstrip(":") for title in titles)
    words = (named,) if named else (of_id[1] if of_id is not None else "", *first_words)
    known = [(canonical_name(word), word) for word in words if word and _is_known(word)]
    title = named or next(iter(titles), "")
    of_kind = _NAMES_OF_KINDS.get(kind)
    if of_kind is not None:
        found = next(((name, word) for name, word in known if name in of_kind), None)
        if found is None and named and not runs_command:
            return AcpToolNames(canonical_name(named), named)
        name, native = found or (of_kind[0], title or of_kind[0])
        return AcpToolNames(name, native)
    if known:
        return AcpToolNames(*known[0])
    if named or _IDENTIFIER.fullmatch(title):
        return AcpToolNames(canonical_name(title), title)
    name = kind if kind in _THOUGHTS else title or kind or "tool"
    return AcpToolNames(name, title or name)


def _is_known(word: str) -> bool:
    return canonical_name(word) != word or word in TOOLS


def _mcp_name(titles: tuple[str, ...], given: Mapping[str, Any]) -> str:
    """The name of an MCP tool, by its arguments or its title; empty for other tools."""
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
        """What was said so far."""
        return "".join(self.texts)

    def step(self) -> MessageStep:
        """The step of the trace."""
        return MessageStep(self.role, self.text, "".join(self.thoughts) or None, self.started_ms)


_TEXTS = {"title": "title", "kind": "kind", "status": "status", "name": "named"}
_VALUES = {"rawInput": "raw_input", "rawOutput": "raw_output"}
_LISTS = ("content", "locations")
_PATH_KEYS = ("path", "file_path", "filePath", "abs_path", "absolute_path", "notebook_path", "destination")


@dataclass(slots=True)
class AcpCall:
    """A tool call as far as it is known: each update replaces what it names."""

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
        """Take over what an update says."""
        for key, name in _TEXTS.items():
            setattr(
                self, name, fields[key] if isinstance(fields.get(key), str) and fields[key] else getattr(self, name)
            )
        for key, name in _VALUES.items():
            setattr(self, name, fields[key] if fields.get(key) is not None else getattr(self, name))
        for key in _LISTS:
            setattr(self, key, fields[key] if isinstance(fields.get(key), list) and fields[key] else getattr(self, key))
        self.first_title = self.first_title or self.title
        self.named = _in_meta(fields.get("_meta"), "toolName") or self.named
        self.parent = _in_meta(fields.get("_meta"), "parentToolUseId") or self.parent
        if self.ended and self.ended_ms is None:
            self.ended_ms = at_ms

    @property
    def ended(self) -> bool:
        """Whether the agent says that it is over."""
        return self.status in {"completed", "failed"}

    @property
    def names(self) -> AcpToolNames:
        """The names of its tool."""
        return acp_tool_names(self.id, (self.title, self.first_title), self.kind, self.named, self.raw_input)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it names: its locations, its arguments, its diffs."""
        found = [one.get("path") for one in (*self.locations, *self.content) if isinstance(one, Mapping)]
        if isinstance(self.raw_input, Mapping):
            found += [self.raw_input.get(key) for key in _PATH_KEYS]
        return tuple(dict.fromkeys(one for one in found if isinstance(one, str) and one))

    def step(self, *, cancelled: bool) -> ToolCallStep:
        """The step of the trace; `cancelled`: the agent was ended before it was over."""
        failed, names = self.status == "failed", self.names
        said = self.raw_output if self.raw_output is not None else "\n".join(_texts_in(self.content)) or None
        known = self.started_ms is not None and self.ended_ms is not None
        return ToolCallStep(
            name=names.name,
            arguments=self._arguments(),
            native_name=names.native_name,
            id=self.id,
            result=None if failed else said,
            error="\n".join(_texts_in(said)) or "the tool failed" if failed else None,
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

    def _arguments(self) -> JsonObject:
        given = self.raw_input
        if isinstance(given, str):
            try:
                given = parse(given.encode())
            except (ValueError, UnicodeEncodeError):
                return {"input": given}
        if isinstance(given, Mapping):
            return given
        if given is not None:
            return {"input": given}
        return {"path": self.paths[0]} if self.paths else {}


def _texts_in(value: Any) -> Iterator[str]:
    """The texts of a result: itself, or those of its blocks; of any other value its JSON."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _texts_in(one)
    elif isinstance(value, Mapping) and "type" in value:
        inner = value.get("text", value.get("content"))
        yield from _texts_in(inner) if isinstance(inner, str | Mapping) else ()
    elif value is not None:
        yield value if isinstance(value, str) else compact(value)


def _in_meta(meta: Any, key: str) -> str:
    """A text that agents put into `_meta`, on its own or under their name."""
    said = meta if isinstance(meta, Mapping) else {}
    places = (said, *(one for one in said.values() if isinstance(one, Mapping)))
    return next((found for place in places if isinstance(found := place.get(key), str) and found), "")
