"""The context of an assertion (SPEC section 8, "Context"), and the interfaces of grading that take it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

from msgspec import convert, field
from msgspec.structs import replace

from agentv.model.run.grade import Grade
from agentv.model.run.rubric import Choice, Rubric, Verdict
from agentv.model.run.trial import Score
from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.values.message import (
    Message,
    ToolCall,
    attached_files,
    messages_from_json,
    prompt_text,
    reference_text,
)
from agentv.model.values.response import STRUCTURED, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText, context_json, context_texts, read_context
from agentv.model.values.trace import Trace, WorkspaceChanges
from agentv.model.values.trace_summary import (
    PARTIAL,
    Spent,
    TraceSummary,
    events_of_messages,
    events_of_trace,
    provenance_of,
    summary_of_messages,
    summary_of_trace,
    usage_json,
)
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, Json, JsonObject, PartlyShown
from agentv.ports import Embedder, Executor, JavaScriptHost, JudgeWorkspace, Workspace


class AssertionContext(PartlyShown, frozen=True, dict=True):
    """One answer and everything known about it: the argument of every assertion.

    Attributes:
        input: the messages that were sent to the target.
        output: the final answer as text, or None.
        messages: the transcript of the target; its last message is the answer.
        expected_output: the reference answer as messages; empty if the case has none.
        criteria: description of a correct answer.
        config: keys of the entry that its type does not declare (custom assertions, scripts).
        token_usage, cost_usd, duration_ms, time_to_first_token_ms: usage of the target's call; None if unknown.
        context: the texts that the target retrieved, in its order.
        response_metadata: other data in the target's reply.
        workspace_path: directory in which an agent worked; None for all other targets.
        workspace: where graders' commands run; None if the case has no workspace.
        judge_workspace: the copy of the workspace for an agent that judges; None if the judge only gets texts.
        changes: the agent's changes to the workspace.
        agent_trace: the trace of the agent; `trace` is its JSON object.
        tool_state: scripted MCP server → state kept by its functions.
        solution_state: that state after the calls of the case's solution; empty if no assertion compares with it.
        has_transcript: whether the target reported `messages` itself. If not, they hold only its answer, and its
            earlier actions are unknown.
        services: judges, threads and similar services, for assertions that make calls or run code.
        answered: the target's answer before the entry's `transform`; None without a transform.
        results: for the aggregator of an assert-set: name of each assertion in the set → its grade.
        value: result of the transform, if it is not text; `output` is then its JSON.
        target: name of the target.
        allow_empty: whether an empty answer is valid, so that a `transform` may also return an empty text.

    User code can also read it as a mapping with promptfoo's names: `context["vars"]`, `context["providerResponse"]`.
    In a worker, changes to `vars` and other objects are only visible within the same call.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"env", "_services"})

    input: tuple[Message, ...]
    output: str | None
    messages: tuple[Message, ...] = ()
    expected_output: tuple[Message, ...] = ()
    criteria: str | None = None
    metadata: JsonObject = field(default=EMPTY)
    vars: JsonObject = field(default=EMPTY)
    config: JsonObject = field(default=EMPTY)
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    finish_reason: str | None = None
    workspace_path: str | None = None
    workspace: Workspace | None = None
    changes: WorkspaceChanges | None = None
    agent_trace: Trace | None = None
    tool_state: JsonObject = field(default=EMPTY)
    solution_state: JsonObject = field(default=EMPTY)
    case_id: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    threshold: float = 0.8
    response_metadata: JsonObject = field(default=EMPTY)
    has_transcript: bool = True
    answered: str | None = None
    results: JsonObject = field(default=EMPTY)
    value: Json = None
    target: str = ""
    allow_empty: bool = False
    context: tuple[RetrievedText, ...] = ()
    time_to_first_token_ms: float | None = None
    judge_workspace: JudgeWorkspace | None = None
    _services: Services | None = None

    @property
    def services(self) -> Services:
        """The services of the run that grades this answer.

        Raises:
            RuntimeError: the context was created without a run.
        """
        if self._services is None:
            raise RuntimeError("this context belongs to no run, so it cannot call anything")
        return self._services

    @cached_property
    def keys_of_promptfoo(self) -> dict[str, Any]:
        """All values by key: those of promptfoo's context, and those of `payload`."""
        return {**self.payload, **promptfoo_context(self)}

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key of promptfoo's context or of `payload`.

        Raises:
            KeyError: there is no such key; a note on the exception suggests the closest one.
        """
        __tracebackhide__ = True
        known = self.keys_of_promptfoo
        if key in known:
            return known[key]
        from difflib import get_close_matches

        error = KeyError(key)
        for found in get_close_matches(str(key), known, 1):
            error.add_note(f"did you mean '{found}'?")
        raise error

    def __contains__(self, key: object) -> bool:
        """Whether there is a value with this key."""
        return key in self.keys_of_promptfoo

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys of the values."""
        return iter(self.keys_of_promptfoo)

    def keys(self) -> Iterable[str]:
        """Return the keys of the values, for `dict(context)`."""
        return self.keys_of_promptfoo.keys()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key or the default, like `dict.get`."""
        return self.keys_of_promptfoo.get(key, default)

    @cached_property
    def graded_value(self) -> Json:
        """The graded value: the output as text, or the structured value if `output` is its JSON."""
        if self.value is not None:
            return self.value
        if self.answered is None and self.response_metadata.get(STRUCTURED) and self.output is not None:
            found: Json = json.loads(self.output)
            return found
        return self.output

    @cached_property
    def input_files(self) -> tuple[str, ...]:
        """Paths of the files attached to the input."""
        return tuple(attached_files(self.input))

    @cached_property
    def prompt(self) -> str:
        """The input as one text."""
        return prompt_text(self.input)

    @cached_property
    def reference(self) -> str | None:
        """The reference answer as one text; None if the case has none."""
        return reference_text(self.expected_output) if self.expected_output else None

    @cached_property
    def retrieved(self) -> tuple[str, ...]:
        """The retrieved texts: those in the variable `context`, or else those of the reply."""
        return context_texts(self.vars.get("context")) or tuple(one.text for one in self.context if one.text.strip())

    @cached_property
    def tool_calls(self) -> tuple[ToolCall, ...] | None:
        """The tool calls in the transcript, in order; None if some may be missing.

        That is the case without a transcript, or if the agent's trace is partial.
        """
        if not self.messages or not self.has_transcript or self.partial:
            return None
        return tuple(call for message in self.messages for call in message.tool_calls)

    @property
    def partial(self) -> str:
        """Why the agent's trace is partial; empty if it is complete."""
        found = self.response_metadata.get(PARTIAL) if self.agent_trace is None else self.agent_trace.partial
        return found if isinstance(found, str) else ""

    @cached_property
    def trace_summary(self) -> TraceSummary:
        """Counts for the agent's trace, or for `messages` if there is no trace."""
        spent = Spent(self.token_usage, self.cost_usd, self.duration_ms)
        if self.agent_trace is None:
            return summary_of_messages(self.messages, spent)
        return summary_of_trace(self.agent_trace, spent)

    @cached_property
    def trace(self) -> dict[str, Json]:
        """The execution trace as a JSON object: `messages`, `events`, `metrics`, `provenance`."""
        trace = self.agent_trace
        events = events_of_messages(self.messages) if trace is None else events_of_trace(trace)
        provenance = {} if trace is None else provenance_of(trace)
        return {
            "messages": [message.as_json() for message in self.messages],
            "events": events,
            "metrics": self.trace_summary.as_json(),
            "provenance": {"case_id": self.case_id, "finish_reason": self.finish_reason, **provenance},
        }

    @cached_property
    def payload(self) -> dict[str, Json]:
        """The JSON object that scripts and JavaScript assertions get, with snake_case keys (SPEC section 8)."""
        return {
            "input": [message.as_json() for message in self.input],
            "output": self.output,
            "messages": [message.as_json() for message in self.messages],
            "expected_output": [message.as_json() for message in self.expected_output],
            "criteria": self.criteria,
            "metadata": self.metadata,
            "context": context_json(self.context),
            "response_metadata": self.response_metadata,
            "vars": self.vars,
            "config": self.config,
            "input_files": list(self.input_files),
            "trace": self.trace,
            "trace_summary": self.trace_summary.as_json(),
            "token_usage": usage_json(self.token_usage),
            "cost_usd": self.cost_usd,
            "duration_ms": self.duration_ms,
            "time_to_first_token_ms": self.time_to_first_token_ms,
            "workspace_path": self.workspace_path,
            **({"results": self.results} if self.results else {}),
        }


