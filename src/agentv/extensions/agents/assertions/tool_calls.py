"""AgentV's assertion types on tool calls, numbers of steps, and the state of scripted tools (SPEC section 7.2).

`tool-trajectory`, `tool-call-f1`, `tool-errors`, `permission-denials`, `turns`, `tool-state`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from typing import Annotated, ClassVar, Literal

from agentv.assertions.comparing import differences, first_differences, same, shown
from agentv.assertions.evidence import excerpt, listed, quoted
from agentv.extensions.agents.assertions.calls import call_names, in_any_order, in_order, is_tool, no_calls, share_of
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import PLACES, Check, Grade, reaches
from agentv.model.values.formatting import plural
from agentv.model.values.json_path import Missing, parse, read
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.trace import Trace
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.registry.fields import (
    Alias,
    Between,
    Count,
    Declared,
    DeclaredAssertion,
    Doc,
    FileTexts,
    Fraction,
    Issue,
    LoadedJson,
    Nonempty,
    Reads,
    Text,
    Texts,
)

Mode = Literal["any_order", "in_order", "exact", "subset", "superset"]
ArgsMatch = Literal["exact", "superset", "subset", "ignore"]
_ANY = "any"
_MAY_BE_EMPTY: tuple[Mode, ...] = ("exact", "subset")
"""Modes in which an empty list is meaningful: no tool may be called."""


@dataclass(frozen=True, slots=True)
class ExpectedCall(Declared):
    """One expected call."""

    tool: Annotated[Text, Nonempty(), Doc("the tool's name")]
    args: Annotated[Json, Alias(("input",)), Doc("its arguments; `any` or omitted: not compared")] = None
    args_match: Annotated[
        ArgsMatch | Texts | None, Alias(("argsMatch",)), Doc("as the assertion's own args_match, for this call only")
    ] = None
    output: Annotated[Json, Doc("its output: a text, or JSON that the output must contain; omitted: not compared")] = (
        None
    )
    max_duration_ms: Annotated[
        float | None, Between(0), Alias(("maxDurationMs",)), Doc("maximum duration of the call, in milliseconds")
    ] = None

    short: ClassVar[str | None] = "tool"

    def validate(self) -> Iterable[Issue]:
        """Report invalid arguments and fields."""
        if self.args is not None and self.args != _ANY and not isinstance(self.args, Mapping):
            yield Issue(("args",), "'args' must be 'any' or a mapping of arguments")
        if self.output is not None and not self.output and not isinstance(self.output, bool | int | float):
            yield Issue(("output",), "the output is empty, so every output has it", "missing-value")
        yield from _args_issues(self.args_match, [self.args] if isinstance(self.args, Mapping) else [])

    def is_met_by(self, call: ToolCall, args_match: ArgsMatch | tuple[str, ...]) -> bool:
        """Whether a call is the expected one; `args_match` applies unless this expectation has its own."""
        if not is_tool(self.tool, call):
            return False
        if self.args is None or not isinstance(self.args, Mapping):
            return True
        how = args_match if self.args_match is None else self.args_match
        if isinstance(how, tuple):
            return all(_same_at(path, self.args, call.arguments) for path in how)
        return _COMPARISONS[how](self.args, call.arguments)

    def __str__(self) -> str:
        """The text for checks: the tool and the names of its arguments."""
        if not isinstance(self.args, Mapping) or not self.args:
            return quoted(self.tool)
        return f"{quoted(self.tool)} with {listed(tuple(self.args))}"


def _args_issues(how: ArgsMatch | tuple[str, ...] | None, expected: Sequence[JsonObject]) -> Iterator[Issue]:
    """Report argument paths that are invalid, or that no expected call has, since these would always pass."""
    for place, path in enumerate(how if isinstance(how, tuple) else ()):
        try:
            steps = parse(path)
        except ValueError as error:
            yield Issue(("args_match", place), str(error), "bad-path")
            continue
        if expected and all(isinstance(read(steps, args), Missing) for args in expected):
            known = listed(tuple(dict.fromkeys(name for args in expected for name in args)))
            yield Issue(("args_match", place), f"no expected call has an argument '{path}'; known arguments: {known}")


@dataclass(frozen=True, slots=True)
class ToolTrajectory(DeclaredAssertion):
    """The agent called these tools: this often, in this order, exactly these, only these, or these among others."""

    mode: Annotated[
        Mode,
        Doc(
            "any_order: all of them, in any order; in_order: all of them, in this order; exact: exactly these; "
            "subset: only these; superset: as any_order"
        ),
    ]
    minimums: Annotated[
        Mapping[str, Annotated[int, Between(1)]] | None, Nonempty(), Doc("any_order: tool → minimum number of calls")
    ] = None
    expected: Annotated[tuple[ExpectedCall, ...] | None, Doc("the calls; each needs at least its tool")] = None
    args_match: Annotated[
        ArgsMatch | Texts,
        Alias(("argsMatch",)),
        Doc(
            "how 'args' are compared: exact; superset: the call may have more; subset: it may have fewer; "
            "ignore; or a list of the arguments that must match"
        ),
    ] = "exact"

    short: ClassVar[str | None] = None

    def label(self) -> str:
        """The mode and the first tools."""
        tools = (*(self.minimums or ()), *(one.tool for one in self.expected or ()))
        return f"{self.mode} {listed(tools)}" if tools else f"{self.mode}, no tool"

    def validate(self) -> Iterable[Issue]:
        """Report options of another mode, missing or empty expectations, and invalid argument paths."""
        if self.minimums is not None and self.mode != "any_order":
            yield Issue(("minimums",), f"'minimums' requires mode: any_order, found mode: {self.mode}")
        if self.minimums is None and self.expected is None:
            wanted = "'minimums' or 'expected'" if self.mode == "any_order" else "'expected'"
            yield Issue((), f"mode: {self.mode} needs {wanted}", "missing-value")
        if self.expected is not None and not self.expected and self.mode not in _MAY_BE_EMPTY:
            yield Issue(("expected",), f"no call is expected, so mode: {self.mode} checks nothing", "missing-value")
        args = [one.args for one in self.expected or () if one.args_match is None and isinstance(one.args, Mapping)]
        yield from _args_issues(self.args_match, args)

    def grade(self, context: AssertionContext) -> Grade:
        """Grade with checks per call; the score is the share that pass. Unknown outputs and durations are errors."""
        calls = context.tool_calls
        if calls is None:
            return no_calls(context)
        if self.mode == "subset":
            return share_of(self._check_allowed(calls))
        checks = []
        for tool, least in (self.minimums or {}).items():
            number = sum(is_tool(tool, call) for call in calls)
            passed, evidence = number >= least, f"called {_times(number)}"
            checks.append(Check(f"calls {quoted(tool)} {_times(least)} or more", passed, evidence))
        found = self._matches(calls)
        for expected, place in zip(self.expected or (), found, strict=True):
            checks.append(_found_check(expected, place, calls))
            if place is None:
                continue
            for check in (_output_check(expected, calls[place], context), _duration_check(expected, calls[place])):
                if isinstance(check, Grade):
                    return check
                checks += [check] if check is not None else []
        return self._grade_exact(checks, calls) if self.mode == "exact" else share_of(checks)

    def _grade_exact(self, checks: list[Check], calls: Sequence[ToolCall]) -> Grade:
        """The grade for `mode: exact`. A superfluous call counts as much as a missing one."""
        expected = len(self.expected or ())
        right, wanted = sum(check.passed for check in checks), len(checks) + max(0, len(calls) - expected)
        number = Check(f"makes {plural(expected, 'call')}", len(calls) == expected, call_names(calls))
        passed = number.passed and right == len(checks)
        return Grade(round(right / wanted, PLACES) if wanted else 1.0, passed, (*checks, number))

    def _matches(self, calls: Sequence[ToolCall]) -> list[int | None]:
        """For each expected call, the index of its match, or None."""
        fitting = [[one.is_met_by(call, self.args_match) for call in calls] for one in self.expected or ()]
        if self.mode == "exact":
            return [place if place < len(calls) and row[place] else None for place, row in enumerate(fitting)]
        return in_order(fitting) if self.mode == "in_order" else in_any_order(fitting)

    def _check_allowed(self, calls: Sequence[ToolCall]) -> list[Check]:
        """Check that each call is an allowed one. These may be made any number of times."""
        allowed = self.expected or ()
        checks = []
        for place, call in enumerate(calls, 1):
            is_allowed = any(one.is_met_by(call, self.args_match) for one in allowed)
            checks.append(Check(f"call {place} is allowed", is_allowed, _shown(call)))
        return checks or [Check("every call is allowed", True, call_names(calls))]


@dataclass(frozen=True, slots=True)
class ToolCallF1(DeclaredAssertion):
    """The agent called the right tools and no others: the F1 of precision and recall over their names."""

    value: Annotated[
        FileTexts | Annotated[Text, Nonempty()],
        Doc("the tools to call, as a list or separated by commas; order and number of calls are ignored"),
    ]
    threshold: Annotated[Fraction, Doc("minimum F1 to pass")] = 1.0

    def label(self) -> str:
        """The first tools."""
        return listed(self._wanted)

    def validate(self) -> Iterable[Issue]:
        """Report a threshold that every answer reaches, and an empty list of names."""
        if self.threshold == 0:
            hint = "weight: 0 reports the score without counting it"
            yield Issue(("threshold",), "every answer scores at least 0, so this checks nothing", hint=hint)
        if not self._wanted:
            yield Issue(("value",), "no tool is named", "missing-value")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the two sets of names. C. J. van Rijsbergen, Information Retrieval, 1979."""
        if context.tool_calls is None:
            return no_calls(context)
        wanted = dict.fromkeys(self._wanted)
        made = {next((name for name in wanted if is_tool(name, call)), call.name) for call in context.tool_calls}
        score = round(2 * len(made & wanted.keys()) / (len(made) + len(wanted)), PLACES)
        passed = reaches(score, self.threshold)
        evidence = f"F1 {score:.4g}, threshold {self.threshold:g}; {call_names(context.tool_calls)}"
        check = Check(f"calls {listed(self._wanted)} and no other tool", passed, excerpt(evidence))
        return Grade(score, passed, (check,), has_own_threshold=True, needs=self.threshold)

    @property
    def _wanted(self) -> tuple[str, ...]:
        names = self.value.split(",") if isinstance(self.value, str) else self.value
        return tuple(name.strip() for name in names if name.strip())


