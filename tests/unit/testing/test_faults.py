"""Each fault has the effect that it claims, on the SDKs and on the wire."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

import anthropic
import httpx
import openai
import pytest

from agentv.testing import (
    Answer,
    ClosedConnection,
    Hang,
    MalformedJson,
    ModelServer,
    SlowDrip,
    Status,
    StoppedStream,
    Truncated,
    WrongType,
)

HI = [{"role": "user", "content": "Hi"}]
NO_JSON = r"Expecting|delimiter|Extra|Unterminated"
LONG = Answer("one two three four five six")


@pytest.fixture
def serve():
    opened = []

    def start(told, **options):
        server = ModelServer(told, **options).start()
        client = openai.OpenAI(base_url=server.openai, api_key="k", max_retries=0, timeout=0.3)
        opened.extend([client.close, server.stop])
        return server, client

    yield start
    for close in opened:
        close()


def ask(client, **options):
    return client.chat.completions.create(model="m", messages=HI, **options)


def on_the_wire(server, *, stream=False):
    """Status, headers and body as they come, without an SDK in between; the body as far as it comes."""
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


def test_a_truncated_stream_breaks_off(serve):
    server, client = serve(Truncated(LONG))
    assert isinstance(on_the_wire(server, stream=True)[2], http.client.IncompleteRead)
    with pytest.raises(httpx.RemoteProtocolError, match="peer closed connection"):
        list(ask(client, stream=True))


def test_malformed_json_comes_whole_with_the_right_type(serve):
    server, client = serve(MalformedJson(LONG))
    status, headers, body = on_the_wire(server)
    assert (status, headers["Content-Type"], int(headers["Content-Length"])) == (200, "application/json", len(body))
    with pytest.raises(ValueError, match=NO_JSON):
        json.loads(body)
    with pytest.raises(ValueError, match=NO_JSON):
        ask(client)


def test_malformed_json_in_a_stream_is_in_its_second_event(serve):
    _, client = serve(MalformedJson(LONG))
    stream = ask(client, stream=True)
    assert next(stream).choices[0].delta.role == "assistant"
    with pytest.raises(ValueError, match=NO_JSON):
        next(stream)


def test_a_wrong_type_is_a_page(serve):
    server, client = serve([WrongType(), WrongType("busy", "text/plain"), WrongType()])
    status, headers, body = on_the_wire(server)
    assert (status, headers["Content-Type"]) == (200, "text/html")
    assert body.startswith(b"<html>")
    assert on_the_wire(server)[1]["Content-Type"] == "text/plain"
    assert isinstance(ask(client), str)  # what OpenAI's SDK makes of a body that is no JSON


def test_a_closed_connection_gives_no_reply(serve):
    server, client = serve([ClosedConnection(), ClosedConnection(), LONG])
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        on_the_wire(server)
    with pytest.raises(openai.APIConnectionError):
        ask(client)
    assert ask(client).choices[0].message.content == LONG.text
    assert (len(server.calls), server.statuses) == (3, {200: 1})


def test_hanging_lasts_until_the_caller_gives_up(serve):
    server, client = serve(Hang())
    started = time.monotonic()
    with pytest.raises(openai.APITimeoutError):
        ask(client)
    assert time.monotonic() - started >= 0.3
    assert len(server.calls) == 1


def test_a_server_whose_calls_hang_stops_at_once():
    async def leave():
        async with (
            ModelServer(Hang()) as server,
            openai.AsyncOpenAI(base_url=server.openai, api_key="k", max_retries=0) as client,
        ):
            call = asyncio.create_task(client.chat.completions.create(model="m", messages=HI))
            while not server.calls:  # noqa: ASYNC110  # the server is on another thread: nothing here can be awaited
                await asyncio.sleep(0.001)
            started = time.monotonic()
            await asyncio.to_thread(server.stop)
            assert time.monotonic() - started < 1
            with pytest.raises(openai.APIConnectionError):
                await call

    asyncio.run(leave())


def test_a_slow_drip_takes_its_time_but_comes_whole(serve):
    server, client = serve(SlowDrip(0.1, LONG))
    started = time.monotonic()
    assert ask(client).choices[0].message.content == LONG.text
    assert time.monotonic() - started >= 0.1
    text = "".join(chunk.choices[0].delta.content or "" for chunk in ask(client, stream=True))
    assert text == LONG.text
    assert server.statuses == {200: 2}


def test_every_drip_is_in_time_for_a_timeout_between_bytes(serve):
    """Why a time limit on reading is not enough: each piece comes within it, the whole does not."""
    _, client = serve(SlowDrip(2.0, LONG))
    # a piece each 0.2 s; the client's timeout begins again with each
    assert ask(client.with_options(timeout=1.5)).choices[0].message.content == LONG.text


def test_a_stopped_stream_ends_without_its_end(serve):
    _, client = serve(StoppedStream(answer=LONG))
    chunks = list(ask(client, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one two three"
    assert all(chunk.choices[0].finish_reason is None for chunk in chunks)


def test_a_silent_stream_stays_open(serve):
    _, client = serve(StoppedStream(silent=True, answer=LONG))
    stream = ask(client, stream=True)
    assert [next(stream).choices[0].delta.content for _ in range(4)] == ["", "one", " two", " three"]
    with pytest.raises(httpx.ReadTimeout):
        next(stream)


def test_a_stopped_stream_of_anthropic_never_ends_its_message():
    with (
        ModelServer(StoppedStream(answer=LONG)) as server,
        anthropic.Anthropic(base_url=server.anthropic, api_key="k") as client,
    ):
        events = list(client.messages.create(model="c", max_tokens=9, messages=HI, stream=True))
    assert events[0].type == "message_start"
    assert "message_stop" not in [event.type for event in events]


def test_a_stopped_stream_that_was_not_asked_for_is_half_a_body(serve):
    server, client = serve(StoppedStream(answer=LONG))
    status, headers, body = on_the_wire(server)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert body.startswith(b'{"id"')
    with pytest.raises(ValueError, match=NO_JSON):
        ask(client)


@pytest.mark.parametrize(
    ("after", "header"),
    [
        (None, None),
        (2, "2"),
        (0.5, "0.5"),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT"),
        (datetime(2026, 10, 21, 7, 28, tzinfo=UTC), "Wed, 21 Oct 2026 07:28:00 GMT"),
    ],
)
def test_when_to_come_again(serve, after, header):
    server, _ = serve(Status(429, retry_after=after))
    status, headers, _ = on_the_wire(server)
    assert (status, headers.get("Retry-After")) == (429, header)


def test_a_delay_of_the_server_and_one_of_the_answer(serve):
    server, client = serve([Answer("late", delay_s=0.05), Status(500)], delay_s=0.05)
    started = time.monotonic()
    ask(client)
    assert time.monotonic() - started >= 0.1
    started = time.monotonic()
    assert on_the_wire(server)[0] == 500
    assert time.monotonic() - started >= 0.05
