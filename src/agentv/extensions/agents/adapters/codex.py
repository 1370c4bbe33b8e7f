"""`codex`: Codex, read from the events of `codex exec --json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from agentv.extensions.agents.adapters.model_access import NativeProvider
from agentv.extensions.agents.adapters.native_settings import AgentProgram, Directories, Ending, Launch, Memory
from agentv.extensions.agents.adapters.recorder import Recording, difference, items, mapping, text
from agentv.extensions.agents.adapters.trials import API
from agentv.extensions.agents.traces.values import arguments_of, text_of, tokens_of
from agentv.model.suite.tools import ModelProtocol
from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Doc, FromEnvironment, Secret, Text

_PROVIDER = "agentv"
_KEY = "OPENAI_API_KEY"
_DIRECTORY = ".codex"
_TEMPORARY = ".agentv/tmp"
_READ_ONLY = "Read-only file system"
_REFUSED = "rejected by user approval settings"
_ROLLOUT = f"{_DIRECTORY}/sessions/*/*/*/rollout-*.jsonl"
_INSTRUCTIONS = ".agentv/instructions.md"


@dataclass(frozen=True, slots=True)
class Codex(NativeProvider):
    """Starts Codex."""

    title: ClassVar[str] = "Codex"
    protocol: ClassVar[ModelProtocol | None] = "openai"
    program: ClassVar[AgentProgram] = AgentProgram(
        "codex",
        module="codex_cli_bin",
        path="bin/codex",
        extra="codex",
        npm="@openai/codex",
        tested=("0.163.0", "0.171.0"),
    )
    without_rules: ClassVar[str] = "knows no rules; 'deny' lets it read only, 'allow' lets it do all"
    unsupported: ClassVar[Mapping[str, str]] = {
        "allowed_tools": "its tools need no permission with 'permissions: allow'"
    }

    base_url: Annotated[
        Text | None,
        FromEnvironment(("OPENAI_BASE_URL",), required=False),
        Doc("base URL of the model's API, which must have `/responses`; defaults to OPENAI_BASE_URL"),
    ] = None
    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment((_KEY,), required=False),
        Doc(f"key of the model's API; defaults to {_KEY}"),
    ] = None

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """Return its command line. The configuration is a file if the trial has its own HOME, otherwise flags."""
        config = self._config(request, directories)
        report = _ROLLOUT if self.permissions == "deny" else ""
        if report and not directories.fresh_home:
            return Failure("cannot-start", "what Codex is denied is seen in a HOME of its own alone, not in the user's")
        argv = ["exec", *(["resume", session_id] if session_id else []), "--json", "--skip-git-repo-check"]
        argv += ["--disable", "plugins"]
        argv += ["--model", self.model] if self.model else []
        files = {_INSTRUCTIONS: self.system_prompt or ""} if self.system_prompt else {}
        if directories.fresh_home:
            files |= {f"{_DIRECTORY}/config.toml": "".join(f"{key} = {one}\n" for key, one in config.items())}
            files |= {f"{_TEMPORARY}/.keep": ""}
        else:
            argv += [word for key, one in config.items() for word in ("-c", f"{key}={one}")]
        skills = f"{_DIRECTORY}/skills" if directories.fresh_home else ""
        argv += ["-"]
        stdin = request.prompt.encode(errors="replace")
        key = request.gateway.token if request.gateway is not None else self.api_key
        env = {_KEY: key} if key else {}
        if directories.fresh_home:
            env |= {"CODEX_HOME": f"{directories.home}/{_DIRECTORY}", "TMPDIR": f"{directories.home}/{_TEMPORARY}"}
        return Launch(tuple(argv), env, files, skills, stdin, report)

    def reader(self, recorder: Recording, memory: Memory) -> CodexStream:
        """Return a reader for one turn."""
        return CodexStream(recorder, memory.usage, memory.refused, reads_only=self.permissions == "deny")

    def _config(self, request: TargetRequest, directories: Directories) -> dict[str, str]:
        """Return its configuration: key → value in TOML."""
        gateway = request.gateway
        allows_all = self.permissions == "allow"
        config = {
            "approval_policy": '"never"',
            "sandbox_mode": '"danger-full-access"' if allows_all else '"read-only"',
            "otel.metrics_exporter": '"none"',
            "check_for_update_on_startup": "false",
        }
        url = gateway.base_url("openai") if gateway is not None else self.base_url
        if url or gateway is not None or self.api_key:
            provider = {
                "name": _PROVIDER,
                "base_url": url or "https://api.openai.com/v1",
                "wire_api": "responses",
                "supports_websockets": False,
                **({"env_key": _KEY} if gateway is not None or self.api_key else {}),
            }
            config["model_provider"] = toml(_PROVIDER)
            config[f"model_providers.{_PROVIDER}"] = toml(provider)
        if self.reasoning_effort:
            config["model_reasoning_effort"] = toml(self.reasoning_effort)
        if self.system_prompt:
            config["model_instructions_file"] = toml(f"{directories.config}/{_INSTRUCTIONS}")
        if self.append_system_prompt:
            config["developer_instructions"] = toml(self.append_system_prompt)
        for server in (*request.mcp_servers, *self.servers):
            if server.transport == "http":
                headers = {"http_headers": dict(server.headers)} if server.headers else {}
                entry = {"url": server.url, **headers}
            else:
                program, *arguments = server.command
                entry = {"command": program, "args": arguments, **({"env": dict(server.env)} if server.env else {})}
            config[f"mcp_servers.{server.name}"] = toml(entry)
        return config


class CodexStream:
    """Reads the events of one turn: items that start, change and complete.

    Args:
        recorder: recorder of the turn.
        session_usage: usage of the session so far, which each turn's usage includes; updated in place.
        refused: ids of the session's refused calls, so that none counts in two turns; updated in place.
        reads_only: whether its sandbox is read-only. The stream shows this only in the output of commands; refused
            patches appear in the record of the session.
    """

    def __init__(
        self, recorder: Recording, session_usage: dict[str, Any], refused: set[str], *, reads_only: bool = False
    ) -> None:
        self._recorder = recorder
        self._refused = refused
        self._session_usage = session_usage
        self._reads_only = reads_only
        self._session_id = ""
        self._endings = 0
        self._in_progress = False
        self._failure: Failure | None = None
        self._last_error = ""

    def read(self, event: JsonObject) -> None:
        """Read the next event."""
        kind = text(event, "type")
        if kind == "thread.started":
            self._session_id = text(event, "thread_id")
        elif kind.startswith("item."):
            self._in_progress = True
            self._item(mapping(event, "item"), done=kind == "item.completed")
        elif kind == "turn.completed":
            self._endings, self._in_progress = self._endings + 1, False
            totals = mapping(event, "usage")
            self._recorder.usage(None, tokens_of(difference(totals, self._session_usage)))
            self._session_usage.update(totals)
        elif kind == "turn.failed":
            self._endings, self._in_progress = self._endings + 1, False
            self._failure = Failure(API, f"the agent reports an error: {_message(mapping(event, 'error'))}")
        elif kind == "error":
            self._last_error = _message(event)
            if self._endings:
                self._failure = Failure(API, f"the agent reports an error after its turn: {self._last_error}")
        elif kind == "response_item":
            self._read_record(mapping(event, "payload"))

    def ending(self) -> Ending:
        """Return how the turn ended. An error that nothing follows also ends it."""
        failure = self._failure
        if failure is None and not self._endings and self._last_error:
            failure = Failure(API, f"the agent reports an error: {self._last_error}")
        reason = "failed" if self._failure else "completed" if self._endings else ""
        complete, repeated = self._endings > 0 and not self._in_progress, self._endings > 1
        return Ending(None, failure, self._session_id, stop_reason=reason, complete=complete, repeated=repeated)

    def _read_record(self, payload: JsonObject) -> None:
        """Read an entry of the session's record: outputs of calls that the sandbox refused become denials."""
        parts = (text(one, "text") for one in items(payload, "output"))
        output, call_id = text(payload, "output") or "\n".join(parts), text(payload, "call_id")
        if call_id in self._refused or _REFUSED not in output:
            return
        self._refused.add(call_id)
        reason = next((one for one in output.splitlines() if _REFUSED in one), output)
        self._recorder.denied("apply_patch" if reason.startswith("patch") else "command_execution", reason[:500])

    def _item(self, item: JsonObject, *, done: bool) -> None:
        kind = text(item, "type")
        if kind != "error":
            self._last_error = ""
        if kind == "agent_message" and done:
            self._recorder.message(text(item, "text"), message_id=text(item, "id"))
        elif kind == "reasoning" and done:
            self._recorder.message("", reasoning=text(item, "text"))
        elif kind in _CALLS:
            name, arguments = _CALLS[kind](item)
            self._recorder.tool_call(text(item, "id"), name, arguments)
            if done:
                status, call_id = text(item, "status"), text(item, "id")
                result, error = _result(item, kind)
                if self._reads_only and kind == "command_execution" and _READ_ONLY in text_of(result):
                    self._recorder.denied(name, _READ_ONLY, call_id)
                if status == "declined":
                    self._recorder.denied(name, error or "declined", call_id)
                    error = error or "declined"
                if status == "failed" and error is None:
                    error = text_of(result) or "the tool failed"
                self._recorder.tool_result(call_id, None if error is not None else result, error=error)


