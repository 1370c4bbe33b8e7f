"""Operators on JSON and tool calls, and all operators by name. A new one is a function and a line in `_CATALOGUE`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agentv.extensions.mutate.mutants import MOST, Answer, Line, Make, Mutant, Operator, quoted
from agentv.extensions.mutate.text_operators import (
    change_dates,
    change_names,
    change_numbers,
    cut_in_half,
    drop_sentences,
    empty,
    negate_sentences,
    quote_verdict,
    refuse,
    swap_answer,
)
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.trace import ToolCallStep
from agentv.model.values.trace_summary import messages_of
from agentv.model.values.values import Json


class _Document(Struct, frozen=True):
    """The JSON of an answer, and the text before and after it."""

    before: str
    text: str
    after: str
    value: Json


class _Field(Struct):
    """A field of the JSON of an answer, to be changed in a copy.

    Attributes:
        steps: keys and indices from the outermost value to it.
        counts: whether the case names its name or value.
    """

    document: _Document
    steps: tuple[str | int, ...]
    value: Json
    counts: bool
    _copy: Any = None

    @property
    def path(self) -> str:
        """Path of the field, such as `lines[0].amount`."""
        return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in self.steps).removeprefix(".")

    def parent_in_copy(self) -> tuple[dict[str, Json], str]:
        """Copy the JSON; return the object in the copy that contains the field, and the field's key."""
        self._copy = found = json.loads(self.document.text)
        for step in self.steps[:-1]:
            found = found[step]
        return found, str(self.steps[-1])

    def written(self) -> str:
        """Return the answer with the copy as its JSON."""
        indent = 2 if "\n" in self.document.text.strip() else None
        written = json.dumps(self._copy, ensure_ascii=False, indent=indent)
        return f"{self.document.before}{written}{self.document.after}"


def break_json(answer: Answer) -> Iterator[Mutant]:
    """Remove the last bracket of the JSON."""
    found = _document(answer.output)
    if found is not None:
        output = f"{found.before}{found.text.rstrip()[:-1]}{found.after}"
        counts = "json" in answer.named.values | answer.named.words
        line: Line = {"is-json": None} if not found.before.strip() else {"contains-json": None}
        yield Mutant("its JSON lost the last bracket", counts, output, lines=(line,))


def drop_fields(answer: Answer) -> Iterator[Mutant]:
    """Remove a field."""
    for field in _ranked_fields(answer):
        holder, key = field.parent_in_copy()
        del holder[key]
        change = f"the field '{field.path}' was dropped"
        yield Mutant(change, field.counts, field.written(), lines=_lines(field.path, field.value))


def retype_fields(answer: Answer) -> Iterator[Mutant]:
    """Replace the value of a field with one of another type."""
    for field in _ranked_fields(answer):
        holder, key = field.parent_in_copy()
        new = holder[key] = _retyped(field.value)
        change = f"the field '{field.path}' became {_kind(new)} instead of {_kind(field.value)}"
        yield Mutant(change, field.counts, field.written(), lines=_lines(field.path, field.value))


def _document(output: str) -> _Document | None:
    """Return the JSON object or list that is the whole answer, alone or in a code fence, or None."""
    fenced = _fenced(output)
    before, text, after = fenced or ("", output, "")
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _Document(before, text, after, value)


def _fenced(output: str) -> tuple[str, str, str] | None:
    if not output.lstrip().startswith("```") or not output.rstrip().endswith("```"):
        return None
    start, end = output.find("\n") + 1, output.rstrip().rfind("\n")
    return (output[:start], output[start:end], output[end:]) if 0 < start <= end else None


def _ranked_fields(answer: Answer) -> list[_Field]:
    """Return up to `MOST` fields of the JSON, named ones first."""
    document = _document(answer.output)
    if document is None:
        return []
    holds, found = answer.named.holds_value, list[_Field]()
    for steps, value in _fields(document.value, ()):
        counts = holds(str(steps[-1])) or holds(json.dumps(value, ensure_ascii=False))
        found.append(_Field(document, steps, value, counts))
    return sorted(found, key=lambda one: not one.counts)[:MOST]


