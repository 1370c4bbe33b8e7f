"""Errors of the gateway in the form of each provider, so that SDKs read them as they read their provider's."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agentv.model.suite.gateway import ModelProtocol

SPENT = 402
"""Status of a call for which there is no money: no SDK and no agent asks again."""

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI = {
    401: "invalid_api_key",
    402: "insufficient_quota",
    404: "not_found",
    429: "rate_limit_exceeded",
}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
NOT_AGAIN: Mapping[str, str] = {"x-should-retry": "false"}
"""Header that makes the SDKs of OpenAI and Anthropic give up."""


def error_body(protocol: ModelProtocol, status: int, message: str) -> bytes:
    """The body of an error reply."""
    if protocol == "anthropic":
        kind = _ANTHROPIC.get(status, "invalid_request_error" if status < 500 else "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    if protocol == "gemini":
        kind = _GEMINI.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
        return json.dumps({"error": {"code": status, "message": message, "status": kind}}).encode()
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json.dumps(
        {"error": {"message": message, "type": kind, "param": None, "code": _OPENAI.get(status)}}
    ).encode()
