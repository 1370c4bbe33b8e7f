"""Serves the application on loopback, until it is stopped."""

from __future__ import annotations

import logging
import os
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EADDRINUSE
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import FrameType

import uvicorn

from agentv.errors import UsageError
from agentv.extensions.view.app import application
from agentv.user_code.memory import map_large_blocks
from agentv.web.connections import LimitedConnection
from agentv.web.endpoints import ProjectContext

DEFAULT_PORT = 4280
_TRIED = 20
"""Ports after the usual one that are tried where it is in use."""

_GRACE_S = 0.3


class _Server(uvicorn.Server):
    """A server that ends at the first signal, also while streams are open."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # uvicorn's signature
        """End at once."""
        self.should_exit = self.force_exit = True


def listening_socket(port: int | None, host: str = "127.0.0.1") -> socket.socket:
    """A socket that listens on a port; without one on the usual port, or the next one that is free.

    Raises:
        UsageError: the port is in use, or may not be used.
    """
    tried = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + _TRIED), 0]
    for one in tried:
        # with its protocol, without which asyncio would not send small answers at once
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, one))
            made.listen(128)
        except OSError as error:
            made.close()
            if port is None and error.errno == EADDRINUSE:
                continue
            raise _refusal(one, error) from error
        return made
    raise UsageError("no port is free", "give one with --port")


def _refusal(port: int, error: OSError) -> UsageError:
    if error.errno == EADDRINUSE:
        return UsageError(f"port {port} is in use", "give another one with --port, or none to use the next free one")
    if error.errno == EACCES:
        return UsageError(f"port {port} needs rights that you do not have", "give one above 1023 with --port")
    return UsageError(f"cannot listen on port {port}: {error.strerror}", "give another one with --port")


def serve(context: ProjectContext, made: socket.socket, started: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        context: of the application.
        made: listens already.
        started: called once, when requests are answered.
    """
    port = made.getsockname()[1]
    map_large_blocks()
    _silence()
    config = uvicorn.Config(
        application(context, port),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        http=LimitedConnection,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=30,
        lifespan="on",
    )
    server = _Server(config)
    server.config.load()
    started()
    try:
        with suppress(KeyboardInterrupt):
            server.run(sockets=[made])
    finally:
        context.close()


@contextmanager
def opened_in_browser(address: str, *, secret: bool) -> Iterator[None]:
    """Open a page in a browser, if somebody sits in front of a screen; never wait for it.

    Args:
        address: of the page.
        secret: it contains a token. The command line of a browser can be read by every user of the machine, so that it
            names a file of this user alone, which leads to the address and lies there for as long as the block.
    """
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    with TemporaryDirectory(prefix="agentv-view-") as private:  # mode 0700
        if secret:
            page = Path(private, "open.html")
            page.write_text(_LEADING.format(address=escape(address)), encoding="utf-8")
            address = page.as_uri()
        Thread(target=_open, args=(address,), daemon=True).start()
        yield


_LEADING = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<title>agentv</title>
<a href="{address}">agentv view</a>
"""


def _open(address: str) -> None:
    with suppress(Exception):
        webbrowser.open(address)


def _silence() -> None:
    """Nothing that a client sends is worth a line in the terminal."""
    for name in ("uvicorn", "uvicorn.error", "sse_starlette", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
