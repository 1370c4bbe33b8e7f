"""Settings of a server, its output, its start and its end."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anthropic
import openai
import pytest

from agentv.testing import Answer, ModelServer, Status, Together


def ask(server, text="Hi", **body):
    asked = {"model": "m", "messages": [{"role": "user", "content": text}], **body}
    return post(f"{server.openai}/chat/completions", json.dumps(asked).encode())


def post(url, raw, **headers):
    try:
        with urlopen(Request(url, raw, headers)) as reply:
            got = json.load(reply)
    except HTTPError as error:
        with error as reply:
            return reply.status, json.load(reply)
    return got["choices"][0]["message"]["content"] if "choices" in got else got


def test_steps_come_in_their_order_and_the_last_again():
    with ModelServer(["first", Status(500), Answer("third")]) as server:
        assert [ask(server) for _ in range(4)][0::2] == ["first", "third"]
        assert ask(server) == "third"
    assert server.statuses == {200: 4, 500: 1}
    assert server.most_at_once == 1


def test_answers_together_wait_for_each_other():
    with ModelServer(Together(3, Answer("now"))) as server, ThreadPoolExecutor(3) as pool:
        assert [one.result() for one in [pool.submit(ask, server) for _ in range(3)]] == ["now"] * 3
        assert server.most_at_once == 3


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (lambda call: call.body["nothing"], "the reply function raised KeyError: 'nothing'"),
        (lambda _call: None, "the reply function raised TypeError: a reply must be a text or a step such as"),
    ],
)
def test_a_function_that_raises_is_an_error_that_says_so(reply, said):
    with ModelServer(reply) as server:
        status, body = ask(server)
    assert (status, body["error"]["type"]) == (500, "server_error")
    assert body["error"]["message"].startswith(said)


@pytest.mark.parametrize(("told", "error"), [([], ValueError), (7, TypeError), (["a", None], TypeError)])
def test_what_is_no_reply_is_refused_before_anything_starts(told, error):
    with pytest.raises(error, match="step"):
        ModelServer(told)


def test_keys_that_are_not_known_are_refused_and_take_no_step():
    with ModelServer(["first", "second"], keys=["right"]) as server:
        with openai.OpenAI(base_url=server.openai, api_key="wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                client.chat.completions.create(model="m", messages=[])
            with pytest.raises(openai.AuthenticationError):
                client.models.list()
        with openai.OpenAI(base_url=server.openai, api_key="right") as client:
            assert client.chat.completions.create(model="m", messages=[]).choices[0].message.content == "first"
            assert client.models.list().data
        with anthropic.Anthropic(base_url=server.anthropic, api_key="right") as client:
            assert client.messages.create(model="m", max_tokens=1, messages=[]).content[0].text == "second"
        raw = b'{"messages": []}'
        assert post(f"{server.anthropic}/v1/messages", raw, **{"x-api-key": "right"})["type"] == "message"
        assert post(f"{server.anthropic}/v1/messages", raw)[0] == 401
        assert "candidates" in post(f"{server.gemini}/v1beta/models/g:generateContent?key=right", raw)
        assert post(f"{server.openai}/chat/completions?key=right", raw)[0] == 401
    assert len(server.calls) == 7


@pytest.mark.parametrize(
    ("path", "method", "key", "said"),
    [
        ("/openai/v1/nothing", "POST", "code", "model_not_found"),
        ("/anthropic/v1/messages", "GET", "type", "not_found_error"),
        ("/", "GET", None, None),
    ],
)
def test_unknown_paths_are_404_in_the_providers_words(path, method, key, said):
    with ModelServer("") as server:
        root = server.openai.removesuffix("/openai/v1")
        with pytest.raises(HTTPError) as caught:
            urlopen(Request(root + path, b"{}" if method == "POST" else None, method=method))
        with caught.value as reply:
            assert reply.status == 404
            error = json.load(reply)["error"]
    assert key is None or error[key] == said
    assert server.calls == []


@pytest.mark.parametrize("raw", [b"", b"[1]", b"{", b"\xff"])
def test_a_body_that_is_no_object_is_400(raw):
    with ModelServer("") as server:
        status, body = post(f"{server.openai}/chat/completions", raw)
    assert (status, body["error"]["message"]) == (400, "The body is not a JSON object.")


def test_how_many_waited_at_once():
    together = threading.Barrier(5)

    def wait(_call):
        return Answer("x", delay_s=0.05)

    with ModelServer(wait) as server:

        def one(_):
            together.wait(5)
            return ask(server)

        with ThreadPoolExecutor(5) as pool:
            assert list(pool.map(one, range(5))) == ["x"] * 5
        assert server.most_at_once == 5
        assert (server.tokens.total, server.statuses) == (75, {200: 5})


def test_what_came_in_can_be_read_after_the_end_but_the_address_is_gone():
    server = ModelServer("")
    with pytest.raises(
        RuntimeError, match=r"a ModelServer has URLs only while it runs: `with ModelServer\(…\) as server:`"
    ):
        _ = server.openai
    with server:
        ask(server)
        address = server.openai
        with pytest.raises(RuntimeError, match="is already running"):
            server.start()
    assert len(server.calls) == 1
    with pytest.raises(RuntimeError, match="while it runs"):
        _ = server.openai
    with pytest.raises(OSError, match="refused"):
        urlopen(address)
    server.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "agentv-model-server"]


def test_a_port_that_is_taken_is_told():
    with ModelServer("") as server:
        port = int(server.openai.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match="in use"):
            ModelServer("").start(port)


def test_importing_it_is_cheap():
    code = """
import sys
from agentv.testing import Answer, ModelServer, Status, Together
server = ModelServer(["a", Status(429)])
heavy = {"aiohttp", "openai", "anthropic", "google", "httpx", "click", "pydantic"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