def _same_at(path: str, expected: JsonObject, found: JsonObject) -> bool:
    one, other = read(_path(path), expected), read(_path(path), found)
    if isinstance(one, Missing):
        return True  # nothing is expected there
    return not isinstance(other, Missing) and same(one, other)


def _among(few: JsonObject, many: JsonObject) -> bool:
    return all(key in many and same(value, many[key]) for key, value in few.items())


_COMPARISONS: Mapping[ArgsMatch, Callable[[JsonObject, JsonObject], bool]] = {
    "exact": same,
    "superset": _among,
    "subset": lambda expected, found: _among(found, expected),
    "ignore": lambda _expected, _found: True,
}

_path = lru_cache(maxsize=1024)(parse)


def _found_check(expected: ExpectedCall, place: int | None, calls: Sequence[ToolCall]) -> Check:
    if place is not None:
        return Check(f"calls {expected}", True, f"call {place + 1}: {_shown(calls[place])}")
    others = [call for call in calls if is_tool(expected.tool, call)]
    if others and isinstance(expected.args, Mapping):
        return Check(f"calls {expected}", False, excerpt(f"found {_shown(others[0])}"))
    return Check(f"calls {expected}", False, call_names(calls))


def _duration_check(expected: ExpectedCall, call: ToolCall) -> Check | Grade | None:
    limit = expected.max_duration_ms
    if limit is None:
        return None
    if call.duration_ms is None:
        return Grade.errored("no-data", f"the target does not report how long {quoted(expected.tool)} took")
    text = f"{quoted(expected.tool)} takes at most {limit:.10g} ms"
    return Check(text, call.duration_ms <= limit, f"{call.duration_ms:.10g} ms")


