"""Prices of model API calls, and the most that a call can cost, which is reserved in the budget.

Prices in US dollars come from the list that `genai-prices` ships; nothing is downloaded. The input tokens of a call are
estimated from above: every token has at least one byte. The output can have as many tokens as the request allows, or
else as the model can generate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentv.model.values.message import Block, DocumentBlock, ImageBlock, Message
from agentv.model.values.response import Failure
from agentv.model.values.usage import UNKNOWN, Ceiling, TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.ports import TargetRequest
from agentv.user_code.guard import attempt

MESSAGE = 20
"""Tokens that a message takes in addition to its content, such as its role and separators."""

PICTURE = 6_000
"""Most tokens of a picture. The largest take 4,784 with Anthropic, and fewer with OpenAI and Gemini."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")

_OUTPUT_LIMITS = (
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
"""Pattern of model names, and the most tokens that an answer can have, which is the largest number within a family.
Sources: platform.openai.com/docs/models, ai.google.dev/gemini-api/docs/models,
docs.claude.com/en/docs/about-claude/models."""


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Settings of a model request that determine its cost.

    Attributes:
        prices: the provider, as for `cost_of`; None if the price is unknown.
        model: the provider's name of the model.
        longest: most tokens of an answer by the settings; None if only the model limits it.
        extra: further keys of the request body, which may override `longest` or set the number of answers (`n`).
        fixed_parts: parts of every request in addition to its messages: system prompt, tools, schema.
        self_hosted: whether the model runs on the user's own machine at no cost.
    """

    prices: str | None
    model: str
    longest: int | None = None
    extra: Mapping[str, Json] | None = None
    fixed_parts: tuple[Json, ...] = ()
    self_hosted: bool = False

    def ceiling(self, request: TargetRequest) -> Ceiling:
        """Return the most tokens and dollars that a call can use."""
        return self._ceiling(tokens_at_most(request, self.fixed_parts), self._answers())

    def ceiling_of_body(self, body: JsonObject, *, answers: int = 1) -> Ceiling:
        """Return the most that a call can use whose body another program wrote.

        Args:
            body: the request body.
            answers: number of answers that it asks for.
        """
        # if the body refers to content that only the API has, the model's context window is the limit
        return self._ceiling(tokens_in_body(body) or self._window(), max(answers, 1))

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """Return the most that embedding these texts can use."""
        input_tokens = sum(map(_bytes, texts))
        return Ceiling(self._price(TokenUsage(input_tokens, 0, input_tokens)), input_tokens)

    def _ceiling(self, input_tokens: int | None, answers: int) -> Ceiling:
        longest = self._output_limit()
        if longest is None:
            return Ceiling(0.0) if self.self_hosted else UNKNOWN
        if input_tokens is None:
            return UNKNOWN
        output_tokens = longest * answers
        usage = TokenUsage(input_tokens, output_tokens, input_tokens + output_tokens)
        return Ceiling(self._price(usage), usage.total)

    def _price(self, usage: TokenUsage) -> float | None:
        if self.self_hosted:
            return 0.0
        return None if self.prices is None else cost_of(self.prices, self.model, usage)

    def _output_limit(self) -> int | None:
        extra = self.extra or {}
        limit = next((extra[name] for name in _LIMITS if name in extra), self.longest)
        if isinstance(limit, int):
            return limit
        known = next((most for name, most in _OUTPUT_LIMITS if re.search(name, self.model, re.IGNORECASE)), None)
        return known or self._window()

    def _window(self) -> int | None:
        return window_of(self.prices, self.model) if self.prices is not None else None

    def _answers(self) -> int:
        answers = (self.extra or {}).get("n", 1)
        return answers if isinstance(answers, int) and answers > 0 else 1


def tokens_at_most(request: TargetRequest, fixed_parts: Sequence[Json] = ()) -> int:
    """Return an upper bound of a request's input tokens, including its fixed parts."""
    messages = request.messages or (Message("user", request.prompt),)
    return sum(map(_message_tokens, messages)) + sum(map(_json_tokens, (*fixed_parts, request.schema)))


_REFERENCES = re.compile(
    r'(?<!\\)"(?:previous_response_id|conversation|file_id|file_url|fileData|fileUri|file_uri|cachedContent'
    r'|cached_content|container|prompt_id)": (?!null)|(?<!\\)"type": "url"|(?<!\\)"prompt": \{"id"'
)
"""References in a request body to content that the API stores or downloads."""

_PICTURES = re.compile(r'(?<!\\)"type": "(?:image|image_url|input_image|computer_screenshot)"')
_DATA = re.compile(
    r'(?<!\\)"data:image/[\w.+-]+;base64,[\w+/=]+"'
    r'|(?<!\\)"(?:media_type|mimeType|mime_type)": "image/[^"]*", "data": "[^"]*"'
)


def tokens_in_body(body: JsonObject) -> int | None:
    """Return an upper bound of a request body's tokens: one per byte, and PICTURE for each picture.

    Return None if the body refers to content outside it.
    """
    written = json.dumps(body, ensure_ascii=False)
    if _REFERENCES.search(written):
        return None
    rest, pictures = _DATA.subn("", written)
    return _bytes(rest) + PICTURE * max(pictures, len(_PICTURES.findall(written)))


def _message_tokens(message: Message) -> int:
    content = message.content
    blocks = sum(map(_block_tokens, content)) if isinstance(content, tuple) else 0
    calls = sum(_json_tokens(call.as_json()) for call in message.tool_calls)
    return MESSAGE + _bytes(message.text) + blocks + calls


def _block_tokens(block: Block) -> int:
    """Return the tokens of a block in addition to its text."""
    if isinstance(block, ImageBlock):
        return PICTURE
    if isinstance(block, DocumentBlock):
        try:
            return Path(block.path).stat().st_size
        except OSError:
            return 0  # no call is made without the file
    return 0


def _json_tokens(value: Json) -> int:
    if value is None or value in ((), {}):
        return 0
    return MESSAGE + _bytes(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def cost_of(provider: str, model: str, usage: TokenUsage | None, *, cache_written: int = 0) -> float | None:
    """Return the price of a call in US dollars, or None (not 0) if the price or the usage is unknown.

    Args:
        provider: its name in the price list (`openai`, `azure`, `anthropic`, `google` or `gemini`, `openrouter`,
            `groq`, …), or the URL of its API; if empty, the price list finds it by the model.
        model: the provider's name of the model; a dated name has the price of its model.
        usage: tokens of the call. As with OpenAI, `input` includes tokens that were read from a cache, and `output`
            includes reasoning tokens.
        cache_written: number of `input` tokens that were written to a cache, for providers that bill them separately
            (Anthropic).
    """
    if usage is None or usage.input is None:
        return None
    from genai_prices import Usage, calc_price

    def priced(usage: Usage) -> float:
        if "://" in provider:
            return float(calc_price(usage, model, provider_api_url=provider).total_price)
        return float(calc_price(usage, model, provider_id=provider or None).total_price)

    tokens = Usage(
        input_tokens=usage.input,
        output_tokens=usage.output or 0,
        cache_read_tokens=min(usage.cached or 0, usage.input) or None,
        cache_write_tokens=cache_written or None,
    )
    # an unknown provider or model, or inconsistent counts, must not lose an answer that is already paid for
    cost = attempt(priced, tokens, "internal-error", "the price list")
    return None if isinstance(cost, Failure) else cost


def load_prices() -> None:
    """Read the price list, which takes a third of a second and opens files, ahead of the first call."""
    from genai_prices import Usage, calc_price

    attempt(lambda model: calc_price(Usage(input_tokens=1), model), "gpt-4o", "internal-error", "the price list")


def window_of(provider: str, model: str) -> int | None:
    """Return a model's context window in tokens, or None if the price list does not have it.

    Args:
        provider: as for `cost_of`.
        model: as for `cost_of`.
    """
    from genai_prices.data_snapshot import get_snapshot

    by_name, by_address = (None, provider) if "://" in provider else (provider, None)
    try:
        _, found = get_snapshot().find_provider_model(model, None, by_name, by_address)
    except (LookupError, ValueError):
        return None
    return found.context_window