def _mcp(item: JsonObject) -> tuple[str, JsonObject]:
    return f"mcp__{text(item, 'server')}__{text(item, 'tool')}", arguments_of(item.get("arguments"))


_CALLS: Mapping[str, Callable[[JsonObject], tuple[str, JsonObject]]] = {
    "command_execution": lambda item: ("command_execution", {"command": item.get("command")}),
    "file_change": lambda item: ("file_change", {"changes": list(items(item, "changes"))}),
    "mcp_tool_call": _mcp,
    "web_search": lambda item: ("web_search", {"query": item.get("query")}),
    "todo_list": lambda item: ("todo_list", {"items": list(items(item, "items"))}),
    "collab_tool_call": lambda item: (text(item, "tool") or "spawn_agent", {"prompt": item.get("prompt")}),
}
"""Type of an item → function that returns the name and arguments of its tool call."""


def _result(item: JsonObject, kind: str) -> tuple[Any, str | None]:
    """Return the result of a call and its error, each None if none exists."""
    if kind == "command_execution":
        code, output = item.get("exit_code"), text(item, "aggregated_output")
        failed = isinstance(code, int) and code != 0
        return output, (output or f"exit status {code}") if failed else None
    if kind == "mcp_tool_call":
        error, result = _message(mapping(item, "error")), mapping(item, "result")
        if result.get("structured_content") is not None:
            return result["structured_content"], error or None
        found = [text(one, "text") for one in items(result, "content") if one.get("type") == "text"]
        return "\n".join(found) if found else None, error or None
    return None, None


def _message(error: JsonObject) -> str:
    return text(error, "message")[:500]


def toml(value: object) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
