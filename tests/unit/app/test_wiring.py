"""What commands load: plugin targets that break the rules, and the advice of `targets --check`."""

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest

from agentv.app.targets import CheckedTarget, check_all
from agentv.app.wiring import GuardedEmbedder, connected_target
from agentv.model.suite.suite import TargetSpec, Variable
from agentv.model.values.response import Embeddings, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.ports import Embedder
from agentv.registry.fields import Command
from agentv.targets.cli import Cli
from agentv.targets.http.target import Http
from agentv.targets.openai_api.providers import OpenAI
from agentv.testing import ModelServer, Status
from agentv.user_code.threads import DaemonThreads
from doubles.asking import call_target, request


@dataclass(frozen=True)
class Settings:
    target: Any

    def connect(self, spec, executor):
        return self.target() if isinstance(self.target, type) else self.target


class Good:
    def __init__(self, answer=TargetResponse("yes")) -> None:  # noqa: B008  # it is frozen
        self.given = answer
        self.closed = 0

    async def answer(self, one):
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given

    async def close(self):
        self.closed += 1


class Plain(Good):
    def answer(self, one):
        return self.given


class Later(Good):
    def answer(self, one):
        return super().answer(one)


class Raising:
    def __init__(self):
        raise ValueError("no")


class Exiting:
    def __init__(self):
        raise SystemExit(0)


class Unclosable(Good):
    async def close(self):
        raise ValueError("no")


class Embedding(Good):
    async def embed(self, texts, timeout_s):
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


def of(target, **others) -> TargetSpec:
    return TargetSpec("t", "capitals", Settings(target), plugin="acme-evals 1.2", **others)


def answer_of(target):
    async def ask():
        executor = DaemonThreads()
        made = connected_target(of(target), executor)
        found = await call_target(made, request())
        await made.close()
        await executor.aclose()
        return found

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", [Good, Plain, Later])
def test_every_way_to_answer_is_taken(kind):
    assert answer_of(kind()) == TargetResponse("yes")
    assert answer_of(kind(Failure("a", "b"))) == Failure("a", "b")
    retrieved = answer_of(kind(TargetResponse("yes", context=["a"])))
    assert retrieved == TargetResponse("yes", context=(RetrievedText("a"),))


@pytest.mark.parametrize(
    ("target", "code", "why"),
    [
        (Raising, "target-raised", "target 't' of acme-evals 1.2 raised ValueError: no (test_wiring.py:"),
        (Exiting, "target-raised", "called sys.exit"),
        (None, "target-raised", "connect() must return what has answer() and close(), and returned NoneType"),
        (
            Good(TargetResponse("yes", context=[1])),
            "bad-answer",
            "TargetResponse: 'context[0]' must be text, or an object",
        ),
        (Good("text"), "bad-answer", "answer() must return a TargetResponse or a Failure, and returned str"),
        (Good(ValueError("no")), "target-raised", "raised ValueError: no"),
        (Good(SystemExit(0)), "target-raised", "called sys.exit"),
        (Later(KeyboardInterrupt()), "target-raised", "KeyboardInterrupt"),
    ],
)
def test_what_breaks_the_rules_is_a_failure_that_names_the_plugin(target, code, why):
    found = answer_of(target)
    assert found.code == code
    assert "target 't' of acme-evals 1.2" in found.message
    assert why in found.message


async def test_a_plain_answer_that_blocks_holds_up_nobody():
    class Blocking(Good):
        def answer(self, one):
            time.sleep(0.3)
            return self.given

    executor = DaemonThreads()
    made = connected_target(of(Blocking()), executor)
    slow = asyncio.ensure_future(call_target(made, request()))
    await asyncio.sleep(0)
    quick = await asyncio.wait_for(asyncio.sleep(0, "quick"), 0.2)
    slow.cancel()
    await asyncio.wait([slow])
    await executor.aclose()
    assert (quick, slow.cancelled()) == ("quick", True)


def test_what_closing_raises_changes_no_answer():
    assert answer_of(Unclosable()) == TargetResponse("yes")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Embeddings(((1.0,),)), Embeddings(((1.0,),))),
        (Failure("a", "b"), Failure("a", "b")),
        ([1.0], "embed() must return Embeddings or a Failure, and returned list"),
        (ValueError("no"), "raised ValueError: no"),
    ],
)
def test_vectors_are_guarded_likewise(given, expected):
    made = connected_target(of(Embedding(given)), DaemonThreads())
    assert isinstance(made, GuardedEmbedder)
    assert isinstance(made, Embedder)
    found = asyncio.run(made.embed(["a"], 1.0))
    assert expected in found.message if isinstance(expected, str) else found == expected


UNUSED = {
    "agentv.user_code.command_process": {"ctypes", "click", "pathlib", "agentv.cli"},
    "agentv.app.authored.validate": {"asyncio", "ssl", "tempfile", "agentv.engine.run", "agentv.store.journal.journal"},
    "agentv.cli.progress": {"tempfile", "html", "agentv.store.cassettes.cassette", "agentv.judge"},
}


@pytest.mark.parametrize(("module", "unused"), UNUSED.items())
def test_what_is_not_used_is_not_loaded(module, unused):
    code = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert module in loaded
    assert unused.isdisjoint(loaded)


KEY = Variable("api_key", ("OPENAI_API_KEY",), secret=True)


@pytest.fixture(scope="module")
def server():
    with ModelServer(Status(401)) as running:
        yield running


def fix(settings, key=None):
    (found,) = check_all([CheckedTarget(TargetSpec("a", "openai", settings, variables=(KEY,)), key)], {}, 10.0)
    assert found.state == "failed"
    return found.fix


def test_without_a_key_it_says_that_none_was_sent(server):
    said = "no key was sent: set OPENAI_API_KEY, in the environment or in a .env file, or set 'api_key' on the target"
    assert fix(OpenAI("m", server.openai)) == said


def test_a_key_was_refused_wherever_it_is_out_of(server):
    assert "the key was refused: check TEAM_KEY, " in fix(OpenAI("m", server.openai, "sk-1234"), "TEAM_KEY")
    assert "check the target's api_key, " in fix(OpenAI("m", server.openai, "sk-1234"))
    assert "check the target's headers, " in fix(OpenAI("m", server.openai, headers={"X-Api-Key": "sk-1234"}))


def test_a_server_without_keys_is_let_in_by_headers(server):
    assert fix(Http(f"{server.openai}/chat/completions")) == "it requires other 'headers'"


def test_a_program_that_answers_nothing_fails():
    assert "ended without an answer" in fix(Cli(Command(shell="true")))


def test_the_shorter_limit_holds_the_targets_or_the_calls():
    slow = TargetSpec("slow", "cli", Cli(Command(shell="sleep 20")), timeout_s=0.2)
    patient = TargetSpec("patient", "cli", Cli(Command(shell="sleep 0.4; echo OK")), timeout_s=20.0)
    late, ok = check_all([CheckedTarget(slow), CheckedTarget(patient)], {}, 10.0)
    assert (late.code, ok.state) == ("timeout", "ok")
    assert "'timeout_s'" in (late.fix or "")
