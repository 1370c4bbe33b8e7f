"""Conversion of plain data to TargetResponse. It checks the size and encoding of every answer.

An answer object (SPEC section 12, `cli`) has `output` or `text`. The output is text, or messages of which the last
one by the assistant is the answer. Optional keys are `context` (retrieved texts), `metadata`, `token_usage`,
`cost_usd`, `duration_ms`, `finish_reason` and `time_to_first_token_ms`. Other keys are ignored and reported in a note.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from agentv.model.values.message import Message, messages_from_json
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.retrieved import kind_of, plain_object, read_context
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, Json, JsonObject, lazy_pattern

LIMIT = 10_000_000
"""Largest answer in bytes of UTF-8 (SPEC section 12)."""

WRAP_HINT = 'if that object itself is the answer, return it as text: {"output": "{…}"}'
"""Hint for an answer that happens to be JSON with a key of an answer object."""

TOO_LARGE = Failure("output-too-large", f"the answer is larger than {LIMIT / 1_000_000:g} MB")


def from_text(text: str) -> TargetResponse | Failure:
    """Return an answer that consists of this text."""
    return invalid_reply(text) or TargetResponse(text)


def invalid_reply(text: str | None) -> Failure | None:
    """Return a Failure if the text of an answer is too large or cannot be encoded as UTF-8; None otherwise."""
    if text is None:
        return None
    if text.isascii():
        size = len(text)
    else:
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            return Failure("not-utf-8", f"the answer contains half of a surrogate pair (character {error.start + 1})")
    return TOO_LARGE if size > LIMIT else None


_CHARSET = lazy_pattern(r";\s*charset\s*=\s*[\"']?([\w.:+-]+)", re.IGNORECASE)


def decoded(data: bytes, content_type: str = "") -> str | Failure:
    """Decode bytes to text, without a byte order mark.

    Args:
        data: the bytes.
        content_type: the `Content-Type` header; UTF-8 is assumed unless it declares a known charset.
    """
    declared = _CHARSET.search(content_type)
    charset = declared[1] if declared is not None else "utf-8"
    try:
        return data.decode(charset).removeprefix("\ufeff")
    except LookupError:  # unknown to Python, or not a text encoding
        return decoded(data)
    except UnicodeDecodeError as error:
        shown = "UTF-8" if charset.lower() in ("utf-8", "utf8") else charset
        return Failure("not-utf-8", f"the answer is not {shown} text (byte {error.start + 1})")


def parsed(text: str) -> Json:
    """Return the JSON value of a text, or the text itself if it is not JSON."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def is_answer(value: Json) -> bool:
    """Whether a JSON value is an answer object, and not an answer that happens to be JSON.

    Only its keys count: an `output` of the wrong type is reported as an error, not graded as text.
    """
    return isinstance(value, Mapping) and ("output" in value or "text" in value)


def error_in(value: Json) -> Failure | None:
    """Return the failure that an error body reports; None for any other value.

    An error body is an object with `error` or `status: error` whose other keys only describe the error.
    """
    if not isinstance(value, Mapping) or not value.keys() <= _ERROR_KEYS:
        return None
    error = value.get("error")
    if not error and value.get("status") != "error":
        return None
    if isinstance(error, Mapping):
        error = error.get("message") or error
    elif not isinstance(error, str) or not error:
        error = value.get("message") or value.get("detail") or value
    text = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
    return Failure("target-error", f"{text[:_MAX_ERROR_CHARACTERS]} (an error body; {WRAP_HINT})")


def from_reply(text: str, value: Json, other_keys: JsonObject = EMPTY) -> TargetResponse | Failure:
    """Return the answer in a whole reply, which is an answer object or else text.

    Args:
        text: text of the reply.
        value: its JSON value, or the text itself if it is not JSON.
        other_keys: other keys of the answer object, such as `context`.
    """
    if is_answer(value):
        return from_object({**cast("JsonObject", value), **other_keys})
    return error_in(value) or from_value(value if isinstance(value, str) else text, other_keys)


def from_value(value: Json, other_keys: JsonObject = EMPTY) -> TargetResponse | Failure:
    """Return the answer in a part of a reply. Values other than text, messages and null become JSON text.

    Args:
        value: the output.
        other_keys: other keys of the answer object, such as `context`.
    """
    rows = value if isinstance(value, list | tuple) else ()
    are_messages = bool(rows) and all(isinstance(one, Mapping) and "role" in one for one in rows)
    if value is None or isinstance(value, str) or are_messages:
        return from_object({**other_keys, "output": value})
    return from_object({**other_keys, "output": json.dumps(value, ensure_ascii=False)})


def from_object(row: JsonObject) -> TargetResponse | Failure:
    """Return the answer in an answer object.

    Return a Failure if the object has an `error` (code `target-error`) or is invalid (`bad-answer`).
    """
    if row.get("error"):
        return Failure("target-error", str(row["error"]))
    try:
        output, messages = _output(row)
        known = {name: read(name, row[name]) for name, read in _READERS.items() if row.get(name) is not None}
    except ValueError as error:
        return Failure("bad-answer", str(error))
    if known.get("cost_usd") == 0 and "token_usage" in known:
        del known["cost_usd"]  # with tokens used, a cost of 0 means that the price is unknown
    ignored: tuple[str, ...] = ()
    if not row.keys() <= _KNOWN:
        ignored = tuple(sorted(str(key) for key in row.keys() - _KNOWN))[:_MAX_IGNORED_KEYS]
    found = TargetResponse(output, messages, **known, ignored=ignored)
    return invalid_reply(output) or _too_large(found) or found


