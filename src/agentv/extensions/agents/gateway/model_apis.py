"""Model APIs as the gateway needs them: prices, ceilings, the meaning of usage and of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
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
    settings, surcharge = RequestSettings(_prices(upstream), model, longest), surcharge_of(body)
    most = settings.ceiling_of_body(body, answers=answers, besides=surcharge.tokens)
    if upstream.price is not None:
        return Ceiling(upstream.price.at_most(most.tokens), most.tokens)
    return most if most.usd is None else Ceiling(most.usd * surcharge.factor + surcharge.usd, most.tokens)


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


TIERS: Mapping[str, float] = {"priority": 2.5, "fast": 6.0}
"""`service_tier` of OpenAI (1.7 to 2.5 times the list price, by model), `speed` of Anthropic → factor of the price."""

USES = 5
"""How often a tool of the provider is counted where the request does not limit it."""

USE_TOKENS = 20_000
"""Tokens that the model reads for one use of such a tool."""

_FEES: Mapping[str, float] = {
    "imagegeneration": 0.30,
    "codeinterpreter": 0.12,
    "codeexecution": 0.05,
    "websearch": 0.035,
    "webfetch": 0.035,
    "filesearch": 0.035,
    "googlesearch": 0.035,
    "googlemaps": 0.035,
    "enterprisewebsearch": 0.035,
    "urlcontext": 0.035,
}
"""How the type of a tool begins, without its signs → US dollars for one use, the dearest of the providers' lists."""


@dataclass(frozen=True, slots=True)
class Surcharge:
    """What is added to the ceiling of a call.

    Attributes:
        factor: of the price of its tokens.
        usd: fees of tools that the provider runs.
        tokens: that they add to the input.
    """

    factor: float = 1.0
    usd: float = 0.0
    tokens: int = 0


def surcharge_of(body: JsonObject) -> Surcharge:
    """The surcharge that a body asks for."""
    tiers = (body.get("service_tier"), body.get("speed"))
    factor = max(TIERS.get(one, 1.0) if isinstance(one, str) else 1.0 for one in tiers)
    usd, uses = 0.0, 0
    for fee, count in _tools(body):
        usd, uses = usd + fee * count, uses + count
    return Surcharge(factor, usd, uses * USE_TOKENS)


def _tools(body: JsonObject) -> Iterator[tuple[float, int]]:
    """The tools of the provider that a body offers: fee of one use, and how many uses are counted."""
    if body.get("web_search_options") is not None:
        yield _FEES["websearch"], 1
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, Mapping):
            fee = max((_fee(name) for name in _types(tool)), default=0.0)
            if fee:
                yield fee, _uses(tool.get("max_uses")) or _uses(body.get("max_tool_calls")) or USES


def _types(tool: JsonObject) -> Iterator[str]:
    """What a tool is called: its type, or with Gemini the key of its settings."""
    kind = tool.get("type")
    yield from (kind,) if isinstance(kind, str) else tool


def _fee(name: str) -> float:
    letters = re.sub(r"[^a-z]", "", name.lower())
    return next((fee for prefix, fee in _FEES.items() if letters.startswith(prefix)), 0.0)


def _uses(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1000 else 0
