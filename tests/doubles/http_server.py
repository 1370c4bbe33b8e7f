"""A loopback server whose replies are made by a function."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple, Self


class Request(NamedTuple):
    method: str
    path: str
    headers: Message
    body: bytes


Reply = tuple[int, Mapping[str, str], bytes | Iterable[bytes]]
"""Status, headers, and a body or pieces sent until the connection is closed; status 0 closes it at once."""


class HttpServer:
    """Serves at `url` during a `with` block and records its `requests`."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.requests: list[Request] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.requests.append(Request(self.command, self.path, self.headers, body))
                status, headers, sent = answer(outer.requests[-1])
                if not status:
                    self.close_connection = True
                    return
                whole = isinstance(sent, bytes)
                self.send_response(status)
                for name, value in {**({} if whole else {"Connection": "close"}), **headers}.items():
                    self.send_header(name, value)
                if whole:
                    self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                with suppress(OSError):
                    for piece in [sent] if whole else sent:
                        self.wfile.write(piece)

            do_GET = do_POST = do_PUT = do_PATCH = reply  # noqa: N815  # names of the library

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
