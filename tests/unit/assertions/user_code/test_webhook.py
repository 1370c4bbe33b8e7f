"""`type: webhook` against a real loopback server."""

import asyncio
import json
from urllib.parse import quote

import pytest

from agentv.assertions.user_code.webhook import Webhook
from doubles.grading import context_of, grade_async
from doubles.misbehaving_server import misbehaving_server

SECRET = "Bearer s3cret-t0ken"


@pytest.fixture(scope="module")
def server():
    with misbehaving_server() as server:
        yield server


def judged(url, output="hello", *, headers=None, config=None, **known):
    return asyncio.run(grade_async(Webhook(url, headers or {}, config or {}), context_of(output, **known)))


def replying(server, body):
    """Return an address at which the server replies with this body."""
    text = body if isinstance(body, str) else json.dumps(body)
    return server.url(f"json?body={quote(text)}")


@pytest.mark.parametrize(
    ("reply", "score", "passed"),
    [
        ({"pass": True}, 1, True),
        ({"pass": False}, 0, False),
        ({"score": 0.75}, 0.75, True),
        ({"pass": False, "score": 0.75}, 0.75, False),
    ],
)
def test_the_reply_is_the_verdict(server, reply, score, passed):
    grade = judged(replying(server, reply))
    assert grade.error is None, grade.error
    assert (grade.score, grade.passed) == (score, passed)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "an empty response"),
        ("ok", "did not respond with JSON: ok"),
        ("[" * 2000, "not respond with JSON"),
        ("true", "the webhook must respond with an object that has 'pass' or 'score'"),
        ("{}", "none of 'pass', 'score' and 'assertions'"),
    ],
)
def test_what_is_no_verdict_is_errored(server, reply, said):
    grade = judged(replying(server, reply))
    assert grade.error.code == "bad-result"
    assert said in grade.error.message


@pytest.mark.parametrize(
    ("way", "code", "said"),
    [
        ("500", "http-status", "responded with HTTP 500: no 500"),
        ("redirect/200", "http-status", "responded with a redirect (HTTP 307), which is not followed"),
        ("bad-json", "bad-result", "not respond with JSON"),
        ("not-utf-8", "bad-result", "not respond with JSON"),
        ("huge", "output-too-large", "over 10 MB"),
        ("closed", "connection", "no response from the webhook:"),
    ],
)
def test_a_server_that_misbehaves_gives_no_verdict(server, way, code, said):
    server.seen.clear()
    grade = judged(server.url(way))
    assert grade.error.code == code
    assert said in grade.error.message
    assert len(server.seen) == 1  # neither retried nor redirected


def test_a_server_that_is_not_there():
    grade = judged("http://127.0.0.1:9/x?key=s3cret-key")
    assert grade.error.code == "connection"
    assert "cannot connect to 127.0.0.1:9" in grade.error.message
    assert "s3cret" not in grade.error.message


async def test_a_server_that_hangs_is_left_when_time_is_up(server):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(grade_async(Webhook(server.url("hang")), context_of("hello")), 0.2)


def test_headers_are_sent_and_their_values_are_kept_out_of_grades(server):
    headers = {"Authorization": SECRET, "content-type": "application/json; v=2"}
    server.seen.clear()
    replies = [
        {"pass": False, "reason": f"got {SECRET}", "details": {"s3cret-t0ken": ["s3cret-t0ken"]}},
        {"score": 1, "assertions": [{"text": "s3cret-t0ken", "passed": True, "evidence": SECRET}]},
        {"pass": "s3cret-t0ken"},
        "no s3cret-t0ken",
    ]
    grades = [judged(replying(server, reply), headers=headers) for reply in replies]
    grades.append(judged(server.url("echo"), headers=headers))
    assert server.seen[0]["headers"]["authorization"] == SECRET
    assert server.seen[0]["headers"]["content-type"] == "application/json; v=2"
    assert [grade.error is None for grade in grades] == [True, True, False, False, False]
    assert not [grade for grade in grades if "s3cret" in repr(grade)]
    assert "s3cret" not in repr(Webhook("http://a/", headers))


def test_a_header_that_is_a_key_of_the_reply_spoils_no_verdict(server):
    assert judged(replying(server, {"pass": True, "score": 0.75}), headers={"X-Mode": "score"}).score == 0.75


@pytest.mark.parametrize("url", ["", "example.com/x", "ftp://example.com", "http://", "http://[::1", "http://a:b/"])
def test_an_address_must_be_one(url):
    assert [fault.path for fault in Webhook(url).validate()] == [("value",)]


@pytest.mark.parametrize("headers", [{"X Y": "a"}, {"": "a"}, {"X:": "a"}, {"Ø": "a"}, {"X": "a\r\nHost: b"}])
def test_headers_must_fit_into_a_request(headers):
    (fault,) = Webhook("http://a/", headers).validate()
    assert fault.path[0] == "headers"
