"""Contract of targets, for every provider."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_type_hints

import pytest
from msgspec import Struct

from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import TargetRequest
from agentv.registry.fields import Command, Doc, FunctionRef, JavaScriptSource, is_declared, options_of
from agentv.registry.types import ProviderSettings
from agentv.targets.anthropic.target import Anthropic
from agentv.targets.catalogue import PROVIDERS, registry
from agentv.targets.cli import Cli
from agentv.targets.gemini.target import Gemini
from agentv.targets.http.target import Http
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.mock import Echo, Mock
from agentv.targets.openai_api.hosted import OpenRouter
from agentv.targets.openai_api.providers import Azure, Ollama, OpenAI
from agentv.targets.promptfoo import JavaScript
from agentv.targets.python import Python
from agentv.targets.replay import Replay
from agentv.testing import Hang, ModelCall, ModelServer, Status, Step
from agentv.testing.contract import TargetContract
from agentv.user_code.threads import DaemonThreads
from doubles.asking import answers, call_target, request, spec_of
from doubles.misbehaving_server import MisbehavingServer, misbehaving_server
from doubles.processes_alive import all_gone, ids_in
from needs import each

FUNCTIONS = """
import asyncio, time

def echo(prompt):
    time.sleep(0.001)
    return prompt

async def echo_async(prompt):
    await asyncio.sleep(0.001)
    return prompt

def fail(prompt):
    raise ValueError("no")

async def wait(prompt):
    await asyncio.sleep(60)

def block(prompt):
    time.sleep(1)
"""

FAMILY = "(echo $(exec sh -c 'echo $PPID') >>ids; sleep 60; true) & echo $$ >>ids; sleep 60; true"


@dataclass(frozen=True)
class Place:
    directory: Path
    server: MisbehavingServer
    models: ModelServer

    def anthropic(self, model: str) -> Anthropic:
        return Anthropic(model, api_key="key", base_url=self.models.anthropic)

    def gemini(self, model: str) -> Gemini:
        return Gemini(model, api_key="key", base_url=self.models.gemini)

    def litellm(self, model: str) -> LiteLLM:
        return LiteLLM(f"openai/{model}", api_key="key", base_url=self.models.openai)

    def function(self, name: str) -> Python:
        (self.directory / "functions.py").write_text(FUNCTIONS)
        return Python(FunctionRef(name, path=str(self.directory / "functions.py")))

    def javascript(self, body: str) -> JavaScript:
        (self.directory / "provider.mjs").write_text(f"export default async (prompt) => {{ {body} }};")
        return JavaScript(JavaScriptSource(path=str(self.directory / "provider.mjs")))

    def recording(self, rows: list[dict]) -> Replay:
        (self.directory / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return Replay(str(self.directory / "rows.jsonl"))

    def program(self, *words: str) -> Cli:
        return Cli(Command(argv=words, cwd=str(self.directory)))

    def line(self, text: str) -> Cli:
        return Cli(Command(shell=text, cwd=str(self.directory)))


Make = Callable[[Place], ProviderSettings]

HOSTED = ("cohere", "deepseek", "fireworks", "groq", "huggingface", "mistral", "perplexity", "together", "xai")
"""The providers of `openai_api/hosted.py`."""

AGENTS = frozenset(name for name in PROVIDERS if registry().find(name).settings.is_agent)
"""Coding agents, tested in `tests/unit/extensions/agents/adapters` and `tests/e2e/test_native_agents.py`."""

OTHERS = frozenset({"local", "bedrock", "vertex"}) | AGENTS
"""`local` only computes embeddings; the other two are `litellm` with their cloud's protocol."""


def _hosted(name: str, model: str, place: Place) -> ProviderSettings:
    return registry().find(name).settings(model, base_url=place.models.openai, api_key="key")


