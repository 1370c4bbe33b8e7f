"""Why a model stopped, in any provider's terms."""

from __future__ import annotations

_SAME = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "completed": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "incomplete": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "safety": "content_filter",
    "content_filtered": "content_filter",
    "refusal": "content_filter",
}
"""Providers' terms → OpenAI's term for the same."""


def canonical_reason(reason: str) -> str:
    """The reason in OpenAI's terms: stop, length, tool_calls, content_filter; an unknown one in lower case."""
    word = reason.strip().casefold().replace("-", "_")
    return _SAME.get(word, word)


def is_cut(reason: str | None) -> bool:
    """Whether a model stopped at its limit of tokens, so that its answer may be incomplete."""
    return reason is not None and canonical_reason(reason) == "length"
