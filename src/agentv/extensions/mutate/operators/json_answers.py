"""An answer that is JSON, broken, or with one field dropped or of another type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentv.extensions.mutate.operators.mutant import MOST, Answer, Line, Mutant
from agentv.model.values.values import Json


@dataclass(frozen=True, slots=True)
class _Document:
    """The JSON of an answer, with what stands around it."""

    before: str
    text: str
    after: str
    value: Json


@dataclass(slots=True)
class _Field:
    """A field of the JSON of an answer, to be changed in a copy.

    Attributes:
        steps: keys and places from the outermost value to it.
        counts: its name or its value is named.
    """

    document: _Document
    steps: tuple[str | int, ...]
    value: Json
    counts: bool
    _copy: Any = None

    @property
    def path(self) -> str:
        """Its path, such as `lines[0].amount`."""
        return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in self.steps).removeprefix(".")

    def held(self) -> tuple[dict[str, Json], str]:
        """The object that holds it in a copy of the JSON, and its key."""
        self._copy = found = json.loads(self.document.text)
        for step in self.steps[:-1]:
            found = found[step]
        return found, str(self.steps[-1])

    def written(self) -> str:
        """The answer with the copy."""
        indent = 2 if "\n" in self.document.text.strip() else None
        written = json.dumps(self._copy, ensure_ascii=False, indent=indent)
        return f"{self.document.before}{written}{self.document.after}"


def break_json(answer: Answer) -> Iterator[Mutant]:
    """Its last bracket is missing."""
    found = _document(answer.output)
    if found is not None:
        output = f"{found.before}{found.text.rstrip()[:-1]}{found.after}"
        counts = "json" in answer.named.values | answer.named.words
        line: Line = {"is-json": None} if not found.before.strip() else {"contains-json": None}
        yield Mutant("its JSON lost the last bracket", counts, output, lines=(line,))


def drop_fields(answer: Answer) -> Iterator[Mutant]:
    """A field is missing."""
    for field in _ranked(answer):
        holder, key = field.held()
        del holder[key]
        change = f"the field '{field.path}' was dropped"
        yield Mutant(change, field.counts, field.written(), lines=_lines(field.path, field.value))


def retype_fields(answer: Answer) -> Iterator[Mutant]:
    """A field has a value of another type."""
    for field in _ranked(answer):
        holder, key = field.held()
        new = holder[key] = _retyped(field.value)
        change = f"the field '{field.path}' became {_kind(new)} instead of {_kind(field.value)}"
        yield Mutant(change, field.counts, field.written(), lines=_lines(field.path, field.value))


def _document(output: str) -> _Document | None:
    """The object or list that is the whole answer, alone or in one fence, or None."""
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


def _ranked(answer: Answer) -> list[_Field]:
    """Fields of the JSON, named ones first."""
    document = _document(answer.output)
    if document is None:
        return []
    found = [
        _Field(document, steps, value, _names(answer, str(steps[-1]), value))
        for steps, value in _fields(document.value, ())
    ]
    return sorted(found, key=lambda one: not one.counts)[:MOST]


def _fields(value: Json, steps: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """The fields of objects, outer ones first; of a list those of its first item."""
    if isinstance(value, dict):
        yield from (((*steps, key), one) for key, one in value.items())
        for key, one in value.items():
            yield from _fields(one, (*steps, key))
    elif isinstance(value, list) and value:
        yield from _fields(value[0], (*steps, 0))


def _names(answer: Answer, key: str, value: Json) -> bool:
    return answer.named.holds_value(key) or answer.named.holds_value(json.dumps(value, ensure_ascii=False))


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
    """A check of the value of the field; none for one inside a list, which `json-match` compares as a whole."""
    if "[" in path:
        return ()
    nested: Json = value
    for name in reversed(path.split(".")):
        nested = {name: nested}
    return ({"type": "json-match", "value": nested},)
