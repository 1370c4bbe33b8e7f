"""Convert OTLP to traces by OpenTelemetry's conventions for generative AI: `invoke_agent`, `chat`, `execute_tool`.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/. Each OpenTelemetry trace becomes one `Trace`, except that
OpenTelemetry traces with only model calls are joined if they continue one conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.extensions.agents.traces.messages import ParsedMessage, messages_in, with_result
from agentv.extensions.agents.traces.otlp_spans import (
    AGENTS,
    MODEL_CALLS,
    TOOLS,
    OtelSpan,
    canonical,
    is_json,
    operation_of,
    spans_of,
)
from agentv.extensions.agents.traces.values import (
    Problems,
    as_json,
    first,
    items,
    mapping,
    number,
    string,
    tokens_of,
    with_valid_parents,
)
from agentv.model.values.message import Role
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import names_of_call
from agentv.model.values.trace import MessageStep, Step, ToolCallStep, ToolStatus, Trace, UsageStep
from agentv.model.values.values import JsonObject

_DETAILS = "gen_ai.client.inference.operation.details"
_EVENTS: Mapping[str, Role] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
"""Event of the conventions up to version 1.36 → role of the message that it holds."""


def read_otlp(data: bytes) -> list[Trace] | Failure:
    """Return the traces in a file, ordered by first span, or a Failure if no span is about generative AI."""
    problems = Problems()
    spans = spans_of(data, problems)
    if isinstance(spans, Failure):
        return spans
    traces = traces_of(spans, str(problems))
    if not traces:
        names = ", ".join(sorted({span.name[:40] for span in spans})[:5])
        known = "gen_ai.operation.name, openinference.span.kind"
        message = f"no span follows the conventions for generative AI ({known}); there are {names}"
        return Failure("bad-trace", message)
    if len(traces) == 1:
        name = "otlp.json" if is_json(data) else "otlp.pb"
        return [replace(traces[0], native=data, native_name=name)]
    return traces


def traces_of(spans: Iterable[OtelSpan], partial: str = "") -> list[Trace]:
    """Return the traces of spans that are about generative AI, in the order of the first span of each.

    Args:
        spans: spans with the attributes of any known convention.
        partial: why spans are missing; empty if none are.
    """
    groups: dict[str, list[OtelSpan]] = {}
    for span in map(canonical, spans):
        groups.setdefault(span.trace_id, []).append(span)
    working = [group for group in groups.values() if any(map(operation_of, group))]
    return [_Reader(group, partial).trace() for group in _conversations(working)]


def _conversations(groups: Iterable[list[OtelSpan]]) -> list[list[OtelSpan]]:
    """Join each group of spans that only call a model to the group whose conversation it continues."""
    found: list[list[OtelSpan]] = []
    ends: dict[tuple[Any, ...], list[OtelSpan]] = {}
    for group in groups:
        if not all(operation_of(span) in MODEL_CALLS or not operation_of(span) for span in group):
            found.append(group)
            continue
        calls = sorted(filter(operation_of, group), key=lambda span: span.started_ms or 0.0)
        start = _conversation_key(_prompt_and_answer(calls[0])[0])
        before = next((end for length in range(len(start), 0, -1) if (end := ends.pop(start[:length], None))), None)
        if before is None:
            before = group
            found.append(group)
        else:
            before += group
        prompt, answer = _prompt_and_answer(calls[-1])
        ends[_conversation_key([*prompt, *answer])] = before
    return found


def _conversation_key(messages: Iterable[ParsedMessage]) -> tuple[Any, ...]:
    """A comparable key of messages, without tool results, whose format may vary between calls."""
    key = ((one.role, one.text, tuple(call.id for call in one.calls)) for one in messages if one.role != "tool")
    return tuple(key)


def _prompt_and_answer(span: OtelSpan) -> tuple[list[ParsedMessage], list[ParsedMessage]]:
    """Return the messages that a model was given, and those that it answered with.

    The current conventions have both as attributes of the span or of an event. Up to version 1.36, each message was an
    event; in even earlier versions, one event held the whole prompt and another the answer.
    """
    prompt: list[ParsedMessage] = []
    answer: list[ParsedMessage] = []
    for holder in (span.attributes, *(event.attributes for event in span.events if event.name == _DETAILS)):
        system = as_json(holder.get("gen_ai.system_instructions"))
        prompt += messages_in([{"role": "system", "content": system}] if system else None)
        prompt += messages_in(holder.get("gen_ai.input.messages"), "user")
        answer += messages_in(holder.get("gen_ai.output.messages"), "assistant")
    for event in span.events:
        row = {key.removeprefix("gen_ai.event."): as_json(value) for key, value in event.attributes.items()}
        if event.name in _EVENTS:
            prompt += messages_in({"role": _EVENTS[event.name], **row})
        elif event.name == "gen_ai.choice":
            message = row.get("message", row)
            inner = message if isinstance(message, Mapping) else {"content": message}
            calls = {"tool_calls": row["tool_calls"]} if "tool_calls" in row else {}
            answer += messages_in({"role": "assistant", **inner, **calls})
        elif event.name == "gen_ai.content.prompt":
            prompt += messages_in(event.attributes.get("gen_ai.prompt"), "user")
        elif event.name == "gen_ai.content.completion":
            answer += messages_in(event.attributes.get("gen_ai.completion"), "assistant")
    return prompt, answer


class _Reader:
    """Converts the spans of one OpenTelemetry trace."""

    def __init__(self, spans: Sequence[OtelSpan], partial: str) -> None:
        self._problems = Problems()
        if partial:
            self._problems.note(partial)
        self._by_id = {span.id: span for span in spans}
        known = [span.started_ms for span in spans if span.started_ms is not None]
        self._start = min(known, default=0.0)
        self._spans = sorted(spans, key=self._order)
        self._roots: dict[str, OtelSpan] = {}
        self._ancestors: dict[str, OtelSpan | None] = {}
        for span in spans:
            self._place(span)
        self._repeated = self._repeated_spans()
        self._executed_ids = {_call_id(span) for span in spans if operation_of(span) in TOOLS}
        self._containing_calls: dict[str, str | None] = {}
        self._calls_by_name: dict[str, list[tuple[int, ToolCallStep]]] = {}
        self._calls_by_id: dict[str, ToolCallStep] = {}
        self._steps: list[Step | None] = []
        self._places: dict[str, int] = {}
        self._prompt_counts: Counter[tuple[str | None, str, str]] = Counter()
        missing = {span.parent for span in spans if span.parent and span.parent not in self._by_id}
        if len(missing) > 1:
            self._problems.note(f"the parents of {len(missing)} spans are missing")

    def _order(self, span: OtelSpan) -> tuple[float, float]:
        """Sort key of a span: its start, and then the later end, which is that of the outer span."""
        return self._start if span.started_ms is None else span.started_ms, -(span.ended_ms or 0.0)

    def _place(self, span: OtelSpan) -> None:
        """Find the root of a span, and its nearest ancestor that is about generative AI."""
        path: dict[str, OtelSpan] = {}
        at: OtelSpan | None = span
        while at is not None and at.id not in self._roots and at.id not in path:
            path[at.id] = at
            at = self._by_id.get(at.parent)
        if at is not None and at.id in path:
            self._problems.note("spans are each other's parents")
        for one in reversed(path.values()):
            above = self._by_id.get(one.parent)
            if above is None or above.id not in self._roots:
                self._roots[one.id], self._ancestors[one.id] = one, None
            else:
                self._roots[one.id] = self._roots[above.id]
                self._ancestors[one.id] = above if operation_of(above) else self._ancestors[above.id]

    def trace(self) -> Trace:
        """Build the trace."""
        for span in self._spans:
            operation = "" if span.id in self._repeated else operation_of(span)
            if operation in MODEL_CALLS:
                self._model_call(span)
            elif operation in TOOLS:
                self._tool_call(span)
            elif operation in AGENTS:
                self._agent(span)
        root = self._root()
        calls = [span for span in self._spans if operation_of(span) in MODEL_CALLS and self._parent(span) is None]
        reasons = calls[-1].attributes.get("gen_ai.response.finish_reasons") if calls else None  # of the main agent
        ended_by = string(reasons) or next((string(one) for one in reversed(items(reasons))), "")
        ended = [span.ended_ms for span in self._spans if span.ended_ms is not None]
        about = {**root.resource, **root.attributes}
        service = string(root.resource.get("service.name"))
        service = "" if service.startswith("unknown_service") else service  # OpenTelemetry's placeholder
        steps = [step for step in self._steps if step is not None]
        error = self._error()
        main = [step for step in steps if step.parent is None and isinstance(step, MessageStep | ToolCallStep)]
        if not error and main and isinstance(main[-1], MessageStep) and main[-1].role == "user":  # no model answered
            self._problems.note_unfinished("trace")
        return Trace(
            with_valid_parents(steps, self._problems),
            source="otlp",
            agent=_agent_name(root) or service or self._roots[root.id].name,
            agent_version=string(first(about, "gen_ai.agent.version", "service.version")),
            session_id=string(about.get("gen_ai.conversation.id")) or root.trace_id,
            stop_reason=string(about.get("agentv.stop_reason")) or ended_by,
            error=error,
            session_cost_usd=number(about.get("agentv.session_cost_usd")),
            duration_ms=round(max(ended) - self._start, 3) if ended else None,
            partial=str(self._problems),
            metadata={key: value for key, value in about.items() if key in _METADATA_KEYS},
        )

    def _root(self) -> OtelSpan:
        agents = [span for span in self._spans if operation_of(span) in AGENTS]
        named = (span for span in agents if _agent_name(span))
        outermost = (span for span in self._spans if span.parent not in self._by_id)
        return next(named, None) or next(iter(agents), None) or next(outermost, None) or self._spans[0]

    def _error(self) -> str:
        """The error that ended the session: of its last root span, or of the last agent that no other called."""
        working = [span for span in self._spans if operation_of(span)]
        agents = [span for span in working if operation_of(span) in AGENTS and self._caller(span) is None]
        ends = [*(self._roots[span.id] for span in working[-1:]), *agents[-1:]]
        return next((span.error for span in ends if span.error), "")

    def _repeated_spans(self) -> set[str]:
        """Ids of spans that repeat another one, since two instrumentations recorded the same call."""
        found: set[str] = set()
        seen: set[tuple[str, str]] = set()
        for span in self._spans:
            operation, above = operation_of(span), self._ancestors[span.id]
            if above is not None and {operation, operation_of(above)} <= MODEL_CALLS:
                found.add(above.id if _is_counted(span) and not _is_counted(above) else span.id)
            elif above is not None and {operation, operation_of(above)} <= TOOLS and _is_same(span, above):
                found.add(span.id)
            key = "gen_ai.tool.call.id" if operation in TOOLS else "gen_ai.response.id" if operation else ""
            identity = string(span.attributes.get(key))
            if identity and span.id not in found and (key, identity) in seen:
                found.add(span.id)
            elif identity and span.id not in found:
                seen.add((key, identity))
        return found

    def _parent(self, span: OtelSpan) -> str | None:
        """The id of the tool call or sub-agent that contains a span, or None."""
        passed: list[OtelSpan] = []
        at = self._ancestors[span.id]
        while at is not None and at.id not in self._containing_calls:
            passed.append(at)
            at = self._ancestors[at.id]
        found = None if at is None else self._containing_calls[at.id]
        for one in reversed(passed):
            operation = operation_of(one)
            if operation in TOOLS and one.id not in self._repeated:
                found = _call_id(one)
            elif operation in AGENTS and self._is_subagent(one):
                found = one.id
            self._containing_calls[one.id] = found
        return found

    def _caller(self, span: OtelSpan) -> OtelSpan | None:
        """The span of the agent or tool that contains a span, or None."""
        above = self._ancestors[span.id]
        while above is not None and operation_of(above) in MODEL_CALLS:
            above = self._ancestors[above.id]
        return above

    def _is_subagent(self, span: OtelSpan) -> bool:
        """Whether another agent called this one, and not through a tool. Two spans may describe the same agent."""
        above = self._caller(span)
        if above is None or operation_of(above) in TOOLS or span.attributes.get("traceloop.span.kind") == "workflow":
            return False
        own, other = _agent_name(span), _agent_name(above)
        return bool(own and other) and own != other

    def _times(self, span: OtelSpan) -> tuple[float | None, float | None]:
        """The start of a span, relative to the trace's, and its duration, both in milliseconds; None if unknown."""
        if span.started_ms is None:
            return None, None
        took = None if span.ended_ms is None else round(max(span.ended_ms - span.started_ms, 0.0), 3)
        return round(span.started_ms - self._start, 3), took

    def _agent(self, span: OtelSpan) -> None:
        self._add_prompt(span, _prompt_and_answer(span)[0])
        if not self._is_subagent(span):
            return
        started, took = self._times(span)
        name = _agent_name(span)
        ended: ToolStatus = "failed" if span.error else "completed"
        self._steps.append(
            ToolCallStep(
                "subagent",
                {"agent": name},
                name,
                span.id,
                error=span.error or None,
                status=ended,
                started_ms=started,
                duration_ms=took,
                parent=self._parent(span),
            )
        )

    def _model_call(self, span: OtelSpan) -> None:
        prompt, answer = _prompt_and_answer(span)
        self._add_prompt(span, prompt)
        started, took = self._times(span)
        about = span.attributes
        counts = {key: about.get(f"gen_ai.usage.{name}") for key, name in _COUNTS.items()}
        model = string(first(about, "gen_ai.response.model", "gen_ai.request.model")) or None
        cost = number(first(about, "gen_ai.usage.cost", "agentv.cost_usd"))
        parent = self._parent(span)
        if about.get("agentv.message_only") is not True:
            tokens, error = tokens_of(counts), span.error or None
            self._steps.append(UsageStep(model, tokens, cost, started, took, error, parent, _evidence(about)))
        for one in answer:
            self._add_answer(one, span, parent)

    def _add_prompt(self, span: OtelSpan, prompt: Sequence[ParsedMessage]) -> None:
        """Add the messages that a model was given, each once, since every call repeats the conversation."""
        parent = self._parent(span)
        started, _ = self._times(span)
        counted: Counter[tuple[str | None, str, str]] = Counter()
        for one in prompt:
            for result in one.results:
                place = self._places.get(result.call)
                step = None if place is None else self._steps[place]
                if place is not None and isinstance(step, ToolCallStep) and step.result is None and step.error is None:
                    self._steps[place] = with_result(step, result)
            if one.role in {"system", "user"}:
                key = (parent, one.role, one.text)
                counted[key] += 1
                if counted[key] > self._prompt_counts[key]:
                    self._prompt_counts[key] += 1
                    self._steps.append(MessageStep(one.role, one.text, None, started, parent))

    def _add_answer(self, one: ParsedMessage, span: OtelSpan, parent: str | None) -> None:
        started, took = self._times(span)
        at = None if started is None else round(started + (took or 0.0), 3)
        if one.text or one.reasoning:
            self._steps.append(MessageStep("assistant", one.text, one.reasoning or None, at, parent))
        for call in one.calls:
            if call.id and call.id in self._executed_ids:
                self._calls_by_id[call.id] = call  # its own span has more details
                continue
            if call.id and call.id in self._places:
                continue
            self._places[call.id or ""] = len(self._steps)
            self._calls_by_name.setdefault(call.native_name, []).append((len(self._steps), call))
            self._steps.append(replace(call, started_ms=at, parent=parent))

    def _tool_call(self, span: OtelSpan) -> None:
        about, identity = span.attributes, _call_id(span)
        native, arguments = string(about.get("gen_ai.tool.name")), _arguments(span)
        call = self._calls_by_id.get(identity) or self._take_call(native, arguments, exactly=identity != span.id)
        if call is not None and (identity == span.id or not arguments or arguments.keys() == {"input"}):
            arguments = call.arguments
        name, native = names_of_call(native, arguments)
        if call is not None and call.id:
            identity = call.id
            self._executed_ids.add(identity)
        started, took = self._times(span)
        self._places[identity] = len(self._steps)
        self._steps.append(
            ToolCallStep(
                name=name,
                arguments=arguments,
                native_name=native,
                id=identity,
                result=None if span.error else about.get("gen_ai.tool.call.result"),
                error=span.error or None,
                status="failed" if span.error else _STATUSES.get(string(about.get("agentv.status")), "completed"),
                started_ms=started,
                duration_ms=took,
                parent=self._parent(span),
                evidence=_evidence(about),
            )
        )

    def _take_call(self, name: str, arguments: JsonObject, *, exactly: bool) -> ToolCallStep | None:
        """Remove and return the requested call that a span without its id executed, or None.

        It is a call of the same tool, with the same arguments if there is one.

        Args:
            name: name of the tool.
            arguments: arguments in the span.
            exactly: whether arguments must be equal, as for a span with another id than the model's (Google's ADK).
        """
        named = self._calls_by_name.get(name) or []
        otherwise = None if exactly or not named else named[0]
        found = next((one for one in named if one[1].arguments == arguments), otherwise)
        if found is None:
            return None
        named.remove(found)
        self._steps[found[0]] = None
        return found[1]


