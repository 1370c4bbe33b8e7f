"""The gateway in front of a model server: real SDKs, and everything an agent could try."""

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import httpx
import openai
import pytest
from google import genai
from msgspec.structs import replace

from agentv.app.wiring import Connections
from agentv.engine.calls.budget import Budget, BudgetLimiter
from agentv.extensions.agents.gateway.recording import CassetteExchanges
from agentv.extensions.agents.gateway.routes import route_of
from agentv.model.redaction import Redactor
from agentv.model.suite.suite import Retry, TargetSpec
from agentv.model.suite.tools import ModelUpstream
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.ports import Call, TargetRequest
from agentv.store.cassettes.cassette import Cassette
from agentv.testing import Answer, ClosedConnection, ModelServer, Status, StoppedStream, TokenUsage, Truncated
from doubles.trials import trial
from doubles.waiting import until

KEY = "sk-real-0123456789abcdef"
HI = [{"role": "user", "content": "hi"}]
QUICK = Retry(max_retries=2, initial_delay_ms=1, max_delay_ms=1)


class Opened:
    """The sessions of a test, each with SDK clients."""

    def __init__(self, server: ModelServer, connections: Connections) -> None:
        self.server, self.connections = server, connections

    async def session(self, protocol="openai", retry=QUICK, spec=None, faults=None, key="", **more: Any):
        upstream = ModelUpstream(protocol, getattr(self.server, protocol), KEY, faults or {})
        spec = spec or TargetSpec("agent", "cli", object(), retry=retry, upstream=upstream)
        one = replace(trial("a", key=key), target=spec)
        opened = await self.connections.works.gateway.open(one, upstream, **more)
        assert not isinstance(opened, Failure)
        return opened


@asynccontextmanager
async def gateway(reply: Any = "fine", *, budget=None, answers=None, **server: Any):
    async with ModelServer(reply, keys=[KEY], **server) as running:
        connections = Connections(budget_limiter=budget, answers=answers)
        try:
            yield Opened(running, connections)
        finally:
            while CLIENTS:
                await CLIENTS.pop().close()
            await connections.close()


@asynccontextmanager
async def one_session(reply: Any = "fine", **server: Any):
    async with gateway(reply, **server) as opened:
        yield opened, await opened.session()


def openai_of(session):
    client = openai.AsyncOpenAI(api_key=session.access.token, base_url=session.access.base_url("openai"), max_retries=0)
    CLIENTS.append(client)
    return client


def anthropic_of(session, max_retries=0):
    base_url = session.access.base_url("anthropic")
    client = anthropic.AsyncAnthropic(api_key=session.access.token, base_url=base_url, max_retries=max_retries)
    CLIENTS.append(client)
    return client


CLIENTS: list[Any] = []
"""SDK clients, closed with their test's loop."""


async def post(session, path, body: Any = None, headers=None, method="POST"):
    """Send a raw request and return its status and text."""
    sent = {"Authorization": f"Bearer {session.access.token}"} if headers is None else headers
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, session.access.url + path, data=data, headers=sent) as reply,
    ):
        return reply.status, await reply.text()


async def test_openais_sdk_in_all_its_ways():
    usage = TokenUsage(input=100, output=7, total=107, cached=20, reasoning=3)

    async with one_session(Answer("fine", usage=usage)) as (_opened, session):
        client = openai_of(session)
        whole = await client.chat.completions.create(model="gpt-4o", messages=HI)
        plain = [one async for one in await client.chat.completions.create(model="gpt-4o", messages=HI, stream=True)]
        asked = [
            one
            async for one in await client.chat.completions.create(
                model="gpt-4o", messages=HI, stream=True, stream_options={"include_usage": True}
            )
        ]
        response = await client.responses.create(model="gpt-4o", input="hi")
        events = [one async for one in await client.responses.create(model="gpt-4o", input="hi", stream=True)]
        before = len(session.usages())
        await client.models.list()
        assert len(session.usages()) == before == 5
        assert (whole.choices[0].message.content, response.output_text) == ("fine", "fine")
        assert [one.usage for one in plain] == [None] * len(plain)
        assert all(one.choices for one in plain), "the chunk that holds usage alone is not shown"
        assert asked[-1].usage.total_tokens == 107
        assert events[-1].type == "response.completed"
        assert {one.tokens for one in session.usages()} == {usage}
        assert {one.evidence for one in session.usages()} == {"gateway"}
        assert session.failure is None


