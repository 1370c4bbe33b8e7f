"""Errors of OpenAI and of the servers that speak its protocol: Azure and Ollama."""

from __future__ import annotations

import math
from typing import Any

from agentv.model.values.values import JsonObject
from agentv.testing.calls import ModelCall
from agentv.testing.replies import Left, ModelApi
from agentv.testing.steps import Status

_KINDS = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: (
        "invalid_request_error",
        "unsupported_country_region_territory",
        "Country, region, or territory not supported",
    ),
    404: (
        "invalid_request_error",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for {model} on requests per min (RPM)."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
}
_FILTERED = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
_AZURE_CODES = {
    404: ("DeploymentNotFound", "The API deployment for this resource does not exist."),
    401: ("401", "Access denied due to invalid subscription key or wrong API endpoint."),
    429: ("429", "Requests have exceeded call rate limit of your current OpenAI S0 pricing tier."),
    500: ("InternalServerError", "The server had an error while processing your request."),
}


def _kind(status: int) -> tuple[str, str | None, str]:
    if status in _KINDS:
        return _KINDS[status]
    return ("invalid_request_error", None, "Invalid request.") if status < 500 else ("server_error", None, "Overloaded")


def openai_error(call: ModelCall, status: int, message: str, _wait_s: float | None) -> JsonObject:
    """`{"error": {"message", "type", "param", "code"}}`."""
    kind, code, usual = _kind(status)
    return {"error": {"message": message or usual.format(model=call.model), "type": kind, "param": None, "code": code}}


def azure_error(call: ModelCall, status: int, message: str, wait_s: float | None) -> JsonObject:
    """`{"error": {"code", "message"}}`; that of the content filter includes its findings."""
    if message == _FILTERED:
        return _filtered()
    if status == 400:
        return openai_error(call, status, message, wait_s)  # from the model behind Azure
    code, usual = _AZURE_CODES.get(status, (str(status), _kind(status)[2]))
    if wait_s is not None:
        usual += f" Please retry after {math.ceil(wait_s)} seconds."
    return {"error": {"code": code, "message": message or usual.format(model=call.model)}}


def _filtered() -> JsonObject:
    found = {"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False, "severity": "safe"}}
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": found}
    where: dict[str, Any] = {"param": "prompt", "type": None, "status": 400, "innererror": inner}
    return {"error": {"code": "content_filter", "message": _FILTERED, **where}}


def ollama_error(call: ModelCall, status: int, message: str, wait_s: float | None) -> JsonObject:
    """OpenAI's shape."""
    if status == 404:
        message = message or f'model "{call.model}" not found, try pulling it first'
    return openai_error(call, status, message, wait_s)


def request_headers(left: Left) -> dict[str, str]:
    """`x-ratelimit-*` for requests, the reset as OpenAI writes times; while refused also `retry-after-ms`."""
    headers = {
        "x-ratelimit-limit-requests": str(left.limit),
        "x-ratelimit-remaining-requests": str(left.remaining),
        "x-ratelimit-reset-requests": span(left.full_s),
    }
    if not left.allowed:
        headers["retry-after-ms"] = str(math.ceil(left.next_s * 1000))
    return headers


def span(seconds: float) -> str:
    """Seconds as OpenAI and Go write them: `120ms`, `1s`, `6m0s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"


OPENAI = ModelApi("openai", openai_error, request_headers)
AZURE = ModelApi("azure", azure_error, request_headers, filtered=Status(400, _FILTERED))
OLLAMA = ModelApi("ollama", ollama_error, lambda _left: {})
