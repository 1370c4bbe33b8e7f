"""promptfoo's assertion types on an agent's trajectory: `trajectory:…` and `skill-used` (SPEC section 7.2).

Tool names may contain `*` and `?`, and are compared case-insensitively, as in promptfoo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from agentv.assertions.comparing import differences, same
from agentv.assertions.evidence import excerpt, listed, quoted
from agentv.extensions.agents.assertions.calls import all_or_nothing, call_names, fits, fits_call, in_order, no_calls
from agentv.extensions.agents.assertions.skills import used_skills
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.values.message import ToolCall
from agentv.model.values.values import Json, JsonObject
from agentv.registry.fields import (
    Alias,
    Count,
    Declared,
    DeclaredAssertion,
    Doc,
    FileTexts,
    Issue,
    Nonempty,
    Text,
    Texts,
)

Name = Annotated[Text, Nonempty(), Alias(("pattern",)), Doc("its name; * matches any characters, ? matches one")]
Names = FileTexts | Annotated[Text, Nonempty()]
Match = Annotated[
    Literal["all", "any"], Doc("all: all of a list must be used; any: any of them; with not-, any forbids all of them")
]


@dataclass(frozen=True, slots=True)
class Counted(Declared):
    """A name, and the minimum and maximum number of its uses."""

    name: Name
    min: Annotated[Count | None, Doc("minimum number of times: 1, or 0 where max is 0")] = None
    max: Annotated[Count | None, Doc("maximum number of times")] = None

    def validate(self) -> Iterable[Issue]:
        """Report limits that nothing or everything meets."""
        yield from _bound_issues(self.min, self.max)

    @property
    def least(self) -> int:
        """The minimum."""
        return (0 if self.max == 0 else 1) if self.min is None else self.min

    def check(self, what: str, number: int, evidence: str) -> Check:
        """Check that the count is within the limits."""
        passed = number >= self.least and (self.max is None or number <= self.max)
        return Check(f"{what} {quoted(self.name)} {_bounds(self.least, self.max)}", passed, evidence)


def _bound_issues(least: int | None, most: int | None) -> Iterator[Issue]:
    if least is not None and most is not None and least > most:
        yield Issue(("max",), f"'max' ({most}) is less than 'min' ({least})")
    elif least == 0 and most is None:
        yield Issue(("min",), "with min: 0 and no 'max', every answer passes")


def _bounds(least: int | None, most: int | None) -> str:
    if most is None:
        return f"{least} or more times"
    if least in (None, 0):
        return f"at most {most} times" if most else "never"
    return f"{least} to {most} times" if least != most else f"{most} times"


@dataclass(frozen=True, slots=True)
class _Used(DeclaredAssertion):
    """Base class of the types that look for names among the tools or skills used."""

    value: Annotated[Names | Counted, Doc("a name, a list of names, or a mapping with name, min and max")]
    match: Match = "all"

    def label(self) -> str:
        """The first names."""
        return listed((self.value.name,) if isinstance(self.value, Counted) else self._names)

    def validate(self) -> Iterable[Issue]:
        """Report `match: any` without a list of names."""
        if self.match == "any" and not isinstance(self.value, tuple):
            yield Issue(("match",), "'match' requires a list of names in 'value'")

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.value,) if isinstance(self.value, str) else self.value if isinstance(self.value, tuple) else ()

    def _grade_names(self, verb: str, number_of: Callable[[str], int], evidence: str) -> Grade:
        """Grade with a check per name, or with one check for all names if `match` is `any`."""
        if isinstance(self.value, Counted):
            return all_or_nothing([self.value.check(verb, number_of(self.value.name), evidence)])
        found = {name: number_of(name) > 0 for name in self._names}
        if self.match == "any":
            return Grade.of(any(found.values()), f"{verb} one of {listed(self._names)}", evidence)
        return all_or_nothing([Check(f"{verb} {quoted(name)}", it, evidence) for name, it in found.items()])


@dataclass(frozen=True, slots=True)
class ToolUsed(_Used):
    """The agent called a tool, or each of several, at least once or a given number of times."""

    def grade(self, context: AssertionContext) -> Grade:
        """Look for the names among the called tools."""
        calls = context.tool_calls
        if calls is None:
            return no_calls(context)
        return self._grade_names("calls", lambda name: sum(fits_call(name, call) for call in calls), call_names(calls))


@dataclass(frozen=True, slots=True)
class SkillUsed(_Used):
    """The agent used a skill, or each of several, at least once or a given number of times."""

    value: Annotated[
        Names | Counted, Alias(("skill",)), Doc("a name, a list of names, or a mapping with name, min and max")
    ]
    should_trigger: Annotated[bool, Doc("older: false: the skill must not be used, as negate: true says")] = True

    def grade(self, context: AssertionContext) -> Grade:
        """Look for the names among the skills that the target reports, loads with a tool, or reads."""
        used = used_skills(context, context.tool_calls)
        if used is None:
            message = "the target reports neither skills nor a transcript, so the skills that it used are unknown"
            return Grade.errored("no-data", message)
        evidence = excerpt(f"used: {', '.join(used)}" if used else "no skill was used")
        grade = self._grade_names("uses the skill", lambda name: sum(fits(name, one) for one in used), evidence)
        return grade if self.should_trigger else grade.negated()


@dataclass(frozen=True, slots=True)
class NamedStep(Declared):
    """One step of a sequence."""

    name: Name


@dataclass(frozen=True, slots=True)
class Steps(Declared):
    """A sequence of calls, and whether other calls may come between them."""

    steps: Annotated[
        tuple[NamedStep | Annotated[Text, Nonempty()], ...], Nonempty(), Doc("the tools in the order of their calls")
    ]
    mode: Annotated[
        Literal["in_order", "exact"], Doc("in_order: other calls may come between them; exact: no other calls")
    ] = "in_order"


@dataclass(frozen=True, slots=True)
class ToolSequence(DeclaredAssertion):
    """The agent called tools in this order."""

    value: Annotated[
        Annotated[tuple[NamedStep | Annotated[Text, Nonempty()], ...], Nonempty()] | Steps,
        Doc("the tools in the order of their calls, or a mapping with steps and mode"),
    ]

    def label(self) -> str:
        """The first steps."""
        return listed(self._names)

    def grade(self, context: AssertionContext) -> Grade:
        """Look for the steps in order, with a check per step."""
        calls = context.tool_calls
        if calls is None:
            return no_calls(context)
        fitting = [[fits_call(name, call) for call in calls] for name in self._names]
        exact = isinstance(self.value, Steps) and self.value.mode == "exact"
        if exact:
            found = [place if place < len(calls) and row[place] else None for place, row in enumerate(fitting)]
        else:
            found = in_order(fitting)
        checks = []
        for step, (name, place) in enumerate(zip(self._names, found, strict=True), 1):
            evidence = call_names(calls) if place is None else _call_label(place)
            checks.append(Check(f"calls {quoted(name)} as step {step}", place is not None, evidence))
        if exact:
            checks.append(Check(f"makes {len(found)} calls and no more", len(calls) <= len(found), call_names(calls)))
        return all_or_nothing(checks)

    @property
    def _names(self) -> tuple[str, ...]:
        steps = self.value.steps if isinstance(self.value, Steps) else self.value
        return tuple(step if isinstance(step, str) else step.name for step in steps)


@dataclass(frozen=True, slots=True)
class Arguments(Declared):
    """A tool, and the arguments of one of its calls."""

    name: Name
    args: Annotated[Mapping[str, Json], Alias(("arguments",)), Doc("the arguments by their names")]
    mode: Annotated[
        Literal["partial", "exact"], Doc("partial: the call may have more, at any depth; exact: only these")
    ] = "partial"
    defaults: Annotated[
        Mapping[str, Json] | None,
        Doc("argument → default value; a call that gives this value counts as if it omitted the argument"),
    ] = None
    ignore: Annotated[Texts | Text | None, Doc("arguments to ignore; names may contain * and ?")] = None

    def differs(self, call: ToolCall) -> str | None:
        """The first difference between a call's arguments and these; None if they match."""
        expected, found = self._without_ignored(self.args), self._without_ignored(call.arguments)
        defaults = self.defaults or {}
        found = {name: one for name, one in found.items() if name not in defaults or not same(defaults[name], one)}
        return next(differences(expected, found, subset=self.mode == "partial"), None)

    def _without_ignored(self, arguments: JsonObject) -> JsonObject:
        ignored = (self.ignore,) if isinstance(self.ignore, str) else self.ignore or ()
        return {name: one for name, one in arguments.items() if not any(_ignores(mark, name) for mark in ignored)}