@pytest.mark.parametrize("streamed", [False, True])
async def test_anthropics_sdk(streamed):
    usage = TokenUsage(input=100, output=7, total=107, cached=20, reasoning=3)

    async with gateway(Answer("fine", usage=usage)) as opened:
        session = await opened.session("anthropic")
        client = anthropic_of(session, 0)
        if streamed:
            async with client.messages.stream(model="claude-x", max_tokens=9, messages=HI) as stream:
                text = await stream.get_final_text()
        else:
            text = (await client.messages.create(model="claude-x", max_tokens=9, messages=HI)).content[0].text
        assert (text, [one.tokens for one in session.usages()]) == ("fine", [usage])


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
@pytest.mark.parametrize("streamed", [False, True])
async def test_googles_sdk(streamed):
    async with gateway() as opened:
        session = await opened.session("gemini")
        options = {"base_url": session.access.base_url("gemini")}
        client = genai.Client(api_key=session.access.token, http_options=options)
        if streamed:
            stream = await client.aio.models.generate_content_stream(model="gemini-2.5-flash", contents="hi")
            text = "".join([one.text or "" async for one in stream])
        else:
            text = (await client.aio.models.generate_content(model="gemini-2.5-flash", contents="hi")).text
        await client.aio.aclose()
        shown = (text, [(one.model, one.tokens.total) for one in session.usages()])
        assert shown == ("fine", [("gemini-2.5-flash", 15)])


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/openai/v1/chat/completions", ("error", "code", "invalid_api_key")),
        ("/anthropic/v1/messages", ("error", "type", "authentication_error")),
        ("/gemini/v1beta/models/m:generateContent", ("error", "status", "UNAUTHENTICATED")),
        ("/", ("error", "code", "invalid_api_key")),
        ("/openai/v1/../../etc/passwd", ("error", "code", "invalid_api_key")),
    ],
)
@pytest.mark.parametrize("token", ["", KEY, "agentv-trial-guessed"])
async def test_only_the_token_of_a_live_trial_is_taken(path, shape, token):
    async with one_session() as (opened, session):
        status, text = await post(session, path, {}, {"Authorization": f"Bearer {token}"})
        assert not opened.server.calls
        assert (status, json.loads(text)[shape[0]][shape[1]]) == (401, shape[2])


async def test_a_token_is_of_one_trial_and_ends_with_it():
    async with gateway() as opened:
        one, two = await opened.session(), await opened.session("anthropic")
        await openai_of(one).chat.completions.create(model="m", messages=HI)
        status, _ = await post(two, "/openai/v1/chat/completions", {"model": "m", "messages": HI})
        assert (status, len(two.usages())) == (404, 0), "the API of another trial"
        kept = openai_of(one)
        await kept.chat.completions.create(model="m", messages=HI)
        await one.close()
        with pytest.raises(openai.AuthenticationError):
            await kept.chat.completions.create(model="m", messages=HI)  # over the open connection
        assert (len(one.usages()), len(two.usages()), len(opened.server.calls)) == (2, 0, 2)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example:80", "169.254.169.254", ""]
)
async def test_a_page_that_is_led_here_by_its_name_is_refused(host):
    async with one_session() as (_opened, session):
        headers = {"Authorization": f"Bearer {session.access.token}", "Host": host}
        shown = (await post(session, "/openai/v1/chat/completions", {"model": "m", "messages": HI}, headers))[0]
        assert shown in {400, 401}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/openai/v1/batches", {"input_file_id": "f"}),
        ("/openai/v1/files", {}),
        ("/openai/v1/responses/resp_1/cancel", {}),
        ("/openai/v1/chat/completions/", {"model": "m"}),
        ("/openai/v1/images/generations", {"model": "m"}),
        ("/openai//v1/chat/completions", {"model": "m"}),
        ("/openai/v1/chat%2Fcompletions", {"model": "m"}),
        ("/openai/v1/models/../batches", {}),
        ("/openai/v1/responses", {"model": "m", "input": "hi", "background": True}),
        ("/openai/v1/chat/completions", b"[]"),
        ("/openai/v1/chat/completions", b"not json"),
        ("/openai/v1/chat/completions", b"[" * 100_000),
    ],
)
async def test_what_cannot_be_counted_is_not_forwarded(path, body):
    async with one_session() as (opened, session):
        status, _ = await post(session, path, body)
        assert (status in {400, 404}, len(opened.server.calls)) == (True, 0)


