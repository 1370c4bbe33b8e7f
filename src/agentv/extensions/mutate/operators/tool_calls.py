"""One tool call of the transcript dropped, repeated, moved, changed, or failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from agentv.extensions.mutate.operators.mutant import MOST, Answer, Line, Mutant, quoted
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.trace import ToolCallStep, Trace
from agentv.model.values.trace_summary import messages_of
from agentv.model.values.values import Json

FAILURE = "the tool is unavailable"

Call: TypeAlias = ToolCall | ToolCallStep
Places: TypeAlias = list[list[Call]]
"""For each call of the original, the calls that stand in its place."""


def drop_calls(answer: Answer) -> Iterator[Mutant]:
    """A call did not happen."""
    for place, call in _ranked(answer):
        lines = ({"trajectory:tool-used": call.name}, _sequence(answer))
        change = f"the call of '{call.name}' was dropped"
        yield _made(answer, change, _with(answer, place, []), counts=_named(answer, call), lines=lines)


def repeat_calls(answer: Answer) -> Iterator[Mutant]:
    """A call happened once more."""
    calls = _calls(answer)
    for place, call in _ranked(answer):
        most = sum(one.name == call.name for one in calls)
        line: Line = {"type": "trajectory:tool-used", "value": {"name": call.name, "max": most}}
        change = f"'{call.name}' was called once more"
        yield _made(answer, change, _with(answer, place, [call, call]), counts=_named(answer, call), lines=(line,))


def reorder_calls(answer: Answer) -> Iterator[Mutant]:
    """Two calls that follow each other changed places."""
    calls = _calls(answer)
    pairs = [(n, calls[n], calls[n + 1]) for n in range(len(calls) - 1) if calls[n].name != calls[n + 1].name]
    ranked = sorted(pairs, key=lambda pair: not (_named(answer, pair[1]) and _named(answer, pair[2])))
    for place, one, two in ranked[:MOST]:
        places: Places = [[call] for call in calls]
        places[place], places[place + 1] = [two], [one]
        counts = _named(answer, one) and _named(answer, two)
        change = f"'{two.name}' was called before '{one.name}'"
        yield _made(answer, change, places, counts=counts, lines=(_sequence(answer),))


def change_arguments(answer: Answer) -> Iterator[Mutant]:
    """An argument of a call has another value."""
    for place, call in _ranked(answer):
        key = _argument(answer, call)
        if key is None:
            continue
        value, other = call.arguments[key], _other(call.arguments[key])
        changed = replace(call, arguments={**call.arguments, key: other})
        line: Line = {"type": "trajectory:tool-args-match", "value": {"name": call.name, "args": {key: value}}}
        change = f"the argument '{key}' of '{call.name}' became {quoted(str(other))} instead of {quoted(str(value))}"
        counts = _names_argument(answer, key, value)
        yield _made(answer, change, _with(answer, place, [changed]), counts=counts, lines=(line,))


def fail_calls(answer: Answer) -> Iterator[Mutant]:
    """A tool reports an error. Only traces of agents show errors."""
    for place, call in _ranked(answer):
        if isinstance(call, ToolCallStep) and not call.failed:
            failed = replace(call, status="failed", error=FAILURE, result=None)
            counts = "tool-errors" in answer.named.types or _named(answer, call)
            places = _with(answer, place, [failed])
            yield _made(answer, f"'{call.name}' failed", places, counts=counts, lines=({"tool-errors": 0},))


def _calls(answer: Answer) -> Sequence[Call]:
    if answer.trace is not None:
        return answer.trace.tool_calls
    return [call for message in answer.messages for call in message.tool_calls]


def _ranked(answer: Answer) -> list[tuple[int, Call]]:
    """The calls, named ones first, each with its place."""
    return sorted(enumerate(_calls(answer)), key=lambda one: not _named(answer, one[1]))[:MOST]


def _named(answer: Answer, call: Call) -> bool:
    return answer.named.holds_value(call.name) or answer.named.holds_value(call.native_name or "")


def _names_argument(answer: Answer, key: str, value: Json) -> bool:
    return answer.named.holds_value(key) or answer.named.holds_value(str(value))


def _argument(answer: Answer, call: Call) -> str | None:
    """The argument to change, a named one if there is one."""
    named = (key for key, value in call.arguments.items() if _names_argument(answer, key, value))
    return next(named, next(iter(call.arguments), None))


def _other(value: Json) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 or 1
    if isinstance(value, str):
        return f"{value} (other)" if value else "other"
    return None if value else "other"


def _sequence(answer: Answer) -> Line:
    """All calls in their order, and no others."""
    names: list[Json] = [call.name for call in _calls(answer)]
    return {"type": "trajectory:tool-sequence", "value": {"steps": names, "mode": "exact"}}


def _with(answer: Answer, place: int, instead: list[Call]) -> Places:
    places: Places = [[call] for call in _calls(answer)]
    places[place] = instead
    return places


def _made(answer: Answer, change: str, places: Places, *, counts: bool, lines: tuple[Line, ...]) -> Mutant:
    if answer.trace is not None:
        trace = _changed_trace(answer.trace, places)
        return Mutant(change, counts, messages=messages_of(trace), trace=trace, lines=lines)
    return Mutant(change, counts, messages=_changed_messages(answer.messages, places), lines=lines)


def _changed_trace(trace: Trace, places: Places) -> Trace:
    left = iter(places)
    steps: list[Any] = []
    for step in trace.steps:
        steps += next(left) if isinstance(step, ToolCallStep) else [step]
    return replace(trace, steps=tuple(steps))


def _changed_messages(messages: tuple[Message, ...], places: Places) -> tuple[Message, ...]:
    """The messages with other calls; the result of a dropped call goes with it."""
    results = sum(message.role == "tool" for message in messages)
    left, dropped, result = iter(places), {n for n, calls in enumerate(places) if not calls}, 0
    made = []
    for message in messages:
        if message.role == "tool":
            result += 1
            if results == len(places) and result - 1 in dropped:
                continue
        calls: tuple[Any, ...] = tuple(call for _ in message.tool_calls for call in next(left))
        made.append(replace(message, tool_calls=calls) if message.tool_calls else message)
    return tuple(made)