def promptfoo_context(context: AssertionContext) -> dict[str, Any]:
    """Return promptfoo's AssertionValueContext. Its `metadata` is the target's, overridden by the case's."""
    usage = context.token_usage
    counts = (
        None
        if usage is None
        else {"total": usage.total, "prompt": usage.input, "completion": usage.output, "cached": usage.cached}
    )
    return {
        "prompt": context.prompt,
        "vars": context.vars,
        "config": context.config,
        "test": {"vars": context.vars, "metadata": context.metadata, "description": context.case_id},
        "metadata": {**context.response_metadata, **context.metadata},
        "provider": {"id": context.target, "label": context.target},
        "providerResponse": {
            "output": context.graded_value,
            "tokenUsage": counts,
            "cost": context.cost_usd,
            "latencyMs": context.duration_ms,
            "finishReason": context.finish_reason,
            "metadata": context.response_metadata,
            "context": context_json(context.context),
        },
    }


class Assertion(Protocol):
    """The frozen options of an assertion type, which also grade answers. Stateless."""

    def label(self) -> str:
        """Return a short description of what the entry checks; it is part of the default name."""

    def grade(self, context: AssertionContext) -> Grade | Awaitable[Grade]:
        """Grade one answer. An assertion that cannot grade returns `Grade.errored`."""