@pytest.mark.parametrize(
    "path",
    ["/models/../files", "/models/..", "/models/%2e%2e/files", "/models/..%2Ffiles", "/models/%252e%252e%252ffiles"],
)
def test_no_path_leads_to_what_else_the_key_opens(path):
    assert route_of("GET", f"/openai/v1{path}") is None
    assert route_of("GET", f"/gemini/v1beta{path}") is None
    assert route_of("GET", "/openai/v1/models/meta-llama/Llama-3..1") is not None


@pytest.mark.parametrize("step", [ClosedConnection(), Truncated()])
async def test_a_reply_that_does_not_come_whole_counts_in_full(step):
    limiter = BudgetLimiter(Budget(tokens=3000))
    async with one_session(step, budget=limiter) as (_opened, session):
        with pytest.raises(openai.OpenAIError):
            await openai_of(session).chat.completions.create(model="gpt-4o", max_tokens=1000, messages=HI)
        spent, code = (limiter.budget.spent.tokens, session.failure.code)
    assert spent >= 1000
    assert code in {"agent-api", "budget-spent"}


async def test_bodies_are_bounded(monkeypatch):
    monkeypatch.setattr("agentv.extensions.agents.gateway.server.LONGEST", 1000)

    async with one_session() as (opened, session):
        status, _ = await post(session, "/openai/v1/chat/completions", {"model": "m", "x": "y" * 5000})
        assert (status, len(opened.server.calls)) == (413, 0)


async def test_a_websocket_is_refused_at_once():
    async with one_session() as (_opened, session):
        headers = {
            "Authorization": f"Bearer {session.access.token}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version": "13",
        }
        assert (await post(session, "/openai/v1/responses", None, headers, "GET"))[0] == 426


async def test_errors_before_the_first_byte_are_tried_again_and_later_ones_break_the_stream():
    steps = [Status(500), ClosedConnection(), "fine", StoppedStream(), Truncated()]
    async with one_session(steps) as (opened, session):
        client = openai_of(session)
        assert (await client.chat.completions.create(model="m", messages=HI)).choices[0].message.content == "fine"
        assert (len(opened.server.calls), len(session.usages())) == (3, 1)
        assert session.failure is None
        with pytest.raises((openai.APIError, httpx.TransportError)):
            async for _ in await client.chat.completions.create(model="m", messages=HI, stream=True):
                pass
        assert "ended early" in session.usages()[1].error
        assert session.failure.code == "agent-api"
        with pytest.raises(openai.APIError):
            await client.chat.completions.create(model="m", messages=HI)
        errors, calls = ([one.error is not None for one in session.usages()], len(opened.server.calls))
    assert errors[:3] == [False, True, True]
    assert calls >= 5


CUT_CALLS = [
    ("openai", "/openai/v1/chat/completions", {"messages": HI}, "length"),
    ("openai", "/openai/v1/responses", {"input": "hi"}, "max_output_tokens"),
    ("anthropic", "/anthropic/v1/messages", {"messages": HI, "max_tokens": 9}, "max_tokens"),
    ("gemini", "/gemini/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "hi"}]}]}, "MAX_TOKENS"),
    ("gemini", "/gemini/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": []}, "MAX_TOKENS"),
]


