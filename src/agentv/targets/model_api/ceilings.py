"""The most that one call of a model's API can take, known before it is made: what a budget reserves for it.

The question is counted from above: a token of a text has a byte at least. The answer has as many tokens as the request
allows, else as many as the model can give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agentv.model.run.budget import UNKNOWN, Ceiling
from agentv.model.values.message import Block, DocumentBlock, ImageBlock, Message
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.ports import TargetRequest
from agentv.targets.model_api.prices import cost_of, window_of

MESSAGE = 20
"""Tokens around a message: its role, and what separates it from the next."""

PICTURE = 6_000
"""Tokens of a picture: Anthropic's largest take 4,784, OpenAI's and Gemini's less."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")

_LONGEST = (
    (r"gpt-3\.5|gpt-4-turbo|gpt-4-\d{4}-preview", 4_096),
    (r"gpt-4o|chatgpt-4o|gpt-4\.5", 16_384),
    (r"gpt-4\.1", 32_768),
    (r"gpt-4(?![.o\d])", 8_192),
    (r"gpt-[5-9]", 128_000),
    (r"(?:^|/)o\d", 100_000),
    (r"gemini-(?:1|2\.0)", 8_192),
    (r"gemini-", 65_536),
    (r"claude-(?:2|instant|3-(?:opus|sonnet|haiku))", 4_096),
    (r"claude-3[.-]5", 8_192),
    (r"claude-", 128_000),
)
"""What a model is called, and the tokens that an answer of it may have: the providers' own pages on their models say
so (platform.openai.com/docs/models, ai.google.dev/gemini-api/docs/models, docs.claude.com/en/docs/about-claude/models);
where they differ within a family, the largest."""


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Settings of a model request.

    Attributes:
        prices: its provider as `cost_of` takes it; None: its calls have no price.
        model: by its provider's name.
        longest: tokens that an answer may have by the settings; None: what the model can give.
        extra: further keys of the request's body, which may say it otherwise, and how many answers are asked for (`n`).
        besides: what every request holds beside its messages: a system prompt, tools, a schema.
        own: it runs on a machine of the user's, where nobody is paid.
    """

    prices: str | None
    model: str
    longest: int | None = None
    extra: Mapping[str, Json] | None = None
    fixed_parts: tuple[Json, ...] = ()
    self_hosted: bool = False

    def ceiling(self, request: TargetRequest) -> Ceiling:
        """Most that one call can use."""
        longest = self._longest()
        if longest is None:
            return Ceiling(0.0) if self.self_hosted else UNKNOWN
        input_tokens = tokens_at_most(request, self.fixed_parts)
        usage = TokenUsage(input_tokens, longest * self._answers(), input_tokens + longest * self._answers())
        return Ceiling(self._price(usage), usage.total)

    def ceiling_of_body(self, body: JsonObject, *, answers: int = 1, besides: int = 0) -> Ceiling:
        """Of one call whose body somebody else has written.

        Args:
            body: as it is sent.
            answers: how many it asks for.
            besides: tokens of input that are not in it.
        """
        longest = self._longest()
        if longest is None:
            return Ceiling(0.0) if self.self_hosted else UNKNOWN
        input_tokens: int | None = tokens_in_body(body)
        if input_tokens is None:  # it refers to what only the API knows, so that the model's window is the limit
            input_tokens = window_of(self.prices, self.model) if self.prices is not None else None
            if input_tokens is None:
                return UNKNOWN
        input_tokens += besides
        output_tokens = longest * max(answers, 1)
        usage = TokenUsage(input_tokens, output_tokens, input_tokens + output_tokens)
        return Ceiling(self._price(usage), usage.total)

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """Most that the calls that embed these texts can use."""
        input_tokens = sum(map(_bytes, texts))
        return Ceiling(self._price(TokenUsage(input_tokens, 0, input_tokens)), input_tokens)

    def _price(self, usage: TokenUsage) -> float | None:
        if self.self_hosted:
            return 0.0
        return None if self.prices is None else cost_of(self.prices, self.model, usage)

    def _longest(self) -> int | None:
        extra = self.extra or {}
        limit = next((extra[name] for name in _LIMITS if name in extra), self.longest)
        if isinstance(limit, int):
            return limit
        known = next((most for name, most in _LONGEST if re.search(name, self.model, re.IGNORECASE)), None)
        return known or (window_of(self.prices, self.model) if self.prices is not None else None)

    def _answers(self) -> int:
        answers = (self.extra or {}).get("n", 1)
        return answers if isinstance(answers, int) and answers > 0 else 1


def tokens_at_most(request: TargetRequest, fixed_parts: Sequence[Json] = ()) -> int:
    """Tokens that a request has at most, with what stands in it beside its messages."""
    messages = request.messages or (Message("user", request.prompt),)
    return sum(map(_of_message, messages)) + sum(map(_of_json, (*fixed_parts, request.schema)))


def tokens_in_body(body: JsonObject) -> int | None:
    """Tokens that the body of a request has at most; None where it refers to texts that stand elsewhere."""
    found = 0
    pending: list[_Entry] = [_Entry(key, value, key in _TEXTS) for key, value in body.items()]
    while pending:
        key, value, is_text = pending.pop()
        if value and (key in _ELSEWHERE or _is_kept_prompt(key, value)):
            return None
        if isinstance(value, str):
            found += PICTURE if key == _PICTURE else _bytes(value) + 1
        elif isinstance(value, Mapping):
            found += MESSAGE + _bytes(key)
            pending += _within(key, value, is_text=is_text)
        elif isinstance(value, Sequence):
            found += MESSAGE + _bytes(key)
            pending += (_Entry(key, one, is_text) for one in value)
        else:
            found += MESSAGE
    return found


class _Entry(NamedTuple):
    """A value of a body; `is_text`: the model reads it as it is written, so that nothing in it is a picture."""

    key: str
    value: Json
    is_text: bool


def _within(key: str, value: Mapping[str, Json], *, is_text: bool) -> Iterator[_Entry]:
    """The entries of an object; the data of a picture under a key that says so."""
    kind = _kind(value)
    pictures = frozenset() if is_text else _pictures_in(key, value)
    is_call = kind.endswith("tool_use")
    for name, one in value.items():
        if kind == "document" and name == "source" and isinstance(one, Mapping) and one.get("url"):
            yield _Entry("file_url", one["url"], is_text)
        elif name in pictures and isinstance(one, str):
            yield _Entry(_PICTURE, one, is_text)
        elif kind == "image" and name == "source" and not is_text:
            yield _Entry(_SOURCE, one, is_text)
        elif kind in _WITH_ADDRESS and name == "image_url" and not is_text:
            yield _Entry(_ADDRESS, one, is_text)
        else:
            yield _Entry(name, one, is_text or name in _TEXTS or (is_call and name == "input"))


def _kind(value: Mapping[str, Json]) -> str:
    """The type of a part of a message; in a schema it may be a list."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def _pictures_in(key: str, value: Mapping[str, Json]) -> frozenset[str]:
    """The keys of an object whose texts are pictures, or their addresses, as the APIs spell parts of a message."""
    if key == _ADDRESS:
        return frozenset({"url"})
    if _kind(value) in _WITH_ADDRESS:
        return frozenset({"image_url"})
    if key == _SOURCE or key in _INLINE:
        media = value.get("media_type") or value.get("mimeType") or value.get("mime_type")
        is_picture = isinstance(media, str) and media.startswith("image/")
        return frozenset({"data", "url"} if is_picture else {"url"})
    return frozenset()


