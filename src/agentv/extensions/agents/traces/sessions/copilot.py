"""Sessions of Copilot CLI: `~/.copilot/session-state/SESSION/events.jsonl`, or `SESSION.jsonl` in earlier versions."""

from __future__ import annotations

from agentv.extensions.agents.traces.sessions.recorder import SessionFile, SessionRecorder
from agentv.extensions.agents.traces.values import arguments_of, count, first, items, mapping, string, text_of
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.model.values.values import JsonObject

_DENIED = frozenset({"denied", "rejected", "permission_denied"})


def read_copilot(session: SessionFile) -> Trace | Failure:
    """Return the trace of a session, or a Failure if the file is not a session."""
    recorder = SessionRecorder("copilot")
    reader = _CopilotReader(recorder)
    for row in recorder.records(session.data):
        reader.add(row)
    reader.end()
    return recorder.trace(session.data)


class _CopilotReader:
    """Reads the events of a session in order."""

    def __init__(self, recorder: SessionRecorder) -> None:
        self._recorder = recorder
        self._calls: dict[str, str] = {}
        self._counted = False
        self._totals: JsonObject = {}

    def add(self, row: JsonObject) -> None:
        """Add an event."""
        data = mapping(row.get("data"))
        kind = string(row.get("type"))
        agent = string(row.get("agentId"))
        self._recorder.set_time(row.get("timestamp"))
        if kind == "subagent.started" and agent:
            self._calls[agent] = string(data.get("toolCallId"))
        self._recorder.parent = string(data.get("parentToolCallId")) or self._calls.get(agent) or None
        if kind == "session.start":
            self._started(data)
        elif kind == "user.message":
            self._recorder.message("user", string(data.get("content")))
        elif kind == "assistant.message":
            self._answer(data)
        elif kind == "tool.execution_start":
            self._recorder.call(*_call(data, "toolName"))
        elif kind == "tool.execution_complete":
            self._result(data)
        elif kind in ("session.usage_record", "assistant.usage"):
            self._counted = True
            usage = mapping(data.get("usage")) or data
            self._recorder.usage_row(string(usage.get("model")), usage)
        else:
            self._session_event(kind, data)

    def end(self) -> None:
        """Add the session's total usage if no single model call was recorded."""
        self._recorder.parent = None
        if not self._counted:
            for model, metrics in self._totals.items():
                self._recorder.usage_row(model, mapping(mapping(metrics).get("usage")))

    def _started(self, data: JsonObject) -> None:
        about = self._recorder.about
        about["session"] = string(data.get("sessionId"))
        about["version"] = string(data.get("copilotVersion"))
        about["project"] = string(mapping(data.get("context")).get("cwd"))

    def _session_event(self, kind: str, data: JsonObject) -> None:
        if kind == "session.shutdown":
            snapshot = mapping(data.get("accountingSnapshot"))
            self._totals = mapping(data.get("modelMetrics")) or mapping(snapshot.get("modelMetrics"))
        elif kind == "session.error":
            self._recorder.ended_in_error(string(data.get("message")) or "error")
        elif kind == "abort":
            self._recorder.stop_reason = "aborted"

    def _answer(self, data: JsonObject) -> None:
        self._recorder.message("assistant", string(data.get("content")), reasoning=string(data.get("reasoningText")))
        for request in map(mapping, items(data.get("toolRequests"))):
            self._recorder.call(*_call(request, "name"))

    def _result(self, data: JsonObject) -> None:
        identity = string(data.get("toolCallId"))
        result = mapping(data.get("result"))
        text = text_of(first(result, "content", "detailedContent")) if result else text_of(data.get("result"))
        if data.get("success") is not False:
            code = count(mapping(data.get("shellExecution")).get("exitCode"))
            self._recorder.result(identity, text, error=text.strip() or f"exit code {code}" if code else None)
            return
        error = mapping(data.get("error"))
        denied = string(error.get("code")) in _DENIED
        message = string(error.get("message")) or text or "failed"
        self._recorder.result(identity, None, error=message, status="denied" if denied else "failed")


def _call(data: JsonObject, name: str) -> tuple[str, str, JsonObject]:
    return string(data.get("toolCallId")), string(data.get(name)), arguments_of(data.get("arguments"))
