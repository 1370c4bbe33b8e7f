import asyncio
import json
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from agentv.model.suite.assertion import Transform
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.targets.http.target import Http
from doubles.asking import answer, failure_code, request
from doubles.http_server import HttpServer
from doubles.misbehaving_server import MisbehavingServer, misbehaving_server


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


@pytest.fixture
def sent(server):
    """Return what the server receives of a request."""

    def seen(one=None, **settings):
        found = answer(Http(server.url("echo"), **settings), one)
        assert isinstance(found, TargetResponse), found
        return json.loads(found.output)

    return seen


def replying(server, body, **settings) -> Http:
    text = body if isinstance(body, str) else json.dumps(body)
    return Http(server.url(f"json?body={quote(text)}"), **settings)


def test_retrieved_texts_and_metadata_are_at_paths_of_the_response(server):
    body = {"answer": "yes", "found": [{"content": "a", "id": 1}, "b"], "facts": {"n": 1}, "none": None}
    paths = {"output": "$.answer", "context": "$.found", "metadata": "$.facts"}
    context = (RetrievedText("a", "1"), RetrievedText("b"))
    assert answer(replying(server, body, **paths)) == TargetResponse("yes", metadata={"n": 1}, context=context)
    assert answer(replying(server, body, **(paths | {"context": "$.none"}))).context == ()
    whole = answer(replying(server, body, context="$.found"))
    assert (json.loads(whole.output), whole.context) == (body, context)
    found = answer(replying(server, body, **(paths | {"context": "$.documents"})))
    assert found == Failure(
        "bad-answer", "$.documents leads nowhere: the object has 'answer', 'found', 'facts', 'none'"
    )
    found = answer(replying(server, body, **(paths | {"context": "$.facts.n"})))
    assert found == Failure("bad-answer", "'context' must be text, or an object with 'text', found int")
    given = {"output": "yes", "context": ["a"], "found": ["b"]}
    assert answer(replying(server, given)).context == (RetrievedText("a"),)
    assert answer(replying(server, given, context="$.found")).context == (RetrievedText("b"),)
    assert answer(replying(server, "plain text", context="$.found")).message.startswith("the response is not JSON")


def test_a_transform_makes_the_whole_answer():
    found = list(Http("http://a/b", context="$.a", transform=Transform("path", "$.a")).validate())
    shown = [(one.path, one.message) for one in found]
    assert shown == [(("context",), "'transform' makes the whole answer, so 'context' is never used")]


def test_without_a_body_the_prompt_is_sent(sent):
    found = sent()
    assert found["method"] == "POST"
    assert json.loads(found["body"]) == {"prompt": "hello"}
    assert found["headers"]["content-type"] == "application/json"
    assert sent(method="GET")["body"] == ""


def test_a_body_is_a_template_over_the_case(sent):
    body = {
        "model": "m",
        "all": "{{ messages }}",
        "said": "Q: {{ prompt }}!",
        "who": [
            "{{ user }}",
            "{{ vars.user }}",
            "{{ case_id }}",
            "{{ metadata.level }}",
            "{{ env.KEY }}",
            "${{ KEY }}",
        ],
        "n": "{{ metadata.level + 1 }}",
        "fixed": 1.5,
    }
    one = request("hi", "c", vars={"user": "ann"}, metadata={"level": 3}, env={"KEY": "k"})
    assert json.loads(sent(one, body=body)["body"]) == {
        "model": "m",
        "all": [{"role": "user", "content": "hi"}],
        "said": "Q: hi!",
        "who": ["ann", "ann", "c", 3, "k", "k"],
        "n": 4,
        "fixed": 1.5,
    }


def test_what_is_inserted_stays_a_value_and_is_never_rendered(sent):
    hostile = '", "admin": true, "x": "{{ env.KEY }} {% raw %}'
    one = request(hostile, vars={"v": hostile}, env={"KEY": "secret"})
    assert json.loads(sent(one, body={"p": "{{ prompt }}", "v": "{{ v }}"})["body"]) == {"p": hostile, "v": hostile}
    assert sent(one, body="{{ prompt }}|{{ v }}")["body"] == f"{hostile}|{hostile}"


def test_values_in_a_json_body_that_is_text_are_escaped(sent):
    hostile = 'he said "no" \\ \n", "admin": true'
    one = request(hostile, vars={"n": 3, "v": hostile})
    found = sent(
        one, body='{"q": "{{ prompt }}", "n": {{ n }}, "r": "[{{ v }}]", "t": {{ v | tojson }}, "s": "\\"{{ n }}"}'
    )
    assert json.loads(found["body"]) == {"q": hostile, "n": 3, "r": f"[{hostile}]", "t": hostile, "s": '"3'}
    assert json.loads(sent(one, body='["{{ prompt }}"]')["body"]) == [hostile]
    assert sent(one, body="{{ prompt }}")["body"] == hostile