ECHOING: dict[str, Make] = {
    "echo": lambda place: Echo(),
    "mock": lambda place: Mock(responses={str(number): f"prompt {number}" for number in range(50)}),
    "mock, late": lambda place: Mock(responses={str(n): f"prompt {n}" for n in range(50)}, delay_ms=1),
    "replay": lambda place: place.recording([{"test_id": str(n), "output": f"prompt {n}"} for n in range(50)]),
    "python": lambda place: place.function("echo"),
    "python, async": lambda place: place.function("echo_async"),
    "javascript": lambda place: place.javascript("return prompt"),
    "cli": lambda place: place.program("cat"),
    "cli, line": lambda place: place.line("printf %s {PROMPT}"),
    "cli, files": lambda place: place.line("cp {PROMPT_FILE} {OUTPUT_FILE}; echo log"),
    "http": lambda place: Http(place.server.url("ok")),
    "openai": lambda place: OpenAI("model", place.models.openai, "key"),
    "openai, responses": lambda place: OpenAI("model", place.models.openai, "key", api="responses"),
    "azure": lambda place: Azure("model", place.models.azure, "key"),
    "ollama": lambda place: Ollama("model", f"{place.models.ollama}/v1"),
    "openrouter": lambda place: OpenRouter("maker/model", place.models.openai, "key"),
    **{name: partial(_hosted, name, "model") for name in HOSTED},
    "anthropic": lambda place: place.anthropic("echo"),
    "gemini": lambda place: place.gemini("echo"),
    "litellm": lambda place: place.litellm("echo"),
}
"""Targets that answer case `n` with `prompt n`."""

FAILING: dict[str, tuple[Make, str]] = {
    "mock": (lambda place: Mock(error="no"), "mock-error"),
    "mock, late": (lambda place: Mock(error="no", delay_ms=1), "mock-error"),
    "replay": (lambda place: place.recording([]), "no-recording"),
    "python": (lambda place: place.function("fail"), "target-raised"),
    "javascript": (lambda place: place.javascript("throw new Error('no')"), "target-raised"),
    "cli": (lambda place: place.line("echo no >&2; exit 3"), "exit-status"),
    "http": (lambda place: Http(place.server.url("500")), "http-status"),
    "openai": (lambda place: OpenAI("fail", place.models.openai, "key"), "http-status"),
    "openai, responses": (lambda place: OpenAI("fail", place.models.openai, "key", api="responses"), "http-status"),
    "azure": (lambda place: Azure("fail", place.models.azure, "key"), "http-status"),
    "ollama": (lambda place: Ollama("m", "http://127.0.0.1:9"), "connection"),
    "openrouter": (lambda place: OpenRouter("fail", place.models.openai, "key"), "http-status"),
    **{name: (partial(_hosted, name, "fail"), "http-status") for name in HOSTED},
    "anthropic": (lambda place: place.anthropic("fail"), "http-status"),
    "gemini": (lambda place: place.gemini("fail"), "http-status"),
    "litellm": (lambda place: place.litellm("fail"), "http-status"),
}
"""Targets that always fail, with the failure; `echo` cannot fail."""

WAITING: dict[str, Make] = {
    "mock": lambda place: Mock(response="late", delay_ms=60_000),
    "python": lambda place: place.function("block"),
    "python, async": lambda place: place.function("wait"),
    "javascript": lambda place: place.javascript("await new Promise(() => {})"),
    "cli": lambda place: place.line("sleep 60"),
    "http": lambda place: Http(place.server.url("hang")),
    "openai": lambda place: OpenAI("hang", place.models.openai, "key"),
    "azure": lambda place: Azure("hang", place.models.azure, "key"),
    "anthropic": lambda place: place.anthropic("hang"),
    "gemini": lambda place: place.gemini("hang"),
    "litellm": lambda place: place.litellm("hang"),
}
"""Targets that never answer in time."""


