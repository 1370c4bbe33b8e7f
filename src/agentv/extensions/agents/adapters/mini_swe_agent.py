"""`mini-swe-agent`: mini-SWE-agent, read from the trajectory that it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agentv.extensions.agents.adapters.model_access import AnyModelSettings, model_access
from agentv.extensions.agents.adapters.native_settings import AgentProgram, Directories, Ending, Launch, Memory
from agentv.extensions.agents.adapters.recorder import Recording, count, items, mapping, number, text
from agentv.extensions.agents.adapters.trials import AGENT_STOPPED, API, LIMIT, NO_SESSION, NO_TOOLS, is_later_turn
from agentv.extensions.agents.traces.values import arguments_of, tokens_of
from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest

_CONFIG = ".agentv/mini.yaml"
_TRAJECTORY = ".agentv/trajectory.json"

_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}
_WITHOUT_TOOLS = "connects to no MCP servers, so that it cannot use the tools of the case"
_WITHOUT_TURNS = "cannot continue a session, which 'turns' need"
_LIMITS = frozenset({"LimitsExceeded", "TimeExceeded"})
_SUBMITTED = "Submitted"
_SUBMITTING = "action was not executed"
"""Error of the command that submits the work, because it ends the run before it has a result."""

_STOPPED = frozenset({"RepeatedFormatError", "UserInterruption", "KeyboardInterrupt", "SystemExit"})


@dataclass(frozen=True, slots=True)
class MiniSweAgent(AnyModelSettings):
    """Starts mini-SWE-agent."""

    title: ClassVar[str] = "mini-SWE-agent"
    program: ClassVar[AgentProgram] = AgentProgram("mini", pip="mini-swe-agent", version_argv=(), tested=("2.4",))
    unsupported: ClassVar[Mapping[str, str]] = {
        "permissions": "it asks for none; confine it with 'sandbox'",
        "allowed_tools": "its one tool is a shell",
        "mcp": "it connects to no MCP servers",
        "append_system_prompt": "use 'system_prompt'",
        "skills": "put them into the workspace",
    }

    def refuses_case(self, *, tools: bool, turns: bool) -> str | None:
        """Return why it cannot run a case with scripted tools or with several turns, or None."""
        return _WITHOUT_TOOLS if tools else _WITHOUT_TURNS if turns else None

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:  # noqa: ARG002  # it has no sessions
        """Return how to start one run. Limits are passed on, because the trajectory is read only after the run."""
        if request.mcp_servers:
            return Failure(NO_TOOLS, f"mini-SWE-agent {_WITHOUT_TOOLS}")
        if is_later_turn(request):
            return Failure(NO_SESSION, f"mini-SWE-agent {_WITHOUT_TURNS}")
        access = model_access(self, request, self.model_protocol or self.api)
        turns = [one for one in (self.max_turns, request.max_turns) if one is not None]
        agent: dict[str, Any] = {"agent_class": "default", "cost_limit": 0, "step_limit": min(turns, default=0)}
        if self.system_prompt is not None:
            agent["system_template"] = f"{{% raw %}}{self.system_prompt}{{% endraw %}}"
        kwargs = {"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {}
        model: dict[str, Any] = {"cost_tracking": "ignore_errors", "model_kwargs": kwargs}
        env = {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_SILENT_STARTUP": "1",
            "MSWEA_GLOBAL_CONFIG_DIR": f"{directories.config}/.agentv",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        name = self.model or ""
        if access is not None:
            prefix, name = f"{access.protocol}/", self.model_name
            name = name if name.startswith(prefix) else prefix + name
            kwargs["api_base"] = access.base_url.rstrip("/")
            env[_KEYS[access.protocol]] = access.api_key
        if name:
            model["model_name"] = name
        config = {"run": {"task": request.prompt}, "agent": agent, "model": model}
        place = directories.config
        argv = ("--config", "mini.yaml", "--config", f"{place}/{_CONFIG}", "--output", f"{place}/{_TRAJECTORY}")
        return Launch(argv, env, {_CONFIG: json.dumps(config)}, report=_TRAJECTORY)

    def reader(self, recorder: Recording, memory: Memory) -> MiniSweAgentReader:  # noqa: ARG002  # it needs no memory
        """Return a reader for one run."""
        return MiniSweAgentReader(recorder)


class MiniSweAgentReader:
    """Reads a trajectory, which is one JSON document."""

    def __init__(self, recorder: Recording) -> None:
        self._recorder = recorder
        self._info: JsonObject = {}
        self._exit_text = ""
        self._last_call = ""

    def read(self, event: JsonObject) -> None:
        """Read the trajectory."""
        self._info = mapping(event, "info")
        self._recorder.agent(version=text(self._info, "mini_version"))
        for place, one in enumerate(items(event, "messages")):
            self._read_message(f"message-{place}", one)

    def _read_message(self, identity: str, message: JsonObject) -> None:
        role, extra = message.get("role"), mapping(message, "extra")
        if role == "assistant":
            self._read_answer(identity, message)
        elif role == "tool":
            self._read_result(message, extra)
        elif role == "exit":
            self._exit_text = text(message, "content")
            if extra.get("exit_status") == _SUBMITTED:
                self._recorder.tool_result(self._last_call, text(extra, "submission"))
        if "response" in extra:  # also present if the reply was invalid
            response = mapping(extra, "response")
            usage, model = mapping(response, "usage"), text(response, "model")
            self._recorder.agent(model=model)
            if usage:
                self._recorder.usage(model or None, tokens_of(usage), number(extra, "cost"))

    def _read_answer(self, identity: str, message: JsonObject) -> None:
        answer, thinking = text(message, "content"), text(message, "reasoning_content")
        self._recorder.message(answer, reasoning=thinking, message_id=identity)
        for one in items(message, "tool_calls"):
            self._last_call, function = text(one, "id"), mapping(one, "function")
            self._recorder.tool_call(self._last_call, text(function, "name"), arguments_of(function.get("arguments")))

    def _read_result(self, message: JsonObject, extra: JsonObject) -> None:
        result, error = extra.get("raw_output", message.get("content")), text(extra, "exception_info")
        if not error and count(extra, "returncode"):
            error = f"exit status {count(extra, 'returncode')}"
        error = "" if error == _SUBMITTING else error
        self._recorder.tool_result(text(message, "tool_call_id"), result, error=error or None)

    def ending(self) -> Ending:
        """Return how the run ended."""
        status = text(self._info, "exit_status")
        return Ending(text(self._info, "submission"), self._failure(status), stop_reason=status, complete=bool(status))

    def _failure(self, status: str) -> Failure | None:
        if not status or status == _SUBMITTED:
            return None
        if status in _LIMITS:
            return Failure(LIMIT, f"mini-SWE-agent stopped at a limit: {status}")
        if status in _STOPPED:
            return Failure(AGENT_STOPPED, f"mini-SWE-agent ended without a submission: {status}")
        return Failure(API, f"mini-SWE-agent reports an error: {status}: {self._exit_text}")
