"""Replies that unpack to gigabytes, or are no UTF-8, of every kind of provider: errored, and nothing else of the run."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

TARGETS = {
    "http": "{provider: http, url: 'URL', output: $.x}",
    "openai": "{provider: openai, model: gpt-x, base_url: 'URL/v1', api_key: '{{ env.FAKE }}'}",
    "anthropic": "{provider: anthropic, model: claude-x, base_url: 'URL', api_key: '{{ env.FAKE }}'}",
    "gemini": "{provider: gemini, model: gemini-x, base_url: 'URL', api_key: '{{ env.FAKE }}'}",
    "litellm": "{provider: litellm, model: openai/gpt-x, base_url: 'URL/v1', api_key: '{{ env.FAKE }}'}",
}


@contextmanager
def replying(body: bytes, **headers: str) -> Iterator[str]:
    """The address of a server that gives the same reply to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            for name, value in ({"Content-Type": "application/json", "Content-Length": len(body)} | headers).items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def error_of(project, provider: str, url: str) -> str:
    target = TARGETS[provider].replace("URL", url)[:-1] + ", retry: {max_retries: 0}}"
    project.write("a.eval.yaml", f"target: {target}\ntests: [{{id: a, input: hi, assert: [contains: x]}}]\n")
    ended = project.run("eval", "a.eval.yaml", "--out", "out", env={"FAKE": "not-a-real-key"})
    assert ended.status == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    [row] = project.rows("out")
    assert row["status"] == "errored"
    return row["error"]["code"]


@pytest.mark.parametrize("provider", TARGETS)
def test_a_reply_that_unpacks_to_too_much_is_errored(project, provider):
    with replying(gzip.compress(b" " * 200_000_000, 1), Content_Encoding="gzip") as url:
        assert error_of(project, provider, url) == "output-too-large"


@pytest.mark.parametrize("provider", TARGETS)
def test_a_reply_with_millions_of_values_is_errored(project, provider):
    """Three million lists take 200 MB once they are read."""
    with replying(gzip.compress(b'{"x": [' + b"[]," * 3_000_000 + b"[]]}", 1), Content_Encoding="gzip") as url:
        assert error_of(project, provider, url) == "output-too-large"


@pytest.mark.parametrize("provider", [name for name in TARGETS if name != "http"])
def test_a_reply_whose_text_takes_too_much_is_errored(project, provider):
    """One letter beyond the first 65,536 of Unicode makes each letter of a text take four bytes."""
    with replying(
        gzip.compress(b'{"x": "' + b"a" * 20_000_000 + "😀".encode() + b'"}', 1), Content_Encoding="gzip"
    ) as url:
        assert error_of(project, provider, url) == "output-too-large"


@pytest.mark.parametrize("provider", TARGETS)
def test_a_reply_that_is_no_utf_8_is_errored(project, provider):
    text = (
        b'{"x": "x \xff", "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",'
        b' "object": "chat.completion", "created": 1, "content": [{"type": "text", "text": "x \xff"}],'
        b' "usage": {"input_tokens": 1, "output_tokens": 1},'
        b' "choices": [{"index": 0, "message": {"role": "assistant", "content": "x \xff"}, "finish_reason": "stop"}],'
        b' "candidates": [{"content": {"role": "model", "parts": [{"text": "x \xff"}]}, "finishReason": "STOP"}]}'
    )
    with replying(text) as url:
        assert error_of(project, provider, url) in ("not-utf-8", "bad-answer", "target-error")