_METADATA_KEYS = frozenset({"agentv.case.id", "agentv.run.id", "agentv.sample"})
_COUNTS: Mapping[str, str] = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read.input_tokens",
    "reasoning": "reasoning.output_tokens",
}
"""Key for `tokens_of` → name of the attribute without `gen_ai.usage.`."""

_STATUSES: Mapping[str, Any] = {one: one for one in ("completed", "denied", "cancelled", "unknown")}


def _evidence(about: JsonObject) -> Any:
    evidence = about.get("agentv.evidence")
    return evidence if evidence in ("gateway", "tools") else "agent"


def _agent_name(span: OtelSpan) -> str:
    return string(span.attributes.get("gen_ai.agent.name"))


def _call_id(span: OtelSpan) -> str:
    """The id of the call that a tool's span describes, else the id of the span."""
    return string(span.attributes.get("gen_ai.tool.call.id")) or span.id


def _arguments(span: OtelSpan) -> JsonObject:
    return mapping(span.attributes.get("gen_ai.tool.call.arguments"))


def _is_counted(span: OtelSpan) -> bool:
    """Whether the span of a model call reports its usage."""
    return span.attributes.get("gen_ai.usage.input_tokens") is not None


def _is_same(span: OtelSpan, above: OtelSpan) -> bool:
    """Whether a tool's span describes the same call as the tool's span above it."""
    if string(span.attributes.get("gen_ai.tool.call.id")) == _call_id(above):
        return True
    names = {one.attributes.get("gen_ai.tool.name") for one in (span, above)}
    return len(names) == 1 and _arguments(span) == _arguments(above)
