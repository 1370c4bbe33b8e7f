"""`gemini-cli`: Gemini CLI, read from its `stream-json` output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from agentv.extensions.agents.adapters.model_access import WITHOUT_RULES, NativeProvider, model_access, native_tools
from agentv.extensions.agents.adapters.native_settings import AgentProgram, Directories, Ending, Launch, Memory
from agentv.extensions.agents.adapters.recorder import Recording, count, mapping, text
from agentv.extensions.agents.adapters.trials import AGENT_STOPPED, API, LIMIT
from agentv.model.suite.tools import McpServer, ModelProtocol
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import TOOLS
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Doc, FromEnvironment, Secret, Text

_SETTINGS = ".gemini/settings.json"
_SYSTEM_PROMPT = ".gemini/agentv-system.md"
_INSTRUCTIONS = ".gemini/GEMINI.md"

_LIMITS = ("FatalTurnLimitedError", "MaxSessionTurns")
_CANCELLED = "FatalCancellationError"
_DENIALS = ("policy_violation", "tool_not_registered")
"""Error types of a tool call that was not allowed. Gemini CLI does not register built-in tools without approval."""

_BUILT_IN = frozenset(name for agents in TOOLS.values() for name in agents.get("gemini", ()))


@dataclass(frozen=True, slots=True)
class GeminiCli(NativeProvider):
    """Starts Gemini CLI."""

    title: ClassVar[str] = "Gemini CLI"
    program: ClassVar[AgentProgram] = AgentProgram("gemini", npm="@google/gemini-cli", tested=("0.61",))
    without_rules: ClassVar[str] = WITHOUT_RULES
    unsupported: ClassVar[Mapping[str, str]] = {"reasoning_effort": "name a model that thinks as you want in 'model'"}
    protocol: ClassVar[ModelProtocol | None] = "gemini"

    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment(("GEMINI_API_KEY",), required=False),
        Doc("key of the model's API; defaults to GEMINI_API_KEY"),
    ] = None

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """Return how to start one headless turn. With the user's HOME, the settings are added to the user's own."""
        access = model_access(self, request, "gemini")
        config: dict[str, Any] = {
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        env = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        if not directories.fresh_home:
            env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] = f"{directories.config}/{_SETTINGS}"
        if access is not None:
            env |= {"GEMINI_API_KEY": access.api_key, "GOOGLE_GEMINI_BASE_URL": access.base_url}
        if access is not None or "GEMINI_API_KEY" in request.env:
            config["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        servers = (*request.mcp_servers, *self.servers)
        if servers:
            config["mcpServers"] = {one.name: _server(one) for one in servers}
        files = {_SETTINGS: json.dumps(config)}
        if self.system_prompt is not None:
            files[_SYSTEM_PROMPT] = self.system_prompt
            env["GEMINI_SYSTEM_MD"] = f"{directories.config}/{_SYSTEM_PROMPT}"
        if self.append_system_prompt is not None:
            if not directories.fresh_home:
                return Failure("cannot-start", "Gemini CLI takes no 'append_system_prompt' with the HOME of the user")
            files[_INSTRUCTIONS] = self.append_system_prompt
        skills = ".gemini/skills" if directories.fresh_home else ""
        mode = "yolo" if self.permissions == "allow" else "default"
        allowed = ",".join(native_tools("gemini", self.allowed_tools, "mcp_{server}_{tool}"))
        argv = (
            *("--output-format", "stream-json", "--approval-mode", mode),
            *(("--model", self.model) if self.model else ()),
            *(("--allowed-tools", allowed) if allowed else ()),
            *(("--resume", session_id) if session_id else ()),
        )
        return Launch(argv, env, files, skills, request.prompt.encode())

    def reader(self, recorder: Recording, memory: Memory) -> GeminiReader:  # noqa: ARG002  # it needs no memory
        """Return a reader for one turn."""
        return GeminiReader(recorder)


def _server(server: McpServer) -> Mapping[str, Any]:
    if server.transport == "http":
        return {"httpUrl": server.url, "headers": dict(server.headers)}
    return {"command": server.command[0], "args": list(server.command[1:]), "env": dict(server.env)}


class GeminiReader:
    """Reads the events of one turn. Text arrives in pieces without an id, so a tool call ends a message."""

    def __init__(self, recorder: Recording) -> None:
        self._recorder = recorder
        self._message = 0
        self._names: dict[str, str] = {}
        self._text: list[str] = []
        self._results: list[JsonObject] = []
        self._in_progress = False
        self._session_id = ""
        self._errors: list[str] = []

    def read(self, event: JsonObject) -> None:
        """Read the next event."""
        kind = event.get("type")
        if kind == "init":
            self._session_id = text(event, "session_id")
            self._recorder.agent(model=text(event, "model"))
        elif kind == "message" and event.get("role") == "assistant":
            self._read_text(event)
        elif kind == "tool_use":
            self._read_call(event)
        elif kind == "tool_result":
            self._read_result(event)
        elif kind == "error" and event.get("severity") == "error":
            self._errors.append(text(event, "message"))
        elif kind == "result":
            self._results.append(event)
            self._in_progress = False

    def _read_text(self, event: JsonObject) -> None:
        piece = text(event, "content")
        if piece:
            self._text.append(piece)
            self._recorder.message(piece, message_id=f"message-{self._message}")

    def _read_call(self, event: JsonObject) -> None:
        self._in_progress = True
        identity, name = text(event, "tool_id"), text(event, "tool_name")
        self._names[identity] = name
        self._recorder.tool_call(identity, name, mapping(event, "parameters"))
        self._message += 1
        self._text.clear()

    def _read_result(self, event: JsonObject) -> None:
        identity, error = text(event, "tool_id"), mapping(event, "error")
        failed = event.get("status") == "error"
        kind, message = text(error, "type"), text(error, "message") or text(event, "output") or "the tool failed"
        name = self._names.get(identity, "")
        if kind in _DENIALS and (kind != "tool_not_registered" or name in _BUILT_IN):
            self._recorder.denied(name, message, identity)
        self._recorder.tool_result(identity, event.get("output"), error=message if failed else None)

    def ending(self) -> Ending:
        """Return how the turn ended."""
        if not self._results:
            return Ending(session_id=self._session_id)
        result = self._results[-1]
        # Totals of all models. Only `total_tokens` includes thoughts and tokens that tools added.
        stats = mapping(result, "stats")
        total, tokens_in, tokens_out = (
            count(stats, name) for name in ("total_tokens", "input_tokens", "output_tokens")
        )
        thoughts = max(0, total - tokens_in - tokens_out)
        cached = count(stats, "cached")
        tokens = TokenUsage(tokens_in, tokens_out + thoughts, total, cached, thoughts) if total else None
        return Ending(
            "".join(self._text),
            self._failure(result),
            self._session_id,
            tokens,
            stop_reason=text(result, "status"),
            complete=not self._in_progress,
            repeated=len(self._results) > 1,
        )

    def _failure(self, result: JsonObject) -> Failure | None:
        error = mapping(result, "error")
        if result.get("status") == "success" and not error:
            return None
        kind, message = text(error, "type"), text(error, "message") or "; ".join(self._errors)
        if kind in _LIMITS:
            return Failure(LIMIT, f"Gemini CLI stopped at a limit: {message}")
        if kind == _CANCELLED:
            return Failure(AGENT_STOPPED, f"Gemini CLI was cancelled: {message}")
        return Failure(API, f"Gemini CLI reports an error: {message}")
