"""Cross-site requests are refused, whoever sends them."""

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from agentv.web.security import HEADERS, POLICY, Guard, loopback_addresses

OWN = "http://127.0.0.1:4280"
TOKEN = "t" * 43


def answered(request):
    if request.url.path == "/api/broken":
        raise RuntimeError("secret detail")
    return PlainTextResponse("answered")


def client(token=TOKEN, base=OWN):
    routes = [Route("/{path:path}", answered, methods=["GET", "POST", "DELETE", "PUT"])]
    return TestClient(Guard(Starlette(routes=routes), loopback_addresses(4280), token), base_url=base)


def code(answer):
    return answer.json()["error"]["code"]


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:4280", "127.0.0.1", "127.0.0.1:4281", "127.0.0.1.evil.example:4280",
    "localhost:4280.", "",
])  # fmt: skip
def test_another_host_is_refused(host):
    answer = client().get("/", headers={"Host": host})
    assert (answer.status_code, code(answer)) == (403, "wrong-host")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:4281"},
        {"Origin": "https://127.0.0.1:4280"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_is_refused(headers):
    for method in ("get", "post"):
        answer = getattr(client(), method)("/api/runs", headers={"X-Agentv-Token": TOKEN, **headers})
        assert (answer.status_code, code(answer)) == (403, "wrong-origin")
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_what_changes_something_needs_the_token_and_the_origin(method):
    asked = client().request
    assert asked(method, "/api/runs/x", headers={"Origin": OWN, "X-Agentv-Token": TOKEN}).text == "answered"
    for headers in (
        {"Origin": OWN},
        {"X-Agentv-Token": TOKEN},
        {"Origin": OWN, "X-Agentv-Token": TOKEN[:-1]},
        {"Origin": OWN, "X-Agentv-Token": "ä"},
    ):
        assert code(asked(method, "/api/runs/x", headers={k: v.encode() for k, v in headers.items()})) == "wrong-token"
    for headers in ({"Origin": OWN, "X-Agentv-Token": ""}, {"Origin": OWN}):
        assert code(client(token="").request(method, "/api/runs/x", headers=headers)) == "read-only"


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(method):
    answer = client().request(method, "/api/runs", headers={"Origin": OWN, "X-Agentv-Token": TOKEN})
    assert (answer.status_code, code(answer)) == (405, "wrong-method")


def test_a_large_request_is_refused_before_it_is_read():
    headers = {"Origin": OWN, "X-Agentv-Token": TOKEN}
    assert client().post("/api/x", content=b"x" * 1_000_001, headers=headers).status_code == 413
    for length in ("9" * 40, "-1", "1e3"):
        assert client().post("/api/x", headers={**headers, "Content-Length": length}).status_code == 413


def test_every_answer_has_the_headers_also_a_refusal_and_a_bug():
    broken = client().get("/api/broken")
    assert (broken.status_code, "secret" in broken.text) == (500, False)
    for answer in (client().get("/"), client().get("/", headers={"Host": "evil"}), broken):
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["Cache-Control"] == "no-store"
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"):
        assert part in POLICY
    assert "unsafe" not in POLICY