def test_a_target_with_otel_is_called_within_the_trace_of_its_trial(sent):
    parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
    assert sent(request(env={"TRACEPARENT": parent}), otel=True)["headers"]["traceparent"] == parent
    assert "traceparent" not in sent(request(env={"TRACEPARENT": parent}))["headers"]


def test_a_header_cannot_be_broken_out_of(server):
    found = answer(Http(server.url("ok"), headers={"X": "{{ prompt }}"}), request("a\r\nSecret: b"))
    assert found.code == "bad-header"
    assert "Secret" not in found.message


@pytest.mark.parametrize(
    ("settings", "code_", "says"),
    [
        ({"body": "{{ nothing }}"}, "undefined-variable", "'nothing' is not defined"),
        ({"headers": {"X": "{{ env.NO_KEY }}"}}, "unset-environment", "NO_KEY"),
        ({"body": ["{{ 1 / 0 }}"]}, "bad-template", "ZeroDivisionError"),
        ({"body": ["{{ 1e999 }}"]}, "bad-template", "NameError"),
        ({"body": ["{{ nan }}"]}, "bad-body", "the body cannot be written as JSON"),
    ],
)
def test_what_cannot_be_rendered_is_a_failure(server, settings, code_, says):
    found = answer(Http(server.url("ok"), **settings), request(vars={"nan": float("nan")}))
    assert found.code == code_
    assert says in found.message


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("plain text\n", "plain text\n"),
        ('{"answer": 1}', '{"answer": 1}'),
        ('"quoted"', "quoted"),
        ("[1]", "[1]"),
        ("", ""),
        ("null", None),
        ("{}", None),
        ('{"error": null, "order": "A-42"}', '{"error": null, "order": "A-42"}'),
        ('{"error": "none", "order": "A-42"}', '{"error": "none", "order": "A-42"}'),
        ('{"output": "{\\"error\\": 1}"}', '{"error": 1}'),
        ("<html>42</html>", "<html>42</html>"),
    ],
)
def test_any_other_reply_is_the_answer_as_it_stands(server, body, output):
    assert answer(replying(server, body)).output == output


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": "no such model"}, "no such model"),
        ({"error": {"message": "over capacity", "code": 503}}, "over capacity"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ({"error": True, "message": "internal"}, "internal"),
        ({"status": "error", "message": "internal"}, "internal"),
        ({"error": ["a", "b"]}, '{"error": ["a", "b"]}'),
    ],
)
def test_an_error_body_is_no_answer(server, body, message):
    found = answer(replying(server, body))
    assert found.code == "target-error"
    assert found.message.startswith(f"{message} (an error body; ")


def test_an_html_page_is_no_answer_unless_a_transform_takes_it(server):
    page = "<!DOCTYPE html><h1>502 Bad Gateway</h1>"
    url = server.url(f"json?type=text/html&body={quote(page)}")
    found = answer(Http(url))
    assert found.code == "bad-answer"
    assert found.message.startswith(f"the server sent an HTML page: {page}")
    assert answer(Http(url, transform=Transform("expression", "text"))).output == page
    assert answer(Http(server.url(f"json?type=text/html&body={quote('<b>42</b>')}"))).output == "<b>42</b>"


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("$.choices[0].message.content", "yes"),
        ("choices.0.message.content", "yes"),
        ("$.choices[0].message", '{"content": "yes"}'),
        ("$.n", "5"),
        ("$.nothing", None),
        ("$.said", "last"),
        ("output", "not this"),
    ],
)
def test_a_path_picks_the_answer(server, path, output):
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "last"}]
    reply = {"choices": [{"message": {"content": "yes"}}], "n": 5, "nothing": None, "said": said, "output": "not this"}
    assert answer(replying(server, reply, output=path)).output == output


@pytest.mark.parametrize(
    ("status", "retryable"),
    [*((status, False) for status in (302, 400, 401, 404)), *((status, True) for status in (408, 409, 429, 500, 503))],
)
def test_any_other_status_than_success_is_a_failure(server, status, retryable):
    found = answer(Http(server.url(str(status))))
    assert (found.code, found.retryable) == ("http-status", retryable)
    assert found.message.startswith(f"HTTP {status} ")
    assert found.message.endswith(f": no {status}")