class ComparingAssertion(Protocol):
    """An assertion that compares several answers to one case (`compares`)."""

    async def choose(self, contexts: Sequence[AssertionContext]) -> Sequence[Grade]:
        """Return the grade of each answer, in order."""


class Judge(Protocol):
    """A model that grades rubrics."""

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        """Call the judge for one answer and parse its verdict."""

    async def choose(self, criteria: str, contexts: Sequence[AssertionContext]) -> Choice | Failure:
        """Choose the best of several answers by the criteria; calls the judge twice, in opposite orders."""

    async def ask(self, prompt: str) -> TargetResponse | Failure:
        """Send a prompt unchanged, and return the model's answer, whose `output` is never empty."""


class Services(Protocol):
    """Services of a run for assertions that make calls or start processes."""

    @property
    def executor(self) -> Executor:
        """Threads and an event loop for user code."""

    @property
    def javascript(self) -> JavaScriptHost:
        """The JavaScript runtime, started when first used."""

    def judge(self, name: str | None) -> Judge:
        """Return the judge with this name, or the trial's own for None."""

    def embedder(self, name: str | None) -> Embedder:
        """Return the embedder with this name, or the trial's own for None."""

    async def grade(self, entries: Sequence[AssertionEntry], context: AssertionContext) -> tuple[Score, ...]:
        """Grade a nested list of assertions by the same rules as the outermost one."""

    async def evaluate(self, transform: Transform, context: AssertionContext) -> Json | Failure:
        """Return the value of a transform for the answer."""


T = TypeVar("T")

_EXTRA_KEYS = (
    *("case_id", "threshold", "finish_reason", "answered", "value", "target"),
    *("has_transcript", "tool_state", "allow_empty"),
)
"""Attributes that a worker gets in addition to the keys of SPEC section 8."""


