"""What `agentv targets --check` advises where a server lets nobody in."""

from __future__ import annotations

import pytest

from agentv.app.checking import CheckedTarget, check_all
from agentv.model.suite.suite import TargetSpec, Variable
from agentv.registry.fields import Command
from agentv.targets.cli.target import Cli
from agentv.targets.http.target import Http
from agentv.targets.openai_compatible.openai import OpenAI
from agentv.testing import ModelServer, Status

KEY = Variable("api_key", ("OPENAI_API_KEY",), secret=True)


@pytest.fixture(scope="module")
def server():
    with ModelServer(Status(401)) as running:
        yield running


def fix(settings, key=None):
    spec = TargetSpec("a", "openai", settings, variables=(KEY,))
    (found,) = check_all([CheckedTarget(spec, key)], {}, 10.0)
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
