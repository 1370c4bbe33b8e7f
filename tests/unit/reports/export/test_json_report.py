from __future__ import annotations

import json

from agentv.model.values.response import Failure
from agentv.reports.export.json_report import render_json
from agentv.reports.run.view import KEPT, RunView
from doubles.trials import finished, trial
from doubles.views import LOOKS, SUMMARY, run_view


def rendered(view=None):
    text = render_json(view or run_view(), SUMMARY, **LOOKS)
    assert text.isascii()
    return json.loads(text)


def test_it_begins_with_the_summary():
    shown = rendered()
    assert {key: shown[key] for key in SUMMARY.as_json()} == json.loads(json.dumps(SUMMARY.as_json()))
    assert shown["results"] == ".agentv/results/20261121T140322Z-7f3a"


def test_what_did_not_pass_is_listed():
    shown = rendered()
    assert [(one["test_id"], one["status"]) for one in shown["not_passed"]] == [
        ("window-closed", "failed"),
        ("hostile\x1b[2J", "failed"),
        ("gate", "failed"),
        ("silent", "failed"),
        ("slow", "errored"),
        ("broken", "errored"),
    ]
    assert shown["omitted"] == 0
    first = shown["not_passed"][0]
    assert (first["eval_path"], first["line"], first["target"], first["sample"]) == (
        "evals/refund.eval.yaml",
        12,
        "gpt",
        1,
    )
    assert (first["score"], first["threshold"], first["output"], first["error"]) == (0.4, 0.8, "No.", None)
    assert first["findings"][0] == {
        "state": "failed",
        "name": "contains: '30 days'",
        "type": "contains",
        "required": False,
        "text": "contains '30 days'",
        "evidence": "No. You cannot return it after that.",
        "source": "evals/refund.eval.yaml:14",
    }


def test_an_errored_trial_says_why():
    slow = rendered()["not_passed"][4]
    assert slow["error"] == {"code": "timeout", "message": "no answer after 3 s", "retryable": True}
    assert slow["score"] is None


def test_a_passed_trial_with_a_failed_check_is_listed():
    (noted,) = rendered()["passed_with_failed_checks"]
    assert (noted["test_id"], noted["status"]) == ("polite", "passed")
    assert noted["findings"][0]["text"] == "Greets the customer by name"


def test_what_is_not_held_is_counted():
    view = RunView(KEPT + 3)
    for number in range(KEPT + 3):
        view.add(finished("errored", trial=trial(f"c{number}")))
    assert rendered(view)["omitted"] == 3


def test_a_score_that_is_no_number_is_null():
    view = RunView(1)
    view.add(finished("failed", score=float("nan")))
    assert rendered(view)["not_passed"][0]["score"] is None


def test_what_was_held_back_is_listed_with_the_reason():
    view = RunView(1)
    view.add(finished("skipped", error=Failure("dependency-not-passed", "'login', which it depends on, failed")))
    (one,) = json.loads(render_json(view, SUMMARY, **LOOKS))["not_passed"]
    assert (one["status"], one["error"]["code"]) == ("skipped", "dependency-not-passed")
