"""Surcharges: what a call costs beside its tokens at the list price, as far as its body tells before it is made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentv.model.values.values import Json, JsonObject

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