def _fields(value: Json, steps: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield the steps and value of each field, outer ones first. Of a list, only the first item is searched."""
    if isinstance(value, dict):
        yield from (((*steps, key), one) for key, one in value.items())
        for key, one in value.items():
            yield from _fields(one, (*steps, key))
    elif isinstance(value, list) and value:
        yield from _fields(value[0], (*steps, 0))


def _retyped(value: Json) -> Json:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        return "null"
    return json.dumps(value) if isinstance(value, list) else [value]


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return kinds[type(value)]


def _lines(path: str, value: Json) -> tuple[Line, ...]:
    """Return an assertion on a field's value; none inside a list, which `json-match` compares as a whole."""
    if "[" in path:
        return ()
    nested: Json = value
    for name in reversed(path.split(".")):
        nested = {name: nested}
    return ({"type": "json-match", "value": nested},)


FAILURE = "the tool is unavailable"

Call: TypeAlias = ToolCall | ToolCallStep
Places: TypeAlias = list[list[Call]]
"""For each call of the original, the calls that replace it."""


def drop_calls(answer: Answer) -> Iterator[Mutant]:
    """Remove a call."""
    for place, call in _ranked_calls(answer):
        lines = ({"trajectory:tool-used": call.name}, _sequence(answer))
        change = f"the call of '{call.name}' was dropped"
        yield _mutant(answer, change, _replace_call(answer, place, []), counts=_is_named(answer, call), lines=lines)


def repeat_calls(answer: Answer) -> Iterator[Mutant]:
    """Repeat a call."""
    calls = _calls(answer)
    for place, call in _ranked_calls(answer):
        most = sum(one.name == call.name for one in calls)
        line: Line = {"type": "trajectory:tool-used", "value": {"name": call.name, "max": most}}
        change = f"'{call.name}' was called once more"
        yield _mutant(
            answer, change, _replace_call(answer, place, [call, call]), counts=_is_named(answer, call), lines=(line,)
        )


def reorder_calls(answer: Answer) -> Iterator[Mutant]:
    """Swap two consecutive calls."""
    calls = _calls(answer)
    pairs = [(n, calls[n], calls[n + 1]) for n in range(len(calls) - 1) if calls[n].name != calls[n + 1].name]
    ranked = sorted(pairs, key=lambda pair: not (_is_named(answer, pair[1]) and _is_named(answer, pair[2])))
    for place, one, two in ranked[:MOST]:
        places: Places = [[call] for call in calls]
        places[place], places[place + 1] = [two], [one]
        counts = _is_named(answer, one) and _is_named(answer, two)
        change = f"'{two.name}' was called before '{one.name}'"
        yield _mutant(answer, change, places, counts=counts, lines=(_sequence(answer),))


def change_arguments(answer: Answer) -> Iterator[Mutant]:
    """Change the value of an argument of a call."""
    for place, call in _ranked_calls(answer):
        named = (key for key, value in call.arguments.items() if _names_argument(answer, key, value))
        key = next(named, next(iter(call.arguments), None))
        if key is None:
            continue
        value, other = call.arguments[key], _other(call.arguments[key])
        changed = replace(call, arguments={**call.arguments, key: other})
        line: Line = {"type": "trajectory:tool-args-match", "value": {"name": call.name, "args": {key: value}}}
        change = f"the argument '{key}' of '{call.name}' became {quoted(str(other))} instead of {quoted(str(value))}"
        counts = _names_argument(answer, key, value)
        yield _mutant(answer, change, _replace_call(answer, place, [changed]), counts=counts, lines=(line,))


def fail_calls(answer: Answer) -> Iterator[Mutant]:
    """Make a call fail. Only traces of agents record errors."""
    for place, call in _ranked_calls(answer):
        if isinstance(call, ToolCallStep) and not call.failed:
            failed = replace(call, status="failed", error=FAILURE, result=None)
            counts = "tool-errors" in answer.named.types or _is_named(answer, call)
            places = _replace_call(answer, place, [failed])
            yield _mutant(answer, f"'{call.name}' failed", places, counts=counts, lines=({"tool-errors": 0},))


def _calls(answer: Answer) -> Sequence[Call]:
    if answer.trace is not None:
        return answer.trace.tool_calls
    return [call for message in answer.messages for call in message.tool_calls]


def _ranked_calls(answer: Answer) -> list[tuple[int, Call]]:
    """Return up to `MOST` calls with their positions, named ones first."""
    return sorted(enumerate(_calls(answer)), key=lambda one: not _is_named(answer, one[1]))[:MOST]


def _is_named(answer: Answer, call: Call) -> bool:
    return answer.named.holds_value(call.name) or answer.named.holds_value(call.native_name or "")


def _names_argument(answer: Answer, key: str, value: Json) -> bool:
    return answer.named.holds_value(key) or answer.named.holds_value(str(value))


def _other(value: Json) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 or 1
    if isinstance(value, str):
        return f"{value} (other)" if value else "other"
    return None if value else "other"


def _sequence(answer: Answer) -> Line:
    """Return an assertion that requires exactly the original calls, in order."""
    names: list[Json] = [call.name for call in _calls(answer)]
    return {"type": "trajectory:tool-sequence", "value": {"steps": names, "mode": "exact"}}


def _replace_call(answer: Answer, place: int, instead: list[Call]) -> Places:
    places: Places = [[call] for call in _calls(answer)]
    places[place] = instead
    return places


def _mutant(answer: Answer, change: str, places: Places, *, counts: bool, lines: tuple[Line, ...]) -> Mutant:
    if answer.trace is not None:
        left = iter(places)
        steps: list[Any] = []
        for step in answer.trace.steps:
            steps += next(left) if isinstance(step, ToolCallStep) else [step]
        trace = replace(answer.trace, steps=tuple(steps))
        return Mutant(change, counts, messages=messages_of(trace), trace=trace, lines=lines)
    return Mutant(change, counts, messages=_changed_messages(answer.messages, places), lines=lines)


def _changed_messages(messages: tuple[Message, ...], places: Places) -> tuple[Message, ...]:
    """Return the messages with the calls replaced, and without the results of removed calls."""
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


_CATALOGUE: tuple[tuple[str, str, Make], ...] = (
    ("empty", "the answer is empty", empty),
    ("cut-in-half", "the second half of the answer is missing", cut_in_half),
    ("drop-sentence", "a sentence that holds an expected value is missing", drop_sentences),
    ("change-number", "a number is twice as large", change_numbers),
    ("change-date", "a date is later", change_dates),
    ("change-name", "a name is another one", change_names),
    ("negate", "a sentence says the opposite", negate_sentences),
    ("swap-answer", "the answer is that of another case", swap_answer),
    ("refuse", "the answer is a refusal", refuse),
    ("quote-verdict", "the answer only quotes a passing verdict", quote_verdict),
    ("break-json", "the JSON lacks its last bracket", break_json),
    ("drop-field", "a field of the JSON is missing", drop_fields),
    ("retype-field", "a field of the JSON has another type", retype_fields),
    ("drop-call", "a tool call is missing", drop_calls),
    ("repeat-call", "a tool is called once more", repeat_calls),
    ("reorder-calls", "two tool calls changed places", reorder_calls),
    ("change-argument", "an argument of a tool call has another value", change_arguments),
    ("fail-tool", "a tool reports an error", fail_calls),
)

OPERATORS: dict[str, Operator] = {name: Operator(name, text, make) for name, text, make in _CATALOGUE}


def mutants_of(answer: Answer, operators: Sequence[Operator]) -> Iterator[tuple[Operator, Mutant]]:
    """Yield the mutants of an answer by operator, without those that change nothing or repeat a text."""
    known: set[str] = set()
    for operator in operators:
        for mutant in operator.make(answer):
            if not mutant.is_change_of(answer) or mutant.output in known:
                continue
            if mutant.output is not None:
                known.add(mutant.output)
            yield operator, mutant
