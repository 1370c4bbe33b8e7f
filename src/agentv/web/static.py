"""The document of the application and its static files."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.web.answers import error_response

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@cache
def static_files() -> dict[str, bytes]:
    """Every file that a browser may ask for, by its path."""
    found: dict[str, bytes] = {}
    waiting = [("", files("agentv.reports.html") / "browser")]
    while waiting:
        place, directory = waiting.pop()
        for one in directory.iterdir():
            path = f"{place}{one.name}"
            if one.is_dir():
                waiting.append((f"{path}/", one))
            elif any(path.endswith(suffix) for suffix in _TYPES):
                found[path] = one.read_bytes()
    return found


@cache
def static_version() -> str:
    """A hash over all files: other files have other addresses, so that browsers may keep them."""
    found = hashlib.blake2b(digest_size=8)
    for path, content in sorted(static_files().items()):
        found.update(f"{path}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


async def static_file(request: Request) -> Response:
    """One of the files."""
    path = request.path_params["path"]
    content = static_files().get(path) if request.path_params["version"] == static_version() else None
    if content is None:
        return error_response(404, "no-such-file", "reload the page: it belongs to another version")
    kind = next(kind for suffix, kind in _TYPES.items() if path.endswith(suffix))
    return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})


def static_route() -> Route:
    """The route of all static files."""
    return Route("/static/{version}/{path:path}", static_file)
