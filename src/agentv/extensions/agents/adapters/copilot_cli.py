"""`copilot-cli`: GitHub Copilot CLI, read from its JSON output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

from agentv.extensions.agents.adapters.model_access import WITHOUT_RULES, AnyModelSettings, model_access, native_tools
from agentv.extensions.agents.adapters.native_settings import AgentProgram, Directories, Ending, Launch, Memory
from agentv.extensions.agents.adapters.recorder import Recording, difference, items, mapping, text
from agentv.extensions.agents.adapters.trials import AGENT_STOPPED, API, NO_TOOLS
from agentv.extensions.agents.traces.values import tokens_of
from agentv.model.suite.tools import McpServer
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Issue

_MCP = ".copilot/agentv-mcp.json"
_USAGE = ".copilot/agentv-usage.json"
_INSTRUCTIONS = ".copilot/copilot-instructions.md"

_ERROR_LENGTH = 300
_DENIALS = ("denied", "rejected")
"""Error codes of a tool call that was not allowed."""

_KINDS = {"shell": "shell", "edit": "write", "write": "write"}
"""Canonical name of a tool → Copilot's name of the permission for it."""


@dataclass(frozen=True, slots=True)
class CopilotCli(AnyModelSettings):
    """Starts GitHub Copilot CLI."""

    title: ClassVar[str] = "Copilot CLI"
    program: ClassVar[AgentProgram] = AgentProgram("copilot", npm="@github/copilot", tested=("1.0",))
    without_rules: ClassVar[str] = WITHOUT_RULES
    unsupported: ClassVar[Mapping[str, str]] = {"system_prompt": "use 'append_system_prompt'"}

    def validate(self) -> Iterable[Issue]:
        """Report settings that Copilot CLI cannot follow."""
        yield from AnyModelSettings.validate(self)
        if self.api == "gemini":
            yield Issue(("api",), "Copilot CLI speaks the protocols 'openai' and 'anthropic'")

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """Return how to start one headless turn. The prompt is passed on stdin."""
        access = model_access(self, request, self.model_protocol or self.api)
        env = {"COPILOT_AUTO_UPDATE": "false"}
        if access is not None:
            env |= {
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_TYPE": access.protocol,
                "COPILOT_PROVIDER_BASE_URL": access.base_url,
                "COPILOT_PROVIDER_API_KEY": access.api_key,
            }
        if self.model:
            env["COPILOT_MODEL"] = self.model if access is None else self.model_name
        files = {}
        if self.append_system_prompt is not None:
            if not directories.fresh_home:
                return Failure("cannot-start", "Copilot CLI takes no 'append_system_prompt' with the HOME of the user")
            files[_INSTRUCTIONS] = self.append_system_prompt
        servers = (*request.mcp_servers, *self.servers)
        if servers:
            files[_MCP] = json.dumps({"mcpServers": {one.name: _server(one) for one in servers}})
        skills = ".copilot/skills" if directories.fresh_home else ""
        allow = ("--allow-all",) if self.permissions == "allow" else ()
        kinds = [_KINDS[name] for name in self.allowed_tools if name in _KINDS]
        names = [name for name in self.allowed_tools if name not in _KINDS]
        tools = (*kinds, *native_tools("copilot", names, "{server}({tool})"))
        named = (f"--resume={session_id}",) if session_id else ("--session-id", str(uuid4()))
        argv = (
            *("--output-format", "json", "--no-auto-update", "--no-ask-user", *allow),
            *(f"--allow-tool={name}" for name in dict.fromkeys(tools)),
            *(("--additional-mcp-config", f"@{directories.config}/{_MCP}") if servers else ()),
            *("--usage-output-file", f"{directories.config}/{_USAGE}"),
            *(("--reasoning-effort", self.reasoning_effort) if self.reasoning_effort else ()),
            *named,
        )
        return Launch(argv, env, files, skills, request.prompt.encode(), _USAGE)

    def reader(self, recorder: Recording, memory: Memory) -> CopilotReader:
        """Return a reader for one turn."""
        return CopilotReader(recorder, memory.usage)


def _server(server: McpServer) -> Mapping[str, Any]:
    shared = {"tools": ["*"]}
    if server.transport == "http":
        return {"type": "http", "url": server.url, "headers": dict(server.headers), **shared}
    command, *arguments = server.command
    return {"type": "local", "command": command, "args": arguments, "env": dict(server.env), **shared}


