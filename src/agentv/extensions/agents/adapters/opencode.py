"""`opencode`: OpenCode, read from the JSON events of `opencode run`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agentv.extensions.agents.adapters.model_access import WITHOUT_RULES, AnyModelSettings, model_access, native_tools
from agentv.extensions.agents.adapters.native_settings import AgentProgram, Directories, Ending, Launch, Memory
from agentv.extensions.agents.adapters.recorder import Recording, count, mapping, number, text
from agentv.extensions.agents.adapters.settings import OnDenied
from agentv.extensions.agents.adapters.trials import API, DENIED, LIMIT
from agentv.model.suite.tools import McpServer, ModelProtocol
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import canonical_name
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest

_SKILLS = ".config/opencode/skills"
_INSTRUCTIONS = ".config/opencode/agentv-instructions.md"
_PROVIDER = "agentv"
_TITLE = "agentv"
"""Title of the session. Without one, OpenCode calls its model to get one, which its stream does not report."""

_PACKAGES = {"openai": "@ai-sdk/openai-compatible", "anthropic": "@ai-sdk/anthropic", "gemini": "@ai-sdk/google"}
_VERSIONS: Mapping[ModelProtocol, str] = {"anthropic": "/v1", "gemini": "/v1beta"}

_HARMLESS = ("read", "glob", "grep", "list", "todowrite", "todoread", "skill")
_INVALID = "invalid"
_REJECTED = "rejected permission"
"""Part of the error of a call whose permission was refused, which ends the run."""


@dataclass(frozen=True, slots=True)
class OpenCode(AnyModelSettings):
    """Starts OpenCode."""

    title: ClassVar[str] = "OpenCode"
    program: ClassVar[AgentProgram] = AgentProgram("opencode", npm="opencode-ai", tested=("1.18",))
    without_rules: ClassVar[str] = WITHOUT_RULES

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """Return how to start one headless turn. The prompt is passed on stdin, because OpenCode quotes arguments."""
        access = model_access(self, request, self.model_protocol or self.api)
        permission = {"*": "allow"}
        if self.permissions != "allow":
            allowed = (*_HARMLESS, *native_tools("opencode", self.allowed_tools, "{server}_{tool}"))
            permission = {"*": "ask", **dict.fromkeys(allowed, "allow")}
        config: dict[str, Any] = {"autoupdate": False, "share": "disabled", "permission": permission}
        model = self.model or ""
        if access is not None:
            model = self.model_name
            config["provider"] = {
                _PROVIDER: {
                    "npm": _PACKAGES[access.protocol],
                    "name": _PROVIDER,
                    "options": {"baseURL": access.url(_VERSIONS), "apiKey": access.api_key},
                    "models": {model: {"name": model, "reasoning": self.reasoning_effort is not None}},
                }
            }
            model = f"{_PROVIDER}/{model}"
        if model:
            config |= {"model": model, "small_model": model}
        servers = (*request.mcp_servers, *self.servers)
        config["mcp"] = {one.name: _server(one) for one in servers}
        files = {}
        if self.append_system_prompt is not None:
            files[_INSTRUCTIONS] = self.append_system_prompt
            config["instructions"] = [f"{directories.config}/{_INSTRUCTIONS}"]
        if self.system_prompt is not None:
            config["agent"] = {"build": {"prompt": self.system_prompt}}
        env = {
            "PWD": directories.workspace,  # OpenCode works in $PWD, wherever it is started
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
        argv = (
            *("run", "--format", "json", "--title", _TITLE),
            *(("--auto",) if self.permissions == "allow" else ()),
            *(("--variant", self.reasoning_effort) if self.reasoning_effort else ()),
            *(("--session", session_id) if session_id else ()),
        )
        skills = _SKILLS if directories.fresh_home else ""
        return Launch(argv, env, files, skills, request.prompt.encode())

    def reader(self, recorder: Recording, memory: Memory) -> OpenCodeReader:
        """Return a reader for one turn."""
        return OpenCodeReader(recorder, memory.servers, self.on_denied)


def _server(server: McpServer) -> Mapping[str, Any]:
    if server.transport == "http":
        return {"type": "remote", "url": server.url, "headers": dict(server.headers), "enabled": True}
    return {"type": "local", "command": list(server.command), "environment": dict(server.env), "enabled": True}


class OpenCodeReader:
    """Reads the events of one turn. The reason of the last step says whether it is complete; there is no final event.

    Args:
        recorder: recorder of the turn.
        servers: names of MCP servers, whose tools are named `server_tool`.
        on_denied: `on_denied` of the target.
    """

    def __init__(self, recorder: Recording, servers: tuple[str, ...] = (), on_denied: OnDenied = "error") -> None:
        self._recorder = recorder
        self._servers = sorted(servers, key=len, reverse=True)
        self._on_denied = on_denied
        self._session_id = ""
        self._reason = ""
        self._answer = ""
        self._message = ""
        self._error: str | None = None
        self._denied = ""

    def read(self, event: JsonObject) -> None:
        """Read the next event."""
        kind, part = event.get("type"), mapping(event, "part")
        message = text(part, "messageID")
        self._session_id = text(event, "sessionID") or self._session_id
        if kind == "error":
            error = mapping(event, "error")
            parts = (text(error, "name"), text(mapping(error, "data"), "message"))
            self._error = ": ".join(filter(None, parts)) or "error"
        elif kind == "step_start":
            self._reason, self._denied = "", ""
            self._recorder.message("", message_id=message)
        elif kind == "text":
            piece = text(part, "text")
            self._answer = self._answer + piece if message == self._message else piece
            self._message = message
            self._recorder.message(piece, message_id=message)
        elif kind == "reasoning":
            self._recorder.message("", reasoning=text(part, "text"), message_id=message)
        elif kind == "tool_use":
            self._read_call(part)
        elif kind == "step_finish":
            self._reason, tokens = text(part, "reason"), mapping(part, "tokens")
            if self._message != message:
                self._answer = ""
            if tokens:
                self._recorder.usage(None, _tokens(tokens), number(part, "cost"))

    def _read_call(self, part: JsonObject) -> None:
        """Record a call that has ended, with its result."""
        name, identity, state = text(part, "tool"), text(part, "callID"), mapping(part, "state")
        arguments = mapping(state, "input")
        error = text(state, "error") or "the tool failed" if state.get("status") == "error" else None
        if name == _INVALID:  # the model called an unknown tool
            name, error = text(arguments, "tool") or name, text(arguments, "error") or "invalid"
        was_unavailable = "unavailable tool" in (error or "") and canonical_name(name) != name
        server = next((one for one in self._servers if name.startswith(f"{one}_")), None)
        canonical = "" if server is None else f"{server}.{name[len(server) + 1 :]}"
        self._recorder.tool_call(identity, name, arguments, name=canonical)
        rejected = _REJECTED in (error or "")
        if error is not None and (was_unavailable or rejected):
            self._denied = error if rejected else self._denied  # the run continues if the tool was only unavailable
            self._recorder.denied(name, error, identity)
        self._recorder.tool_result(identity, state.get("output"), error=error)

    def ending(self) -> Ending:
        """Return how the turn ended."""
        stopped = bool(self._denied) and self._reason in {"tool-calls", ""}
        failure, complete = self._failure(stopped=stopped), stopped or self._reason not in {"tool-calls", ""}
        return Ending(self._answer, failure, self._session_id, stop_reason=self._reason, complete=complete)

    def _failure(self, *, stopped: bool) -> Failure | None:
        if self._error is not None:
            return Failure(API, f"OpenCode reports an error: {self._error}")
        if stopped and self._on_denied == "error":
            return Failure(DENIED, f"OpenCode stopped at a permission that was denied: {self._denied}")
        if self._reason == "length":
            return Failure(LIMIT, "the model's answer was cut off at its maximum length")
        return None


def _tokens(tokens: JsonObject) -> TokenUsage:
    """Return token counts in agentv's form: the input includes cached tokens, and the output includes reasoning."""
    cache = mapping(tokens, "cache")
    tokens_in, tokens_out, reasoning = (count(tokens, name) for name in ("input", "output", "reasoning"))
    read, written = count(cache, "read"), count(cache, "write")
    tokens_in, tokens_out = tokens_in + read + written, tokens_out + reasoning
    return TokenUsage(tokens_in, tokens_out, tokens_in + tokens_out, read, reasoning)
