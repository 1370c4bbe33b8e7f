"""Message content for model APIs: texts, pictures, PDFs, and tool calls with their results."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from msgspec.structs import replace

from agentv.model.values.message import DocumentBlock, ImageBlock, Message, ToolCall, is_broken_file, media_type_in
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.registry.fields import Issue
from agentv.targets.http.answers import invalid_reply

PDF = "application/pdf"
_MAX_COUNT = 10**12  # more tokens than any call can use
LARGEST = 50_000_000
"""Largest picture or PDF in bytes that is read. APIs have lower limits, and report those themselves."""

_DATA_URL = re.compile(r"data:(?P<type>image/[\w.+-]+);base64,(?P<base64>[A-Za-z0-9+/=\s]+)")


@dataclass(frozen=True, slots=True)
class Attached:
    """A picture or PDF: its media type, its bytes as `base64`, and its file `name` without directories."""

    media_type: str
    base64: str
    name: str = ""

    @property
    def data_url(self) -> str:
        """The media type and bytes as a data URL, which OpenAI's API accepts."""
        return f"data:{self.media_type};base64,{self.base64}"


def document_of(block: DocumentBlock) -> Attached | Failure:
    """Return the PDF with its bytes, or a Failure if it cannot be sent (code `bad-document`)."""
    try:
        return _document(block.path, block.sha256)
    except OSError as error:
        return Failure("bad-document", f"'{block.value}' cannot be read: {error.strerror or error}")
    except ValueError as error:
        return Failure("bad-document", f"'{block.value}' {error}")


def picture_of(block: ImageBlock) -> Attached | str | Failure:
    """Return a picture's bytes, its URL if it is on the web, or a Failure if it cannot be sent (code `bad-picture`)."""
    if block.path is not None:
        try:
            return _picture(block.path)
        except OSError as error:
            return Failure("bad-picture", f"the picture '{block.value}' cannot be read: {error.strerror or error}")
        except ValueError as error:
            return Failure("bad-picture", f"'{block.value}' {error}")
    if not block.value.startswith("data:"):
        return block.value
    found = _DATA_URL.fullmatch(block.value)
    if found is None:
        return Failure("bad-picture", "a data: URL of a picture must have the form data:image/TYPE;base64,…")
    return Attached(found["type"], "".join(found["base64"].split()))


@lru_cache(maxsize=16)  # many cases attach the same file
def _document(path: str, _sha256: str) -> Attached:
    return Attached(PDF, base64.b64encode(_content(path)).decode(), Path(path).name)


@lru_cache(maxsize=32)
def _picture(path: str) -> Attached:
    """Read a picture. Its media type comes from its first bytes, or else from its name."""
    data = _content(path)
    kind = media_type_in(data) or mimetypes.guess_type(path)[0] or ""
    if is_broken_file(path, data) or not kind.startswith("image/"):
        raise ValueError("is not a supported picture: all model APIs accept PNG, JPEG, GIF and WebP")
    return Attached(kind, base64.b64encode(data).decode())


def _content(path: str) -> bytes:
    """Read a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is too large. The message is a predicate to follow the name of the file.
    """
    if Path(path).stat().st_size > LARGEST:
        raise ValueError(f"is larger than {LARGEST / 1_000_000:g} MB")
    return Path(path).read_bytes()


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartBuilders(Generic[T]):
    """Functions that build an API's content parts for a text, a picture (bytes or URL) and a PDF."""

    text: Callable[[str], T]
    picture: Callable[[Attached | str], T]
    document: Callable[[Attached], T]


def content_parts(message: Message, builders: PartBuilders[T]) -> list[T] | Failure:
    """Return the content parts of a message, or a Failure if a picture or PDF cannot be read.

    Empty texts are omitted, because APIs reject them. A text file becomes a text under its path.
    """
    if not isinstance(message.content, tuple):
        return [builders.text(message.text)] if message.text else []
    parts: list[T] = []
    for block in message.content:
        if isinstance(block, ImageBlock):
            picture = picture_of(block)
            if isinstance(picture, Failure):
                return picture
            parts.append(builders.picture(picture))
        elif isinstance(block, DocumentBlock):
            document = document_of(block)
            if isinstance(document, Failure):
                return document
            parts.append(builders.document(document))
        elif text := Message(message.role, (block,)).text:
            parts.append(builders.text(text))
    return parts


GENERATED_ID = "call_agentv_"
"""Prefix of the ids that agentv gives to tool calls without one."""


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A message with its tool calls, or with the call that it answers.

    Attributes:
        calls: the tool calls in the message; each has an id.
        result_of: for a message with the role `tool`, the call that it answers; None if no call is pending.
    """

    message: Message
    calls: tuple[ToolCall, ...] = ()
    result_of: ToolCall | None = None


def tool_steps(messages: Iterable[Message]) -> Iterator[ToolStep]:
    """Yield the messages in order, with each tool result matched to its call.

    A result answers the pending call with its `name` as id, or else as tool, or else the first pending call, because
    messages with the role `tool` come in the order of the calls. A call without an id gets one with the prefix
    GENERATED_ID.
    """
    pending: list[ToolCall] = []
    for number, message in enumerate(messages):
        if message.role == "tool":
            yield ToolStep(message, result_of=_take_answered_call(message.name, pending))
        else:
            calls = tuple(
                call if call.id else replace(call, id=f"{GENERATED_ID}{number}_{place}")
                for place, call in enumerate(message.tool_calls)
            )
            pending += calls
            yield ToolStep(message, calls)


def _take_answered_call(name: str | None, pending: list[ToolCall]) -> ToolCall | None:
    """Remove the call that a result answers from the pending calls and return it."""
    named = next((call for call in pending if name is not None and call.id == name), None)
    named = named or next((call for call in pending if call.name == name), None)
    found = named or next(iter(pending), None)
    if found is not None:
        pending.remove(found)
    return found


def tool_issues(tools: Sequence[Json]) -> Iterator[Issue]:
    """Report tools that are not objects, which no API accepts."""
    for place, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            yield Issue(("tools", place), "a tool must be an object: {type: function, function: {name, parameters}}")


def functions_in(tools: Sequence[Json]) -> tuple[list[JsonObject], list[Json]]:
    """Split tools into functions in OpenAI's format (`name`, `description`, `parameters`) and all others.

    Functions in OpenAI's format are converted for every provider. The others are in the provider's own format.
    """
    functions: list[JsonObject] = []
    others: list[Json] = []
    for tool in tools:
        inner = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
        if isinstance(inner, Mapping):
            functions.append(inner)
        else:
            others.append(tool)
    return functions, others


def answer_of(
    text: str, calls: tuple[ToolCall, ...], reason: Json, model: Json, usage: TokenUsage | None, cost: float | None
) -> TargetResponse | Failure:
    """Return the answer with the parts of a reply: text, tool calls, finish reason, model, usage and cost."""
    return invalid_reply(text) or TargetResponse(
        output=text or None,
        messages=(Message("assistant", text, tool_calls=calls),) if calls else (),
        token_usage=usage,
        cost_usd=cost,
        finish_reason=reason if isinstance(reason, str) else None,
        metadata={"model": model} if isinstance(model, str) else {},
    )


def count_of(value: Json) -> int | None:
    """Return a token count of a reply, or None if the value is not a plausible count."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT:
        return value
    return None


def tool_call(name: Json, arguments: Json, identity: Json) -> ToolCall:
    """Return a tool call of a reply. Values of the wrong type are replaced by defaults."""
    return ToolCall(
        str(name or ""),
        arguments if isinstance(arguments, Mapping) else {},
        identity if isinstance(identity, str) else None,
    )
