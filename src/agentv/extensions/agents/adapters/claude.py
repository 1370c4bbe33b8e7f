"""`claude`: Claude Code, read from its stream of JSON events (`--output-format stream-json`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from agentv.extensions.agents.adapters.model_access import NativeProvider
from agentv.extensions.agents.adapters.native_settings import AgentProgram, Directories, Ending, Launch, Memory
from agentv.extensions.agents.adapters.recorder import (
    Recording,
    count,
    difference,
    items,
    mapping,
    number,
    text,
    texts,
)
from agentv.extensions.agents.adapters.settings import PermissionRule
from agentv.extensions.agents.adapters.trials import AGENT_STOPPED, API, LIMIT, REFUSED
from agentv.extensions.agents.traces.values import text_of
from agentv.model.suite.tools import McpServer, ModelProtocol
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import TOOLS
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Doc, FromEnvironment, Issue, Secret, Text

_ENVIRONMENT = {
    "IS_SANDBOX": "1",  # required to run as root
    "MCP_CONNECTION_NONBLOCKING": "false",  # otherwise the first model call is sent before the tools are known
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
_SKILLS = ".claude/skills"
_DIRECTORY = ".agentv"
_LIMITS = frozenset({"error_max_turns", "error_max_budget_usd"})


@dataclass(frozen=True, slots=True)
class Claude(NativeProvider):
    """Starts Claude Code."""

    title: ClassVar[str] = "Claude Code"
    protocol: ClassVar[ModelProtocol | None] = "anthropic"
    program: ClassVar[AgentProgram] = AgentProgram(
        "claude",
        module="claude_agent_sdk",
        path="_bundled/claude",
        extra="claude",
        npm="@anthropic-ai/claude-code",
        version_argv=(),
        tested=("2.1.330", "2.1.332"),
    )

    base_url: Annotated[
        Text | None,
        FromEnvironment(("ANTHROPIC_BASE_URL",), required=False),
        Doc("base URL of the model's API; defaults to ANTHROPIC_BASE_URL"),
    ] = None
    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment(("ANTHROPIC_API_KEY",), required=False),
        Doc("key of the model's API; defaults to ANTHROPIC_API_KEY"),
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Report rules that Claude Code cannot express, and what is wrong with the settings of any agent."""
        yield from NativeProvider.validate(self)
        if not isinstance(self.permissions, str):
            allowed = False
            for place, rule in enumerate(self.permissions):
                at = ("permissions", place)
                if rule.kind is not None:
                    yield Issue((*at, "kind"), "Claude Code has no kinds of tools; name the tool with 'tool'")
                if rule.tool is None and (rule.path is not None or place < len(self.permissions) - 1):
                    yield Issue(at, "Claude Code needs 'tool' in a rule, except in a last one for all the rest")
                if rule.tool is not None and not _native_names(rule.tool):
                    yield Issue((*at, "tool"), f"Claude Code has no tool '{rule.tool}'")
                if rule.action == "deny" and rule.tool is not None and allowed:
                    yield Issue(at, "a denial wins in Claude Code wherever it stands; place it before what is allowed")
                allowed = allowed or rule.action == "allow"

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """Return its command line. All settings are passed as flags, so that the user's own files stay unchanged."""
        servers, rules = (*request.mcp_servers, *self.servers), self.permissions
        argv = ["-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]
        files = {}
        for name, flag, content in (
            ("mcp.json", "--mcp-config", json.dumps({"mcpServers": _servers(servers)}) if servers else ""),
            ("settings.json", "--settings", "" if isinstance(rules, str) else json.dumps(_rules(rules))),
            ("system-prompt.md", "--system-prompt-file", self.system_prompt),
            ("append-system-prompt.md", "--append-system-prompt-file", self.append_system_prompt),
        ):
            if content:
                files[f"{_DIRECTORY}/{name}"] = content
                argv += [flag, f"{directories.config}/{_DIRECTORY}/{name}"]
        argv += ["--model", self.model] if self.model else []
        argv += ["--effort", self.reasoning_effort] if self.reasoning_effort else []
        turns = [one for one in (self.max_turns, request.max_turns) if one is not None]
        argv += ["--max-turns", str(min(turns))] if turns else []
        argv += ["--resume", session_id] if session_id else []
        if rules == "allow" or (not isinstance(rules, str) and rules[-1:] == (PermissionRule("allow"),)):
            argv += ["--dangerously-skip-permissions"]
        else:
            argv += ["--permission-mode", "dontAsk"]
        argv += ["--allowedTools", ",".join(self.allowed_tools)] if self.allowed_tools else []
        if self.skills and not directories.fresh_home:
            argv += ["--add-dir", directories.config]
        return Launch(tuple(argv), self._env(request), files, _SKILLS, request.prompt.encode(errors="replace"))

    def reader(self, recorder: Recording, memory: Memory) -> ClaudeStream:
        """Return a reader for one turn."""
        return ClaudeStream(recorder, memory.usage)

    def _env(self, request: TargetRequest) -> dict[str, str]:
        gateway = request.gateway
        url = gateway.base_url("anthropic") if gateway is not None else self.base_url
        key = gateway.token if gateway is not None else self.api_key
        own = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}
        return {**_ENVIRONMENT, **{name: value for name, value in own.items() if value}}


