"""Sessions of Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, with sub-agents in `chats/SESSION/`.

Earlier versions wrote one JSON object with `messages` to `session-*.json`. In JSON Lines, a record replaces an earlier
one with the same id, `$set` sets keys of the session, and `$rewindTo` removes a message and all later ones.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from agentv.extensions.agents.traces.sessions.recorder import SessionFile, SessionRecorder
from agentv.extensions.agents.traces.values import arguments_of, count, first, items, mapping, string, text_of
from agentv.model.values.response import Failure
from agentv.model.values.trace import ToolStatus, Trace
from agentv.model.values.values import JsonObject

_INJECTED = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
_STATUS: dict[str, ToolStatus] = {"success": "completed", "error": "failed", "cancelled": "cancelled"}
_CANCELLED = "Request cancelled"
_DENIED = ("did not allow", "denied by policy", "rejected by user")


def read_gemini(session: SessionFile) -> Trace | Failure:
    """Return the trace of a session, or a Failure if the file is not a session."""
    recorder = SessionRecorder("gemini")
    reader = _GeminiReader(recorder)
    about, messages = _messages(session.data, recorder)
    recorder.about["session"] = string(about.get("sessionId"))
    recorder.about["project"] = session.others.get(".project_root", b"").decode(errors="replace").strip()
    reader.add_all(messages)
    for name, data in session.others.items():
        agent = PurePosixPath(name).stem
        if name.endswith((".jsonl", ".json")) and agent in reader.agents:
            recorder.parent = reader.agents[agent]
            reader.add_all(_messages(data, recorder)[1])
    return recorder.trace(session.data)


def _messages(data: bytes, recorder: SessionRecorder) -> tuple[JsonObject, list[JsonObject]]:
    """The session's metadata, and its messages after all changes."""
    about: dict[str, Any] = {}
    messages: dict[str, JsonObject] = {}

    def take(rows: Any) -> None:
        for row in map(mapping, items(rows)):
            messages[string(row.get("id")) or str(len(messages))] = row

    for row in recorder.records(data):
        changed = mapping(row.get("$set"))
        if "$rewindTo" in row:
            names = list(messages)
            target = string(row["$rewindTo"])
            for name in names[names.index(target) :] if target in messages else ():
                del messages[name]
        elif "messages" in changed:
            messages.clear()
            take(changed["messages"])
        elif "sessionId" in row:
            about |= {key: value for key, value in row.items() if key != "messages"}
            take(row.get("messages"))
        elif "type" in row:
            take([row])
    return about, list(messages.values())


class _GeminiReader:
    """Reads the messages of a session in order."""

    def __init__(self, recorder: SessionRecorder) -> None:
        self._recorder = recorder
        self.agents: dict[str, str] = {}

    def add_all(self, messages: list[JsonObject]) -> None:
        """Add all messages."""
        for row in messages:
            self._recorder.set_time(row.get("timestamp"))
            kind = row.get("type")
            if kind == "user":
                self._user_message(row)
            elif kind == "gemini":
                self._answer(row)
            elif kind == "error":
                self._recorder.ended_in_error(text_of(row.get("content")))
            elif kind == "info" and text_of(row.get("content")).startswith(_CANCELLED):
                self._recorder.stop_reason = "aborted"

    def _user_message(self, row: JsonObject) -> None:
        content = row.get("content")
        parts = [content] if isinstance(content, str) else items(content)
        texts = [one if isinstance(one, str) else string(mapping(one).get("text")) for one in parts]
        text = "\n\n".join(filter(None, texts))
        if not text.startswith(_INJECTED):
            self._recorder.message("user", text)

    def _answer(self, row: JsonObject) -> None:
        thoughts = [mapping(one) for one in items(row.get("thoughts"))]
        parts = ((string(one.get("subject")), string(one.get("description"))) for one in thoughts)
        reasoning = "\n".join(": ".join(filter(None, one)) for one in parts)
        self._recorder.message("assistant", text_of(row.get("content")), reasoning=reasoning)
        for call in map(mapping, items(row.get("toolCalls"))):
            self._call(call)
        self._recorder.set_time(row.get("timestamp"))
        tokens = mapping(row.get("tokens"))
        given, thought = count(tokens.get("output")), count(tokens.get("thoughts"))  # counted separately
        whole = None if given is None else given + (thought or 0)
        self._recorder.usage_row(string(row.get("model")), {**tokens, "output": whole, "reasoning": thought})

    def _call(self, call: JsonObject) -> None:
        identity = string(call.get("id"))
        self._recorder.call(identity, string(call.get("name")), arguments_of(call.get("args")))
        if agent := string(call.get("agentId")):
            self.agents[agent] = identity
        status = _STATUS.get(string(call.get("status")))
        if status is None:
            return  # waiting or running
        self._recorder.set_time(call.get("timestamp"))
        output, error = _result(call.get("result"))
        if status == "completed":
            self._recorder.result(identity, output)
            return
        message = error or output or text_of(call.get("resultDisplay"))
        denied = any(words in message for words in _DENIED)
        self._recorder.result(identity, None, error=message or "failed", status="denied" if denied else status)


def _result(value: Any) -> tuple[str, str]:
    """The output and the error in a tool's responses."""
    responses = [mapping(mapping(one).get("functionResponse")) for one in items(value)]
    inner = [mapping(one.get("response")) for one in responses]
    output = "\n\n".join(filter(None, (text_of(first(one, "output", "result")) for one in inner)))
    return output, "\n\n".join(filter(None, (text_of(one.get("error")) for one in inner)))
