"""Spans out of OTLP: JSON as the OTLP specification writes it, and protobuf by opentelemetry's own package."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentv.extensions.agents.traces.values import Problems, first, items, mapping, number, records_of, string
from agentv.model.values.json_text import plain
from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject

_ERROR = {2, "2", "STATUS_CODE_ERROR"}
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event of a span."""

    name: str
    attributes: JsonObject


@dataclass(frozen=True, slots=True)
class OtelSpan:
    """One span. Times are milliseconds of the epoch; `error` is empty where it ended well."""

    trace_id: str
    id: str
    parent: str
    name: str
    attributes: JsonObject
    events: tuple[SpanEvent, ...]
    started_ms: float | None
    ended_ms: float | None
    error: str
    resource: JsonObject


def spans_of(data: bytes, problems: Problems) -> list[OtelSpan] | Failure:
    """The spans in a file; `bad-trace` where it has none.

    Args:
        data: JSON, JSON Lines, or protobuf (`TracesData`, `ExportTraceServiceRequest`).
        problems: gets what cannot be read.
    """
    if is_json(data):
        documents = list(records_of(data, problems))
    else:
        found = _from_protobuf(data)
        if isinstance(found, Failure):
            return found
        documents = [(1, found)]
    spans = [span for line, document in documents for span in _in_document(document, f"line {line}", problems)]
    if not spans:
        why = f": {problems}" if problems else ""
        return Failure("bad-trace", f"the file has no spans of OTLP{why}")
    return spans


def is_json(data: bytes) -> bool:
    """Whether the data is JSON; protobuf otherwise."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b"")


def _from_protobuf(data: bytes) -> Any | Failure:
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        return Failure("missing-extra", "OTLP in protobuf needs a library: pip install 'agentv[otel]'")
    try:
        message = TracesData.FromString(data)
    except DecodeError as error:
        return Failure("bad-trace", f"the file is neither JSON nor protobuf of OTLP: {error}")
    return _with_hex_ids(MessageToDict(message))


def _with_hex_ids(document: Any) -> Any:
    """Protobuf's own JSON has ids in base64, that of OTLP in hexadecimal digits."""
    if isinstance(document, list):
        return [_with_hex_ids(one) for one in document]
    if not isinstance(document, dict):
        return document
    return {key: _hex(value) if key in _IDS else _with_hex_ids(value) for key, value in document.items()}


_IDS = frozenset({"traceId", "spanId", "parentSpanId"})


def _hex(value: Any) -> str:
    try:
        return base64.b64decode(string(value), validate=True).hex()
    except binascii.Error:
        return string(value)


def _in_document(document: Any, where: str, problems: Problems) -> Iterator[OtelSpan]:
    root = mapping(document)
    resources = first(root, "resourceSpans", "resource_spans")
    if resources is None:
        problems.note(f"{where} has no 'resourceSpans'")
    for resource in map(mapping, items(resources)):
        about = _attributes(mapping(resource.get("resource")).get("attributes"))
        scopes = first(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        for scope in map(mapping, items(scopes)):
            for row in items(scope.get("spans")):
                span = span_of(mapping(row), about)
                if span is None:
                    problems.note(f"{where}: a span has no 'spanId'")
                else:
                    yield span


def span_of(row: JsonObject, resource: JsonObject) -> OtelSpan | None:
    """The span in a row of OTLP's JSON; None if it has no id.

    Args:
        row: whose attributes may also be a mapping.
        resource: the attributes of what recorded it.
    """
    identity = string(first(row, "spanId", "span_id")).lower()
    if not identity:
        return None
    status = mapping(row.get("status"))
    failed = first(status, "code") in _ERROR
    attributes = _attributes(row.get("attributes"))
    events = tuple(
        SpanEvent(string(event.get("name")), _attributes(event.get("attributes")))
        for event in map(mapping, items(row.get("events")))
    )
    words = string(status.get("message")).partition("Traceback (most recent call last)")[0].strip()
    said = words or _exception(events) or string(attributes.get("error.type"))
    return OtelSpan(
        trace_id=string(first(row, "traceId", "trace_id")).lower(),
        id=identity,
        parent=string(first(row, "parentSpanId", "parent_span_id")).lower().strip("0")
        and string(first(row, "parentSpanId", "parent_span_id")).lower(),
        name=string(row.get("name")),
        attributes=attributes,
        events=events,
        started_ms=_ms(first(row, "startTimeUnixNano", "start_time_unix_nano")),
        ended_ms=_ms(first(row, "endTimeUnixNano", "end_time_unix_nano")),
        error=(said or "the span ended with an error") if failed or "error.type" in attributes else "",
        resource=resource,
    )


def _exception(events: tuple[SpanEvent, ...]) -> str:
    found = next((event.attributes for event in events if event.name == "exception"), {})
    return string(first(found, "exception.message", "exception.type"))


def _ms(value: Any) -> float | None:
    found = number(value)
    return None if not found else found / 1e6


def _attributes(rows: Any) -> dict[str, Any]:
    if isinstance(rows, Mapping):
        return {str(key): plain(value, cut=True) for key, value in rows.items()}
    return {string(row.get("key")): _value(row.get("value"), 0) for row in map(mapping, items(rows)) if row.get("key")}


def _value(value: Any, depth: int) -> Any:
    if not isinstance(value, Mapping) or depth == _DEEPEST:
        return None if isinstance(value, Mapping) else value
    if (listed := first(value, "arrayValue", "array_value")) is not None:
        return [_value(one, depth + 1) for one in items(mapping(listed).get("values"))]
    if (object_ := first(value, "kvlistValue", "kvlist_value")) is not None:
        rows = map(mapping, items(mapping(object_).get("values")))
        return {string(row.get("key")): _value(row.get("value"), depth + 1) for row in rows}
    whole = first(value, "intValue", "int_value")
    if whole is not None:
        found = number(whole)
        return whole if found is None else int(found)
    return first(value, "stringValue", "string_value", "doubleValue", "double_value", "boolValue", "bool_value")
