"""Models as targets and judges end to end: four kinds of API, real SDKs, a loopback server."""

import json

import pytest

from agentv.testing import ModelServer

pytestmark = pytest.mark.libraries

TARGET, JUDGE = "openai:gpt-5-mini", "anthropic:claude-haiku-4-5"
KEYS = {"OPENAI_API_KEY": "sk-target-1234567890", "ANTHROPIC_API_KEY": "sk-ant-judge-1234567890"}

VERDICT = {"checks": [{"id": "r1", "satisfied": True}, {"id": "r2", "satisfied": True}]}


def reply(call):
    """Return the model's answer, or the judge's verdict on one."""
    return json.dumps(VERDICT) if call.model == "claude-haiku-4-5" else "hello there"


@pytest.fixture
def server():
    with ModelServer(reply, keys=set(KEYS.values())) as running:
        yield running


def env_of(server):
    return {**KEYS, "OPENAI_BASE_URL": server.openai, "ANTHROPIC_BASE_URL": server.anthropic}


def asked(server, project, path, *words):
    """Run a file on the two models; return the process's result and the rows by case."""
    ended = project.run("eval", path, "--target", TARGET, "--judge", JUDGE, *words, env=env_of(server))
    return ended, {row["test_id"]: row for row in project.rows()}


def test_tokens_are_told_apart_and_a_price_that_is_not_known_once(project, server):
    """The server is not OpenAI's, so the prices of its models are unknown."""
    project.write(
        "a.eval.yaml",
        "tests:\n"
        "  - {id: a, input: Hello, assert: [Says hello, Is polite]}\n"
        "  - {id: b, input: Hello, assert: [{type: cost, threshold: 1}]}\n",
    )
    ended, rows = asked(server, project, "a.eval.yaml", "--json")
    assert ended.status == 3
    told = json.loads(ended.stdout)
    assert rows["a"]["cost_usd"] is None
    assert rows["b"]["scores"][0]["error"]["code"] == "no-data"
    assert "is not known" in rows["b"]["scores"][0]["error"]["message"]
    assert (told["cost_usd"], told["unpriced_trials"]) == (None, 2)
    assert told["token_usage"]["total"] > 0
    assert told["judge_token_usage"]["total"] > 0
    assert ended.stderr.count("no price is known for ") == 1, ended.stderr
    assert "(2 trials)" in ended.stderr


def test_another_key_asks_nothing_again(project, server):
    project.write("a.eval.yaml", "tests:\n  - {id: a, input: Hello, assert: [Says hello]}\n")
    ended, _ = asked(server, project, "a.eval.yaml")
    calls = len(server.calls)
    swapped = {**env_of(server), "OPENAI_API_KEY": KEYS["ANTHROPIC_API_KEY"]}
    again = project.run("eval", "a.eval.yaml", "--target", TARGET, "--judge", JUDGE, "--resume", env=swapped)
    assert (again.status, len(server.calls)) == (ended.status, calls)
