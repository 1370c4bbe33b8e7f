"""What agents mean by what they report over the Agent Client Protocol (agentclientprotocol.com).

The protocol gives a call a kind, and a title for people. The kind says what the call did, so it decides; the title is
believed only where it names a tool of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.tool_names import TOOLS, canonical_name
from agentv.model.values.usage import TokenUsage

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