class ClaudeStream:
    """Reads the events of one turn. A message is split into events of the same id, one for each block.

    Args:
        recorder: recorder of the turn.
        earlier: model → its usage in earlier turns, which older versions add to later turns; updated in place.
    """

    def __init__(self, recorder: Recording, earlier: dict[str, JsonObject]) -> None:
        self._recorder = recorder
        self._earlier = earlier
        self._retrying: Failure | None = None
        self._sub_agents = False
        self._in_progress = False
        self._denied: set[str] = set()
        self._names: dict[str, str] = {}
        self._results: list[JsonObject] = []
        self._session_id = ""

    def read(self, event: JsonObject) -> None:
        """Read the next event."""
        kind = event.get("type")
        self._session_id = text(event, "session_id") or self._session_id
        if kind == "system":
            self._system(event)
        elif kind == "assistant":
            self._assistant(event)
        elif kind == "user":
            self._user(event)
        elif kind == "result":
            self._result(event)

    def ending(self) -> Ending:
        """Return how the turn ended."""
        if not self._results:
            return Ending(failure=self._retrying, session_id=self._session_id)
        last = self._results[-1]
        output, reason = text(last, "result") if "result" in last else None, text(last, "stop_reason")
        # `result_index` numbers the further results, which follow when work in the background has ended.
        numbers = [one.get("result_index") for one in self._results]
        return Ending(
            output,
            _failure(last),
            self._session_id,
            stop_reason=reason or text(last, "subtype"),
            complete=not self._sub_agents and not self._in_progress,  # a result does not cover what follows it
            repeated=len(numbers) > 1 and numbers != list(range(len(numbers))),
        )

    def _system(self, event: JsonObject) -> None:
        if event.get("subtype") == "init":
            self._recorder.agent(text(event, "claude_code_version"), text(event, "model"))
            if isinstance(event.get("tools"), list):
                self._recorder.offered = texts(event, "tools")
        elif event.get("subtype") == "background_tasks_changed":
            self._sub_agents = any(text(one, "task_type") == "local_agent" for one in items(event, "tasks"))
        elif event.get("subtype") == "api_retry":
            why = " ".join(filter(None, (str(event.get("error_status") or ""), text(event, "error"))))
            tries = f"{count(event, 'attempt')} of {count(event, 'max_retries')} tries"
            self._retrying = Failure(API, f"the agent's model API fails: {why}, after {tries}")
        elif event.get("subtype") == "permission_denied":
            self._deny(text(event, "tool_name"), text(event, "message"), text(event, "tool_use_id"))

    def _assistant(self, event: JsonObject) -> None:
        self._retrying, self._in_progress = None, True
        message, parent = mapping(event, "message"), text(event, "parent_tool_use_id") or None
        identity = text(message, "id")
        for block in items(message, "content"):
            kind = block.get("type")
            if kind == "text":
                self._recorder.message(text(block, "text"), message_id=identity, parent=parent)
            elif kind == "thinking":
                self._recorder.message("", reasoning=text(block, "thinking"), message_id=identity, parent=parent)
            elif kind in {"tool_use", "server_tool_use", "mcp_tool_use"}:
                self._recorder.message("", message_id=identity, parent=parent)
                name, call_id = text(block, "name"), text(block, "id")
                self._names[call_id] = name
                self._recorder.tool_call(call_id, name, mapping(block, "input"), parent=parent)

    def _user(self, event: JsonObject) -> None:
        for block in items(mapping(event, "message"), "content"):
            if block.get("type") != "tool_result":
                continue
            result = text_of(block.get("content"))
            error = result or "the tool failed" if block.get("is_error") is True else None
            self._recorder.tool_result(text(block, "tool_use_id"), None if error else result, error=error)

    def _result(self, event: JsonObject) -> None:
        self._results.append(event)
        self._in_progress = False
        for one in items(event, "permission_denials"):
            call_id = text(one, "tool_use_id")
            if call_id not in self._denied:
                self._deny(text(one, "tool_name"), "", call_id)
        for model, used in self._usage_since_last(event):
            cached, written = count(used, "cacheReadInputTokens"), count(used, "cacheCreationInputTokens")
            tokens_in, tokens_out = count(used, "inputTokens") + cached + written, count(used, "outputTokens")
            tokens = TokenUsage(tokens_in, tokens_out, tokens_in + tokens_out, cached, count(used, "thinkingTokens"))
            self._recorder.usage(model, tokens, number(used, "costUSD"))

    def _usage_since_last(self, event: JsonObject) -> Iterator[tuple[str, JsonObject]]:
        """Yield each model's usage since the previous result. A message event has only the usage at its beginning."""
        totals, since = mapping(event, "modelUsage"), event.get("model_usage_since_last_result")
        for model in totals if not isinstance(since, dict) else since:
            used = mapping(totals if not isinstance(since, dict) else since, model)
            yield model, used if isinstance(since, dict) else difference(used, self._earlier.get(model, {}))
        self._earlier.update((model, mapping(totals, model)) for model in totals)

    def _deny(self, name: str, reason: str, call_id: str) -> None:
        self._denied.add(call_id)
        self._recorder.denied(name or self._names.get(call_id, ""), reason.partition(" IMPORTANT:")[0], call_id)


