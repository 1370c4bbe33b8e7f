from __future__ import annotations

import json

from agentv.reports.export.json_report import render_json
from doubles.views import LOOKS, SUMMARY, run_view


def rendered(view=None):
    text = render_json(view or run_view(), SUMMARY, **LOOKS)
    assert text.isascii()
    return json.loads(text)


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