def _each(names: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrize a test with these targets."""
    return pytest.mark.parametrize("name", each(names))


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with ModelServer(_reply) as running:
        yield running


def _reply(call: ModelCall) -> str | Step:
    return {"fail": Status(500), "hang": Hang()}.get(call.model, call.text)


@pytest.fixture
def place(tmp_path: Path, server: MisbehavingServer, models: ModelServer) -> Place:
    return Place(tmp_path, server, models)


def test_every_provider_is_held_to_this():
    assert {name.partition(",")[0] for name in ECHOING} == set(PROVIDERS) - OTHERS, "add it to ECHOING, or to OTHERS"


@pytest.mark.parametrize("name", PROVIDERS)
def test_its_settings_are_frozen_and_documented(name):
    settings = registry().find(name).settings
    assert is_declared(settings)
    assert (settings.__struct_config__ if issubclass(settings, Struct) else settings.__dataclass_params__).frozen
    assert settings.__doc__
    hints = get_type_hints(settings, include_extras=True)
    names = list(options_of(settings))
    assert settings.short is None or settings.short in names
    assert [name for name in names if not any(isinstance(one, Doc) for one in hints[name].__metadata__)] == []


@_each(ECHOING)
class TestEachTarget(TargetContract):
    """The contract's public tests, which plugins pass too."""

    # replaced by the tests below
    test_a_failure_is_a_value_and_the_next_call_is_made = test_a_call_can_be_cancelled = None

    @pytest.fixture(autouse=True)
    def _given(self, name, place):
        self.made, self.place = ECHOING[name], place

    def settings(self):
        return self.made(self.place)

    def test_what_is_free_has_no_cost(self):
        [found] = self._answers(self.settings(), 1)
        assert found.cost_usd is None or found.cost_usd > 0


@_each(FAILING)
def test_a_failure_is_a_value_and_the_next_call_is_made_all_the_same(name, place):
    make, code = FAILING[name]
    found = answers(make(place), request(), request())
    assert [isinstance(one, Failure) for one in found] == [True, True]
    assert [one.code for one in found] == [code, code]
    assert all(one.message for one in found)


@_each(WAITING)
async def test_a_call_can_be_cancelled_and_the_target_goes_on(name, place):
    executor = DaemonThreads()
    target = WAITING[name](place).connect(spec_of(Echo()), executor)
    calls = [asyncio.ensure_future(_waited(target, request())) for _ in range(2)]
    await asyncio.sleep(0.05)
    calls[0].cancel()
    await asyncio.wait(calls[:1])
    assert not calls[1].done()
    calls[1].cancel()
    await asyncio.wait(calls)
    await target.close()
    assert [call.cancelled() for call in calls] == [True, True]


async def _waited(target, one: TargetRequest):
    answer = target.answer(one)
    assert inspect.isawaitable(answer)
    return await answer


async def test_a_cancelled_call_leaves_no_process(place):
    target = place.line(FAMILY).connect(spec_of(Echo()), DaemonThreads())
    call = asyncio.ensure_future(call_target(target, request()))
    ids = await asyncio.to_thread(ids_in, place.directory / "ids", 2)
    call.cancel()
    await asyncio.wait([call])
    await target.close()
    assert all_gone(ids)


@_each(["cli", "http", "openai", "azure", "anthropic", "gemini", "litellm"])
def test_a_time_limit_of_its_own_is_kept(name, place):
    [found] = answers(WAITING[name](place), request(timeout_s=0.1))
    assert (found.code, found.retryable) == ("timeout", True)


@pytest.mark.filterwarnings("ignore:Sending a large body")  # raised inside some SDKs
@_each(["echo", "python", "javascript", "cli", "http", "openai", "openai, responses", "anthropic", "gemini", "litellm"])
def test_an_answer_may_not_be_too_large(name, place):
    make = ECHOING[name]
    [found] = answers(make(place), request("a" * 10_000_001))
    # `http` renders its body from a template
    assert found.code == ("bad-template" if name == "http" else "output-too-large")
    [found] = answers(make(place), request("ä" * 5_000_000 if name not in ("http", "openai") else "a" * 9_000_000))
    assert isinstance(found, TargetResponse)
