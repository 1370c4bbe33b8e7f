"""Canonical names of tools: the same name for the same tool of every agent, and one form for names of MCP tools.

The table holds the built-in tools of the known agents, by the names in their documentation. Names that are not in it
are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from agentv.model.values.values import Json, JsonObject, lazy_pattern

KNOWN_AGENTS = ("claude", "codex", "gemini", "copilot", "opencode", "pi")

TOOLS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "shell": {
            "claude": ("Bash",),
            "codex": ("shell", "exec_command", "local_shell", "local_shell_call", "shell_command", "command_execution"),
            "gemini": ("run_shell_command",),
            "copilot": ("bash", "powershell"),
            "opencode": ("bash",),
            "pi": ("bash",),
        },
        "read": {
            "claude": ("Read", "NotebookRead"),
            "codex": ("read_file", "view_image"),
            "gemini": ("read_file", "read_many_files"),
            "copilot": ("view",),
            "opencode": ("read",),
            "pi": ("read",),
        },
        "write": {
            "claude": ("Write",),
            "gemini": ("write_file",),
            "copilot": ("create",),
            "opencode": ("write",),
            "pi": ("write",),
        },
        "edit": {
            "claude": ("Edit", "MultiEdit", "NotebookEdit"),
            "codex": ("apply_patch", "file_change"),
            "gemini": ("replace",),
            "copilot": ("edit", "str_replace_editor"),
            "opencode": ("edit", "multiedit", "patch", "apply_patch"),
            "pi": ("edit",),
        },
        "search": {
            "claude": ("Grep",),
            "codex": ("grep_files",),
            "gemini": ("search_file_content", "grep_search"),
            "copilot": ("grep", "rg"),
            "opencode": ("grep",),
            "pi": ("grep",),
        },
        "find": {
            "claude": ("Glob",),
            "gemini": ("glob",),
            "copilot": ("glob",),
            "opencode": ("glob",),
            "pi": ("find",),
        },
        "list": {
            "claude": ("LS",),
            "codex": ("list_dir",),
            "gemini": ("list_directory",),
            "opencode": ("list",),
            "pi": ("ls",),
        },
        "fetch": {
            "claude": ("WebFetch",),
            "gemini": ("web_fetch",),
            "copilot": ("web_fetch",),
            "opencode": ("webfetch",),
        },
        "web_search": {
            "claude": ("WebSearch",),
            "codex": ("web_search", "web_search_call"),
            "gemini": ("google_web_search",),
            "copilot": ("web_search",),
            "opencode": ("websearch",),
        },
        "subagent": {
            "claude": ("Task", "Agent"),
            "codex": ("spawn_agent",),
            "gemini": ("invoke_agent",),
            "copilot": ("task",),
            "opencode": ("task",),
        },
        "plan": {
            "claude": ("TodoWrite",),
            "codex": ("update_plan", "todo_list"),
            "gemini": ("write_todos",),
            "copilot": ("update_todo",),
            "opencode": ("todowrite",),
        },
        "skill": {"claude": ("Skill",), "gemini": ("activate_skill",), "copilot": ("skill",), "opencode": ("skill",)},
    }
)
"""Canonical name → agent → the names of that tool in that agent."""

_CANONICAL: Mapping[str, str] = {
    native: name for name, agents in TOOLS.items() for natives in agents.values() for native in natives
}


@lru_cache(maxsize=4096)
def canonical_name(native: str) -> str:
    """Return the canonical name of an agent's tool: `Bash` → `shell`, `mcp__shop__get_order` → `shop.get_order`.

    An unknown name is returned unchanged.
    """
    return _CANONICAL.get(native) or mcp_name(native)


_PATCH_IN_SHELL = lazy_pattern(
    r"\s*(?:cd [^\n;&|]+ && )?apply_?patch\s*<<-?\s*(['\"]?)(?P<end>\w+)\1\s*\n(?P<patch>.*?)\n(?P=end)\s*", re.DOTALL
)


def names_of_call(native: str, arguments: JsonObject) -> tuple[str, str]:
    """Return the canonical and the native name of the tool that a call used.

    Codex does not run a shell for a command that only feeds a patch to `apply_patch`; it reports that as an edit.
    """
    name = canonical_name(native)
    if name == "shell" and _feeds_patch(arguments.get("command", arguments.get("cmd"))):
        return "edit", "apply_patch"
    return name, native


def _feeds_patch(command: Json) -> bool:
    if isinstance(command, str):
        return _PATCH_IN_SHELL.fullmatch(command) is not None
    match command:
        case ["apply_patch" | "applypatch", *_]:
            return True
        case [_, "-c" | "-lc", str(script)]:
            return _feeds_patch(script)
    return False


@lru_cache(maxsize=4096)
def mcp_name(native: str) -> str:
    """Return the name of an MCP tool as `server.tool`, and any other name unchanged.

    Forms: `mcp__shop__get_order` (Claude Code, Codex), `mcp__shop.get_order`, `mcp_shop_get_order` (Gemini CLI), where
    the server's name ends at the first underscore.
    """
    if native.startswith("mcp__"):
        rest = native[5:]
        server, separator, tool = rest.partition("__")
        if not separator:
            server, separator, tool = rest.partition(".")
    elif native.startswith("mcp_"):
        server, separator, tool = native[4:].partition("_")
    else:
        return native
    return f"{server}.{tool}" if server and separator and tool else native


@lru_cache(maxsize=4096)
def names_of(name: str, native: str | None) -> tuple[str, ...]:
    """Return the names that an assertion may use for a call, without duplicates.

    Args:
        name: name of the call; canonical if it comes from an agent's trace.
        native: the agent's own name. None for a transcript with one name per call: then only MCP forms are recognized,
            so that a user's own tool named `grep` is not mistaken for an agent's.
    """
    forms = (name, mcp_name(name)) if native is None else (name, native, canonical_name(native))
    return tuple(dict.fromkeys(forms))