def _output_check(expected: ExpectedCall, call: ToolCall, context: AssertionContext) -> Check | Grade | None:
    if expected.output is None:
        return None
    output = _output_of(call, context.messages)
    if output is None:
        return Grade.errored("no-data", f"the target does not report what {quoted(expected.tool)} returned")
    text = f"{quoted(expected.tool)} returns the expected output"
    if isinstance(expected.output, str):
        return Check(text, expected.output.strip() == output.strip(), excerpt(output))
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return Check(text, False, excerpt(f"found no JSON: {output}"))
    wrong = next(differences(expected.output, found, subset=True), None)
    return Check(text, wrong is None, excerpt(wrong or output))


def _output_of(call: ToolCall, messages: Sequence[Message]) -> str | None:
    """Return the output of a tool, from the call or the message that answers it, or None if it is unknown.

    The `tool` messages that follow a message answer its calls in order.
    """
    if call.output is not None:
        return call.output
    for at, message in enumerate(messages):
        places = [place for place, one in enumerate(message.tool_calls) if one is call]
        if places:
            answers = list(takewhile(lambda one: one.role == "tool", messages[at + 1 :]))
            return answers[places[0]].text if len(answers) == len(message.tool_calls) else None
    return None


def _shown(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}: {value!r}" for name, value in call.arguments.items())
    return excerpt(f"{call.name}({excerpt(arguments, 120)})", 180)


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


