"""A server on loopback that streams given events, each after a pause, as APIs of models do."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def event_server(
    events: Sequence[Any],
    *,
    pause_s: float = 0.0,
    refuses: str = "",
    whole: bool = False,
    kind: str | None = "text/event-stream",
) -> Iterator[Any]:
    """The server, with its `url` and the `bodies` of the requests so far.

    Args:
        events: texts as they are sent, or objects of JSON, whose `type` names the event.
        pause_s: seconds before each of them.
        refuses: key of a request that gets the status 400.
        whole: send the first event as a reply that is not streamed.
        kind: the content type of a stream; None: the server does not say it.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.bodies.append(body)
            if refuses in body:
                return self._send(400, json.dumps({"error": {"message": f"Unknown parameter: '{refuses}'."}}))
            if whole:
                return self._send(200, json.dumps(events[0]))
            self.send_response(200)
            if kind is not None:
                self.send_header("Content-Type", kind)
            self.end_headers()
            for event in events:
                time.sleep(pause_s)
                name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
                data = event if isinstance(event, str) else f"{name}data: {json.dumps(event)}\n\n"
                self.wfile.write(data.encode())
                self.wfile.flush()
            return None

        def _send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.bodies, server.url = [], f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
