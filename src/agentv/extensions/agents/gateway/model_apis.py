"""Model APIs as the gateway needs them: prices, ceilings, the meaning of usage and of errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from math import ceil

from agentv.model.run.budget import Ceiling
from agentv.model.suite.gateway import ModelProtocol, ModelUpstream
from agentv.model.values.response import CallFailure, Failure, is_cut
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.targets.anthropic import replies as anthropic
from agentv.targets.gemini import replies as gemini
from agentv.targets.http.model_calls import endpoint_of, host_of, other_server
from agentv.targets.http.statuses import failure_of
from agentv.targets.model_api.ceilings import RequestSettings
from agentv.targets.model_api.prices import cost_of
from agentv.targets.openai_api import replies as openai

_DOMAINS: Mapping[ModelProtocol, str] = {
    "openai": "openai.com",
    "anthropic": "anthropic.com",
    "gemini": "googleapis.com",
}
_PRICES: Mapping[ModelProtocol, str] = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}
_CONFIGS = ("generationConfig", "generation_config")
"""Where Gemini's API takes settings: each key may be written in either way."""

_FILTERED = gemini.BLOCKED | {openai.FILTERED, openai.REFUSAL}
"""Finish reasons with which a filter, and not the model, ended the answer."""

_LARGEST = 1e12
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def endpoint_of_upstream(upstream: ModelUpstream) -> str:
    """Key of the rate limit that calls share with targets of the same API and key."""
    return endpoint_of(upstream.protocol, upstream.base_url, upstream.api_key)


def ceiling(upstream: ModelUpstream, model: str, body: JsonObject) -> Ceiling:
    """The most that a call can cost, by its body."""
    longest, answers = _limits_in(body)
    most = RequestSettings(_prices(upstream), model, longest).ceiling_of_body(body, answers=answers)
    return most if upstream.price is None else Ceiling(upstream.price.at_most(most.tokens), most.tokens)


def is_local(upstream: ModelUpstream) -> bool:
    """Whether the API runs on this machine, where nobody is paid unless it says so."""
    return host_of(upstream.base_url) in _LOOPBACK


def usage_of(protocol: ModelProtocol, usage: Json) -> tuple[TokenUsage | None, int]:
    """The tokens in a `usage` of the API, and how many of them were written to a cache."""
    if protocol == "anthropic":
        return anthropic.usage_of(usage)
    if protocol == "gemini":
        return gemini.usage_of(usage), 0
    return openai.usage_of({"usage": usage}), 0


def cost_in(upstream: ModelUpstream, model: str, tokens: TokenUsage | None, *, cache_written: int = 0) -> float | None:
    """The price of a call; None where it is not known."""
    if upstream.price is not None:
        return upstream.price.cost(tokens)
    name = model.removeprefix("models/")
    return cost_of(_prices(upstream), name, tokens, cache_written=cache_written)


def failure_in(
    upstream: ModelUpstream, status: int, headers: Mapping[str, str], body: bytes, retried: frozenset[int]
) -> CallFailure:
    """What an error of the API means."""
    text, details = body.decode(errors="replace"), None
    with suppress(ValueError, RecursionError):
        details = json.loads(text)
    secrets = (upstream.api_key,)
    if upstream.protocol == "gemini" and isinstance(details, dict | list):
        first = details[0] if isinstance(details, list) and details else details
        return gemini.refusal_of(status, first, headers, retried, secrets)
    error = details.get("error") if isinstance(details, dict) else None
    words = error.get("message") if isinstance(error, dict) else None
    return failure_of(status, words if isinstance(words, str) else text, headers, retried, secrets=secrets)


def ending(finish: str) -> Failure | None:
    """Why a reply is no whole answer: it was cut off, or a filter ended it."""
    if is_cut(finish):
        return Failure("agent-limit", f"the model's last answer was cut off at its maximum length ({finish})")
    if finish in _FILTERED:
        return Failure("refused", f"the provider's filter ended the model's last answer ({finish})")
    return None


def _prices(upstream: ModelUpstream) -> str:
    """The provider as the price list takes it."""
    return other_server(upstream.base_url, _DOMAINS[upstream.protocol]) or _PRICES[upstream.protocol]


def _limits_in(body: JsonObject) -> tuple[int | None, int]:
    """Tokens that an answer may have, by a body, and how many answers it asks for: the largest numbers it names."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample", "maxOutputTokens")
    places = [body, *(one for key in _CONFIGS if isinstance(one := body.get(key), Mapping))]
    longest = [place.get(name) for place in places for name in names]
    answers = [place.get(name) for place in places for name in ("n", "best_of", "candidateCount", "candidate_count")]
    prompts = body.get("prompt")  # of completions: each of several texts, or lists of tokens, gets answers of its own
    several = len(prompts) if isinstance(prompts, list) and not all(isinstance(one, int) for one in prompts) else 1
    count = max(map(_count, answers), default=0) or 1
    return max(map(_count, longest), default=0) or None, count * several


def _count(value: Json) -> int:
    """A positive number of an API's reply; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST:
        return 0
    return ceil(value)
