"""OTLP as traces, by OpenTelemetry's conventions for generative AI: `invoke_agent`, `chat`, `execute_tool`.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/. One trace of OpenTelemetry is one trace of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.extensions.agents.traces.otlp_messages import Spoken, SpokenCall, given_and_said
from agentv.extensions.agents.traces.otlp_spans import OtelSpan, is_json, spans_of
from agentv.extensions.agents.traces.otlp_tools import Executed, executed
from agentv.extensions.agents.traces.values import Problems, first, items, number, sound_parents, string, tokens_of
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import names_of_call
from agentv.model.values.trace import UNFINISHED, MessageStep, Step, ToolCallStep, Trace, UsageStep
from agentv.model.values.values import JsonObject

_MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content"})
_AGENTS = frozenset({"invoke_agent", "invoke_workflow"})
_TOOLS = frozenset({"execute_tool"})
_KNOWN = _MODEL_CALLS | _AGENTS | _TOOLS


def read_otlp(data: bytes) -> list[Trace] | Failure:
    """The traces in a file, in the order of their first spans; a Failure where no span is about generative AI."""
    problems = Problems()
    spans = spans_of(data, problems)
    if isinstance(spans, Failure):
        return spans
    groups: dict[str, list[OtelSpan]] = {}
    for span in spans:
        groups.setdefault(span.trace_id, []).append(span)
    traces = [_Reader(group, str(problems)).trace() for group in groups.values() if any(map(_operation, group))]
    if not traces:
        names = ", ".join(sorted({span.name[:40] for span in spans})[:5])
        message = f"no span follows the conventions for generative AI (gen_ai.operation.name); there are {names}"
        return Failure("bad-trace", message)
    if len(traces) == 1:
        name = "otlp.json" if is_json(data) else "otlp.pb"
        return [replace(traces[0], native=data, native_name=name)]
    return traces


def _operation(span: OtelSpan) -> str:
    """What a span is about; empty: nothing that belongs into a trace."""
    said = string(span.attributes.get("gen_ai.operation.name"))
    if said:
        return said if said in _KNOWN else ""
    kind = string(span.attributes.get("traceloop.span.kind"))
    if kind in {"agent", "tool"}:
        return "invoke_agent" if kind == "agent" else "execute_tool"
    if "gen_ai.tool.name" in span.attributes:
        return "execute_tool"
    asked = {"gen_ai.request.model", "gen_ai.system"} & span.attributes.keys()
    word = span.name.partition(" ")[0]
    return word if word in _KNOWN else "chat" if asked else ""


class _Reader:
    """The spans of one trace."""

    def __init__(self, spans: Sequence[OtelSpan], partial: str) -> None:
        self._problems = Problems()
        if partial:
            self._problems.note(partial)
        self._by_id = {span.id: span for span in spans}
        known = [span.started_ms for span in spans if span.started_ms is not None]
        self._start = min(known, default=0.0)
        self._spans = sorted(spans, key=lambda span: self._start if span.started_ms is None else span.started_ms)
        self._executed = {span.id: executed(span) for span in spans if _operation(span) in _TOOLS}
        self._called = {one.id for one in self._executed.values()}
        self._repeated = self._repeated_spans()
        self._asked: list[tuple[int, SpokenCall]] = []
        self._steps: list[Step | None] = []
        self._places: dict[str, int] = {}
        self._heard: set[tuple[str | None, str, str]] = set()
        missing = {span.parent for span in spans if span.parent and span.parent not in self._by_id}
        if len(missing) > 1:
            self._problems.note(f"the parents of {len(missing)} spans are missing")

    def trace(self) -> Trace:
        """The trace of them."""
        for span in self._spans:
            operation = "" if span.id in self._repeated else _operation(span)
            if operation in _MODEL_CALLS:
                self._model_call(span)
            elif operation in _TOOLS:
                self._tool_call(span)
            elif operation in _AGENTS:
                self._agent(span)
        root = self._root()
        ended = [span.ended_ms for span in self._spans if span.ended_ms is not None]
        about = {**root.resource, **root.attributes}
        steps = [step for step in self._steps if step is not None]
        error = self._error()
        if not error and _waits(steps):
            self._problems.note(f"the trace {UNFINISHED}")
        return Trace(
            sound_parents(steps, self._problems),
            source="otlp",
            agent=string(first(about, "gen_ai.agent.name", "traceloop.entity.name", "service.name")),
            agent_version=string(first(about, "gen_ai.agent.version", "service.version")),
            session_id=string(first(about, "gen_ai.conversation.id", "session.id")) or root.trace_id,
            stop_reason=string(about.get("agentv.stop_reason")) or self._finish_reason(),
            error=error,
            session_cost_usd=number(about.get("agentv.session_cost_usd")),
            duration_ms=round(max(ended) - self._start, 3) if ended else None,
            partial=str(self._problems),
            metadata=_of_agentv(about),
        )

    def _root(self) -> OtelSpan:
        agents = (span for span in self._spans if _operation(span) in _AGENTS)
        outermost = (span for span in self._spans if span.parent not in self._by_id)
        return next(agents, None) or next(outermost, None) or self._spans[0]

    def _error(self) -> str:
        """The error in which the session ended: that of its last root, or of the last agent that no other called."""
        working = [span for span in self._spans if _operation(span)]
        top = [([span, *self._ancestors(span)][-1], span) for span in working]
        agents = [span for span in working if _operation(span) in _AGENTS and self._is_outermost(span)]
        ends = [*(root for root, _ in top[-1:]), *agents[-1:]]
        return next((span.error for span in ends if span.error), "")

    def _finish_reason(self) -> str:
        """Why the last model call of the agent itself ended."""
        calls = [span for span in self._spans if _operation(span) in _MODEL_CALLS and self._parent(span) is None]
        reasons = items(calls[-1].attributes.get("gen_ai.response.finish_reasons")) if calls else ()
        return string(reasons[-1]) if reasons else ""

    def _repeated_spans(self) -> set[str]:
        """The spans that describe what another one describes, too: two instrumentations see one call."""
        found: set[str] = set()
        for span in self._spans:
            above = next((one for one in self._ancestors(span) if _operation(one)), None)
            if above is None:
                continue
            if {_operation(span), _operation(above)} <= _MODEL_CALLS:
                found.add(above.id if _is_counted(span) and not _is_counted(above) else span.id)
            elif {_operation(span), _operation(above)} <= _TOOLS and _is_same(
                self._executed[span.id], self._executed[above.id]
            ):
                found.add(span.id)
        return found

    def _ancestors(self, span: OtelSpan) -> Iterator[OtelSpan]:
        seen = {span.id}
        at = self._by_id.get(span.parent)
        while at is not None:
            if at.id in seen:
                self._problems.note("spans are each other's parents")
                return
            seen.add(at.id)
            yield at
            at = self._by_id.get(at.parent)

    def _parent(self, span: OtelSpan) -> str | None:
        """The id of the call that a span is within: of a tool, or of an agent that is not the outermost."""
        for one in self._ancestors(span):
            operation = _operation(one)
            if operation in _TOOLS and one.id not in self._repeated:
                return self._executed[one.id].id
            if operation in _AGENTS and self._is_subagent(one):
                return one.id
        return None

    def _is_subagent(self, span: OtelSpan) -> bool:
        """Whether an agent was called by another, and not by way of a tool. Two spans may describe one agent."""
        above = next((one for one in self._ancestors(span) if _operation(one) in _AGENTS | _TOOLS), None)
        if above is None or _operation(above) in _TOOLS or span.attributes.get("traceloop.span.kind") == "workflow":
            return False
        return _agent_name(span) != _agent_name(above)

    def _is_outermost(self, span: OtelSpan) -> bool:
        return not any(_operation(one) in _AGENTS | _TOOLS for one in self._ancestors(span))

    def _at(self, span: OtelSpan) -> tuple[float | None, float | None]:
        """When a span began, from the start of the trace, and how long it took."""
        if span.started_ms is None:
            return None, None
        took = None if span.ended_ms is None else round(max(span.ended_ms - span.started_ms, 0.0), 3)
        return round(span.started_ms - self._start, 3), took

    def _agent(self, span: OtelSpan) -> None:
        self._hear(span, given_and_said(span)[0])
        if not self._is_subagent(span):
            return
        started, took = self._at(span)
        name = _agent_name(span)
        self._steps.append(
            ToolCallStep(
                "subagent",
                {"agent": name} if name else {},
                name or span.name,
                span.id,
                error=span.error or None,
                status="failed" if span.error else "completed",
                started_ms=started,
                duration_ms=took,
                parent=self._parent(span),
            )
        )

    def _model_call(self, span: OtelSpan) -> None:
        given, said = given_and_said(span)
        self._hear(span, given)
        started, took = self._at(span)
        about = span.attributes
        counts: dict[str, Any] = {
            "input": first(about, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
            "output": first(about, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
            "cached": first(about, "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens"),
            "reasoning": first(about, "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
        }
        model = string(first(about, "gen_ai.response.model", "gen_ai.request.model")) or None
        cost = number(first(about, "gen_ai.usage.cost", "agentv.cost_usd"))
        parent = self._parent(span)
        if about.get("agentv.message_only") is not True:
            tokens, error = tokens_of(counts), span.error or None
            self._steps.append(UsageStep(model, tokens, cost, started, took, error, parent, _evidence(about)))
        for one in said:
            self._say(one, span, parent)

    def _hear(self, span: OtelSpan, given: Sequence[Spoken]) -> None:
        """What a model is given: each message once, since every call repeats the conversation."""
        parent = self._parent(span)
        started, _ = self._at(span)
        for one in given:
            if one.result_of:
                self._set_result(one)
            elif one.role in {"system", "user"} and (key := (parent, one.role, one.text)) not in self._heard:
                self._heard.add(key)
                self._steps.append(MessageStep(one.role, one.text, None, started, parent))

    def _say(self, one: Spoken, span: OtelSpan, parent: str | None) -> None:
        started, took = self._at(span)
        at = None if started is None else round(started + (took or 0.0), 3)
        if one.text or one.reasoning:
            self._steps.append(MessageStep("assistant", one.text, one.reasoning or None, at, parent))
        for call in one.calls:
            if call.id and call.id in self._called:
                continue  # its own span says more
            if not call.name:
                self._problems.note("a tool call has no name")
                continue
            self._places[call.id] = len(self._steps)
            self._asked.append((len(self._steps), call))
            name, native = names_of_call(call.name, call.arguments)
            step = ToolCallStep(name, call.arguments, native, call.id or None, started_ms=at, parent=parent)
            self._steps.append(step)

    def _set_result(self, one: Spoken) -> None:
        place = self._places.get(one.result_of)
        step = None if place is None else self._steps[place]
        if place is not None and isinstance(step, ToolCallStep) and step.result is None:
            self._steps[place] = replace(step, result=one.result, status="completed")

    def _tool_call(self, span: OtelSpan) -> None:
        ran = self._executed[span.id]
        asked = self._take_asked(ran) if ran.id == span.id else None
        name, native = names_of_call(ran.name, ran.arguments if asked is None else asked.arguments)
        started, took = self._at(span)
        step = ToolCallStep(
            name=name,
            arguments=ran.arguments,
            native_name=native,
            id=ran.id,
            result=None if ran.error else ran.result,
            error=ran.error or None,
            status="failed" if ran.error else _STATUSES.get(string(span.attributes.get("agentv.status")), "completed"),
            started_ms=started,
            duration_ms=took,
            parent=self._parent(span),
            evidence=_evidence(span.attributes),
        )
        if asked is not None:
            step = replace(step, id=asked.id or step.id, arguments=asked.arguments)
            self._called.add(asked.id)
        self._steps.append(step)

    def _take_asked(self, ran: Executed) -> SpokenCall | None:
        """The call of a model that a span without its id executed: of that name, with the same arguments if any is."""
        named = [one for one in self._asked if one[1].name == ran.name and one[1].id not in self._called]
        found = next((one for one in named if one[1].arguments == ran.arguments), named[0] if named else None)
        if found is None:
            return None
        self._asked.remove(found)
        self._steps[found[0]] = None
        return found[1]


_STATUSES: Mapping[str, Any] = {one: one for one in ("completed", "denied", "cancelled", "unknown")}


def _evidence(about: JsonObject) -> Any:
    said = about.get("agentv.evidence")
    return said if said in {"gateway", "tools"} else "agent"


def _agent_name(span: OtelSpan) -> str:
    return string(first(span.attributes, "gen_ai.agent.name", "traceloop.entity.name"))


def _is_counted(span: OtelSpan) -> bool:
    """Whether the span of a model call says what it used."""
    return first(span.attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens") is not None


def _is_same(ran: Executed, above: Executed) -> bool:
    """Whether a span within that of a tool describes the same call."""
    return ran.id == above.id or (ran.name == above.name and ran.arguments == above.arguments)


def _waits(steps: Sequence[Step]) -> bool:
    """Whether the last word is the user's, so that no model answered."""
    main = [step for step in steps if step.parent is None and isinstance(step, MessageStep | ToolCallStep)]
    return bool(main) and isinstance(main[-1], MessageStep) and main[-1].role == "user"


def _of_agentv(about: JsonObject) -> dict[str, Any]:
    return {key: value for key, value in about.items() if key in {"agentv.case.id", "agentv.run.id", "agentv.sample"}}
