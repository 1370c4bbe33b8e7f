"""Malformed requests to the judge proxy get an error response and never break it."""

import asyncio
import gzip
import json
import logging

import pytest

from agentv.assertions.judged.judge_proxy import URL, judge_proxy
from agentv.model.values.response import TargetResponse

ASKED = b'{"question": "hi"}'


class Judge:
    async def ask(self, prompt):
        return TargetResponse(f"{len(prompt)} characters")


def request(body=ASKED, *, host="{host}", token=b"{token}", path=b"/invoke", method=b"POST", more=b"", length=None):
    size = len(body) if length is None else length
    head = b"%b %b HTTP/1.1\r\nHost: %b\r\nAuthorization: Bearer %b\r\n%bContent-Length: %d\r\n\r\n"
    return head % (method, path, host.encode(), token, more, size) + body


async def replied(data):
    """Return the status and body of the reply to raw bytes."""
    async with judge_proxy(Judge(), 5) as door:
        host = door.env[URL].removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(data.replace(b"{token}", door.token.encode()).replace(b"{host}", host.encode()))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        writer.close()
        return int(head.split()[1]), body, door.calls


CHUNKED = (
    b"POST /invoke HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
)
MALFORMED = {
    "no JSON": (request(b"xx"), 400),
    "no question": (request(b"{}"), 400),
    "a number for a question": (request(b'{"question": 3}'), 400),
    "no UTF-8": (request(b"\xff\xfe{"), 400),
    "nested brackets": (request(b"[" * 200_000), 400),
    "half a character": (request(b'{"question": "\\ud800"}'), 400),
    "a system prompt that is none": (request(b'{"question": "a", "systemPrompt": 5}'), 400),
    "another host": (request(host="evil.example"), 400),
    "no host": (b"POST /invoke HTTP/1.1\r\n\r\n", 400),
    "no compression though it says so": (request(b"x", more=b"Content-Encoding: gzip\r\n"), 400),
    "a bomb": (request(gzip.compress(b" " * 30_000_000), more=b"Content-Encoding: gzip\r\n"), 413),
    "too large": (request(b" " * 21_000_000), 413),
    "a negative length": (request(length=-5), 400),
    "two lengths": (request(more=b"Content-Length: 5\r\n"), 400),
    "chunks that are none": (CHUNKED + b"ZZZ\r\nxx", 400),
    "a header without end": (request(more=b"X: " + b"a" * 100_000 + b"\r\n"), 400),
    "another token": (request(token=b"x"), 401),
    "another method": (request(method=b"GET"), 405),
    "another path": (request(path=b"/nope"), 404),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_request_is_told_so_and_leaves_no_traceback(name, caplog):
    data, expected = MALFORMED[name]
    with caplog.at_level(logging.DEBUG, "aiohttp"):
        status, body, calls = asyncio.run(replied(data))
    assert (status, calls) == (expected, 0), body
    assert b"Traceback" not in body
    assert not [one for one in caplog.records if one.exc_info]


@pytest.mark.parametrize(
    "data",
    [
        request(),
        request(more=b"Content-Type: application/json; charset=nope\r\n"),
        request(more=b"Content-Type: ;;;;\xff\r\n"),
        CHUNKED + b"12\r\n" + ASKED + b"\r\n0\r\n\r\n",
    ],
)
def test_what_can_be_read_is_answered(data):
    status, body, calls = asyncio.run(replied(data))
    assert (status, json.loads(body)["rawText"], calls) == (200, "2 characters", 1)
