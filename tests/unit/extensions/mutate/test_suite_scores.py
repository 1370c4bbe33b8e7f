from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.cli.main import run
from agentv.extensions.mutate.mutating import MutationSettings, mutate
from agentv.extensions.mutate.suite_scores import suite_scores

JUDGE = {"name": "judge", "provider": "mock", "error": "must not be asked"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, *assertions, **keys):
    suite = {
        "name": name,
        "target": {"name": "shop", "provider": "mock", "response": "Refunds are possible within 30 days."},
        "judge": JUDGE,
        "tests": [{"id": "late", "input": "May I?", "assert": list(assertions), **keys}],
    }
    Path(f"{name}.eval.yaml").write_text(yaml.safe_dump(suite))
    return prepare(EvalSettings(paths=(f"{name}.eval.yaml",)))


def test_each_suite_has_the_score_that_mutate_gives_its_latest_run(project):
    one, other = write("one", {"contains": "30 days"}), write("other", {"contains": "days"}, expected_output="30 days")
    evaluate(one, lambda _: None)
    evaluate(prepare(EvalSettings(paths=(".",))), lambda _: None)
    never = write("never", {"contains": "days"})
    first, second = suite_scores((*one.suites, *other.suites, *never.suites))
    report = mutate("last", MutationSettings())
    assert first.run_id == second.run_id == report.run_id
    assert first.score > second.score
    assert first.counted + second.counted == report.counted


def test_it_is_of_the_files_as_they_are_now(project):
    evaluate(write("one", {"contains": "days"}, expected_output="30 days"), lambda _: None)
    changed = write("one", {"contains": "30 days"}, expected_output="30 days")
    assert suite_scores(changed.suites)[0].score == mutate("last", MutationSettings()).score
    changed = write("one", {"contains": "30 days"}, input="Other")
    (score,) = suite_scores(changed.suites)
    assert (score.score, score.why) == (None, "1 answer of cases whose input or target changed since the run")
    changed = write("one", {"contains": "nine"})
    (score,) = suite_scores(changed.suites)
    assert score.why == "1 answer that no longer passes: contains: 'nine'"


def test_no_judge_is_asked_and_what_takes_long_is_not_done(project):
    suites = write("one", {"contains": "days"}, expected_output="30 days").suites
    evaluate(write("one", {"contains": "days"}, expected_output="30 days"), lambda _: None)
    suites = write("one", {"contains": "days"}, {"llm-rubric": "Is polite"}, expected_output="30 days").suites
    (score,) = suite_scores(suites)
    assert score.score is not None
    assert score.notes == ("left out: 1 assertion that a model grades; --judge includes them",)
    assert not Path(".agentv/cache").exists()
    (score,) = suite_scores(suites, limit_s=0)
    assert (score.score, score.why) == (None, f"it takes too long here: run 'agentv mutate {score.run_id}'")


def test_slow_code_does_not_hold_it_up(project):
    check = project / ".agentv/assertions/slow.py"
    check.parent.mkdir(parents=True)
    check.write_text(
        "import time\nfrom pathlib import Path\n\nfrom agentv import define_assertion\n\n\n@define_assertion\n"
        "def slow(ctx):\n    while Path('wait').exists():\n        time.sleep(0.01)\n    return True\n"
    )
    suites = write("one", {"type": "slow"}).suites
    evaluate(write("one", {"type": "slow"}), lambda _: None)
    wait = project / "wait"
    wait.touch()
    (score,) = suite_scores(suites, limit_s=0.5)
    wait.unlink()
    assert score.score is None
    assert "takes too long" in score.why


def test_check_shows_it(project, capsys):
    evaluate(write("one", {"contains": "days"}, expected_output="30 days"), lambda _: None)
    assert run(["check", "one.eval.yaml"]) == 0
    assert "mutation score of 'one' by run" in capsys.readouterr().out
    assert run(["check", "one.eval.yaml", "--json"]) == 0
    (score,) = json.loads(capsys.readouterr().out)["mutation_scores"]
    assert 0 < score["score"] < 1
