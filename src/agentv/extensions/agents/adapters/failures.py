"""Reasons why an agent gave no answer that counts. None of them is ever an empty or a passing answer."""

from __future__ import annotations

from agentv.model.values.response import CallFailure, TargetResponse
from agentv.user_code.excerpts import is_javascript_error, last_error, tail

LIMIT = "agent-limit"
AGENT_STOPPED = "agent-stopped"
PROTOCOL = "agent-protocol"
API = "agent-api"
DENIED = "permission-denied"
NO_TOOLS = "no-tools"
NO_SESSION = "no-session"
REFUSED = "refused"


def failed(code: str, message: str, response: TargetResponse | None = None, stderr: bytes = b"") -> CallFailure:
    """The failure, with what the agent had done until then, and the end of what it printed on stderr."""
    said = last_error(stderr) if is_javascript_error(stderr) else tail(stderr)
    return CallFailure(code, f"{message}; stderr: {said}" if said else message, response=response)