@pytest.mark.parametrize(("protocol", "path", "body", "reason"), CUT_CALLS)
async def test_a_last_answer_that_was_cut_off_is_none_whatever_the_agent_makes_of_it(protocol, path, body, reason):
    filtered = {"openai": "content_filter", "anthropic": "refusal", "gemini": "SAFETY"}[protocol]
    body = {"model": "m", **body, "tools": [{"name": "look", "function": {"name": "look"}}]}
    replies = [Answer("half an ans", finish_reason=reason), "a title", Answer("", finish_reason=filtered), "whole"]

    for streams in (False, True) if protocol != "gemini" else (False,):
        async with gateway(list(replies)) as opened:
            session, codes = await opened.session(protocol), []
            for offered in (True, False, True, True):  # the call for the title offers no tools
                asked = {**(body if offered else {**body, "tools": []}), **({"stream": True} if streams else {})}
                assert (await post(session, path, asked))[0] == 200
                codes.append(session.failure and session.failure.code)
            assert codes == ["agent-limit", "agent-limit", "refused", None]


@pytest.mark.parametrize("ends", ["agent", "trial"])
async def test_whoever_closes_early_hides_nothing(ends):
    limiter = BudgetLimiter(Budget(tokens=5_000_000))
    async with one_session(Answer("fine", delay_s=20), budget=limiter) as (opened, session):
        call = asyncio.ensure_future(
            openai_of(session).chat.completions.create(model="gpt-4o", max_tokens=1000, messages=HI)
        )
        await asyncio.to_thread(until, lambda: opened.server.calls)
        if ends == "agent":
            call.cancel()
        else:
            await session.close()
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.to_thread(until, lambda: session.usages()[0].error != "it has not ended")
        errors, spent, failure = ([one.error for one in session.usages()], limiter.budget.spent.tokens, session.failure)
    assert len(errors) == 1
    assert errors[0] is not None
    assert spent >= 1000, "a call that broke off counts with all that it could take"
    if ends == "trial":
        assert failure is None, "what ended the trial is its reason"
    else:
        assert (failure.code, "broke off all of its 1 model calls" in failure.message) == ("agent-api", True)


async def test_calls_without_a_known_ceiling_that_break_off_take_what_was_reserved():
    limiter = BudgetLimiter(Budget(tokens=5_000))
    async with one_session(Answer("fine", delay_s=20), budget=limiter) as (opened, session):
        call = asyncio.ensure_future(openai_of(session).chat.completions.create(model="no-such-model", messages=HI))
        await asyncio.to_thread(until, lambda: opened.server.calls)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.to_thread(until, lambda: session.usages()[0].error != "it has not ended")
        with pytest.raises(openai.APIStatusError) as refused:
            await openai_of(session).chat.completions.create(model="no-such-model", messages=HI)
        shown = (limiter.budget.spent.tokens, refused.value.status_code, session.failure.code, len(opened.server.calls))
        assert shown == (5_000, 402, "budget-spent", 1)


async def test_a_spent_budget_is_an_error_that_no_sdk_tries_again():
    async with gateway(budget=BudgetLimiter(Budget(tokens=20))) as opened:
        session = await opened.session("anthropic")
        client = anthropic_of(session, 5)
        with pytest.raises(anthropic.APIStatusError) as raised:
            await client.messages.create(model="claude-x", max_tokens=1000, messages=HI)
        status, _ = await post(session, "/anthropic/v1/messages/count_tokens", {"model": "m", "messages": HI})
        assert status == 402, "nothing is forwarded any more"
        assert (raised.value.status_code, session.failure.code, len(opened.server.calls)) == (402, "budget-spent", 0)


async def test_the_key_is_never_returned_and_the_token_never_forwarded():
    async with one_session(Status(400, f"bad key {KEY}", headers={"x-debug": KEY})) as (opened, session):
        token = session.access.token
        headers = {"x-api-key": token, "x-copy": token, "Cookie": f"a={token}", "x-fine": "1", "Host": "localhost"}
        async with aiohttp.ClientSession() as client:
            url = f"{session.access.url}/openai/v1/chat/completions?key={token}&copy={token}&fine=1"
            async with client.post(url, json={"model": "m", "messages": HI}, headers=headers) as reply:
                shown = (await reply.text()) + str(reply.headers)
        [call] = opened.server.calls
        assert token not in str(call.headers) + str(call.query) + call.path
        assert (call.headers["x-fine"], dict(call.query)) == ("1", {"fine": "1"})
        found = (KEY in shown, KEY in str(session.failure), KEY in str(session.usages()), KEY in repr(session))
        assert found == (False, False, False, False)


