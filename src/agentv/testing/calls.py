"""The calls that a `ModelServer` receives, and their text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agentv.model.values.values import Json, JsonObject

_INNER = ("text", "content", "parts", "output")
_TURNS = ("messages", "contents", "input")
_HOLDERS = ("system", "instructions", "systemInstruction", "system_instruction", *_TURNS)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model server.

    Attributes:
        protocol: `openai`, `anthropic`, `gemini`, `azure` or `ollama`: which of the addresses was called.
        operation: `chat`, `responses`, `messages`, `generate` or `embed`.
        path: of the URL, without its query.
        model: the requested model or deployment; empty if the request names none.
        text: the text of all messages, system messages first, joined by line breaks; for embeddings the texts.
        body: the request's JSON, with everything that the caller set: `response_format`, `tools`, `stream`, …
        headers: by lower-case name. The key is in them, so they are not part of the `repr`.
        query: of the URL, without a key.
        at: `time.monotonic()` (or the server's own clock) when it arrived.
    """

    protocol: str
    operation: str
    path: str
    model: str
    text: str
    body: JsonObject
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str]
    at: float

    @property
    def stream(self) -> bool:
        """Whether the call requests a stream of events."""
        if self.protocol == "gemini":
            return self.path.endswith(":streamGenerateContent")
        return bool(self.body.get("stream"))

    @property
    def prompt(self) -> str:
        """The text of the last message only."""
        turns = next((self.body[key] for key in _TURNS if key in self.body), ())
        last = turns[-1:] if isinstance(turns, Sequence) and not isinstance(turns, str) else turns
        return "\n".join(pieces_of(last))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts to embed; empty for other calls."""
        return tuple(_embedded(self.body)) if self.operation == "embed" else ()


def text_of(body: JsonObject) -> str:
    """The text of all messages of a request, in any of the protocols; instructions to the system come first."""
    return "\n".join(piece for key in _HOLDERS for piece in pieces_of(body.get(key))) or "\n".join(_embedded(body))


def pieces_of(value: Json) -> Iterator[str]:
    """Every text under the keys that hold text, in order: not those of pictures, tools' arguments and ids."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key in _INNER:
            yield from pieces_of(value.get(key))
    elif isinstance(value, Sequence):
        for one in value:
            yield from pieces_of(one)


def _embedded(body: JsonObject) -> Iterator[str]:
    """The texts of a request for embeddings: `input` (OpenAI), `content`, or many `requests` (Gemini)."""
    requests = body.get("requests")
    if isinstance(requests, Sequence) and not isinstance(requests, str):
        for one in requests:
            yield "\n".join(pieces_of(one))  # each holds its `content`
    elif "input" in body:
        given = body["input"]
        many = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        # Tokens, which OpenAI takes as well as texts, are as good a text as any.
        yield from ([json.dumps(given)] if many and isinstance(many[0], int) else map(_as_text, many))
    elif "content" in body:
        yield "\n".join(pieces_of(body["content"]))


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
