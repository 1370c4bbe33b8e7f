"""Simulated users whose model and target are called over the provider's protocol; `tests/cases` covers their
messages."""

import json

import pytest

from agentv.extensions.agents.trial.simulated_user import read_reply
from agentv.sdk import evaluate
from agentv.testing import ModelServer
from agentv.work_ports import UserReply
from doubles.loading import repository
from doubles.priced_server import PricedServer

SUITE = """
targets:
  - {name: agent, provider: openai, model: agent, base_url: URL, api_key: k}
tests:
  - id: refund
    user: {goal: get a refund, start: My money!, model: player}
    assert: [{contains: refunded}]
"""
TARGETS = "targets: [{name: player, provider: openai, model: player, base_url: URL, api_key: k}]\n"


class Shop:
    """Models of an agent and a user; records which of them was called."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, model: str, said: str) -> tuple[str, float]:
        self.asked.append(model)
        if model == "player":
            place = said.count('{"message"') - 1  # the instructions contain one
            done = {"done": "achieved"} if "refunded" in said else {"message": f"Please {place}"}
            return json.dumps(done), 0.001
        return ("I refunded it.", 0.5) if "Please 2" in said else ("Why?", 0.01)


def run(folder, url, **settings):
    repository(folder, {"a.eval.yaml": SUITE.replace("URL", url), ".agentv/targets.yaml": TARGETS.replace("URL", url)})
    out = {} if "resume" in settings else {"out": folder / "out"}
    return evaluate(folder / "a.eval.yaml", **out, **settings)


def test_what_a_user_costs_stands_apart(tmp_path):
    shop = Shop()
    with PricedServer(reply=shop) as server:
        found = run(tmp_path, server.openai)
    (result,) = found.results
    assert (result.status, result.user_done, len(result.turns)) == ("passed", "achieved", 3)
    assert [one.text for one in result.input] == ["My money!", "Why?", "Please 1", "Why?", "Please 2"]
    assert result.cost_usd == pytest.approx(0.52)
    assert result.user_cost_usd == pytest.approx(0.003)
    assert result.user_token_usage.total == 45
    assert found.summary.user_cost_usd == pytest.approx(0.003)
    assert found.summary.spent_usd == pytest.approx(0.523)


def test_a_conversation_goes_on_where_it_broke_off(tmp_path):
    shop, out = Shop(), tmp_path / "out"
    with PricedServer(reply=shop) as server:
        run(tmp_path, server.openai)
        before = list(shop.asked)
        journal = (out / "journal.jsonl").read_bytes().splitlines(keepends=True)
        kept = [line for line in journal if b'"output"' in line][:3]
        (out / "journal.jsonl").write_bytes(b"".join(journal[: journal.index(kept[-1]) + 1]))  # as after a kill
        (out / "index.jsonl").write_bytes(b"")
        (out / "summary.json").unlink()
        whole = run(tmp_path, server.openai, resume=out)
    assert before == ["agent", "player", "agent", "player", "agent", "player"]
    assert shop.asked[len(before) :] == ["player", "agent", "player"]
    (result,) = whole.results
    assert (result.status, result.user_done, len(result.turns)) == ("passed", "achieved", 3)
    assert whole.summary.spent_usd == pytest.approx(0.523)


def test_a_budget_that_is_spent_in_the_middle_stops_the_run_which_a_resume_finishes(tmp_path):
    shop = Shop()
    with PricedServer(reply=shop) as server:
        found = run(tmp_path, server.openai, budget_usd=0.03)
        asked = list(shop.asked)
        (result,) = run(tmp_path, server.openai, resume=tmp_path / "out", budget_usd=1).results
    assert (list(found.results), found.status.name, asked) == ([], "ERRORED", ["agent", "player"] * 2)
    assert (result.status, shop.asked) == ("passed", ["agent", "player"] * 3)


def test_a_user_whose_key_is_refused_is_asked_again_by_a_resume(tmp_path):
    def reply(call):
        return "Why?" if call.text == "My money!" else '{"done": "achieved"}'

    with ModelServer(reply, keys={"k", "good"}) as server:
        targets = TARGETS.replace("api_key: k", "api_key: bad").replace("URL", server.openai)
        repository(tmp_path, {"a.eval.yaml": SUITE.replace("URL", server.openai), ".agentv/targets.yaml": targets})
        (broken,) = evaluate(tmp_path / "a.eval.yaml", out=tmp_path / "out").results
    assert (broken.status, broken.error.code) == ("errored", "user-http-status")
    assert broken.error.stops


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ('{"message": "a"}', UserReply("a")),
        ('{"message": "a", "done": false}', UserReply("a")),
        ('{"message": "thanks", "done": "achieved"}', UserReply(done="achieved")),
        ('```json\n{"done": "gave_up"}\n```', UserReply(done="gave_up")),
        ('<think>{"done": "gave_up"}</think>\n{"message": "a"}', UserReply("a")),
        ("", "is empty"),
        ("achieved", "is not a JSON object"),
        ('{"message": "a"} {"done": "achieved"}', "is not a JSON object"),
        ('{"done": true}', "has 'done': true, which is neither 'achieved' nor 'gave_up'"),
        ('{"done": "max_turns"}', "has 'done': \"max_turns\", which is neither 'achieved' nor 'gave_up'"),
        ('{"say": "a"}', "has no text under 'message'"),
        ("[" * 100_000, "is not a JSON object"),
    ],
)
def test_a_reply_is_a_message_or_the_end(said, reply):
    assert read_reply(said) == reply