def checked(response: TargetResponse) -> TargetResponse | Failure:
    """Return a response that user code built, or a Failure if one of its fields is invalid."""
    for name, kinds in _FIELDS.items():
        value = getattr(response, name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            return Failure("bad-answer", f"TargetResponse.{name} must not be {kind_of(value)}")
        if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
            return Failure("bad-answer", f"TargetResponse.{name} must be a number of at least 0, found {value!r:.60}")
    if not all(isinstance(one, Message) for one in response.messages):
        return Failure("bad-answer", "TargetResponse.messages must contain Message objects")
    if response.metadata or response.context:
        try:
            metadata, context = plain_object(response.metadata, "metadata"), read_context(response.context)
        except ValueError as error:
            return Failure("bad-answer", f"TargetResponse: {error}")
        response = replace(response, metadata=metadata or EMPTY, context=context)
    if response.output is None:
        response = replace(response, output=_last_reply(response.messages))
    return invalid_reply(response.output) or _too_large(response) or response


def _too_large(response: TargetResponse) -> Failure | None:
    """Return a Failure if the context and metadata together are larger than LIMIT; None otherwise."""
    if not response.context and not response.metadata:
        return None
    size = sum(len(one.text) for one in response.context)
    metadata = [response.metadata, *(one.metadata for one in response.context)]
    size += sum(len(json.dumps(one)) for one in metadata if one)
    what = f"'context' and 'metadata' of the answer are larger than {LIMIT / 1_000_000:g} MB"
    return Failure("output-too-large", what) if size > LIMIT else None


def _last_reply(messages: Sequence[Message]) -> str | None:
    """Return the text of the assistant's last message, or None if there is no such message."""
    return next((one.text for one in reversed(messages) if one.role == "assistant"), None)


def _output(row: JsonObject) -> tuple[str | None, tuple[Message, ...]]:
    if "output" not in row and "text" not in row:
        raise ValueError(f"the answer has no 'output' or 'text'; it has {', '.join(map(repr, row)) or 'nothing'}"[:300])
    name = "output" if "output" in row else "text"
    value = row[name]
    if value is None or isinstance(value, str):
        return value, ()
    if name == "output" and isinstance(value, list | tuple):
        for one in value:
            if not isinstance(one, Mapping):
                raise ValueError(f"'output' must contain messages, found {kind_of(one)}")  # noqa: TRY004
        rows: Any = value
        messages = messages_from_json(rows)
        return _last_reply(messages), messages
    wanted = "text or messages" if name == "output" else "text"
    raise ValueError(f"'{name}' must be {wanted}, found {kind_of(value)}; {WRAP_HINT}")


def _usage(name: str, value: Json) -> TokenUsage:
    if isinstance(value, Mapping):
        return TokenUsage.from_json(value)
    raise ValueError(f"'{name}' must be an object, found {kind_of(value)}")


def _amount(name: str, value: Json) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError(f"'{name}' must be a number of at least 0, found {value!r:.60}")


def _text(name: str, value: Json) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"'{name}' must be text, found {kind_of(value)}")


def _object(name: str, value: Json) -> JsonObject:
    if isinstance(value, Mapping):
        return plain_object(value, name)
    raise ValueError(f"'{name}' must be an object, found {kind_of(value)}")


_READERS: dict[str, Callable[[str, Json], Any]] = {
    "token_usage": _usage,
    "cost_usd": _amount,
    "duration_ms": _amount,
    "finish_reason": _text,
    "time_to_first_token_ms": _amount,
    "metadata": _object,
    "context": lambda name, value: read_context(value, name),
}

_PROMPTFOO_KEYS = (
    *("tokenUsage", "cost", "latencyMs", "finishReason", "cached", "raw", "prompt", "sessionId", "guardrails"),
    *("isRefusal", "isBase64", "format", "logProbs", "numRequests", "conversationEnded", "images", "audio", "video"),
)
"""Keys of promptfoo's ProviderResponse, which are ignored without a note."""

_KNOWN = frozenset(("output", "text", "error", *_READERS, *_PROMPTFOO_KEYS))

_ERROR_KEYS = frozenset(
    {"error", "status", "code", "type", "message", "detail", "details", "status_code", "statusCode", "error_code"}
    | {"success", "ok", "request_id", "requestId", "trace_id", "timestamp", "path"}
)
"""Keys that the error bodies of servers and programs have."""

_MAX_ERROR_CHARACTERS = 500
"""Most characters of an error that are shown."""

_MAX_IGNORED_KEYS = 8
"""Most ignored keys that a note lists."""

_FIELDS: dict[str, tuple[type, ...]] = {
    "output": (str, type(None)),
    "messages": (tuple, list),
    "token_usage": (TokenUsage, type(None)),
    "cost_usd": (int, float, type(None)),
    "duration_ms": (int, float, type(None)),
    "time_to_first_token_ms": (int, float, type(None)),
    "finish_reason": (str, type(None)),
    "metadata": (Mapping,),
    "context": (tuple, list),
}
