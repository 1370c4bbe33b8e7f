"""The library LiteLLM, imported so that it neither fetches, nor prints, nor reads files into the environment."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partialmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agentv.targets.http.bodies import BoundedBody
from agentv.targets.http.connection import RedirectError

if TYPE_CHECKING:
    from httpx import Request, Response

asking: ContextVar[bool] = ContextVar("asking", default=False)
"""Whether a target's own call is under way: what else the process does with the library stays as it is."""

_AT_IMPORT = {
    "LITELLM_MODE": "PRODUCTION",  # else it reads the nearest .env into the environment of the process
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches its list of models from GitHub
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
"""How the names of variables end that its providers want → the parameter of a call that says the same."""


@cache
def library() -> ModuleType:
    """The library, quiet. It takes more than two seconds."""
    with _environment(_AT_IMPORT):
        import litellm
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _guard_clients()
    loaded: ModuleType = litellm
    return loaded


def _guard_clients() -> None:
    """Have the library's clients refuse redirects, and bound replies while they unpack.

    Not all of its providers ask over the session that is given them.
    """
    from httpx import AsyncByteStream
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    class BoundedStream(BoundedBody, AsyncByteStream):
        """A body that ends with an error where it is too large."""

    async def bound(response: Response) -> None:
        """Take the unpacking over before anybody reads."""
        if asking.get():
            response.stream = BoundedStream(response)

    handler: Any = AsyncHTTPHandler
    handler.__init__ = partialmethod(handler.__init__, event_hooks={"response": [_stop_at_redirect, bound]})
    transport: Any = LiteLLMAiohttpTransport
    sent = transport.handle_async_request

    async def send(self: Any, request: Request) -> Response:
        response: Response = await sent(self, request)
        await bound(response)
        return response

    transport.handle_async_request = send


async def _stop_at_redirect(response: Response) -> None:
    if asking.get() and response.has_redirect_location:
        raise RedirectError(response.status_code, response.headers)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables of the process for as long as the body runs. What the user has set stays."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def wanted_by(model: str) -> tuple[str, ...]:
    """The variables that the model's provider wants and that the process does not have."""
    missing = library().validate_environment(model=model).get("missing_keys")
    return tuple(name for name in missing or () if isinstance(name, str))


def address_for(model: str) -> str | None:
    """The address that a variable of the process says for the model's provider, as the library reads it."""
    provider = model.partition("/")[0].upper()
    return os.environ.get(f"{provider}_API_BASE") or os.environ.get(f"{provider}_BASE_URL")


def parameters_from(env: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """What variables say, as parameters of a call: so that a suite's `.env` need not be written anywhere."""
    found: dict[str, str] = {}
    for name in names:
        parameter = next((one for ending, one in _PARAMETERS.items() if name.endswith(ending)), None)
        if parameter is not None and env.get(name):
            found.setdefault(parameter, env[name])
    return found