def _is_kept_prompt(key: str, value: Json) -> bool:
    """Whether it names a prompt that OpenAI keeps."""
    return key == "prompt" and isinstance(value, Mapping) and "id" in value


_PICTURE, _SOURCE, _ADDRESS = "\0picture", "\0source", "\0address"
_WITH_ADDRESS = frozenset({"image_url", "input_image", "computer_screenshot"})
"""Types of the parts of a message that hold a picture's address, or its data in one."""
_INLINE = frozenset({"inlineData", "inline_data"})
_TEXTS = frozenset(
    {"args", "arguments", "tools", "functions", "functionDeclarations", "metadata", "response", "response_format"}
)
"""Keys of arguments and schemas: whatever stands in them, the model reads it as text."""
_ELSEWHERE = frozenset(
    {
        "previous_response_id",
        "conversation",
        "file_id",
        "file_url",
        "fileData",
        "fileUri",
        "file_uri",
        "cachedContent",
        "cached_content",
        "container",
        "prompt_id",
    }
)
"""Keys by which a request refers to what the API keeps, or fetches."""


def _of_message(message: Message) -> int:
    content = message.content
    blocks = sum(map(_of_block, content)) if isinstance(content, tuple) else 0
    calls = sum(_of_json(call.as_json()) for call in message.tool_calls)
    return MESSAGE + _bytes(message.text) + blocks + calls


def _of_block(block: Block) -> int:
    """Beside the text that stands for it."""
    if isinstance(block, ImageBlock):
        return PICTURE
    if isinstance(block, DocumentBlock):
        try:
            return Path(block.path).stat().st_size
        except OSError:
            return 0  # without the file no call is made
    return 0


def _of_json(value: Json) -> int:
    if value is None or value in ((), {}):
        return 0
    return MESSAGE + _bytes(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))
