"""`mutate --judge` with a model on a loopback server: its requests, the cache, and the end of the budget."""

import json
from pathlib import Path

import pytest
import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.cli.main import run
from agentv.extensions.mutate.mutating import MutationSettings, mutate
from agentv.testing import Answer, ModelServer, TokenUsage

pytestmark = pytest.mark.libraries

OPERATORS = ("change-number", "negate", "cut-in-half", "refuse", "quote-verdict")
TOKENS = 100_000  # per call


PASSES = '{"score": 1.0, "reason": "by the number of days"}'


def verdict(call):
    text = PASSES if "within 30 days" in call.text else PASSES.replace("1.0", "0.0")
    return Answer(text, usage=TokenUsage(input=TOKENS, output=0))


@pytest.fixture
def server(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    with ModelServer(verdict) as running:
        yield running


def write(cases, judge, **more):
    answers = {f"case-{n}": f"Answer {n}: refunds are possible within 30 days." for n in range(cases)}
    checks = [{"contains": "Answer"}, {"llm-rubric": "Says 30 days"}]
    suite = {
        "name": "refunds",
        "target": {"name": "shop", "provider": "mock", "responses": answers},
        "judge": judge,
        "tests": [{"id": one, "input": "May I?", "expected_output": "30 days", "assert": checks} for one in answers],
        **more,
    }
    Path("refunds.eval.yaml").write_text(yaml.safe_dump(suite))


def ran(server, cases=1):
    """Run a suite whose judge is a model; return the number of calls so far, and the judge."""
    judge = {"name": "judge", "provider": "openai", "model": "gpt-5-mini", "base_url": server.openai, "api_key": "none"}
    write(cases, judge)
    evaluate(prepare(EvalSettings(paths=("refunds.eval.yaml",))), lambda _: None)
    return len(server.calls), judge


def test_the_judge_is_asked_once_for_each_mutant_and_only_if_it_is_wanted(server):
    before, _ = ran(server)
    report = mutate("last", MutationSettings(OPERATORS))
    assert (report.judged, report.counts.killed, len(server.calls)) == (1, 2, before)
    for _ in range(2):
        report = mutate("last", MutationSettings(OPERATORS, judge=True))
        assert (report.judged, report.counts.killed, report.counted, report.status) == (0, 4, 5, 0)
        assert len(server.calls) == before + report.counts.total  # the first verdicts are cached


def test_a_budget_that_ends_in_the_middle_gives_a_partial_score_that_passes_nothing(server, capsys):
    before, judge = ran(server)
    write(1, judge, run={"budget_tokens": int(TOKENS * 3.3)})
    report = mutate("last", MutationSettings(OPERATORS, judge=True, min_score=0.1))
    assert (len(server.calls) - before, report.counted, report.counts.not_graded) == (2, 4, 1)
    assert report.score > 0.1
    assert (report.is_partial, report.status) == (True, 3)

    write(1, judge, run={"budget_tokens": 1})
    assert run(["mutate", "--judge", "--operators", ",".join(OPERATORS), "--min-score", "0.1"]) == 3
    shown = capsys.readouterr().out
    assert "1 mutant not graded: a judge gave no verdict, or the budget is used up" in shown
    assert "partial score 100.0%" in shown
    assert run(["mutate", "--judge", "--operators", ",".join(OPERATORS), "--min-score", "0.1", "--json"]) == 3
    plain = json.loads(capsys.readouterr().out)
    assert (plain["passed"], plain["partial"], plain["not_graded"]) == (False, True, 1)

    write(1, judge)
    assert mutate("last", MutationSettings(OPERATORS, judge=True, min_score=0.1)).status == 0
    assert len(server.calls) == before + 5


def test_a_budget_in_dollars(server):
    Path("judge.py").write_text(
        "from pathlib import Path\n\n\ndef grade(prompt):\n    asked = Path('asked')\n"
        "    asked.write_text(asked.read_text() + 'x' if asked.exists() else 'x')\n"
        "    return {'output': '{\"score\": 1, \"reason\": \"fine\"}', 'cost_usd': 0.05}\n"
    )
    write(1, "python:judge.py:grade")
    evaluate(prepare(EvalSettings(paths=("refunds.eval.yaml",))), lambda _: None)
    Path("asked").unlink()
    settings = MutationSettings(("change-number", "negate", "cut-in-half"), judge=True, budget_usd=0.12, min_score=0.0)
    report = mutate("last", settings)
    assert (len(Path("asked").read_text()), report.counted, report.counts.not_graded, report.status) == (2, 2, 1, 3)
