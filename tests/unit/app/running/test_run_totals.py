from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentv.app.running.run_totals import Unpriced
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.usage import TokenUsage
from agentv.targets.replay.target import Replay
from doubles.keyed import Keyed
from doubles.trials import finished, trial

TOKENS = TokenUsage(1, 2, 3)


def asked(model="tiny", *, judge=None, forced=None, at=None, secrets=frozenset(), **given):
    """A finished trial of a target of that model."""
    spec = TargetSpec("a", "keyed", Keyed(model, base_url=at), secrets=secrets)
    subject = trial(judge=judge and TargetSpec("j", "keyed", Keyed(judge)))
    suite = replace(subject.suite, forced_judge=forced and TargetSpec("f", "keyed", Keyed(forced)))
    return finished(trial=replace(subject, target=spec, suite=suite), **given)


JUDGED = {"judge_token_usage": TOKENS}


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([asked()], []),
        ([asked(token_usage=TOKENS, cost_usd=0.1)], []),
        ([asked(token_usage=TOKENS)], ["the price of tiny is not known, so cost_usd is null for 1 trial"]),
        ([asked(token_usage=TOKENS)] * 3, ["the price of tiny is not known, so cost_usd is null for 3 trials"]),
        (
            [asked(token_usage=TOKENS, at="http://localhost:8000/v1")],
            ["the price of tiny at http://localhost:8000/v1 is not known, so cost_usd is null for 1 trial"],
        ),
        (
            [asked(token_usage=TOKENS, at="http://me:pw@host/se-cret-9/v1?k=1", secrets=frozenset({"se-cret-9"}))],
            ["the price of tiny at http://host/[redacted]/v1 is not known, so cost_usd is null for 1 trial"],
        ),
        ([asked(judge="small", judge_cost_usd=0.1, **JUDGED)], []),
        (
            [asked(judge="small", **JUDGED)],
            ["the price of small is not known, so judge_cost_usd is null for 1 trial"],
        ),
        (
            [asked(judge="small", forced="big", **JUDGED, token_usage=TOKENS)],
            [
                "prices among tiny, big are not known, so cost_usd is null for 1 trial and judge_cost_usd is null for 1 trial"
            ],
        ),
    ],
)
def test_a_price_that_is_not_known_is_told_once(results, said):
    found = Unpriced()
    for result in results:
        found.add(result)
    assert list(found.notes()) == said


def test_a_replay_calls_no_model_whose_price_could_be_known():
    spec = TargetSpec("r", "replay", Replay(fixtures="rec.jsonl"))
    unpriced = Unpriced()
    unpriced.add(finished(trial=replace(trial(), target=spec), token_usage=TOKENS))
    assert list(unpriced.notes()) == []
