"""What calls of model APIs cost: their price, and the most that one can take, which a budget reserves for it.

Prices in US dollars are from the list that `genai-prices` ships; nothing is fetched. A question is counted from above:
a token of a text has a byte at least. Its answer has as many tokens as the request allows, else as many as the model
can give.
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
        fixed_parts: what every request holds beside its messages: a system prompt, tools, a schema.
        self_hosted: it runs on a machine of the user's, where nobody is paid.
    """

    prices: str | None
    model: str
    longest: int | None = None
    extra: Mapping[str, Json] | None = None
    fixed_parts: tuple[Json, ...] = ()
    self_hosted: bool = False

    def ceiling(self, request: TargetRequest) -> Ceiling:
        """Most that one call can use."""
        return self._ceiling(tokens_at_most(request, self.fixed_parts), self._answers())

    def ceiling_of_body(self, body: JsonObject, *, answers: int = 1) -> Ceiling:
        """Of one call whose body somebody else has written.

        Args:
            body: as it is sent.
            answers: how many it asks for.
        """
        # a body may refer to what only the API knows, so that the model's window is the limit
        return self._ceiling(tokens_in_body(body) or self._window(), max(answers, 1))

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """Most that the calls that embed these texts can use."""
        input_tokens = sum(map(_bytes, texts))
        return Ceiling(self._price(TokenUsage(input_tokens, 0, input_tokens)), input_tokens)

    def _ceiling(self, input_tokens: int | None, answers: int) -> Ceiling:
        longest = self._longest()
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

    def _longest(self) -> int | None:
        extra = self.extra or {}
        limit = next((extra[name] for name in _LIMITS if name in extra), self.longest)
        if isinstance(limit, int):
            return limit
        known = next((most for name, most in _LONGEST if re.search(name, self.model, re.IGNORECASE)), None)
        return known or self._window()

    def _window(self) -> int | None:
        return window_of(self.prices, self.model) if self.prices is not None else None

    def _answers(self) -> int:
        answers = (self.extra or {}).get("n", 1)
        return answers if isinstance(answers, int) and answers > 0 else 1


def tokens_at_most(request: TargetRequest, fixed_parts: Sequence[Json] = ()) -> int:
    """Tokens that a request has at most, with what stands in it beside its messages."""
    messages = request.messages or (Message("user", request.prompt),)
    return sum(map(_of_message, messages)) + sum(map(_of_json, (*fixed_parts, request.schema)))


_ELSEWHERE = re.compile(
    r'(?<!\\)"(?:previous_response_id|conversation|file_id|file_url|fileData|fileUri|file_uri|cachedContent'
    r'|cached_content|container|prompt_id)": (?!null)|(?<!\\)"type": "url"|(?<!\\)"prompt": \{"id"'
)
"""How a request refers to what the API keeps, or fetches."""

_PICTURES = re.compile(r'(?<!\\)"type": "(?:image|image_url|input_image|computer_screenshot)"')
_DATA = re.compile(
    r'(?<!\\)"data:image/[\w.+-]+;base64,[\w+/=]+"'
    r'|(?<!\\)"(?:media_type|mimeType|mime_type)": "image/[^"]*", "data": "[^"]*"'
)


def tokens_in_body(body: JsonObject) -> int | None:
    """Tokens that the body of a request has at most: one for each byte, `PICTURE` for the data of a picture.

    None where it refers to what stands elsewhere.
    """
    written = json.dumps(body, ensure_ascii=False)
    if _ELSEWHERE.search(written):
        return None
    rest, pictures = _DATA.subn("", written)
    return _bytes(rest) + PICTURE * max(pictures, len(_PICTURES.findall(written)))


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


def cost_of(provider: str, model: str, usage: TokenUsage | None, *, cache_written: int = 0) -> float | None:
    """The price of a call in US dollars; None where the price or the tokens are not known, never 0 for that.

    Args:
        provider: as the price list calls it (`openai`, `azure`, `anthropic`, `google` or `gemini`, `openrouter`,
            `groq`, …), or the URL of an API, by which it knows most of them; empty: the one whose model it is.
        model: as the provider calls it; dated names count as the model that they are of.
        usage: tokens of the call. `input` counts those that were read from a cache as well, as OpenAI counts;
            `output` counts those of the reasoning.
        cache_written: how many tokens of `input` were written to a cache, where that is billed apart (Anthropic).
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
    # no such provider or model, counts that contradict each other; whatever it is, the answer is there and paid for
    cost = attempt(priced, tokens, "internal-error", "the price list")
    return None if isinstance(cost, Failure) else cost


def load_prices() -> None:
    """Read the price list, which takes a third of a second and opens files: before the first call, not after it."""
    from genai_prices import Usage, calc_price

    attempt(lambda model: calc_price(Usage(input_tokens=1), model), "gpt-4o", "internal-error", "the price list")


def window_of(provider: str, model: str) -> int | None:
    """Tokens that a model takes at most, its answer included; None where the price list does not know.

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
