"""OpenTelemetry spans of targets: collected in the target's worker (`trace: otel`), or received over OTLP (`otel`).

Each call in a worker has an OpenTelemetry trace of its own, whose id separates its spans from those of concurrent
calls. Programs and servers send OTLP over HTTP to a loopback port. A program is given a URL for its trial alone. A
server sends the spans of all trials to one URL, and the trace id in the `traceparent` of the request that it answered
identifies the trial.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from agentv.extensions.agents.sockets import listening_at
from agentv.extensions.agents.traces.otlp import traces_of
from agentv.extensions.agents.traces.otlp_spans import OtelSpan, span_of, spans_of
from agentv.extensions.agents.traces.returns import priced
from agentv.extensions.agents.traces.values import Problems
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.trace import Trace
from agentv.registry.fields import Issue, missing_extra
from agentv.user_code.workers.messages import plain

if TYPE_CHECKING:
    from contextvars import Token

    from aiohttp.web import AppRunner, Request, Response, SockSite
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan


MOST_SPANS = 100_000
"""Maximum number of spans kept per call or trial."""

CONTENT = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGECONTENT": "SPAN_ONLY",
}
"""Environment variables that make instrumentations by OpenTelemetry's own conventions record messages."""


class SpanRecording:
    """Context manager that collects the spans recorded in its OpenTelemetry context."""

    @staticmethod
    def problems() -> Iterable[Issue]:
        """Report `missing-extra` if OpenTelemetry is not installed."""
        missing = missing_extra("opentelemetry.sdk", "otel", "'trace: otel'")
        return () if missing is None else (missing,)

    def __init__(self) -> None:
        self.trace_id = secrets.randbits(128) | 1
        self.spans: list[ReadableSpan] = []
        self.missing = Problems()
        self._token: Token[Context] | None = None

    def __enter__(self) -> Self:
        from opentelemetry import context
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

        _attach_collector()
        _recordings[self.trace_id] = self
        above = SpanContext(self.trace_id, secrets.randbits(64) | 1, is_remote=True, trace_flags=TraceFlags(1))
        self._token = context.attach(set_span_in_context(NonRecordingSpan(above), context.Context()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from opentelemetry import context

        assert self._token is not None  # noqa: S101  # set by __enter__
        context.detach(self._token)
        _recordings.pop(self.trace_id, None)

    def add(self, span: ReadableSpan) -> None:
        """Add a span that has ended."""
        if len(self.spans) < MOST_SPANS:
            self.spans.append(span)
        else:
            self.missing.note(f"spans beyond {MOST_SPANS:,} were left out")

    def trace(self) -> Trace:
        """Build the trace of the spans. If it has no steps, its `partial` says why."""
        rows = [_row(span, f"{self.trace_id:032x}") for span in self.spans]
        found = traces_of(filter(None, (span_of(row, resource) for row, resource in rows)), str(self.missing))
        if not found:
            names = ", ".join(sorted({span.name[:40] for span in self.spans})[:5])
            seen = f"there are {names}" if names else "there is no span at all"
            why = f"no span is about generative AI; {seen}; is the framework instrumented?"
            return Trace(source="otel", partial=why)
        return structs.replace(found[0], source="otel", steps=priced(found[0].steps))


_recordings: dict[int, SpanRecording] = {}
"""Trace id → recording of a running call."""

_collected_providers: set[int] = set()
_lock = Lock()


def _attach_collector() -> None:
    """Attach a collector to the process's tracer provider: the user's, or one created here."""
    from opentelemetry import trace

    with _lock:
        if not _collected_providers:
            for name, value in CONTENT.items():
                os.environ.setdefault(name, value)
            _instrument()
        provider: Any = trace.get_tracer_provider()
        if id(provider) in _collected_providers:
            return
        from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

        class Collector(SpanProcessor):
            def on_end(self, span: ReadableSpan) -> None:
                # a span from a thread without context belongs to the running call, if there is only one
                running = list(_recordings.values())
                found = _recordings.get(span.context.trace_id if span.context is not None else 0)
                if found is None and len(running) == 1:
                    found = running[0]
                if found is not None:
                    found.add(span)

        if not hasattr(provider, "add_span_processor"):
            provider = TracerProvider(shutdown_on_exit=False)
            trace.set_tracer_provider(provider)
        provider.add_span_processor(Collector())
        _collected_providers.add(id(provider))


def _instrument() -> None:
    """Enable the installed instrumentations, as `opentelemetry-instrument` does, and pydantic-ai's own."""
    from importlib.metadata import entry_points

    disabled = {one.strip() for one in os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")}
    for one in entry_points(group="opentelemetry_instrumentor"):
        if one.name not in disabled:
            with suppress(Exception):  # it may not support the installed libraries
                one.load()().instrument()
    agent = getattr(sys.modules.get("pydantic_ai"), "Agent", None)
    if agent is not None and "pydantic_ai" not in disabled:
        agent.instrument_all()


def _row(span: ReadableSpan, trace_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A span in OTLP's JSON, and the attributes of its resource."""
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


LATE_S = 2.0
"""Seconds to wait for spans after the target has answered."""

_QUIET_S = 0.1
"""Seconds without a new span after which a trace without missing parents is complete."""

_LARGEST = 64_000_000

SOCKET = "spans.sock"
"""File name of the Unix socket, in a directory that is visible in the sandbox."""

DEFAULT_PORT = 4318
"""The default port of OTLP over HTTP, so that servers need no configuration."""


@dataclass(slots=True)
class TrialSpans:
    """Collects the spans of one trial.

    Attributes:
        receivers: receivers that it is registered with.
        port: loopback port of the receiver.
        url: URL to which the trial's program sends spans.
        socket: path of a Unix socket of the same receiver; empty if none exists.
    """

    receivers: SpanReceivers
    port: int
    url: str
    token: str
    trace_id: str = field(default_factory=lambda: secrets.token_hex(16))
    parent: str = field(default_factory=lambda: secrets.token_hex(8))
    spans: list[OtelSpan] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    socket: str = ""
    site: SockSite | None = None

    def env(self) -> dict[str, str]:
        """Environment variables that tell OpenTelemetry's SDKs the receiver and the trace."""
        return {
            **CONTENT,
            "TRACEPARENT": f"00-{self.trace_id}-{self.parent}-01",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }

    def add(self, spans: list[OtelSpan]) -> None:
        """Add received spans."""
        room = MOST_SPANS - len(self.spans)
        if len(spans) > room:
            self.problems.note(f"spans beyond {MOST_SPANS:,} were left out")
        self.spans += spans[:room]
        self.arrived.set()

    async def joined(
        self, given: TargetResponse | Failure | Awaitable[TargetResponse | Failure]
    ) -> TargetResponse | Failure:
        """Return the answer with the trace of its spans, after waiting for late spans."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = given if isinstance(given, TargetResponse | Failure) else await given
        if isinstance(answer, TargetResponse) and answer.duration_ms is None:  # spans do not cover the program's start
            answer = structs.replace(answer, duration_ms=round((loop.time() - began) * 1000, 3))
        await self._wait_for_late_spans()
        spans, self.spans = self.spans, []
        found = traces_of((replace(one, trace_id=self.trace_id) for one in spans), str(self.problems))
        if not found:
            return answer
        return _with_trace(answer, found[0])

    async def _wait_for_late_spans(self) -> None:
        """Wait until all spans have arrived, or `LATE_S` have passed."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LATE_S
        while (left := end - loop.time()) > 0:
            self.arrived.clear()
            try:
                await asyncio.wait_for(self.arrived.wait(), min(left, _QUIET_S if self._is_complete() else left))
            except TimeoutError:
                if self._is_complete():
                    return

    def _is_complete(self) -> bool:
        """Whether there are spans, and no span's parent is missing."""
        known = {span.id for span in self.spans} | {self.parent, ""}
        return bool(self.spans) and all(span.parent in known for span in self.spans)

    async def close(self) -> None:
        """Stop receiving spans."""
        if self.site is not None:
            await self.site.stop()
        self.receivers.trials.pop(self.token, None)
        self.receivers.trials.pop(self.trace_id, None)


class SpanReceivers:
    """Receivers of OTLP on the loopback ports that the targets of a run use.

    Attributes:
        trials: token or trace id → spans of a trial.
    """

    def __init__(self) -> None:
        self.trials: dict[str, TrialSpans] = {}
        self._runners: dict[int, AppRunner] = {}
        self._starting = asyncio.Lock()

    async def open(self, port: int, socket: str = "") -> TrialSpans | Failure:
        """Start receiving the spans of a trial, or return a Failure if the port is taken.

        Args:
            port: port to listen on; 0: any free port.
            socket: path of a Unix socket to listen on as well; empty: none.
        """
        from aiohttp.web import SockSite

        async with self._starting:
            if port not in self._runners:
                runner = await self._listening(port)
                if isinstance(runner, Failure):
                    return runner
                self._runners[port] = runner
            runner = self._runners[port]
        token, own = secrets.token_urlsafe(16), runner.addresses[0][1]
        trial = TrialSpans(self, own, f"http://127.0.0.1:{own}/{token}", token, socket=socket)
        if socket:
            trial.site = SockSite(runner, listening_at(socket))
            await trial.site.start()
        self.trials[token] = self.trials[trial.trace_id] = trial
        return trial

    async def _listening(self, port: int) -> AppRunner | Failure:
        from aiohttp.web import Application, AppRunner, TCPSite

        app = Application(client_max_size=_LARGEST)
        app.router.add_post("/{path:.*}", self._handle)
        runner = AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await TCPSite(runner, "127.0.0.1", port).start()
        except OSError as error:
            await runner.cleanup()
            why = f"the receiver of spans cannot listen on port {port} of 127.0.0.1: {error.strerror or error}"
            return Failure("no-receiver", why)
        return runner

    async def close(self) -> None:
        """Stop listening."""
        for runner in self._runners.values():
            await runner.cleanup()

    async def _handle(self, request: Request) -> Response:
        from aiohttp.web import Response

        kind = request.content_type
        empty = Response(body=b"{}" if kind == "application/json" else b"", content_type=kind)
        token, _, rest = request.path.strip("/").partition("/v1/")
        if "traces" not in (rest, token.removeprefix("v1/")):
            return empty  # logs and metrics are ignored
        data = await request.read()
        trial, problems = self.trials.get(token), Problems()
        found = spans_of(data, problems)
        if isinstance(found, Failure):
            if trial is not None:
                trial.problems.note(found.message)
            return Response(status=400, text=found.message)
        groups: dict[str, list[OtelSpan]] = {}
        for span in found:
            groups.setdefault(token if trial is not None else span.trace_id, []).append(span)
        for key, spans in groups.items():
            if (owner := self.trials.get(key)) is not None:  # other spans are late, or of no trial of this run
                owner.add(spans)
        return empty


def _with_trace(answer: TargetResponse | Failure, trace: Trace) -> TargetResponse | Failure:
    """Return an answer with the trace of its spans. A trace that the target reports itself only gets missing usage."""
    trace = structs.replace(trace, steps=priced(trace.steps))
    if isinstance(answer, TargetResponse):
        own = answer.trace
        if own is not None and own.steps:
            steps = own.steps if own.usages else (*own.steps, *trace.usages)
            return structs.replace(answer, trace=structs.replace(own, steps=steps))
        if not trace.error:
            return structs.replace(answer, trace=trace)
        return CallFailure("target-error", trace.unanswered, response=TargetResponse(None, trace=trace))
    if isinstance(answer, CallFailure):
        known = answer.response or TargetResponse(None)
        known = known if known.trace is not None else structs.replace(known, trace=trace)
        return structs.replace(answer, response=known)
    return CallFailure(answer.code, answer.message, answer.retryable, response=TargetResponse(None, trace=trace))