def _failure(result: JsonObject) -> Failure | None:
    """Return why a result is not an answer, or None. A subtype `success` does not rule out an error."""
    subtype, answer = text(result, "subtype"), text(result, "result")
    errors = texts(result, "errors")
    why = (answer or "; ".join(errors) or subtype)[:500]
    if subtype in _LIMITS:
        return Failure(LIMIT, f"the agent stopped at a limit of its own: {subtype}")
    is_error = result.get("is_error") not in (None, False)
    if is_error and (result.get("api_error_status") is not None or subtype == "success"):
        return Failure(API, f"the agent reports an error of its model's API: {why}")
    if is_error or subtype != "success":
        return Failure(AGENT_STOPPED, f"the agent reports an error: {why}")
    if text(result, "stop_reason") == "refusal":
        return Failure(REFUSED, f"the model refused to answer: {answer[:500]}")
    if text(result, "stop_reason") == "max_tokens":
        return Failure(LIMIT, "the answer was cut off at the maximum length of the model (max_tokens)")
    return None


def _rules(rules: Sequence[PermissionRule]) -> dict[str, Any]:
    """Return rules as Claude Code's settings, where a denial always wins."""
    lists: dict[str, list[str]] = {"allow": [], "deny": []}
    for rule in rules:
        for name in _native_names(rule.tool or "*"):
            lists[rule.action] += [f"{name}(./{rule.path})" if rule.path else name] if name else []
    return {"permissions": lists}


def _native_names(tool: str) -> Sequence[str]:
    if tool in TOOLS:
        return TOOLS[tool].get("claude", ())
    server, dot, name = tool.partition(".")
    if dot:
        return (f"mcp__{server}" if name == "*" else f"mcp__{server}__{name}",)
    return () if tool == "*" else (tool,)


def _servers(servers: Iterable[McpServer]) -> dict[str, Any]:
    """Return MCP servers by name, as in Claude Code's configuration."""
    entries: dict[str, Any] = {}
    for one in servers:
        if one.transport == "http":
            entries[one.name] = {"type": "http", "url": one.url, "headers": dict(one.headers)}
        else:
            program, *arguments = one.command
            entries[one.name] = {"type": "stdio", "command": program, "args": arguments, "env": dict(one.env)}
    return entries
