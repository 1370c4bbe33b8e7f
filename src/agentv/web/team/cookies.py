"""The cookies of a team's server: the session, and an attempt to sign in."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from agentv.store.team.sessions import LONGEST

Purpose = Literal["session", "sign-in"]

_SECONDS: dict[Purpose, int] = {"session": int(LONGEST.total_seconds()), "sign-in": 600}


def origin_of(address: str, request: Request) -> str:
    """The origin at which browsers see this server.

    Args:
        address: the public one; empty: there is none, and the guard let only loopback's names in.
        request: of a browser.
    """
    return address or f"http://{request.headers.get('host', '')}"


def cookie_name(purpose: Purpose, origin: str) -> str:
    """The name of a cookie. Servers of one machine share cookies, so that a port is part of the name without TLS."""
    if origin.startswith("https://"):
        return f"__Host-agentv-{purpose}"
    return f"agentv-{purpose}-{urlsplit(origin).port or 80}"


def cookie_of(request: Request, purpose: Purpose, origin: str) -> str:
    """What a cookie holds; empty: it is not there."""
    return request.cookies.get(cookie_name(purpose, origin), "")


def set_cookie(response: Response, purpose: Purpose, origin: str, text: str) -> None:
    """Have the browser keep a cookie; an empty text: forget it."""
    response.set_cookie(
        cookie_name(purpose, origin),
        text,
        max_age=_SECONDS[purpose] if text else 0,
        path="/",
        secure=origin.startswith("https://"),
        httponly=True,
        samesite="lax",
    )