_NO_TRACE = Grade.errored("no-data", "the target reports no trace, so it is not known what the agent did")
_OUR_TOOLS = "the target reports nothing, and only its calls of scripted tools are seen"
_FAILED = ("failed", "denied")
_SHOWN = 5


class _Counted(DeclaredAssertion):
    """Base class of the types that count steps of the trace."""

    __slots__ = ()

    max: int

    def label(self) -> str:
        """The maximum."""
        return f"≤ {self.max}"

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the number of steps with the maximum."""
        trace = context.agent_trace
        if trace is None:
            return _NO_TRACE
        what, number, found = self._counted(trace)
        missing = trace.partial or (_OUR_TOOLS if trace.source == "tools" else "")
        if missing and number <= self.max:
            return Grade.errored("no-data", f"the trace is partial, so there may be more: {missing}")
        names = Counter(found)
        evidence = ", ".join(f"{name} {times}×" if times > 1 else name for name, times in names.most_common(_SHOWN))
        evidence = f"{plural(number, what)}: {evidence}" if names else plural(number, what)
        return Grade.of(number <= self.max, f"at most {plural(self.max, what)}", excerpt(evidence))

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        """The singular noun for what is counted, its number, and the names of those that have one."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ToolErrors(_Counted):
    """No more calls of tools failed than allowed."""

    max: Annotated[Count, Doc("maximum number of failed calls")] = 0

    short: ClassVar[str | None] = "max"

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        failed = [call.name for call in trace.tool_calls if call.status in _FAILED or call.error is not None]
        return "tool error", len(failed), failed


@dataclass(frozen=True, slots=True)
class PermissionDenials(_Counted):
    """No more permissions were refused than allowed."""

    reads: ClassVar[Reads] = "call"

    max: Annotated[Count, Doc("maximum number of refused permissions")] = 0

    short: ClassVar[str | None] = "max"

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        return "permission denial", len(trace.denials), [step.tool for step in trace.denials]


@dataclass(frozen=True, slots=True)
class Turns(_Counted):
    """The agent called its model no more often than allowed."""

    reads: ClassVar[Reads] = "call"

    max: Annotated[Count, Doc("maximum number of turns: calls of the model, or messages of the agent")]

    short: ClassVar[str | None] = "max"

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        return "turn", trace.turns, []


