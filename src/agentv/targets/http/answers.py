"""Plain data → TargetResponse. Every answer passes here, so size and encoding are checked in one place.

The JSON answer is one object (SPEC section 12, `cli`): `output` (text, or messages whose last by the assistant is
the answer) or `text`, and where known `context` (retrieved texts), `metadata`, `token_usage`, `cost_usd`,
`duration_ms`, `finish_reason`, `time_to_first_token_ms`. Other keys are ignored, and noted.
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
"""Bytes of UTF-8 that an answer may have (SPEC section 12)."""

WHOLE = 'if that object itself is the answer, return it as text: {"output": "{…}"}'
"""What to do about an answer that is JSON with a key that means something here."""

TOO_LARGE = Failure("output-too-large", f"the answer is larger than {LIMIT / 1_000_000:g} MB")


def from_text(text: str) -> TargetResponse | Failure:
    """The answer that is nothing but this text."""
    return invalid_reply(text) or TargetResponse(text)


def invalid_reply(text: str | None) -> Failure | None:
    """What is wrong with the text of an answer: too large, or no text that UTF-8 can say."""
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
    """The text behind bytes, without a byte order mark.

    Args:
        data: the bytes.
        content_type: the header that may declare their charset; UTF-8 where it declares none that is known.
    """
    declared = _CHARSET.search(content_type)
    charset = declared[1] if declared is not None else "utf-8"
    try:
        return data.decode(charset).removeprefix("\ufeff")
    except LookupError:  # no charset that Python knows, or none of texts
        return decoded(data)
    except UnicodeDecodeError as error:
        shown = "UTF-8" if charset.lower() in ("utf-8", "utf8") else charset
        return Failure("not-utf-8", f"the answer is not {shown} text (byte {error.start + 1})")


def parsed(text: str) -> Json:
    """The JSON value of a text; the text itself if it is not JSON."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def is_answer(value: Json) -> bool:
    """Whether a JSON value is an answer object, rather than an answer that happens to be JSON.

    Only its keys decide: an `output` of the wrong type is a mistake to report, not a text to grade.
    """
    return isinstance(value, Mapping) and ("output" in value or "text" in value)


def error_in(value: Json) -> Failure | None:
    """The failure that an error body reports; None for any other value.

    An error body is an object with `error`, or with `status: error`, that otherwise has only keys that describe it.
    """
    if not isinstance(value, Mapping) or not value.keys() <= _OF_ERRORS:
        return None
    said = value.get("error")
    if not said and value.get("status") != "error":
        return None
    if isinstance(said, Mapping):
        said = said.get("message") or said
    elif not isinstance(said, str) or not said:
        said = value.get("message") or value.get("detail") or value
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return Failure("target-error", f"{text[:_SHOWN_ERROR]} (an error body; {WHOLE})")


def from_reply(text: str, value: Json, beside: JsonObject = EMPTY) -> TargetResponse | Failure:
    """The answer in a whole reply: an answer object, else its text.

    Args:
        text: of the reply.
        value: its JSON value; the text itself if it is not JSON.
        beside: other keys of the answer object, such as `context`.
    """
    if is_answer(value):
        return from_object({**cast("JsonObject", value), **beside})
    return error_in(value) or from_value(value if isinstance(value, str) else text, beside)


def from_value(value: Json, beside: JsonObject = EMPTY) -> TargetResponse | Failure:
    """An answer out of a longer reply: text, messages, null, or else the value as JSON text.

    Args:
        value: the output.
        beside: other keys of the answer object, such as `context`.
    """
    rows = value if isinstance(value, list | tuple) else ()
    are_messages = bool(rows) and all(isinstance(one, Mapping) and "role" in one for one in rows)
    if value is None or isinstance(value, str) or are_messages:
        return from_object({**beside, "output": value})
    return from_object({**beside, "output": json.dumps(value, ensure_ascii=False)})


def from_object(row: JsonObject) -> TargetResponse | Failure:
    """The answer in an answer object.

    A Failure is what it says under `error` (code `target-error`), or what is wrong with it (`bad-answer`).
    """
    if row.get("error"):
        return Failure("target-error", str(row["error"]))
    try:
        output, messages = _output(row)
        known = {name: read(name, row[name]) for name, read in _READERS.items() if row.get(name) is not None}
    except ValueError as error:
        return Failure("bad-answer", str(error))
    if known.get("cost_usd") == 0 and "token_usage" in known:
        del known["cost_usd"]  # it knows no price
    ignored: tuple[str, ...] = ()
    if not row.keys() <= _KNOWN:
        ignored = tuple(sorted(str(key) for key in row.keys() - _KNOWN))[:_SHOWN_IGNORED]
    found = TargetResponse(output, messages, **known, ignored=ignored)
    return invalid_reply(output) or _too_large(found) or found


def checked(response: TargetResponse) -> TargetResponse | Failure:
    """A response that users' code has made, if every field of it is what it should be."""
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
    """Whether what is kept beside the output is larger than an answer may be."""
    if not response.context and not response.metadata:
        return None
    size = sum(len(one.text) for one in response.context)
    beside = [response.metadata, *(one.metadata for one in response.context)]
    size += sum(len(json.dumps(one)) for one in beside if one)
    what = f"'context' and 'metadata' of the answer are larger than {LIMIT / 1_000_000:g} MB"
    return Failure("output-too-large", what) if size > LIMIT else None


def _last_reply(messages: Sequence[Message]) -> str | None:
    """The last words of the assistant."""
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
                raise ValueError(f"'output' must contain messages, found {kind_of(one)}")  # noqa: TRY004  # a value, not a type
        rows: Any = value
        messages = messages_from_json(rows)
        return _last_reply(messages), messages
    wanted = "text or messages" if name == "output" else "text"
    raise ValueError(f"'{name}' must be {wanted}, found {kind_of(value)}; {WHOLE}")


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

_OF_PROMPTFOO = (
    *("tokenUsage", "cost", "latencyMs", "finishReason", "cached", "raw", "prompt", "sessionId", "guardrails"),
    *("isRefusal", "isBase64", "format", "logProbs", "numRequests", "conversationEnded", "images", "audio", "video"),
)
"""Keys of promptfoo's ProviderResponse, which a provider may set for it."""

_KNOWN = frozenset(("output", "text", "error", *_READERS, *_OF_PROMPTFOO))

_OF_ERRORS = frozenset(
    {"error", "status", "code", "type", "message", "detail", "details", "status_code", "statusCode", "error_code"}
    | {"success", "ok", "request_id", "requestId", "trace_id", "timestamp", "path"}
)
"""Keys of the bodies with which servers and programs report an error."""

_SHOWN_ERROR = 500
"""Characters of an error that are reported."""

_SHOWN_IGNORED = 8
"""Ignored keys that a note lists."""

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
