"""Read values and records from other programs' JSON. Values of a wrong type count as absent; problems are noted."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from math import isfinite
from typing import Any

from msgspec.structs import replace

from agentv.model.values.json_text import compact, parse
from agentv.model.values.trace import UNFINISHED, Step, ToolCallStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject

_LARGEST_COUNT = 2**53
_SHOWN = 3
_LONG = 200


class Problems:
    """The problems of a stream that can be read only in part."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._more = 0

    def note(self, text: str) -> None:
        """Note something that is missing or cannot be read."""
        if text in self._texts:
            return
        if len(self._texts) < _SHOWN:
            self._texts.append(text[:_LONG])
        else:
            self._more += 1

    def note_unfinished(self, what: str) -> None:
        """Note that a session was cut off, or is still running."""
        self.note(f"the {what} {UNFINISHED}")

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __str__(self) -> str:
        """All problems as one text; empty if none exist."""
        return "; ".join([*self._texts, *([f"and {self._more} more problems"] if self._more else [])])


def string(value: Any) -> str:
    """The value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> JsonObject:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def number(value: Any) -> float | None:
    """The value as a float if it is a number or spells one; None if not, or if it is negative or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if isfinite(found) and found >= 0 else None


def count(value: Any) -> int | None:
    """The value as an integer, read as by `number`; None if it is not whole or larger than 2**53."""
    found = number(value)
    return int(found) if found is not None and found <= _LARGEST_COUNT and found == int(found) else None


def first(row: Mapping[str, Any], *names: str) -> Any:
    """The value of the first key that is present and not null, or None."""
    return next((row[name] for name in names if row.get(name) is not None), None)


_READ = ("cachedReadTokens", "cacheReadTokens", "cache_read_input_tokens", "cache_read_tokens", "cache_read")
_CACHED = ("cached", "cached_tokens", "cached_input_tokens", *_READ, "cachedTokens")
_THOUGHTS = ("reasoning_output_tokens", "thoughtTokens", "reasoningTokens")
_REASONING = ("reasoning", "reasoning_tokens", "output_reasoning_tokens", *_THOUGHTS)


def tokens_of(row: Any) -> TokenUsage | None:
    """Return the token counts in a usage object of any known API, or None if it has none."""
    usage = mapping(row)
    inner = {**mapping(first(usage, "prompt_tokens_details", "input_tokens_details", "input_token_details"))}
    outer = {**mapping(first(usage, "completion_tokens_details", "output_tokens_details", "output_token_details"))}
    found = TokenUsage(
        input=count(first(usage, "input", "input_tokens", "prompt_tokens", "inputTokens", "promptTokens")),
        output=count(first(usage, "output", "output_tokens", "completion_tokens", "outputTokens", "completionTokens")),
        total=count(first(usage, "total", "total_tokens", "totalTokens")),
        cached=count(first({**inner, **usage}, *_CACHED)),
        reasoning=count(first({**outer, **usage}, *_REASONING)),
    )
    if found == TokenUsage():
        return None
    if found.total is None and (found.input is not None or found.output is not None):
        return replace(found, total=(found.input or 0) + (found.output or 0))
    return found


def as_json(value: Any) -> Any:
    """Parse a string that is a JSON object or list; return any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return parse(value.encode(errors="surrogatepass"))
        except ValueError:
            return value
    return value


def arguments_of(value: Any) -> JsonObject:
    """The arguments of a call, from an object or its JSON text. Any other value becomes the argument `input`."""
    found = as_json(value)
    if isinstance(found, Mapping):
        return found
    return {} if found is None else {"input": found}


def text_of(value: Json) -> str:
    """The text of a message's content: a string, a block, or a list of these. A block without text becomes `[type]`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        inner = first(value, *_TEXTS)
        if isinstance(inner, str):
            return inner
        if isinstance(inner, Mapping | list):
            return text_of(inner)
        kind = string(value.get("type"))
        return f"[{kind}]" if kind else compact(value)
    if isinstance(value, list | tuple):
        return "\n\n".join(filter(None, map(text_of, value)))
    return "" if value is None else compact(value)


_TEXTS = ("text", "content", "value", "output", "refusal", "resource")


def epoch_ms(value: Any) -> float | None:
    """Convert ISO 8601, or seconds or milliseconds since the epoch, to epoch milliseconds. None if invalid."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp() * 1000
        except (ValueError, OverflowError):
            pass
    found = number(value)
    if found is None:
        return None
    return found * 1000 if found < 1e11 else found


def with_valid_parents(steps: Sequence[Step], problems: Problems) -> tuple[Step, ...]:
    """Return the steps; a parent that is not an earlier call is removed and noted."""
    calls: set[str] = set()
    checked: list[Step] = []
    for step in steps:
        sound = step
        if step.parent is not None and step.parent not in calls:
            problems.note(f"the parent '{step.parent[:40]}' of a step is no call before it")
            sound = replace(step, parent=None)
        checked.append(sound)
        if isinstance(step, ToolCallStep) and step.id is not None:
            calls.add(step.id)
    return tuple(checked)


LARGEST = 256_000_000
"""Maximum size of an imported file, in bytes."""

_BOM = b"\xef\xbb\xbf"


def records_of(data: bytes, problems: Problems) -> Iterator[tuple[int, Any]]:
    """Yield the records of JSON or JSON Lines with their line numbers. Unreadable lines are noted and skipped."""
    data = data.removeprefix(_BOM)
    whole: Any = None
    with suppress(ValueError):  # JSON Lines are not one document
        whole = parse(data.strip())
    if whole is not None:
        line = data[: len(data) - len(data.lstrip())].count(b"\n") + 1
        yield from ((line, one) for one in (whole if isinstance(whole, list) else [whole]))
        return
    for number, row in enumerate(io.BytesIO(data), 1):
        if not row.strip():
            continue
        try:
            value = parse(row)
        except ValueError as error:
            ending = number > 1 and not row.endswith(b"\n")
            problems.note(f"line {number}: " + ("the stream ends in the middle of a record" if ending else str(error)))
            continue
        yield number, value