@dataclass(frozen=True, slots=True)
class ToolState(DeclaredAssertion):
    """The state that the functions of a scripted MCP server kept is as expected, or as the solution leaves it."""

    short: ClassVar[str | None] = "paths"
    options_first: ClassVar[bool] = True

    value: Annotated[LoadedJson | None, Doc("the expected JSON, inline or a path")] = None
    paths: Annotated[Mapping[str, Json], Doc("path in the state → expected value: orders.A-42.status: refunded")] = (
        field(default=EMPTY)
    )
    after: Annotated[Literal["solution"] | None, Doc("solution: the state equals the one after its calls")] = None
    path: Annotated[Text | None, Nonempty(), Doc("path in the state: orders[0].status; default: all of it")] = None
    server: Annotated[Text | None, Nonempty(), Doc("name of the server; default: the only one")] = None
    mode: Annotated[Literal["subset", "equal"], Doc("subset: objects may have more keys; equal: no more keys")] = (
        "subset"
    )

    def label(self) -> str:
        """The path and the value that is expected there."""
        if self.value is None:
            expected = [f"{path} is {shown(one)}" for path, one in self.paths.items()]
            return ", ".join(expected) or "as the solution leaves it"
        wanted = self.value.path.rpartition("/")[2] if self.value.path else shown(self.value.value)
        return f"{self.path} is {wanted}" if self.path else wanted

    def validate(self) -> Iterable[Issue]:
        """Report an invalid path, a value that every object contains, and anything but one expectation."""
        for option, path in (("path", self.path), *(("paths", one) for one in self.paths)):
            try:
                parse(path or "$")
            except ValueError as error:
                yield Issue((option,), str(error), "bad-path")
        if self.value is not None and self.value.value == {} and self.mode == "subset":
            hint = "for an empty object, add mode: equal"
            yield Issue(("value",), "every object has all of {}, so this checks nothing", hint=hint)
        if sum((bool(self.paths), self.value is not None, self.after is not None)) != 1:
            yield Issue((), "'tool-state' needs one of 'value', 'paths' and 'after'", "missing-key")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the state. Lists must match item by item in either mode. Without scripted tools, return an error."""
        found = self._state(context.tool_state)
        if isinstance(found, Grade):
            return found
        if self.after is not None:
            expected = self._state(context.solution_state)
            if isinstance(expected, Grade):
                return Grade.errored("no-tool-state", "the case has no solution with 'calls', so no state is expected")
            wanted = expected if self.path is None else read(parse(self.path), expected)
            if isinstance(wanted, Missing):
                return Grade.errored("no-tool-state", f"the solution leaves nothing there: {wanted.message}")
            return _compared(found, self.path, wanted, "equal", "what the solution leaves")
        if self.value is not None:
            wanted = self.value.value
            what = "the expected value" if isinstance(wanted, Mapping | list) else shown(wanted)
            return _compared(found, self.path, wanted, self.mode, what)
        compared = (_compared(found, path, one, self.mode, shown(one)) for path, one in self.paths.items())
        return share_of([check for grade in compared for check in grade.checks])

    def _state(self, states: JsonObject) -> Json | Grade:
        if not states:
            return Grade.errored("no-tool-state", "the case has no scripted tools, so there is no state to check")
        names = ", ".join(states)
        if self.server is None:
            if len(states) == 1:
                return next(iter(states.values()))
            return Grade.errored("no-tool-state", f"the case has several servers ({names}); choose one with 'server'")
        if self.server not in states:
            return Grade.errored("no-tool-state", f"the case has no server '{self.server}', only {names}")
        return states[self.server]


def _compared(state: Json, path: str | None, expected: Json, mode: str, what: str) -> Grade:
    found = state if path is None else read(parse(path), state)
    verb = "is" if not isinstance(expected, Mapping | list) else "contains all of" if mode == "subset" else "equals"
    text = f"{path or 'the state'} {verb} {what}"
    if isinstance(found, Missing):
        return Grade.of(False, text, excerpt(found.message))
    wrong = first_differences(expected, found, subset=mode == "subset")
    return Grade.of(not wrong, text, excerpt("; ".join(wrong)) if wrong else f"found {shown(found)}")