def _ignores(mark: str, name: str) -> bool:
    """Whether a mark matches a name: exactly, or as a pattern if it contains wildcards."""
    return fits(mark, name) if "*" in mark or "?" in mark else mark == name


@dataclass(frozen=True, slots=True)
class ToolArgsMatch(DeclaredAssertion):
    """The agent called a tool with these arguments."""

    value: Annotated[Arguments, Doc("the tool and its arguments: name, args, mode, defaults, ignore")]

    def label(self) -> str:
        """The tool."""
        return quoted(self.value.name)

    def validate(self) -> Iterable[Issue]:
        """Report an expectation that every call meets."""
        if not self.value.args and self.value.mode == "partial":
            hint = "mode: exact expects a call without arguments; trajectory:tool-used ignores arguments"
            yield Issue(("value", "args"), "no argument is given, so every call of the tool matches", hint=hint)

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the arguments of each call of the tool; one match is enough."""
        calls = context.tool_calls
        if calls is None:
            return no_calls(context)
        wanted = self.value
        text = f"calls {quoted(wanted.name)} with {listed(tuple(wanted.args)) if wanted.args else 'no argument'}"
        wrong = ""
        for place, call in enumerate(calls):
            if not fits_call(wanted.name, call):
                continue
            difference = wanted.differs(call)
            if difference is None:
                return Grade.of(True, text, _call_label(place))
            wrong = wrong or f"{_call_label(place)}: {difference}"
        return Grade.of(False, text, excerpt(wrong or call_names(calls)))


@dataclass(frozen=True, slots=True)
class StepBounds(Declared):
    """Bounds of the number of steps of a kind."""

    min: Annotated[Count | None, Doc("minimum number of steps")] = None
    max: Annotated[Count | None, Doc("maximum number of steps")] = None
    type: Annotated[Literal["tool", "message"] | None, Doc("tool: tool calls; message: model turns; default: both")] = (
        None
    )
    name: Annotated[
        Text | None, Alias(("pattern",)), Doc("count only calls of the tool with this name; may contain * and ?")
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Report missing limits, limits that everything meets, and a name for steps without names."""
        if self.min is None and self.max is None:
            yield Issue((), "no limit is set; give 'min', 'max' or both", "missing-value")
        yield from _bound_issues(self.min, self.max)
        if self.type == "message" and self.name is not None:
            yield Issue(("name",), "model turns have no name; 'name' requires type: tool")

    def count(self, context: AssertionContext, calls: Sequence[ToolCall]) -> int:
        """Count the steps of the given type and name."""
        tools = sum(self.name is None or fits_call(self.name, call) for call in calls)
        turns = context.trace_summary.llm_call_count
        if self.type == "message":
            return turns
        return tools if self.type == "tool" or self.name is not None else tools + turns


@dataclass(frozen=True, slots=True)
class StepCount(DeclaredAssertion):
    """The agent took this many steps: tool calls, model turns, or both."""

    value: Annotated[StepBounds, Doc("min, max, and which steps: type, name")]

    def label(self) -> str:
        """The bounds."""
        return _bounds(self.value.min, self.value.max)

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the number of steps with the limits."""
        calls = context.tool_calls
        if calls is None:
            return no_calls(context)
        bounds, number = self.value, self.value.count(context, calls)
        passed = (bounds.min is None or number >= bounds.min) and (bounds.max is None or number <= bounds.max)
        kind = f" of type {bounds.type}" if bounds.type else ""
        what = f"calls {quoted(bounds.name)}" if bounds.name else f"takes a step{kind}"
        evidence = excerpt(f"{number}; {call_names(calls)}")
        return Grade.of(passed, f"{what} {_bounds(bounds.min, bounds.max)}", evidence)


def _call_label(place: int) -> str:
    return f"call {place + 1}"