async def test_two_runs_of_a_trial_get_the_same_faults():
    async with gateway() as opened:
        found = []
        for key in ("k1", "k1", "k2"):
            session = await opened.session(faults={"429": 0.3, "503": 0.2}, key=key)
            paths = "/openai/v1/chat/completions"
            found.append([(await post(session, paths, {"model": "m", "messages": HI}))[0] for _ in range(25)])
            assert session.failure is None, "what is injected is the agent's to handle"
        (one, two, other), calls = (found, len(opened.server.calls))
    assert one == two != other
    assert set(one) == {200, 429, 503}
    assert calls == sum(status == 200 for status in (*one, *two, *other))


async def test_a_unix_socket_is_listened_on_as_long_as_its_trial_lives(tmp_path):
    async with gateway() as opened:
        session = await opened.session(directory=str(tmp_path))
        path = session.access.socket
        assert mode_of(path) == 0o600
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as client:
            headers = {"Authorization": f"Bearer {session.access.token}"}
            url = "http://127.0.0.1:1234/openai/v1/chat/completions"
            async with client.post(url, json={"model": "m", "messages": HI}, headers=headers) as reply:
                status = reply.status
        await session.close()
        assert (status, mode_of(path), len(session.usages())) == (200, None, 1)


def mode_of(path):
    return Path(path).stat().st_mode & 0o777 if Path(path).exists() else None


CALL = Call("k", "t", TargetRequest("a", "hi", (Message("user", "hi"),)))


def recording_of(path, *, replays=False):
    """Return the recording of a trial, made or replayed, and its cassette."""
    cassette = Cassette.load(path, Redactor()) if replays else Cassette(path, Redactor())
    return cassette, CassetteExchanges(cassette, records=not replays, adds=False).open(CALL)


async def test_a_replay_spends_nothing_and_a_stream_that_broke_off_and_errors_of_the_api_come_again(tmp_path):
    async def asked(exchanges, *replies, budget=None):
        async with gateway(list(replies), budget=budget) as opened:
            session = await opened.session(exchanges=exchanges)
            client, found = openai_of(session), []
            for text in ("one", "two", "three"):
                messages = [{"role": "user", "content": text}]
                try:
                    stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
                    found.append([one.choices[0].delta.content async for one in stream if one.choices])
                except (openai.APIError, httpx.TransportError) as error:
                    found.append(type(error).__name__)
            return found, [one.tokens for one in session.usages()], len(opened.server.calls)

    path = tmp_path / "run.jsonl"
    cassette, exchanges = recording_of(path)
    first, tokens, calls = await asked(exchanges, Status(400), StoppedStream(), Answer("fine"))
    assert (first[0], calls) == ("BadRequestError", 3)
    assert isinstance(first[1], str)
    exchanges.finish(complete=True)
    cassette.write()
    _, exchanges = recording_of(path, replays=True)
    assert await asked(exchanges, "another", budget=BudgetLimiter(Budget(tokens=1))) == (first, tokens, 0)
    assert (exchanges.finish(complete=True), exchanges.notes()) == (None, ())


async def test_faults_are_no_part_of_a_recording_and_a_replay_has_none(tmp_path):
    async def statuses(exchanges):
        async with gateway("fine") as opened:
            session = await opened.session(exchanges=exchanges, faults={"503": 0.5})
            body = {"model": "m", "messages": HI}
            return [(await post(session, "/openai/v1/chat/completions", body))[0] for _ in range(20)]

    path = tmp_path / "run.jsonl"
    cassette, exchanges = recording_of(path)
    first = await statuses(exchanges)
    assert set(first) == {200, 503}
    exchanges.finish(complete=True)
    cassette.write()
    assert b'"status":503' not in path.read_bytes()
    _, exchanges = recording_of(path, replays=True)
    again = await statuses(exchanges)
    good = first.count(200)
    assert again == [200] * good + [402] * (20 - good)