def wire_of_context(context: AssertionContext, config: JsonObject | None = None) -> dict[str, Json]:
    """Return a JSON object from which a worker rebuilds the context.

    Args:
        context: the context of an answer.
        config: the assertion's configuration; None for that of the context.
    """
    wire = {**context.payload, **{name: getattr(context, name) for name in _EXTRA_KEYS}}
    if config is not None:
        wire["config"] = config
    if context.partial:
        wire["response_metadata"] = {**context.response_metadata, PARTIAL: context.partial}
    return wire


def context_from_wire(wire: JsonObject, services: Any, env: Mapping[str, str]) -> AssertionContext:
    """Return the context in a worker, with the worker's services and environment."""
    extra: dict[str, Any] = {name: wire[name] for name in _EXTRA_KEYS}
    context = replace(context_from_json(wire), env=env, _services=services, **extra)
    vars(context).update(trace=wire["trace"], trace_summary=_summary(wire["trace_summary"]))  # type: ignore[arg-type]  # of `wire_of_context`
    return context


_TYPE_NAMES: Mapping[type, str] = {str: "text", Mapping: "an object", list: "a list"}


def context_from_json(payload: JsonObject) -> AssertionContext:
    """Return the context from a JSON object (SPEC section 8, "Context"). Missing values are None or empty.

    Raises:
        ValueError: a key has the wrong type; the message names it.
    """
    context = AssertionContext(
        input=_messages(payload, "input", "user"),
        output=_read(payload, "output", str),
        messages=_messages(payload, "messages", "assistant"),
        expected_output=_messages(payload, "expected_output", "assistant"),
        criteria=_read(payload, "criteria", str),
        metadata=_read(payload, "metadata", Mapping) or {},
        vars=_read(payload, "vars", Mapping) or {},
        config=_read(payload, "config", Mapping) or {},
        token_usage=_convert_optional(TokenUsage.from_json, _read(payload, "token_usage", Mapping)),
        cost_usd=_number(payload, "cost_usd"),
        duration_ms=_number(payload, "duration_ms"),
        time_to_first_token_ms=_number(payload, "time_to_first_token_ms"),
        workspace_path=_read(payload, "workspace_path", str),
        context=read_context(payload.get("context")),
        response_metadata=_read(payload, "response_metadata", Mapping) or {},
    )
    # these are computed from the messages unless the payload has them
    values = {
        "input_files": _convert_optional(tuple, _read(payload, "input_files", list)),
        "trace": _convert_optional(dict, _read(payload, "trace", Mapping)),
        "trace_summary": _convert_optional(_summary, _read(payload, "trace_summary", Mapping)),
    }
    vars(context).update({name: value for name, value in values.items() if value})
    return context


def _read(payload: JsonObject, key: str, cls: type) -> Any:
    value = payload.get(key)
    if value is not None and not isinstance(value, cls):
        wanted = _TYPE_NAMES[cls]
        raise ValueError(f"'{key}' must be {wanted}, found {type(value).__name__}")
    return value


def _number(payload: JsonObject, key: str) -> float | None:
    value = payload.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ValueError(f"'{key}' must be a number, found {type(value).__name__}")


def _messages(payload: JsonObject, key: str, role: str) -> tuple[Message, ...]:
    value = payload.get(key)
    if value is None:
        return ()
    rows: Sequence[Json] = value if isinstance(value, list) else [value]
    return messages_from_json([row if isinstance(row, Mapping) else {"role": role, "content": row} for row in rows])


def _summary(row: Mapping[str, Json]) -> TraceSummary:
    usage = _convert_optional(TokenUsage.from_json, _read(row, "token_usage", Mapping))
    known = {name: value for name, value in row.items() if value is not None and name != "token_usage"}
    return replace(convert(known, TraceSummary), token_usage=usage)


def _convert_optional(make: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else make(value)
