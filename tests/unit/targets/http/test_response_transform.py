"""`transform` of an `http` target, in each of its forms."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from agentv.model.suite.assertion import Transform
from agentv.model.values.response import STRUCTURED, Failure, TargetResponse
from agentv.targets.http.target import Http
from doubles.asking import answer, request
from doubles.misbehaving_server import MisbehavingServer, misbehaving_server

BODY = '{"choices": [{"text": " yes "}], "usage": {"prompt": 2}}'


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


@pytest.fixture
def http(server, tmp_path):
    """A target whose server replies with a body."""

    def made(kind, expression, file=None, body=BODY):
        path = None
        if file is not None:
            path = tmp_path / file[0]
            path.write_text(file[1])
        transform = Transform(kind, expression, str(path) if path else None)
        return Http(server.url(f"json?body={quote(body)}"), transform=transform)

    return made


@pytest.mark.parametrize(
    ("kind", "expression", "file"),
    [
        ("javascript", "json.choices[0].text", None),
        ("javascript", "JSON.parse(text).choices[0].text", None),
        ("javascript", "const first = json.choices[0];\nreturn context.vars.x === 1 && first.text;", None),
        ("javascript", "(json, text, context) => context.response.status === 200 && json.choices[0].text", None),
        ("javascript", "({ output: json.choices[0].text })", None),
        ("javascript-file", "", ("shape.mjs", "export default (json) => json.choices[0].text;")),
        (
            "javascript-file",
            "pick",
            ("shape.cjs", "exports.pick = async (json) => ({ output: json.choices[0].text });"),
        ),
        ("function", "pick", ("shape.py", "def pick(data): return data['choices'][0]['text']")),
        ("function", "pick", ("two.py", "def pick(text, context): return ' yes ' if context['vars'] else text")),
        ("path", "$.choices[0].text", None),
        ("jinja", "json.choices[0].text", None),
    ],
)
def test_each_form_makes_the_answer(http, kind, expression, file):
    found = answer(http(kind, expression, file), request(vars={"x": 1}))
    assert isinstance(found, TargetResponse), found
    assert found.output == " yes "


def test_an_object_is_a_value(http):
    found = answer(http("javascript", "json.usage"))
    assert (found.output, found.metadata) == ('{"prompt":2}', {STRUCTURED: True})


@pytest.mark.parametrize("expression", ["undefined", "null", "json.nothing"])
def test_nothing_is_an_empty_answer(http, expression):
    assert answer(http("javascript", expression)).output is None


@pytest.mark.parametrize(
    ("kind", "expression", "body", "code", "said"),
    [
        ("javascript", "json.a.b.c", BODY, "target-raised", "json.a.b.c' raised TypeError"),
        ("javascript", "]]", BODY, "cannot-load", "SyntaxError"),
        ("javascript", "json.a", "no JSON", "target-raised", "TypeError"),
        ("javascript", "({ error: 'quota' })", BODY, "target-error", "quota"),
        ("path", "$.a", BODY, "bad-answer", "a"),
        ("jinja", "json.a.b", BODY, "bad-answer", "json.a.b"),
    ],
)
def test_what_goes_wrong_is_a_failure(http, kind, expression, body, code, said):
    found = answer(http(kind, expression, body=body))
    assert isinstance(found, Failure), found
    assert found.code == code
    assert said in found.message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("def pick(data): raise ValueError('no')", "target-raised"),
        ("def pick(data): return object()", "bad-answer"),
        ("def other(data): pass", "cannot-load"),
        ("def pick(one, two): pass", "bad-signature"),
    ],
)
def test_a_python_function_that_fails_is_a_failure(http, text, code):
    found = answer(http("function", "pick", ("shape.py", text)))
    assert isinstance(found, Failure), found
    assert found.code == code


def test_a_path_and_a_transform_are_one_too_many(server):
    [issue] = Http(server.url("ok"), output="$.a", transform=Transform("path", "$.a")).validate()
    assert "keep one of them" in issue.message
