"""Paths into JSON data, such as `$.choices[0].message.content`: the part of RFC 9535 that selects one value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from agentv.model.values.values import Json, lazy_pattern

_NAME = r"[^.\[\]\s*'\"$]+"
_STEP = lazy_pattern(
    rf"""\.(?P<name>{_NAME}) | \[(?P<index>-?\d{{1,9}})\] | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]""", re.VERBOSE
)
_SHOWN_KEYS = 8


class JsonPath(Struct, frozen=True):
    """A parsed path. A name selects a key of an object; `[0]`, or a name of digits only, an item of a list."""

    text: str
    steps: tuple[str | int, ...]


class Missing(Struct, frozen=True):
    """The result of a path that matches nothing. `message` says where it ended and what was found there."""

    message: str

    def __str__(self) -> str:
        return self.message


def parse(path: str) -> JsonPath:
    """Parse a path: `$.a.b[0]`, `$['a b']`, or without the dollar sign `a.b.0`. `$` alone selects the whole value.

    Raises:
        ValueError: it is not a path, or may select several values.
    """
    text = path.strip()
    rest = text.removeprefix("$")
    if not text.startswith(("$", "[", ".")):
        rest = f".{rest}"
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise ValueError(
                f"not a path to one value: {text!r} at {rest[at:]!r}; expected a path such as "
                "$.choices[0].message.content"
            )
        index = step["index"]
        steps.append(int(index) if index is not None else step["name"] or step["key"] or "")
        at = step.end()
    return JsonPath(text, tuple(steps))


def read(path: JsonPath, value: Json) -> Json | Missing:
    """Return the value at a path."""
    for depth, step in enumerate(path.steps):
        found = _step_into(value, step)
        if isinstance(found, Missing):
            return Missing(f"{_path_text(path.steps[: depth + 1])} leads nowhere: {found}")
        value = found
    return value


def _step_into(value: Json, step: str | int) -> Json | Missing:
    if isinstance(value, Mapping):
        if isinstance(step, str):
            return value[step] if step in value else Missing(f"the object has {_keys(value)}")
        return Missing(f"found an object instead of a list; it has {_keys(value)}")
    if isinstance(value, Sequence) and not isinstance(value, str):
        index = step if isinstance(step, int) else int(step) if step.isdecimal() and len(step) < 10 else None
        if index is None:
            return Missing(f"found a list of {len(value)} instead of an object")
        return value[index] if -len(value) <= index < len(value) else Missing(f"the list has {len(value)}")
    return Missing(f"{'null' if value is None else type(value).__name__} stands there")


def _keys(value: Mapping[str, Json]) -> str:
    names = ", ".join(repr(key[:40]) for key in islice(value, _SHOWN_KEYS))
    return f"{names}, …" if len(value) > _SHOWN_KEYS else names or "no keys"


def _path_text(steps: Iterable[str | int]) -> str:
    return "$" + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if re.fullmatch(_NAME, step) else f"[{step!r}]"
        for step in steps
    )
