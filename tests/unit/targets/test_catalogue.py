import gzip
import subprocess
import sys
from types import SimpleNamespace

import pytest

from agentv.sdk import evaluate
from agentv.targets.catalogue import _provider
from agentv.targets.http.target import Http
from agentv.targets.litellm.target import LiteLLM
from agentv.testing import ModelServer, Status
from doubles.asking import answer
from doubles.http_server import HttpServer
from doubles.model_apis import APIS, KEY
from needs import each


@pytest.mark.parametrize("wrong", [int, type("Settings", (), {})])
def test_a_plugin_that_is_no_provider_is_quoted(wrong):
    with pytest.raises(TypeError, match=rf"provider 'mine' must be a frozen dataclass .* got {wrong!r}"):
        _provider("mine", wrong)


def test_what_a_suite_does_not_need_is_not_imported():
    heavy = {"aiohttp", "genai_prices", "httpx", "jinja2", "openai", "rapidfuzz", "subprocess"}
    code = (
        "import sys; from agentv.targets.catalogue import *; found = registry(); list(map(found.find, PROVIDERS));"
        f"print(*({heavy} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) <= {"subprocess"}  # asyncio imports it already


SUITE = """target: "mock:The refund takes five days"
judge:
  name: api
  provider: openai
  model: gpt-5-mini
  embedding_model: text-embedding-3-small
  base_url: "{url}"
  api_key: sk-test-key-1234
default_test:
  assert: [{{type: similar, value: The refund takes five days}}]
tests:
  - {{id: a, input: x}}
  - {{id: b, input: y}}
  - {{id: c, input: z}}
"""


def results(tmp_path, server):
    (tmp_path / ".git").mkdir()
    (tmp_path / "suite.eval.yaml").write_text(SUITE.format(url=server.openai))
    return evaluate(str(tmp_path / "suite.eval.yaml")).results


def test_an_api_that_refuses_errs_the_grade(tmp_path):
    with ModelServer(Status(401, "no such key")) as server:
        found = results(tmp_path, server)
    assert {one.status for one in found} <= {"errored", "skipped"}
    error = found[0].scores[0].grade.error
    assert error.code == "embedder-http-status"
    assert "sk-test-key-1234" not in error.message


TARGETS = {
    **APIS,
    "litellm to anthropic": lambda server: LiteLLM("anthropic/claude-haiku-4-5", server.anthropic, KEY),
    "http": lambda server: Http(f"{server.openai}/chat/completions", headers={"x-api-key": KEY}),
}


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("name", each(TARGETS))
def test_nothing_arrives_where_a_server_redirects_to(name, status):
    with ModelServer("stolen") as other:
        there = f"{other.openai}/chat/completions"
        where = there.replace("http://", "http://me:hidden@") + f"?key={KEY}"
        with ModelServer(Status(status, headers={"Location": where})) as server:
            found = answer(TARGETS[name](server))
            assert len(server.calls) == 1
        assert other.calls == []
    assert (found.code, found.status, found.retryable) == ("http-status", status, False)
    option, shown = ("url", there) if name == "http" else ("base_url", there.removesuffix("/chat/completions"))
    assert found.message.endswith(f"the server redirects to {shown.removeprefix('http://')}: write that as '{option}'")
    assert found.message.startswith(f"HTTP {status} ")
    assert KEY not in repr(found)
    assert "hidden" not in repr(found)


@pytest.mark.parametrize(("status", "code", "retryable"), [(200, "bad-answer", False), (429, "http-status", True)])
@pytest.mark.parametrize("name", each(TARGETS))
def test_no_compression_is_asked_for_and_a_compressed_reply_is_refused(name, status, code, retryable):
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json", "Retry-After": "7"}
    with HttpServer(lambda _: (status, headers, gzip.compress(b'{"output": "hi"}'))) as server:
        apis = SimpleNamespace(**dict.fromkeys(("openai", "azure", "anthropic", "gemini"), server.url))
        found = answer(TARGETS[name](apis))
    assert {request.headers.get_all("Accept-Encoding")[0] for request in server.requests} == {"identity"}
    assert (found.code, found.status, found.retryable, found.retry_after_s) == (code, status, retryable, 7.0)
    assert "the reply is compressed (gzip), which agentv does not read: the server, or a proxy" in found.message


@pytest.mark.parametrize("name", ["", "identity"])
def test_a_reply_that_names_no_compression_is_read(name):
    with HttpServer(lambda _: (200, {"Content-Encoding": name}, b'{"output": "hi"}')) as server:
        assert answer(TARGETS["http"](SimpleNamespace(openai=server.url))).output == "hi"


@pytest.mark.parametrize("where", ["ftp://x/", "http://[/", "/elsewhere"])
def test_a_redirect_to_nowhere_is_told_too(where):
    with ModelServer(Status(302, headers={"Location": where})) as server:
        found = answer(TARGETS["openai"](server))
    assert (found.code, found.status) == ("http-status", 302)
