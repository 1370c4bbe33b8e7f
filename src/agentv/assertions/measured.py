"""The cost family: time, cost and tokens of a call (SPEC section 7.2). Missing data gives an errored grade."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from agentv.assertions.evidence import excerpt, listed, texts_in
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import TOLERANCE, Check, Grade, weighted_mean
from agentv.model.values.message import ToolCall
from agentv.model.values.response import canonical_reason
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import Alias, Between, Count, DeclaredAssertion, Doc, Fraction, Issue, Reads, Text, Texts

Amount: TypeAlias = Annotated[float, Between(0)]


_UNKNOWN = TokenUsage()


def _usage(context: AssertionContext) -> TokenUsage:
    return context.token_usage or _UNKNOWN


def _total(context: AssertionContext) -> int | None:
    usage = _usage(context)
    if usage.total is not None or usage.input is None or usage.output is None:
        return usage.total
    return usage.input + usage.output


def _number(value: float) -> str:
    return f"{value:.15g}"


def _milliseconds(value: float) -> str:
    return f"{value:.10g} ms"


def _dollars(value: float) -> str:
    return f"${value:.9f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measurement that an option can limit.

    Attributes:
        option: the option that sets the limit.
        what: name of the measurement in messages.
        read: returns the measured value, or None if it is unknown.
        show: formats a value.
        hint: how to make the target report it.
    """

    option: str
    what: str
    read: Callable[[AssertionContext], float | None]
    show: Callable[[float], str]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _Bounds(DeclaredAssertion):
    """Base class of the types that set upper limits."""

    reads: ClassVar[Reads] = "call"

    measures: ClassVar[tuple[Measure, ...]] = ()

    def label(self) -> str:
        """The limits. `threshold` is shown without a name, since the type's name says what it limits."""
        names = {measure.option: f"{measure.what} " for measure in self.measures} | {"threshold": ""}
        return ", ".join(f"{names[measure.option]}≤ {measure.show(most)}" for measure, most in self._bounds())

    def validate(self) -> Iterable[Issue]:
        """Report a missing limit."""
        if not any(True for _ in self._bounds()):
            names = ", ".join(measure.option for measure in self.measures)
            yield Issue((), f"no limit is set; give at least one of {names}", "missing-value")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare each measurement with its limit. All must be within limits; the score is the share that are."""
        checks: list[Check] = []
        for measure, most in self._bounds():
            found = measure.read(context)
            if found is None or not math.isfinite(found):
                if found is None and measure.what == "cost" and context.token_usage is not None:
                    why = "the target's model has no known price; set `price:` on the target"
                    return Grade.errored("no-data", f"the cost is not known: {why}")
                return _no_data(measure.what, measure.hint)
            text = f"{measure.what} at most {measure.show(most)}"
            checks.append(Check(text, found <= most, measure.show(found)))
        passed = all(check.passed for check in checks)
        share = weighted_mean((1.0, float(check.passed)) for check in checks)
        return Grade(share, passed, tuple(checks), has_own_threshold=True)

    def _bounds(self) -> Iterator[tuple[Measure, float]]:
        for measure in self.measures:
            most = getattr(self, measure.option)
            if most is not None:
                yield measure, most


@dataclass(frozen=True, slots=True)
class Latency(_Bounds):
    """The answer, or its first token, arrived within this many milliseconds."""

    threshold: Annotated[Amount | None, Doc("maximum latency of the answer, in milliseconds")] = None
    first_token_ms: Annotated[
        Amount | None, Doc("maximum time to the first token, in milliseconds; the target needs `stream: true`")
    ] = None

    short: ClassVar[str | None] = "threshold"
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("threshold", "duration", lambda context: context.duration_ms, _milliseconds),
        Measure(
            "first_token_ms",
            "time to first token",
            lambda context: context.time_to_first_token_ms,
            _milliseconds,
            "set 'stream: true' on a target that calls a model API",
        ),
    )


@dataclass(frozen=True, slots=True)
class Cost(_Bounds):
    """The answer cost at most this many US dollars."""

    threshold: Annotated[Amount, Alias(("budget",)), Doc("maximum cost of the answer, in US dollars")]

    short: ClassVar[str | None] = "threshold"
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("threshold", "cost", lambda context: context.cost_usd, _dollars),
    )


@dataclass(frozen=True, slots=True)
class TokenUsageWithin(_Bounds):
    """The answer used at most this many tokens, as counted by the provider."""

    max_total: Annotated[Count | None, Alias(("maxTotal",)), Doc("maximum number of tokens, prompt and answer")] = None
    max_input: Annotated[Count | None, Alias(("maxInput",)), Doc("maximum number of prompt tokens")] = None
    max_output: Annotated[Count | None, Alias(("maxOutput",)), Doc("maximum number of answer tokens")] = None

    short: ClassVar[str | None] = "max_total"
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("max_total", "total tokens", _total, _number),
        Measure("max_input", "input tokens", lambda context: _usage(context).input, _number),
        Measure("max_output", "output tokens", lambda context: _usage(context).output, _number),
    )


@dataclass(frozen=True, slots=True)
class ExecutionMetrics(_Bounds):
    """The agent stayed within limits: calls, tokens, money and time."""

    max_tool_calls: Annotated[
        Count | None, Alias(("maxToolCalls",)), Doc("maximum number of tool calls in the transcript")
    ] = None
    max_llm_calls: Annotated[
        Count | None, Alias(("maxLlmCalls",)), Doc("maximum number of model turns in the transcript")
    ] = None
    max_tokens: Annotated[Count | None, Alias(("maxTokens",)), Doc("maximum number of tokens, prompt and answer")] = (
        None
    )
    max_cost_usd: Annotated[Amount | None, Alias(("maxCostUsd",)), Doc("US dollars")] = None
    max_duration_ms: Annotated[Amount | None, Alias(("maxDurationMs",)), Doc("milliseconds")] = None
    target_exploration_ratio: Annotated[
        Fraction | None,
        Alias(("targetExplorationRatio",)),
        Doc("share of the tool calls that read, list or search, such as Read, Grep, Glob, WebSearch and WebFetch"),
    ] = None
    exploration_tolerance: Annotated[
        Fraction | None,
        Alias(("explorationTolerance",)),
        Doc("how far the share may be from target_exploration_ratio, 0.2"),
    ] = None

    short: ClassVar[str | None] = None
    # a target that reports no transcript may still have called tools, so the number of its calls is unknown
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure(
            "max_tool_calls",
            "tool calls",
            lambda context: None if context.tool_calls is None else len(context.tool_calls),
            _number,
        ),
        Measure(
            "max_llm_calls",
            "model calls",
            lambda context: None if context.tool_calls is None else context.trace_summary.llm_call_count,
            _number,
        ),
        Measure("max_tokens", "tokens", _total, _number),
        Measure("max_cost_usd", "cost", lambda context: context.cost_usd, _dollars),
        Measure("max_duration_ms", "duration", lambda context: context.duration_ms, _milliseconds),
    )

    def label(self) -> str:
        """The limits, and the expected share of exploring calls."""
        ratio = self.target_exploration_ratio
        exploration = [] if ratio is None else [f"exploration ratio {ratio:g} ± {self._tolerance:g}"]
        return ", ".join([*([limits] if (limits := _Bounds.label(self)) else []), *exploration])

    def validate(self) -> Iterable[Issue]:
        """Report a missing limit, and a tolerance so wide that every share passes."""
        ratio = self.target_exploration_ratio
        if ratio is None:
            yield from _Bounds.validate(self)
            if self.exploration_tolerance is not None:
                message = "'exploration_tolerance' requires 'target_exploration_ratio'"
                yield Issue(("exploration_tolerance",), message)
        elif max(ratio, 1 - ratio) <= self._tolerance:
            message = f"every share is within {self._tolerance:g} of {ratio:g}, so this checks nothing"
            yield Issue(("target_exploration_ratio",), message)

    def grade(self, context: AssertionContext) -> Grade:
        """Compare each measurement with its limit, and the share of exploring calls with its target."""
        ratio = self.target_exploration_ratio
        limits = _Bounds.grade(self, context) if ratio is None or any(True for _ in self._bounds()) else None
        if ratio is None or (limits is not None and limits.error is not None):
            return limits or _no_data("tool calls")
        if context.tool_calls is None:
            return _no_data("tool calls")
        text, calls = f"exploration ratio {ratio:g} ± {self._tolerance:g}", context.tool_calls
        if calls:
            found = sum(map(_explores, calls)) / len(calls)
            exploration = Check(text, abs(found - ratio) <= self._tolerance + TOLERANCE, f"{found:.2f}")
        else:
            exploration = Check(text, False, "no tool was called")
        checks = (*(limits.checks if limits else ()), exploration)
        share = weighted_mean((1.0, float(check.passed)) for check in checks)
        return Grade(share, all(check.passed for check in checks), checks, has_own_threshold=True)

    @property
    def _tolerance(self) -> float:
        return 0.2 if self.exploration_tolerance is None else self.exploration_tolerance


_EXPLORING = frozenset(["read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"])
"""Read-only tools. Source: AgentV, `execution-metrics`."""

_EXPLORING_CANONICAL = frozenset(["find", "fetch", "web_search"])
"""Canonical names of further read-only tools."""


def _explores(call: ToolCall) -> bool:
    if call.native_name is None:
        return call.name in _EXPLORING
    return call.name in _EXPLORING or call.native_name in _EXPLORING or call.name in _EXPLORING_CANONICAL


@dataclass(frozen=True, slots=True)
class FinishReason(DeclaredAssertion):
    """The model stopped for this reason, or for one of these: stop, length, tool_calls, content_filter."""

    reads: ClassVar[Reads] = "call"

    value: Annotated[Text | Texts, Doc("one or more finish reasons, in OpenAI's terms or the provider's")]

    def label(self) -> str:
        """The reasons."""
        return listed(texts_in(self.value))

    def validate(self) -> Iterable[Issue]:
        """Report an empty reason."""
        if not all(reason.strip() for reason in texts_in(self.value)):
            yield Issue(("value",), "the reason is empty", "missing-value")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare with the reason that the provider reports, both translated to canonical terms."""
        found = context.finish_reason
        if found is None:
            return _no_data("finish reason")
        reasons = texts_in(self.value)
        passed = canonical_reason(found) in map(canonical_reason, reasons)
        return Grade.of(passed, f"stopped for {listed(reasons)}", excerpt(found))


def _no_data(what: str, hint: str = "") -> Grade:
    return Grade.errored("no-data", f"the target does not report its {what}{'; ' if hint else ''}{hint}")
