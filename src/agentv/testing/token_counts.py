"""Counts of tokens in a request that is not answered: Anthropic's `count_tokens`, Gemini's `countTokens`, OpenAI's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from agentv.model.values.values import JsonObject
from agentv.testing.calls import text_of

_LETTERS = 4
"""Letters of English per token, about."""

_COUNTS: tuple[tuple[re.Pattern[str], Callable[[int], JsonObject]], ...] = (
    (re.compile(r"/anthropic/v1/messages/count_tokens"), lambda count: {"input_tokens": count}),
    (re.compile(r"/gemini/v1\w*/\w+/[^/:]+:countTokens"), lambda count: {"totalTokens": count}),
    (
        re.compile(r"/(?:openai/v1|azure/openai(?:/v1)?)/responses/input_tokens"),
        lambda count: {"object": "response.input_tokens", "input_tokens": count},
    ),
)


def count_of(path: str, body: JsonObject) -> JsonObject | None:
    """The reply to a POST that counts tokens; None where the path is none of those.

    Args:
        path: of the URL.
        body: of the request; Gemini may wrap it in `generateContentRequest`.
    """
    make = next((make for pattern, make in _COUNTS if pattern.fullmatch(path)), None)
    if make is None:
        return None
    inner = body.get("generateContentRequest")
    return make(-(-len(text_of(inner if isinstance(inner, Mapping) else body)) // _LETTERS))
