"""Sessions of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`; sub-agents have session files of their own.

The earliest versions wrote bare items of OpenAI's Responses API, without timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agentv.extensions.agents.traces.sessions.recorder import SessionFile, SessionRecorder
from agentv.extensions.agents.traces.values import arguments_of, count, first, items, mapping, string, text_of
from agentv.model.values.json_text import parse
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.model.values.values import Json, JsonObject

_INJECTED = re.compile(
    r"\s*(<(environment_context|user_instructions|turn_aborted|skills?_instructions|permissions instructions|"
    r"collaboration_mode|multi_agent_mode|INSTRUCTIONS|subagent_notification|user_shell_command|skill)>|# AGENTS\.md )"
)
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")
_DENIED = re.compile(r"(?i)rejected by (the )?user|denied by (the )?(user|policy)|user (rejected|declined)")
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_ITEMS = {"CommandExecution": "command_execution", "FileChange": "file_change"}


def read_codex(session: SessionFile) -> Trace | Failure:
    """Return the trace of a session, or a Failure if the file is not a session."""
    recorder = SessionRecorder("codex")
    rows = list(recorder.records(session.data))
    reader = _CodexReader(recorder, rows)
    reader.add_all(rows)
    waiting = [list(recorder.records(data)) for data in session.others.values()]
    for _ in session.others:  # a nested sub-agent is known once its parent is read
        for others in [one for one in waiting if reader.agents.get(_thread(one)) is not None]:
            waiting.remove(others)
            recorder.parent = reader.agents.get(_thread(others))
            _CodexReader(recorder, others, reader.agents).add_all(others)
    for others in waiting:
        recorder.problems.note(f"the file of the sub-agent '{_thread(others)[:40]}' belongs to no call")
    return recorder.trace(session.data)


def _thread(rows: Sequence[JsonObject]) -> str:
    return string(mapping(rows[0].get("payload")).get("id")) if rows else ""


class _CodexReader:
    """Reads the records of a session in order."""

    def __init__(
        self, recorder: SessionRecorder, rows: Sequence[JsonObject], agents: dict[str, str] | None = None
    ) -> None:
        self._recorder = recorder
        self._main = agents is None
        self._records_usage = any(row.get("type") == "token_usage_record" for row in rows)
        self._model = ""
        self._thought = ""
        self._total: Json = None
        self.agents: dict[str, str] = {} if agents is None else agents  # sub-agent id → id of the call that ran it
        self._items: dict[str, JsonObject] = {}

    def add_all(self, rows: Sequence[JsonObject]) -> None:
        """Add all records."""
        for row in rows:
            self._recorder.set_time(row.get("timestamp"))
            payload = row.get("payload")
            if isinstance(payload, dict):
                self._add(string(row.get("type")), payload)
            elif "type" not in row and isinstance(row.get("id"), str):
                self._meta(row)
            else:
                self._item(row)
        self._flush()

    def _add(self, kind: str, payload: JsonObject) -> None:
        if kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self._model = string(payload.get("model")) or self._model
        elif kind == "response_item":
            self._item(payload)
        elif kind == "token_usage_record":
            self._recorder.usage_row(self._model, mapping(payload.get("usage")))
        elif kind == "event_msg":
            self._event(string(payload.get("type")), payload)

    def _meta(self, payload: JsonObject) -> None:
        about = self._recorder.about
        if self._main and not about["session"]:
            about["session"] = string(payload.get("id"))
            about["version"] = string(payload.get("cli_version"))
            about["project"] = string(payload.get("cwd"))

    def _event(self, kind: str, payload: JsonObject) -> None:
        if kind == "token_count" and not self._records_usage:
            info = mapping(payload.get("info"))
            total = info.get("total_token_usage")
            if total is not None and total != self._total:  # repeated if only a rate limit has changed
                self._total = total
                self._recorder.usage_row(self._model, mapping(info.get("last_token_usage")))
        elif kind == "item_completed":
            self._item_completed(mapping(payload.get("item")))
        elif kind == "error":
            self._recorder.ended_in_error(string(payload.get("message")) or kind, self._model)
        elif kind == "stream_error":  # Codex retries
            self._recorder.usage(self._model, None, error=string(payload.get("message")) or kind)
        elif kind == "turn_aborted" and self._main:
            self._recorder.stop_reason = "aborted"
        elif kind == "task_complete" and self._main and not self._recorder.error:
            self._recorder.stop_reason = "completed"

    def _item_completed(self, item: JsonObject) -> None:
        """Keep an item for its call's output, or add the call: those of Codex's JavaScript have no other record."""
        identity, kind = string(item.get("id")), string(item.get("type"))
        native = _ITEMS.get(kind)
        if kind == "McpToolCall":
            native = f"mcp__{string(item.get('server'))}__{string(item.get('tool'))}"
        if native is None:
            return
        if self._recorder.knows(identity):
            self._items[identity] = item
            return
        given = {key: item[key] for key in ("command", "cwd", "changes") if key in item}
        self._recorder.call(identity, native, given or arguments_of(item.get("arguments")))
        self._end_call(identity, item, first(item, "aggregated_output", "stdout", "result"))

    def _end_call(self, identity: str, item: JsonObject, result: Json) -> None:
        text = text_of(result)
        code = count(item.get("exit_code"))
        status = string(item.get("status"))
        if status == "declined":
            self._recorder.result(identity, None, error=text or "declined", status="denied")
        elif code or status == "failed" or item.get("error"):
            error = text_of(item.get("error")) or string(item.get("stderr")) or text or f"exit code {code}"
            self._recorder.result(identity, result, error=error)
        else:
            self._recorder.result(identity, result)

    def _item(self, item: JsonObject) -> None:
        kind = string(item.get("type"))
        if kind == "message":
            self._message(string(item.get("role")), text_of(item.get("content")))
        elif kind == "reasoning":
            texts = [text_of(one) for one in items(item.get("summary"))]
            self._thought = "\n\n".join(filter(None, (self._thought, *texts)))
        elif kind in _CALLS:
            self._flush()
            self._call(kind, item)
        elif kind.endswith("_call_output"):
            self._output(string(item.get("call_id")), item.get("output"))

    def _message(self, role: str, text: str) -> None:
        if role == "assistant":
            self._recorder.message("assistant", text, reasoning=self._thought)
            self._thought = ""
        elif role == "user" and not _INJECTED.match(text):
            self._flush()
            self._recorder.message("user", text)

    def _flush(self) -> None:
        """Add reasoning that no message follows as a message of its own."""
        self._recorder.message("assistant", "", reasoning=self._thought)
        self._thought = ""

    def _call(self, kind: str, item: JsonObject) -> None:
        identity = string(item.get("call_id")) or string(item.get("id"))
        name, space = string(item.get("name")) or kind, string(item.get("namespace"))
        native = f"{space}__{name}" if space.startswith("mcp__") else name
        self._recorder.call(identity, native, arguments_of(first(item, "arguments", "input", "action")))
        if kind == "web_search_call":
            self._recorder.result(identity, None)  # the provider runs it

    def _output(self, identity: str, output: Any) -> None:
        text, success = _output_text(output)
        spawned = arguments_of(text) if text.startswith("{") else {}
        if agent := string(first(spawned, "agent_id", "thread_id", "new_thread_id")):
            self.agents[agent] = identity
        item = self._items.get(identity)
        if item is not None:
            self._end_call(identity, item, first(item, "aggregated_output") or text)
        elif _DENIED.search(text[:200]):
            self._recorder.result(identity, None, error=text, status="denied")
        else:
            code = _EXIT.search(text[:400])
            failed = success is False or (code is not None and code[1] != "0")
            self._recorder.result(identity, text, error=text if failed else None)


def _output_text(output: Any) -> tuple[str, bool | None]:
    """The text of an output in any version's format, and whether it reports success; None if it does not say."""
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            output = parse(output.encode())
        except (ValueError, UnicodeEncodeError):
            return str(output), None
    if isinstance(output, dict):
        code = count(mapping(output.get("metadata")).get("exit_code"))
        success = output.get("success")
        known = success if isinstance(success, bool) else None if code is None else code == 0
        return text_of(first(output, "content", "output")), known
    return text_of(output), None
