"""promptfoo's ProviderResponse: `output` or `error`, `tokenUsage`, `cost`, `latencyMs`, `metadata`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from msgspec.structs import replace

from agentv.model.values.response import STRUCTURED, Failure, TargetResponse
from agentv.model.values.values import Json, JsonObject
from agentv.targets.http.answers import from_object, from_text

_RENAMED = {
    "tokenUsage": "token_usage",
    "cost": "cost_usd",
    "latencyMs": "duration_ms",
    "finishReason": "finish_reason",
}
"""Their key → ours."""

_COUNTS = {
    "input": ("prompt", "prompt_tokens"),
    "output": ("completion", "completion_tokens"),
    "total": ("total", "total_tokens"),
    "cached": ("cached",),
}
"""Our count → theirs, and that of OpenAI's replies, which many providers pass on."""


def from_provider(value: object) -> TargetResponse | Failure:
    """The answer that a provider returned: its response, or the text alone. Nothing is an empty answer."""
    if value is None:
        return TargetResponse(None)
    if isinstance(value, str):
        return from_text(value)
    if not isinstance(value, Mapping):
        return Failure("bad-answer", f"a provider must return an object with 'output', found {type(value).__name__}")
    row = {key: one for key, one in _renamed(value).items() if one is not None}
    output = row.get("output", row.get("text"))
    if row.get("error") or output is None or isinstance(output, str):
        return from_object({**row, "output": output})
    return _structured(row, output)


def _structured(row: JsonObject, output: Json) -> TargetResponse | Failure:
    """An answer that is a value, as JSON text; code that grades it gets the value."""
    try:
        text = json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        return Failure("bad-answer", f"'output' cannot be written as JSON: {error}")
    found = from_object({**row, "output": text})
    return found if isinstance(found, Failure) else replace(found, metadata={**found.metadata, STRUCTURED: True})


def _renamed(row: Mapping[str, Json]) -> dict[str, Json]:
    renamed = {_RENAMED.get(key, key): value for key, value in row.items()}
    usage = renamed.get("token_usage")
    if isinstance(usage, Mapping) and not usage.keys() & {"input", "output"}:
        renamed["token_usage"] = {ours: _count(usage, names) for ours, names in _COUNTS.items()}
    return renamed


def _count(usage: Mapping[str, Json], names: tuple[str, ...]) -> Json:
    """The first count of these names; a whole number, though JavaScript and estimates give others."""
    found = next((usage[name] for name in names if usage.get(name) is not None), None)
    return round(found) if isinstance(found, float) and math.isfinite(found) else found