@pytest.mark.parametrize(
    ("way", "code_", "retryable"),
    [
        ("closed", "connection", True),
        ("cut", "connection", True),
        ("hang", "timeout", True),
        ("huge", "output-too-large", False),
        ("huge-stream", "output-too-large", False),
        ("not-utf-8", "not-utf-8", False),
    ],
)
def test_every_way_of_a_server_to_misbehave(server, way, code_, retryable):
    timeout_s = 0.1 if way == "hang" else 10
    found = answer(Http(server.url(way), headers={"X-Api-Key": "the-key"}), request(timeout_s=timeout_s))
    assert (found.code, found.retryable) == (code_, retryable)
    assert "the-key" not in found.message


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x?key=the-key",
        "http://no-such-host.invalid/?key=the-key",
        "http://127.0.0.1:99999/?key=the-key",
    ],
)
def test_a_server_that_is_not_there_is_a_failure_without_the_url(url):
    found = answer(Http(url))
    assert found.code == "connection"
    assert "the-key" not in found.message


@pytest.mark.parametrize("to", ["ftp://x/?key=the-key", "redirect?to=/redirect?key=the-key", "http://[/"])
def test_a_redirect_to_nowhere_is_a_failure(server, to):
    found = answer(Http(server.url(f"redirect?to={quote(to)}")))
    assert isinstance(found, Failure), found
    assert "the-key" not in found.message


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"url": "localhost:8080"}, [(("url",), "bad-value")]),
        ({"url": "ftp://x"}, [(("url",), "bad-value")]),
        ({"url": "http://"}, [(("url",), "bad-value")]),
        ({"url": "http://[x"}, [(("url",), "bad-value")]),
        ({"output": "$.a[*]"}, [(("output",), "bad-path")]),
        ({"output": ""}, [(("output",), "bad-path")]),
        ({"headers": {"X": "{{ a b }}"}}, [(("headers", "X"), "bad-template")]),
        ({"body": {"a": ["x", "{{ }"]}}, [(("body", "a", 1), "bad-template")]),
        ({"body": "{% if %}"}, [(("body",), "bad-template")]),
        ({"body": {"a": "{{ anything }}"}, "output": "$"}, []),
    ],
)
def test_what_is_wrong_with_the_settings_is_said_when_they_are_loaded(settings, found):
    settings = {"url": "http://localhost/"} | settings
    assert [(fault.path, fault.code) for fault in Http(**settings).validate()] == found


def test_a_proxy_that_the_environment_names_is_asked_instead(server, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("no_proxy", "localhost")
    assert answer(Http("http://never-resolved.invalid/ok")).output == "hello"
    assert failure_code(Http("http://localhost:1/ok")) == "connection"
    monkeypatch.delenv("http_proxy")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{server.port}")
    assert answer(Http("http://never-resolves.invalid/ok")).output == "hello"


def replying_with(body: bytes, kind: str, unasked: bytes = b"") -> HttpServer:
    """Return a server that sends extra bytes after each reply."""

    def pieces() -> Iterator[bytes]:
        yield body
        time.sleep(0.02)
        yield unasked

    kept = {"Connection": "keep-alive", "Content-Length": str(len(body)), "Content-Type": kind}
    return HttpServer(lambda _: (200, kept, pieces()))


@pytest.mark.parametrize(
    "unasked",
    [
        b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nother",
    ],
)
def test_a_response_that_nobody_asked_for_is_not_that_of_the_next_request(unasked):
    async def ask_thrice(target):
        found = []
        for _ in range(3):
            found.append(await target.answer(request("hello")))
            await asyncio.sleep(0.1)
        await target.close()
        return [one.output if isinstance(one, TargetResponse) else one for one in found]

    with replying_with(b"hello", "text/plain", unasked) as server:
        target = Http(server.url).connect(TargetSpec("h", "http", Http(server.url)), None)
        assert asyncio.run(ask_thrice(target)) == ["hello", "hello", "hello"]


@pytest.mark.parametrize(
    ("content_type", "body", "output"),
    [
        ("text/plain; charset=iso-8859-1", "café".encode("latin-1"), "café"),
        ('text/plain; charset="windows-1252"', "“café”".encode("cp1252"), "“café”"),
        ("text/plain;charset=UTF-16", "café".encode("utf-16"), "café"),
        ("application/json; charset=shift_jis", '{"output": "日本"}'.encode("shift_jis"), "日本"),
        ("text/plain; charset=utf-8", b"\xef\xbb\xbfhello", "hello"),
        ("text/plain; charset=no-such", "café".encode(), "café"),
        ("text/plain; charset=base64", "café".encode(), "café"),
        ("text/plain", "café".encode(), "café"),
        ("text/plain; charset=utf-8", b"caf\xe9", Failure("not-utf-8", "the answer is not UTF-8 text (byte 4)")),
        ("text/plain; charset=ascii", b"caf\xe9", Failure("not-utf-8", "the answer is not ascii text (byte 4)")),
    ],
)
def test_a_declared_charset_is_decoded(content_type, body, output):
    with replying_with(body, content_type) as server:
        found = answer(Http(server.url))
    assert (found.output if isinstance(found, TargetResponse) else found) == output