class CopilotReader:
    """Reads the events of one turn, and its usage file.

    Args:
        recorder: recorder of the turn.
        totals: model → usage of earlier turns, which the file's totals include; updated in place.
    """

    def __init__(self, recorder: Recording, totals: dict[str, JsonObject]) -> None:
        self._recorder = recorder
        self._totals = totals
        self._tokens: TokenUsage | None = None
        self._answer = ""
        self._results: list[JsonObject] = []
        self._in_progress = False
        self._error = ""
        self._failed_servers: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def read(self, event: JsonObject) -> None:
        """Read the next event."""
        if event.get("type") == "result":
            self._results.append(event)
            self._in_progress = False
        elif "modelMetrics" in event:
            self._add_usage(mapping(event, "modelMetrics"))
        else:
            self._read_data(text(event, "type"), mapping(event, "data"))

    def _read_data(self, kind: str, data: JsonObject) -> None:
        if kind == "assistant.message":
            self._read_message(data)
        elif kind == "tool.execution_start":
            self._read_call(data)
        elif kind == "tool.execution_complete":
            self._read_result(data)
        elif kind == "session.error":
            self._error = text(data, "message") or text(data, "errorType") or "error"
        elif kind == "session.mcp_servers_loaded":
            failed = (one for one in items(data, "servers") if one.get("status") == "failed")
            self._failed_servers |= {text(one, "name"): text(one, "error")[:_ERROR_LENGTH] for one in failed}

    def _read_message(self, data: JsonObject) -> None:
        parent = text(data, "parentToolCallId") or None
        answer, thinking, identity = text(data, "content"), text(data, "reasoningText"), text(data, "messageId")
        self._recorder.agent(model=text(data, "model"))
        self._recorder.message(answer, reasoning=thinking, message_id=identity, parent=parent)
        if parent is None:
            self._error = ""  # the failed call was retried
            self._answer = answer

    def _read_call(self, data: JsonObject) -> None:
        self._in_progress = True
        identity, native, parent = text(data, "toolCallId"), text(data, "toolName"), text(data, "parentToolCallId")
        server, tool = text(data, "mcpServerName"), text(data, "mcpToolName")
        name = f"{server}.{tool}" if server and tool else ""
        self._names[identity] = native
        self._recorder.tool_call(identity, native, mapping(data, "arguments"), parent=parent or None, name=name)

    def _read_result(self, data: JsonObject) -> None:
        identity, error = text(data, "toolCallId"), mapping(data, "error")
        result = text(mapping(data, "result"), "content")
        if data.get("success") is not False:
            self._recorder.tool_result(identity, result)
            return
        message = text(error, "message") or "the tool failed"
        if error.get("code") in _DENIALS:
            self._recorder.denied(self._names.get(identity, ""), message, identity)
        self._recorder.tool_result(identity, result or None, error=message)

    def _add_usage(self, metrics: JsonObject) -> None:
        """Add the totals of the session, less its usage before this turn."""
        for model in metrics:
            total = mapping(mapping(metrics, model), "usage")
            used = tokens_of(difference(total, self._totals.get(model, {})))
            self._totals[model] = total
            if used is not None:
                self._tokens = used if self._tokens is None else self._tokens + used

    def ending(self) -> Ending:
        """Return how the turn ended."""
        result = self._results[-1] if self._results else {}
        return Ending(
            self._answer,
            self._failure(result),
            text(result, "sessionId"),
            self._tokens,
            stop_reason=str(result.get("exitCode", "")),
            complete=bool(self._results) and not self._in_progress,
            repeated=len(self._results) > 1,
        )

    def _failure(self, result: JsonObject) -> Failure | None:
        if self._error:
            return Failure(API, f"Copilot CLI reports an error: {self._error}")
        if self._failed_servers:
            servers = ", ".join(f"{name} ({why})" for name, why in self._failed_servers.items())
            return Failure(NO_TOOLS, f"Copilot CLI did not connect to MCP servers: {servers}")
        if result and result.get("exitCode") != 0:
            return Failure(AGENT_STOPPED, f"Copilot CLI ended with exit code {result.get('exitCode')}")
        return None
