"""Static files of the pages: every page's script is one file, compressed once.

A page needs some seventy modules, of which a browser learns only as it reads them: asked for one by one they take
longer than all data. So the module that a page begins with is handed out with all that it imports.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.extensions.view.pages.page import ENTRY, joined
from agentv.web.answers import error_response, is_known

ENTRIES = (ENTRY, "projects.js", "sign_in/sign_in.js")
"""The modules that pages begin with: those of a project, a team's list of projects, and where people sign in."""

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@cache
def static_files() -> dict[str, bytes]:
    """Every file that a browser may ask for, by its path."""
    found: dict[str, bytes] = {}
    waiting = [("", files("agentv.extensions.view.pages") / "browser")]
    while waiting:
        place, directory = waiting.pop()
        for one in directory.iterdir():
            path = f"{place}{one.name}"
            if one.is_dir():
                waiting.append((f"{path}/", one))
            elif any(path.endswith(suffix) for suffix in _TYPES):
                found[path] = one.read_bytes()
    return found | {path: joined(path).encode() for path in ENTRIES}


@cache
def static_version() -> str:
    """A hash over all files: other files have other addresses, so that browsers may keep them."""
    found = hashlib.blake2b(digest_size=8)
    for path, content in sorted(static_files().items()):
        found.update(f"{path}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


@cache
def _compressed(path: str) -> bytes:
    return gzip.compress(static_files()[path], mtime=0)


async def static_file(request: Request) -> Response:
    """One of the files."""
    path = request.path_params["path"]
    if request.path_params["version"] != static_version() or path not in static_files():
        return error_response(404, "no-such-file", "reload the page: it belongs to another version")
    packed = _takes_gzip(request.headers)
    tag = f'"{static_version()}{"-gzip" if packed else ""}"'  # of this address: the version is part of it
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "ETag": tag, "Vary": "Accept-Encoding"}
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    if packed:
        headers["Content-Encoding"] = "gzip"
    kind = next(kind for suffix, kind in _TYPES.items() if path.endswith(suffix))
    return Response(_compressed(path) if packed else static_files()[path], media_type=kind, headers=headers)


def _takes_gzip(headers: Headers) -> bool:
    named = [one.replace(" ", "").lower() for one in headers.get("accept-encoding", "").split(",")]
    return any(one == "gzip" or (one.startswith("gzip;") and not one.endswith(("q=0", "q=0.0"))) for one in named)


def static_route() -> Route:
    """The route of all static files."""
    return Route("/static/{version}/{path:path}", static_file)
