"""Export traces as OTLP by OpenTelemetry's conventions for generative AI, as JSON or protobuf.

A trace becomes an `invoke_agent` span, with a `chat` span for each model call and an `execute_tool` span for each tool
call. Attributes that the conventions do not define begin with `agentv.`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentv.extensions.agents.traces.otlp_spans import with_ids
from agentv.model.values.json_text import compact
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.values import Json, JsonObject
from agentv.version import __version__

_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
_INTERNAL, _CLIENT = 1, 3
_FAILED = 2


@dataclass(frozen=True, slots=True)
class TraceOrigin:
    """The trial that a trace comes from.

    Attributes:
        key: unique key of the trial; span ids are derived from it, so that each export gives the same ids.
        began_ms: start of the trial, in milliseconds since the epoch.
        attributes: attributes of the root span, such as `agentv.case.id`.
    """

    key: str
    began_ms: float = 0.0
    attributes: JsonObject | None = None


def otlp_of(traces: Sequence[tuple[Trace, TraceOrigin]]) -> dict[str, Json]:
    """Return the traces as one OTLP document in JSON."""
    resources: list[Json] = []
    for trace, origin in traces:
        about = {"service.name": trace.agent or "unknown_service", "service.version": trace.agent_version}
        scope: Json = {"name": "agentv", "version": __version__}
        spans: Json = [{"scope": scope, "spans": _Writer(trace, origin).spans(), "schemaUrl": _SCHEMA}]
        resources.append({"resource": {"attributes": _attributes(about)}, "scopeSpans": spans})
    return {"resourceSpans": resources}


def protobuf_of(document: Mapping[str, Json]) -> bytes | Failure:
    """Return an OTLP document as protobuf (`TracesData`), or a Failure if the library is not installed."""
    try:
        from google.protobuf.json_format import ParseDict
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        return Failure("missing-extra", "OTLP in protobuf needs a library: pip install 'agentv[otel]'")
    based = with_ids(document, lambda digits: base64.b64encode(bytes.fromhex(digits)).decode())
    found: bytes = ParseDict(based, TracesData()).SerializeToString()
    return found


class _Writer:
    """Writes the spans of one trace."""

    def __init__(self, trace: Trace, origin: TraceOrigin) -> None:
        self._trace = trace
        self._origin = origin
        self._trace_id = _digest(origin.key, 32)
        self._root = self._span_id("root")
        calls = {place: step.id for place, step in enumerate(trace.steps) if isinstance(step, ToolCallStep)}
        self._call_span_ids = {one: self._span_id(f"step {place}") for place, one in calls.items() if one is not None}
        self._spans: list[dict[str, Json]] = []
        self._events: list[dict[str, Json]] = []
        self._prompt: list[MessageStep] = []
        self._now = 0.0

    def spans(self) -> list[Json]:
        """Return the root span, followed by the spans of the steps in order."""
        steps = self._trace.steps
        place = 0
        while place < len(steps):
            step = steps[place]
            following = steps[place + 1] if place + 1 < len(steps) else None
            self._now = self._now if step.started_ms is None else step.started_ms
            if isinstance(step, ToolCallStep):
                self._tool(step, place)
            elif isinstance(step, PermissionStep):
                about: dict[str, Json] = {"tool": step.tool, "allowed": step.allowed, "reason": step.reason}
                at = self._nanoseconds(self._now)
                self._events.append({"name": "agentv.permission", "timeUnixNano": at, "attributes": _attributes(about)})
            elif isinstance(step, UsageStep):
                message = following if isinstance(following, MessageStep) and following.role == "assistant" else None
                message = message if message is not None and message.parent == step.parent else None
                self._model(step, message, place)
                place += message is not None
            elif step.role == "assistant":
                self._model(None, step, place)
            else:
                self._prompt.append(step)
            place += 1
        return [self._outermost(), *self._spans]

    def _outermost(self) -> dict[str, Json]:
        trace = self._trace
        about: dict[str, Json] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": trace.agent,
            "gen_ai.agent.version": trace.agent_version,
            "gen_ai.conversation.id": trace.session_id,
            "gen_ai.input.messages": _messages(self._prompt) if self._prompt else "",
            "agentv.source": trace.source,
            "agentv.stop_reason": trace.stop_reason,
            "agentv.session_cost_usd": trace.session_cost_usd,
            "agentv.partial": trace.partial,
            **(self._origin.attributes or {}),
        }
        name = f"invoke_agent {trace.agent}".strip()
        span = self._span(self._root, "", name, 0.0, trace.duration_ms or self._now, about)
        return {**span, "kind": _INTERNAL, "events": list(self._events), **_status(trace.error or None)}

    def _model(self, used: UsageStep | None, message: MessageStep | None, place: int) -> None:
        """Add a `chat` span; without usage, it is marked so that readers do not count it as a model call."""
        step = used or message
        tokens = None if used is None else used.tokens
        model = "" if used is None else used.model or ""
        about: dict[str, Json] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.usage.input_tokens": None if tokens is None else tokens.input,
            "gen_ai.usage.output_tokens": None if tokens is None else tokens.output,
            "gen_ai.usage.cache_read.input_tokens": None if tokens is None else tokens.cached,
            "gen_ai.usage.reasoning.output_tokens": None if tokens is None else tokens.reasoning,
            "gen_ai.input.messages": _messages(self._prompt) if self._prompt else "",
            "gen_ai.output.messages": _messages([message]) if message is not None else "",
            "agentv.cost_usd": None if used is None else used.cost_usd,
            "agentv.evidence": None if used is None else used.evidence,
            "agentv.message_only": True if used is None else None,
        }
        self._prompt = []
        ended = self._now + ((None if used is None else used.duration_ms) or 0.0)
        parent, identity = None if step is None else step.parent, self._span_id(f"step {place}")
        span = self._span(identity, parent, f"chat {model}".strip(), self._now, ended, about)
        self._spans.append({**span, "kind": _CLIENT, **_status(None if used is None else used.error)})

    def _tool(self, step: ToolCallStep, place: int) -> None:
        native = step.native_name or step.name
        result = step.error if step.error is not None else step.result
        about: dict[str, Json] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": native,
            "gen_ai.tool.call.id": step.id,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": compact(step.arguments),
            "gen_ai.tool.call.result": result if isinstance(result, str) or result is None else compact(result),
            "error.type": "tool_error" if step.failed else None,
            "agentv.tool.name": step.name,
            "agentv.status": step.status,
            "agentv.evidence": step.evidence,
        }
        ended = self._now + (step.duration_ms or 0.0)
        identity = self._span_id(f"step {place}")
        span = self._span(identity, step.parent, f"execute_tool {native}", self._now, ended, about)
        status = _status(step.error or "the tool failed") if step.failed else {}
        self._spans.append({**span, "kind": _INTERNAL, **status})

    def _span(
        self, identity: str, parent: str | None, name: str, started: float, ended: float, about: JsonObject
    ) -> dict[str, Json]:
        above = {} if parent == "" else {"parentSpanId": self._call_span_ids.get(parent or "", self._root)}
        return {
            "traceId": self._trace_id,
            "spanId": identity,
            **above,
            "name": name,
            "startTimeUnixNano": self._nanoseconds(started),
            "endTimeUnixNano": self._nanoseconds(max(started, ended)),
            "attributes": _attributes(about),
        }

    def _nanoseconds(self, ms: float) -> str:
        return str(round((self._origin.began_ms + ms) * 1000) * 1000)

    def _span_id(self, name: str) -> str:
        return _digest(f"{self._origin.key}\0{name}", 16)


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:digits]


def _status(error: str | None) -> dict[str, Json]:
    return {} if error is None else {"status": {"code": _FAILED, "message": error}}


def _messages(steps: Sequence[MessageStep]) -> str:
    rows: list[Json] = []
    for step in steps:
        thought: list[Json] = [{"type": "reasoning", "content": step.reasoning}] if step.reasoning else []
        text: list[Json] = [{"type": "text", "content": step.text}] if step.text else []
        end = {"finish_reason": "stop"} if step.role == "assistant" else {}
        rows.append({"role": step.role, "parts": [*thought, *text], **end})
    return json.dumps(rows, ensure_ascii=False)


def _attributes(about: JsonObject) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in about.items() if value is not None and value != ""]


def _value(value: Json) -> dict[str, Json]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else compact(value)}
