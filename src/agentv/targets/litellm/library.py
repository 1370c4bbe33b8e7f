"""The LiteLLM library, imported without its downloads, output and file reads, and the meaning of its exceptions."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from json import JSONDecodeError
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agentv.model.values.response import CallFailure
from agentv.targets.http.answers import TOO_LARGE
from agentv.targets.http.connection import (
    UNCOMPRESSED,
    BoundedBody,
    TooLargeError,
    UnreadReplyError,
    refuse_unread,
)
from agentv.targets.http.failures import failure_of, no_connection, shown, unreadable_reply
from agentv.targets.openai_api.replies import filtered

if TYPE_CHECKING:
    from httpx import Request, Response


in_call: ContextVar[bool] = ContextVar("agentv_in_call", default=False)
"""Whether a target is making a call. Other uses of httpx in the process are left alone."""

_IMPORT_ENVIRONMENT = {
    "LITELLM_MODE": "PRODUCTION",  # otherwise it loads the nearest .env into the process's environment
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it downloads its list of models from GitHub
}

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")

_PARAMETERS = {
    "_API_KEY": "api_key",
    "_TOKEN": "api_key",
    "_API_BASE": "api_base",
    "_API_VERSION": "api_version",
    "VERTEXAI_PROJECT": "vertex_project",
    "VERTEXAI_LOCATION": "vertex_location",
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_REGION_NAME": "aws_region_name",
}
"""Suffix of a provider's environment variable → the equivalent parameter of a call."""


@cache
def library() -> ModuleType:
    """Import the library without its output, and return it. This takes more than two seconds."""
    added = {
        name: value for name, value in _IMPORT_ENVIRONMENT.items() if name not in os.environ
    }  # keep the user's values
    os.environ.update(added)
    try:
        import litellm
    finally:
        for name in added:
            os.environ.pop(name, None)
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _guard_clients()
    loaded: ModuleType = litellm
    return loaded


def _guard_clients() -> None:
    """Make the library's HTTP clients reject redirects, compressed replies, and replies that are too large."""
    from httpx import AsyncByteStream, AsyncClient

    class BoundedStream(BoundedBody, AsyncByteStream):
        """A body that raises TooLargeError if it is too large."""

    clients: Any = AsyncClient  # the base of all of LiteLLM's clients, for any transport
    send = clients.send

    async def guarded(self: Any, request: Request, *, stream: bool = False, **options: Any) -> Response:
        if not in_call.get():
            return await send(self, request, stream=stream, **options)  # type: ignore[no-any-return]
        request.headers.update(UNCOMPRESSED)
        response: Response = await send(self, request, **{**options, "stream": True, "follow_redirects": False})
        try:
            refuse_unread(response.status_code, response.headers)
            response.stream = BoundedStream(response.stream)
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    clients.send = guarded


def missing_variables(model: str) -> tuple[str, ...]:
    """Return the environment variables that the model's provider requires and that are not set."""
    missing = library().validate_environment(model=model).get("missing_keys")
    return tuple(name for name in missing or () if isinstance(name, str))


def address_for(model: str) -> str | None:
    """Return the base URL that the environment sets for the model's provider, as the library reads it, or None."""
    provider = model.partition("/")[0].upper()
    return os.environ.get(f"{provider}_API_BASE") or os.environ.get(f"{provider}_BASE_URL")


def parameters_from(env: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the values of environment variables as parameters of a call.

    With this, the variables of a suite's `.env` need not be set in the process's environment.
    """
    found: dict[str, str] = {}
    for name in names:
        parameter = next((one for ending, one in _PARAMETERS.items() if name.endswith(ending)), None)
        if parameter is not None and env.get(name):
            found.setdefault(parameter, env[name])
    return found


_NO_JSON = "invalid response from LLM endpoint"
_NO_PROVIDER = "LLM Provider NOT provided"
_CREDENTIALS = re.compile(r"credentials", re.IGNORECASE)
_WRAPPED = re.compile(r"^litellm\.\w+: ")


def failure_in(error: Any, retryable: frozenset[int], secrets: tuple[str, ...]) -> CallFailure:
    """Return the failure for an exception of the library, by its class and its causes.

    Args:
        error: an exception of LiteLLM, whose classes derive from OpenAI's.
        retryable: the target's `retry.status_codes`.
        secrets: texts to remove from the message.
    """
    kinds = library()
    if isinstance(error, kinds.ContentPolicyViolationError):
        return filtered()
    message = _WRAPPED.sub("", str(getattr(error, "message", None) or error))
    if isinstance(error, kinds.Timeout):
        message = message.partition("\nTraceback")[0]
        return CallFailure("timeout", failure_of(None, message, {}, secrets=secrets).message, retryable=True)
    causes = list(_causes(error))
    unread = next((one for one in causes if isinstance(one, UnreadReplyError)), None)
    if unread is not None:
        return failure_of(unread.status, "", unread.headers, retryable, secrets=secrets)
    if any(isinstance(one, TooLargeError) for one in causes):
        return CallFailure(TOO_LARGE.code, TOO_LARGE.message)
    made_up = getattr(getattr(error, "response", None), "headers", {})
    headers = getattr(error, "litellm_response_headers", None) or made_up
    given = getattr(error, "status_code", None)
    status = given if isinstance(given, int) else None
    return _without_a_reply(causes, message, secrets) or failure_of(
        status, message, dict(headers), retryable, secrets=secrets
    )


def _without_a_reply(causes: Sequence[BaseException], whole: str, secrets: tuple[str, ...]) -> CallFailure | None:
    """Return the failure for a call without a valid reply from a server; None if the server replied with an error."""
    import httpx

    message, traceback, _ = whole.partition("\nTraceback")
    lost = any(isinstance(one, httpx.TransportError | OSError) for one in causes)
    own = not lost and (not _replied(causes) or _NO_PROVIDER in message)
    if own and _CREDENTIALS.search(f"{type(causes[-1]).__name__} {message}"):
        return CallFailure("missing-key", f"LiteLLM finds no key: {shown(message, secrets)}", stops=True)
    if any(isinstance(one, JSONDecodeError) for one in causes) or _NO_JSON in message or (traceback and not lost):
        return unreadable_reply(message, secrets)  # LiteLLM makes up a status, or reports a lost connection
    if any(isinstance(one, library().APIConnectionError | httpx.TransportError) for one in causes):
        return no_connection(message, secrets)
    if not own:
        return None
    why = str(causes[-1])
    message = (
        message if why in whole else f"{message} ({why})"
    )  # LiteLLM's own message may not say more than "connection error"
    return CallFailure(
        "target-error", f"LiteLLM refuses the call: {shown(message, secrets)}", stops=_NO_PROVIDER in message
    )


def _replied(causes: Sequence[BaseException]) -> bool:
    """Whether a server replied. LiteLLM attaches a made-up response to errors that occurred on this machine.

    If LiteLLM's module for a provider raised the first error, it is unknown, and its status is taken as the server's.
    """
    if getattr(causes[0], "litellm_response_headers", None) is not None or _is_of_litellm(causes[-1]):
        return True
    return any(getattr(one, "response", None) is not None for one in causes if not _is_of_litellm(one))


def _is_of_litellm(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "litellm"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes, from the last one raised to the first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
