"""`pi-cli`: the coding agent pi, read from its JSON events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from agentv.extensions.agents.adapters.model_access import AnyModelSettings, model_access
from agentv.extensions.agents.adapters.native_settings import AgentProgram, Directories, Ending, Launch, Memory
from agentv.extensions.agents.adapters.recorder import Recording, count, items, mapping, number, text
from agentv.extensions.agents.adapters.trials import AGENT_STOPPED, API, LIMIT, NO_TOOLS
from agentv.model.suite.tools import ModelProtocol
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest

_DIRECTORY = ".pi/agent"
_SKILLS = ".pi/agentv-skills"
_SYSTEM_PROMPT = ".pi/agentv-system.md"
_APPENDED_PROMPT = ".pi/agentv-append-system.md"
_PROVIDER = "agentv"
_KEY = "AGENTV_MODEL_KEY"
_WITHOUT_TOOLS = "connects to no MCP servers, so that it cannot use the tools of the case"

_APIS = {"openai": "openai-completions", "anthropic": "anthropic-messages", "gemini": "google-generative-ai"}
_VERSIONS: Mapping[ModelProtocol, str] = {"gemini": "/v1beta"}

UPDATES = b'{"type":"message_update"'
"""Prefix of lines that repeat a whole message for each of its pieces."""


@dataclass(frozen=True, slots=True)
class PiCli(AnyModelSettings):
    """Starts pi."""

    title: ClassVar[str] = "pi"
    program: ClassVar[AgentProgram] = AgentProgram("pi", npm="@earendil-works/pi-coding-agent", tested=("0.74", "1.6"))
    unsupported: ClassVar[Mapping[str, str]] = {
        "permissions": "it asks for none; choose its tools with '--tools' in 'args'",
        "allowed_tools": "choose its tools with '--tools' in 'args'",
        "mcp": "it connects to no MCP servers",
    }

    def refuses_case(self, *, tools: bool, turns: bool) -> str | None:  # noqa: ARG002  # it can continue a session
        """Return why it cannot run a case with scripted tools, or None."""
        return _WITHOUT_TOOLS if tools else None

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """Return how to start one headless turn. The prompt is passed on stdin."""
        if request.mcp_servers:
            return Failure(NO_TOOLS, f"pi {_WITHOUT_TOOLS}")
        access = model_access(self, request, self.model_protocol or self.api)
        env, files = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}, {}
        argv = ["--mode", "json", "--print", "--offline"]
        if access is not None:
            provider = {
                "api": _APIS[access.protocol],
                "baseUrl": access.url(_VERSIONS),
                "apiKey": f"!printenv {_KEY}",  # a variable is written NAME before pi 1.0, $NAME since
                "models": [{"id": self.model_name, "reasoning": self.reasoning_effort is not None}],
            }
            files[f"{_DIRECTORY}/models.json"] = json.dumps({"providers": {_PROVIDER: provider}})
            env |= {_KEY: access.api_key, "PI_CODING_AGENT_DIR": f"{directories.config}/{_DIRECTORY}"}
            argv += ["--provider", _PROVIDER]
        if self.model:
            argv += ["--model", self.model if access is None else self.model_name]
        own = ("--system-prompt", _SYSTEM_PROMPT, self.system_prompt)
        for option, name, prompt in (own, ("--append-system-prompt", _APPENDED_PROMPT, self.append_system_prompt)):
            if prompt is not None:
                files[name] = prompt
                argv += [option, f"{directories.config}/{name}"]
        if self.skills:
            argv += ["--skill", f"{directories.config}/{_SKILLS}"]
        if self.reasoning_effort:
            argv += ["--thinking", self.reasoning_effort]
        if session_id:
            argv += ["--session", session_id]
        return Launch(tuple(argv), env, files, _SKILLS, request.prompt.encode(), discarded=(UPDATES,))

    def reader(self, recorder: Recording, memory: Memory) -> PiReader:  # noqa: ARG002  # it needs no memory
        """Return a reader for one turn."""
        return PiReader(recorder)


class PiReader:
    """Reads the events of one turn."""

    def __init__(self, recorder: Recording) -> None:
        self._recorder = recorder
        self._session_id = ""
        self._last: JsonObject = {}
        self._answer = ""
        self._messages = 0
        self._ended = False

    def read(self, event: JsonObject) -> None:
        """Read the next event."""
        kind, message = event.get("type"), mapping(event, "message")
        if kind == "session":
            self._session_id = text(event, "id")
        elif kind == "message_end" and message.get("role") == "assistant":
            self._read_message(message)
        elif kind == "tool_execution_end":
            result = "".join(text(one, "text") for one in items(mapping(event, "result"), "content"))
            error = (result or "the tool failed") if event.get("isError") else None
            self._recorder.tool_result(text(event, "toolCallId"), result, error=error)
        elif kind in {"agent_start", "agent_end", "auto_retry_start", "compaction_start"}:  # it may retry
            self._ended = kind == "agent_end"

    def _read_message(self, message: JsonObject) -> None:
        """Record a whole message with its tool calls and usage."""
        self._last, self._messages = message, self._messages + 1
        blocks, usage, model = list(items(message, "content")), mapping(message, "usage"), text(message, "model")
        self._answer = "".join(text(one, "text") for one in blocks if one.get("type") == "text")
        thinking = "".join(text(one, "thinking") for one in blocks if one.get("type") == "thinking")
        self._recorder.agent(model=model)
        self._recorder.message(self._answer, reasoning=thinking, message_id=f"message-{self._messages}")
        for one in blocks:
            if one.get("type") == "toolCall":
                self._recorder.tool_call(text(one, "id"), text(one, "name"), mapping(one, "arguments"))
        names = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
        tokens_in, tokens_out, read, written, total = (count(usage, name) for name in names)
        if total:  # cached tokens are counted separately
            tokens = TokenUsage(tokens_in + read + written, tokens_out, total, read, None)
            self._recorder.usage(model or None, tokens, number(mapping(usage, "cost"), "total"))

    def ending(self) -> Ending:
        """Return how the turn ended. Its last message decides, regardless of the exit status."""
        reason = text(self._last, "stopReason")
        failure, complete = self._failure(reason), self._ended and reason not in {"", "toolUse"}
        return Ending(self._answer, failure, self._session_id, stop_reason=reason, complete=complete)

    def _failure(self, reason: str) -> Failure | None:
        if reason == "error":
            return Failure(API, f"pi reports an error: {text(self._last, 'errorMessage')}")
        if reason == "aborted":
            return Failure(AGENT_STOPPED, "pi says that its turn was cancelled, which nobody asked for")
        if reason == "length":
            return Failure(LIMIT, "the model's answer was cut off at its maximum length")
        return None
