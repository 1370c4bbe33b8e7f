"""Spans that a framework records in a call of a `python` target (`trace: otel`), collected in its worker.

Each call has a trace of OpenTelemetry of its own, whose id tells its spans from those of others that run beside it.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from agentv.extensions.agents.frameworks.returns import priced
from agentv.extensions.agents.traces.otlp import traces_of
from agentv.extensions.agents.traces.otlp_spans import span_of
from agentv.model.values.trace import Trace
from agentv.registry.extras import missing_extra
from agentv.registry.fields import Issue
from agentv.user_code.workers.messages import plain

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan

MOST_SPANS = 100_000
"""Spans of a call that are kept."""

CONTENT = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGECONTENT": "SPAN_ONLY",
}
"""Variables without which instrumentations by OpenTelemetry's own conventions record no messages."""


class SpanRecording:
    """The spans that are recorded while it is entered, in the contexts that begin there."""

    @staticmethod
    def problems() -> Iterable[Issue]:
        """The Issue `missing-extra` where OpenTelemetry is not installed."""
        missing = missing_extra("opentelemetry.sdk", "otel", "'trace: otel'")
        return () if missing is None else (missing,)

    def __init__(self) -> None:
        self.trace_id = secrets.randbits(128) | 1
        self.spans: list[ReadableSpan] = []
        self.left_out = 0
        self._token: Token[Context] | None = None

    def __enter__(self) -> Self:
        from opentelemetry import context
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

        _collector().recordings[self.trace_id] = self
        above = SpanContext(self.trace_id, secrets.randbits(64) | 1, is_remote=True, trace_flags=TraceFlags(1))
        self._token = context.attach(set_span_in_context(NonRecordingSpan(above), context.Context()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from opentelemetry import context

        assert self._token is not None  # noqa: S101  # it was entered
        context.detach(self._token)
        _ours.recordings.pop(self.trace_id, None)

    def add(self, span: ReadableSpan) -> None:
        """Keep a span that has ended."""
        if len(self.spans) < MOST_SPANS:
            self.spans.append(span)
        else:
            self.left_out += 1

    def trace(self) -> Trace:
        """The trace that they give; one without steps says why."""
        partial = f"{self.left_out:,} spans beyond {MOST_SPANS:,} were left out" if self.left_out else ""
        rows = [_row(span, f"{self.trace_id:032x}") for span in self.spans]
        found = traces_of(filter(None, (span_of(row, resource) for row, resource in rows)), partial)
        if not found:
            names = ", ".join(sorted({span.name[:40] for span in self.spans})[:5])
            seen = f"there are {names}" if names else "there is no span at all"
            return Trace(
                source="otel", partial=f"no span is about generative AI; {seen}; is the framework instrumented?"
            )
        return replace(found[0], source="otel", steps=priced(found[0].steps))


class _Collector:
    """A span processor of OpenTelemetry's: gives each span that ends to the recording of its trace."""

    def __init__(self) -> None:
        self.recordings: dict[int, SpanRecording] = {}

    def on_start(self, span: ReadableSpan, parent_context: Context | None = None) -> None:
        """Nothing: a span counts when it has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span. One that began on a thread without a context is of the call that runs, if there is but one."""
        running = list(self.recordings.values())
        found = self.recordings.get(span.context.trace_id if span.context is not None else 0)
        if found is None and len(running) == 1:
            found = running[0]
        if found is not None:
            found.add(span)

    def _on_ending(self, span: ReadableSpan) -> None:
        """Nothing: as above."""

    def shutdown(self) -> None:
        """Nothing: it holds nothing open."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # as OpenTelemetry calls it
        """Nothing waits here."""
        return True


_ours = _Collector()
_registered: set[int] = set()
_lock = Lock()


def _collector() -> _Collector:
    """The collector, which listens to the tracer provider of the process: the user's, or one made here."""
    from opentelemetry import trace

    with _lock:
        if not _registered:
            for name, value in CONTENT.items():
                os.environ.setdefault(name, value)
            _instrument()
        provider: Any = trace.get_tracer_provider()
        if not hasattr(provider, "add_span_processor"):
            from opentelemetry.sdk.trace import TracerProvider

            provider = TracerProvider(shutdown_on_exit=False)
            trace.set_tracer_provider(provider)
        if id(provider) not in _registered:
            provider.add_span_processor(_ours)
            _registered.add(id(provider))
    return _ours


def _instrument() -> None:
    """Switch on the instrumentations that are installed, as `opentelemetry-instrument` does, and pydantic-ai's own."""
    from importlib.metadata import entry_points

    disabled = {one.strip() for one in os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")}
    for one in entry_points(group="opentelemetry_instrumentor"):
        if one.name not in disabled:
            with suppress(Exception):  # one that does not fit the installed libraries
                one.load()().instrument()
    agent = getattr(sys.modules.get("pydantic_ai"), "Agent", None)
    if agent is not None and "pydantic_ai" not in disabled:
        agent.instrument_all()


def _row(span: ReadableSpan, trace_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A span as JSON of OTLP, and the attributes of its resource."""
    context, parent, status = span.context, span.parent, span.status
    row = {
        "traceId": trace_id,
        "spanId": f"{context.span_id:016x}" if context is not None else "",
        "parentSpanId": f"{parent.span_id:016x}" if parent is not None else "",
        "name": span.name,
        "startTimeUnixNano": span.start_time,
        "endTimeUnixNano": span.end_time,
        "attributes": plain(span.attributes or {}),
        "events": [{"name": one.name, "attributes": plain(one.attributes or {})} for one in span.events],
        "status": {"code": status.status_code.value, "message": status.description},
    }
    return row, dict(span.resource.attributes)
