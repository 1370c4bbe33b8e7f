"""A server of OpenAI's protocol that says what its calls cost."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

Reply = Callable[[str, str], tuple[str, float]]
"""From the model and all texts of a call: the answer, and what the call costs."""


class PricedServer:
    """Serves during a `with` block; every call costs `cost_usd`, by its own word, unless `reply` says otherwise."""

    def __init__(self, cost_usd: float = 0.0, delay_s: float = 0.0, reply: Reply | None = None) -> None:
        self.calls = 0
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text, cost = "fine", cost_usd
                if reply is not None:
                    text, cost = reply(given["model"], "\n".join(str(one["content"]) for one in given["messages"]))
                with lock:
                    outer.calls += 1
                time.sleep(delay_s)
                usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": cost}
                message = {"role": "assistant", "content": text}
                body = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def openai(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
