"""The cookies of a team's server: the session, and an attempt to sign in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from agentv.extensions.team.store.sessions import LONGEST

Purpose = Literal["session", "sign-in"]

_SECONDS: dict[Purpose, int] = {"session": int(LONGEST.total_seconds()), "sign-in": 600}


def origin_of(addresses: Sequence[str], request: Request) -> str:
    """The one of a server's addresses under which a browser sees it."""
    host = request.headers.get("host", "")
    return next((one for one in addresses if urlsplit(one).netloc == host), addresses[0] if addresses else "")


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
