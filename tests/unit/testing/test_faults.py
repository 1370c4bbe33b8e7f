"""Each fault has the effect that it promises, in the SDKs and on the wire."""

import asyncio
import http.client
import json
import time
from functools import partial
from urllib.parse import urlsplit

import openai
import pytest

from agentv.testing import Answer, Hang, ModelServer, Status, Truncated

HI = [{"role": "user", "content": "Hi"}]
LONG = Answer("one two three four five six")


@pytest.fixture
def serve(opened):
    def client_of(server):
        return openai.OpenAI(base_url=server.openai, api_key="k", max_retries=0, timeout=0.3)

    return partial(opened, client_of)


def ask(client, **options):
    return client.chat.completions.create(model="m", messages=HI, **options)


def on_the_wire(server, *, stream=False):
    """Return the raw status, headers and body, or the part of the body that arrived."""
    parts = urlsplit(server.openai)
    connection = http.client.HTTPConnection(parts.netloc, timeout=2)
    try:
        body = json.dumps({"model": "m", "messages": HI, "stream": stream})
        connection.request("POST", f"{parts.path}/chat/completions", body)
        reply = connection.getresponse()
        try:
            return reply.status, dict(reply.getheaders()), reply.read()
        except http.client.IncompleteRead as cut:
            return reply.status, dict(reply.getheaders()), cut
    finally:
        connection.close()


def test_truncated_is_less_than_the_length_that_was_said(serve):
    server, client = serve([LONG, Truncated(LONG)])
    _, _, whole = on_the_wire(server)
    status, headers, cut = on_the_wire(server)
    assert (status, int(headers["Content-Length"])) == (200, len(whole))
    assert isinstance(cut, http.client.IncompleteRead)
    assert len(cut.partial) == len(whole) // 2
    assert headers["Content-Type"] == "application/json"
    with pytest.raises(openai.APIConnectionError):
        ask(client)


async def test_a_server_whose_calls_hang_stops_at_once():
    async with (
        ModelServer(Hang()) as server,
        openai.AsyncOpenAI(base_url=server.openai, api_key="k", max_retries=0) as client,
    ):
        call = asyncio.create_task(client.chat.completions.create(model="m", messages=HI))
        while not server.calls:  # noqa: ASYNC110  # the server is in another thread, with nothing to await
            await asyncio.sleep(0.001)
        started = time.monotonic()
        await asyncio.to_thread(server.stop)
        assert time.monotonic() - started < 1
        with pytest.raises(openai.APIConnectionError):
            await call


@pytest.mark.parametrize(
    ("after", "header"),
    [
        (None, None),
        (2, "2"),
        (0.5, "0.5"),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT"),
    ],
)
def test_when_to_come_again(serve, after, header):
    server, _ = serve(Status(429, retry_after=after))
    status, headers, _ = on_the_wire(server)
    assert (status, headers.get("Retry-After")) == (429, header)
