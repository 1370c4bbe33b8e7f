"""Streams of the Agent Client Protocol as traces: JSON-RPC messages, one a line (agentclientprotocol.com).

Read are `session/prompt`, `session/update`, `session/request_permission` and their responses.
A record may carry `at_ms` or `timestamp`, or be `{"message": …}` with one of them beside it; a bare
`params` of an update is a record, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentv.extensions.agents.acp_values import AcpCall, AcpMessage, usage_of_turn
from agentv.extensions.agents.traces.values import (
    Problems,
    epoch_ms,
    first,
    items,
    mapping,
    number,
    records_of,
    sound_parents,
    string,
    text_of,
    tokens_of,
)
from agentv.model.values.message import Role
from agentv.model.values.response import Failure
from agentv.model.values.trace import UNFINISHED, PermissionStep, Step, Trace, UsageStep
from agentv.model.values.values import JsonObject

NATIVE_NAME = "acp.jsonl"

_OF_THE_AGENT = frozenset({"initialize", "authenticate", "session/new", "session/load", "session/prompt"})
"""Requests that the agent answers; it sends the others."""


def read_acp(data: bytes) -> Trace | Failure:
    """The trace of a stream; a Failure where nothing in it is an update."""
    problems = Problems()
    reader = AcpReader(problems)
    for line, record in records_of(data, problems):
        reader.add(record, f"line {line}")
    return reader.trace(data)


class AcpReader:
    """Takes the records of a stream in their order.

    Args:
        problems: gets what cannot be read.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._parts: list[AcpMessage | AcpCall | PermissionStep | UsageStep] = []
        self._open: AcpMessage | None = None
        self._calls: dict[str, AcpCall] = {}
        self._asked: dict[str, JsonObject] = {}
        self._about: dict[str, str] = {"agent": "", "agent_version": "", "session_id": "", "model": ""}
        self._started: float | None = None
        self._now: float | None = None
        self._cost: float | None = None
        self._requests: dict[str, list[str]] = {}
        self._error = ""
        self._waits = self._called_tools = False
        self._stop_reason = ""

    def add(self, record: Any, where: str) -> None:
        """Take a record."""
        row = mapping(record)
        message = mapping(row.get("message")) or row
        self._set_time(row, message)
        method = string(message.get("method"))
        if method and "id" in message:
            self._requests.setdefault(_key(message["id"]), []).append(method)
        params = mapping(message.get("params"))
        if method == "session/update" or "update" in message or "sessionUpdate" in message:
            fields = mapping(first({**message, **params}, "update") or message)
            self._set_session(params or message)
            self._update(fields, where)
        elif method == "session/request_permission":
            self._permission_asked(message, params)
        elif method == "session/prompt":
            self._prompted(params)
        elif method == "initialize":
            self._waits = True
        elif not method and ("result" in message or "error" in message):
            self._response(message)
        elif not method:
            self._problems.note(f"{where} is no message of the protocol")

    def trace(self, native: bytes = b"") -> Trace | Failure:
        """The trace of all records so far; a Failure where there was no update."""
        if not self._parts:
            why = f": {self._problems}" if self._problems else ""
            return Failure("bad-trace", f"the stream has no session update of the Agent Client Protocol{why}")
        if self._waits:
            self._problems.note(f"the stream {UNFINISHED}")
        cancelled = self._stop_reason == "cancelled"
        steps: list[Step] = []
        for one in self._parts:
            if isinstance(one, AcpCall):
                steps.append(one.step(cancelled=cancelled))
            else:
                steps.append(one.step() if isinstance(one, AcpMessage) else one)
        return Trace(
            sound_parents(steps, self._problems),
            source="acp",
            agent=self._about["agent"],
            agent_version=self._about["agent_version"],
            session_id=self._about["session_id"],
            stop_reason=self._stop_reason,
            error=self._error,
            session_cost_usd=self._cost or None,
            duration_ms=self._now,
            native=native,
            native_name=NATIVE_NAME if native else "",
            partial=str(self._problems),
        )

    def _set_time(self, row: JsonObject, message: JsonObject) -> None:
        at = number(first(row, "at_ms"))
        if at is None:
            at = epoch_ms(first({**message, **row}, "timestamp", "time", "ts"))
        if at is None:
            return
        self._started = at if self._started is None else self._started
        self._now = round(max(at - self._started, self._now or 0.0), 3)

    def _set_session(self, params: JsonObject) -> None:
        self._about["session_id"] = self._about["session_id"] or string(params.get("sessionId"))

    def _prompted(self, params: JsonObject) -> None:
        self._set_session(params)
        said = AcpMessage("user", None, self._now)
        said.texts.append(text_of(params.get("prompt")))
        self._parts.append(said)
        self._open, self._waits = None, True
        self._stop_reason = self._error = ""
        self._called_tools = False

    def _update(self, fields: JsonObject, where: str) -> None:
        kind = string(fields.get("sessionUpdate"))
        takers: Mapping[str, Callable[[JsonObject], str | None]] = {
            "tool_call": self._call,
            "tool_call_update": self._call,
            "usage_update": self._used,
            "config_option_update": self._options,
        }
        fault = None
        if kind in takers:
            fault = takers[kind](fields)
        elif kind in _CHUNKS:
            fault = self._chunk(fields, _CHUNKS[kind], thought="thought" in kind)
        elif not kind:
            fault = "the update has no 'sessionUpdate'"
        if fault is not None:
            self._problems.note(f"{where}: {fault}")

    def _chunk(self, fields: JsonObject, role: Role, *, thought: bool = False) -> str | None:
        content = fields.get("content")
        if not isinstance(content, str | Mapping | list):
            return "a chunk has no 'content'"
        said, identity = self._open, fields.get("messageId")
        follows = (
            said is not None
            and said.role == role
            and (said.identity is None or identity is None or said.identity == identity)
            and not (thought and said.texts)
        )
        if said is None or not follows:
            said = self._open = AcpMessage(role, identity, self._now)
            self._parts.append(said)
        (said.thoughts if thought else said.texts).append(text_of(content))
        said.identity = identity if said.identity is None and not thought else said.identity
        return None

    def _call(self, fields: JsonObject) -> str | None:
        identity = string(fields.get("toolCallId"))
        if not identity:
            return "a tool call has no 'toolCallId'"
        self._open, self._called_tools = None, True
        self._called(identity).update(fields, self._now)
        return None

    def _called(self, identity: str) -> AcpCall:
        call = self._calls.get(identity)
        if call is None:
            call = self._calls[identity] = AcpCall(identity, self._now)
            self._parts.append(call)
        return call

    def _permission_asked(self, message: JsonObject, params: JsonObject) -> None:
        self._set_session(params)
        fields = mapping(params.get("toolCall"))
        self._call(fields)
        self._asked[_key(message.get("id"))] = params
        answer = first({**params, **mapping(message.get("result")), **message}, "outcome")
        if answer is not None:
            self._permission_told(_key(message.get("id")), answer)

    def _permission_told(self, key: str, answer: Any) -> None:
        params = self._asked.pop(key, None)
        if params is None:
            return
        outcome = mapping(answer) or {"outcome": answer}
        option = string(outcome.get("optionId"))
        kinds = {
            string(mapping(one).get("optionId")): string(mapping(one).get("kind"))
            for one in items(params.get("options"))
        }
        allowed = outcome.get("outcome") == "selected" and not kinds.get(option, option).startswith("reject")
        call = self._calls.get(string(mapping(params.get("toolCall")).get("toolCallId")))
        if call is not None:
            call.denied = not allowed
        name = "tool" if call is None else call.names.name
        self._parts.append(PermissionStep(name, allowed, option or string(outcome.get("outcome")) or None, self._now))

    def _response(self, message: JsonObject) -> None:
        result, error = mapping(message.get("result")), mapping(message.get("error"))
        asked = self._requests.get(_key(message.get("id")), [])
        method = asked.pop() if asked else "session/prompt"
        if error:
            if method not in _OF_THE_AGENT:
                return  # the client has no such file or terminal, and the agent goes on
            said = string(error.get("message")) or "the agent answered with an error"
            self._parts.append(UsageStep(error=said, started_ms=self._now))
            self._waits, self._stop_reason, self._error = False, "error", said
        elif "outcome" in result:
            self._permission_told(_key(message.get("id")), result["outcome"])
        elif "stopReason" in result:
            self._ended(result)
        elif "protocolVersion" in result:
            about = mapping(first(result, "agentInfo", "info"))
            self._about["agent"], self._about["agent_version"] = string(about.get("name")), string(about.get("version"))
            self._waits = True
        else:
            self._set_session(result)

    def _ended(self, fields: JsonObject) -> str | None:
        self._stop_reason = string(fields.get("stopReason")) or self._stop_reason
        self._open, self._waits = None, False
        reported = tokens_of(first({**mapping(fields.get("_meta")), **fields}, "usage"))
        tokens = usage_of_turn(self._about["agent"], reported, called_tools=self._called_tools)
        if tokens is not None:
            self._parts.append(UsageStep(self._about["model"] or None, tokens, started_ms=self._now))
        return None

    def _used(self, fields: JsonObject) -> str | None:
        cost = mapping(fields.get("cost"))
        amount = number(cost.get("amount"))
        if amount is not None and cost.get("currency") == "USD":
            self._cost = amount
        return None

    def _options(self, fields: JsonObject) -> str | None:
        for one in map(mapping, items(fields.get("configOptions"))):
            if one.get("category") == "model":
                self._about["model"] = string(one.get("currentValue"))
        return None


def _key(identity: Any) -> str:
    return repr(identity)


_CHUNKS: Mapping[str, Role] = {
    "user_message_chunk": "user",
    "agent_message_chunk": "assistant",
    "agent_thought_chunk": "assistant",
}
