from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.model.run.grade import Check, Grade
from agentv.model.run.row import Row
from agentv.model.run.trial import Score, Trial
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import RelativePaths, row_of
from doubles.trials import ROOT, entry, errored_score, finished, graded, scored, trial

SECTION_13 = [
    "test_id",
    "suite",
    "eval_path",
    "target",
    "prompt_id",
    "vars",
    "finish_reason",
    "sample",
    "timestamp",
    "status",
    "score",
    "threshold",
    "output",
    "input",
    "scores",
    "error",
    "duration_ms",
    "token_usage",
    "cost_usd",
    "attempts",
    "metadata",
    "case_sha256",
    "key",
    "schema_version",
]

SCORE_KEYS = [
    "name",
    "type",
    "score",
    "pass",
    "weight",
    "required",
    "assertions",
    "reason",
    "details",
    "duration_ms",
    "source",
]


def written(result):
    return json.loads(to_json(row_of(result, RelativePaths(ROOT))))


def test_a_row_is_what_section_13_says():
    result = finished(
        scores=[scored(evidence="“30 days”", name="window", weight=2.0, required=True)],
        token_usage=TokenUsage(3, 5, 8),
        cost_usd=0.25,
        attempts=2,
        trial=trial("refund-1", metadata={"area": "refunds"}, vars={"area": "refunds"}),
        metadata={"model": "m"},
        finish_reason="stop",
    )
    row = written(result)
    assert list(row) == SECTION_13
    assert row == {
        "test_id": "refund-1",
        "suite": "refunds",
        "eval_path": "evals/refund.eval.yaml",
        "target": "gpt",
        "prompt_id": None,
        "vars": {"area": "refunds"},
        "finish_reason": "stop",
        "sample": 1,
        "timestamp": "2026-11-21T14:03:22.123Z",
        "status": "passed",
        "score": 1.0,
        "threshold": 0.8,
        "output": "You may, within 30 days.",
        "input": [{"role": "user", "content": "May I return it?"}],
        "scores": [
            {
                "name": "window",
                "type": "contains",
                "score": 1.0,
                "pass": True,
                "weight": 2.0,
                "required": True,
                "assertions": [{"text": "output contains '30 days'", "passed": True, "evidence": "“30 days”"}],
                "reason": None,
                "details": {},
                "duration_ms": 0.25,
                "source": "evals/refund.eval.yaml:14",
            }
        ],
        "error": None,
        "duration_ms": 12.345,
        "token_usage": {"input": 3, "output": 5, "total": 8, "cached": None, "reasoning": None},
        "cost_usd": 0.25,
        "attempts": 2,
        "metadata": {"area": "refunds", "model": "m"},
        "case_sha256": "c" * 64,
        "key": "refunds/refund-1@gpt#1",
        "schema_version": 1,
    }


def test_a_long_variable_is_cut_with_its_length():
    values = {"short": "a" * 2000, "text": "a" * 2001, "list": ["a" * 2000], "number": 1}
    row = written(finished(trial=trial("refund-1", vars=values)))
    assert row["vars"]["short"] == "a" * 2000
    assert row["vars"]["text"] == "a" * 2000 + "… (2,001 characters)"
    assert row["vars"]["list"] == '["' + "a" * 1998 + "… (2,004 characters)"
    assert row["vars"]["number"] == 1


def test_thoughts_stand_at_the_end():
    answer = TargetResponse("42", thoughts="<think>41</think>", finish_reason="length")
    row = written(finished(thoughts="<think>41</think>\n", turns=(answer,)))
    assert list(row) == [*SECTION_13, "turns", "thoughts"]
    assert row["thoughts"] == "<think>41</think>\n"
    assert list(row["turns"][0].items())[-2:] == [("thoughts", "<think>41</think>"), ("finish_reason", "length")]


def test_what_a_target_says_of_its_reply_never_changes_the_metadata_of_the_case():
    result = finished(
        trial=trial("refund-1", metadata={"area": "refunds"}),
        context=(RetrievedText("a"), RetrievedText("b", "b.md", 0.5)),
        response_metadata={"area": "sales"},
    )
    row = written(result)
    assert row["metadata"] == {"area": "refunds"}
    assert row["response_metadata"] == {"area": "sales"}
    assert row["context"] == ["a", {"text": "b", "source": "b.md", "score": 0.5}]


def test_an_errored_grade_has_no_score_and_says_why():
    row = written(finished("errored", scores=[errored_score()]))
    assert list(row["scores"][0]) == [*SCORE_KEYS, "error"]
    assert row["scores"][0]["score"] is None
    assert row["scores"][0]["pass"] is None
    assert row["scores"][0]["error"] == {"code": "script-failed", "message": "the script ended with status 2"}


def test_an_errored_trial_says_why():
    row = written(finished("errored", error=Failure("timeout", "no answer", retryable=True), output=None))
    assert row["error"] == {"code": "timeout", "message": "no answer", "retryable": True}
    assert row["score"] is None
    assert row["output"] is None
    assert row["scores"] == []


def test_what_says_something_stands_at_the_end():
    subject = trial(tags=("smoke",), repeat=3, aggregate="majority")
    row = written(finished(trial=subject, judge_cost_usd=0.5, judge_token_usage=TokenUsage(1, 2, 3)))
    assert list(row) == [*SECTION_13, "tags", "judge_cost_usd", "repeat", "aggregate", "judge_token_usage"]
    assert row["judge_token_usage"] == {"input": 1, "output": 2, "total": 3, "cached": None, "reasoning": None}
    assert (row["tags"], row["judge_cost_usd"], row["repeat"], row["aggregate"]) == (["smoke"], 0.5, 3, "majority")


def test_attempts_that_failed_stand_at_the_end():
    retries = (Attempt("http-status", "HTTP 429", 12.5, 1000.0), Attempt("timeout", "no reply", 3000.0, 0.5))
    row = written(finished(attempts=3, retries=retries))
    assert list(row) == [*SECTION_13, "retries"]
    assert row["attempts"] == 3
    assert row["retries"] == [
        {"code": "http-status", "message": "HTTP 429", "duration_ms": 12.5, "waited_ms": 1000.0},
        {"code": "timeout", "message": "no reply", "duration_ms": 3000.0, "waited_ms": 0.5},
    ]


def test_an_error_that_stopped_its_target_says_so_and_no_more_of_the_call():
    row = written(finished("errored", error=CallFailure("http-status", "HTTP 401", status=401, stops=True)))
    assert row["error"] == {"code": "http-status", "message": "HTTP 401", "retryable": False, "stops": True}


def test_a_conversation_stands_in_its_row():
    subject = trial()
    subject = replace(subject, case=replace(subject.case, conversation_id="talk"))
    spoken = (Message("assistant", "Let me see"), Message("assistant", "Two"))
    turns = (TargetResponse("One", duration_ms=1.23456), TargetResponse("Two", spoken, cost_usd=0.5))
    row = written(finished(trial=subject, turns=turns))
    assert list(row) == [*SECTION_13, "conversation_id", "turns"]
    assert row["conversation_id"] == "talk"
    assert row["turns"] == [
        {"output": "One", "duration_ms": 1.234, "token_usage": None, "cost_usd": None},
        {
            "output": "Two",
            "duration_ms": None,
            "token_usage": None,
            "cost_usd": 0.5,
            "messages": [
                {"role": "assistant", "content": "Let me see"},
                {"role": "assistant", "content": "Two"},
            ],
        },
    ]


def test_a_negated_entry_and_a_gate_show():
    row = written(finished(scores=[scored(negate=True, required=0.5)]))
    assert row["scores"][0]["type"] == "not-contains"
    assert row["scores"][0]["name"] == "not-contains: '30 days'"
    assert row["scores"][0]["required"] == 0.5


def test_messages_are_written_as_section_5_says():
    messages = (
        Message("system", "Be kind."),
        Message("user", (TextBlock("hello"),), name="Ann"),
        Message("assistant", {"a": 1}, tool_calls=(ToolCall("find", {"q": 1}, "c1"),)),
    )
    assert written(finished(input=messages))["input"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "value": "hello"}], "name": "Ann"},
        {
            "role": "assistant",
            "content": {"a": 1},
            "tool_calls": [{"id": "c1", "name": "find", "arguments": {"q": 1}}],
        },
    ]


def test_a_suite_built_in_python_has_no_path():
    case = Case("a", (Message("user", "hi"),), ())
    subject = Trial(Suite("made", (case,)), case, TargetSpec("echo", "echo", None), 0.8, 300.0)
    score = Score(entry(), Grade.of(True, "yes"), 1.0)
    bare = Score(type(score.entry)("contains", score.entry.assertion, score.entry.settings), score.grade, 1.0)
    row = written(finished(trial=subject, scores=[bare]))
    assert row["eval_path"] is None
    assert row["scores"][0]["source"] is None


def test_a_file_outside_the_root_keeps_its_path():
    assert RelativePaths("/repo")["/repository/a.yaml"] == "/repository/a.yaml"
    assert RelativePaths("/repo/")["/repo/a.yaml"] == "a.yaml"


def test_numbers_are_finite():
    row = written(finished(score=float("nan"), cost_usd=float("inf")))
    assert row["score"] is None
    assert row["cost_usd"] is None


class Strange:
    def __str__(self):
        raise AssertionError("foreign code ran")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("\ud800", "\ufffd"),
        ({"\udcff": "x"}, {"\ufffd": "x"}),
        (10**40, 10**40),
        (Strange(), "<Strange>"),
        ("\ud83d\ude00a\udcff.", "\U0001f600a\ufffd."),
        ({(1, 2): "x"}, {"<tuple>": "x"}),
        ({"a": [Strange(), "\ud800"]}, {"a": ["<Strange>", "\ufffd"]}),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
    ],
)
def test_what_json_cannot_say_does_not_lose_the_row(value, expected):
    score = Score(entry(), Grade(0.5, False, (Check("x", False),), None, {"it": value}), 1.0)
    row = written(finished("failed", scores=[score]))
    assert list(row) == SECTION_13
    assert list(row["scores"][0]) == SCORE_KEYS
    assert row["scores"][0]["details"] == {"it": expected}


def test_data_nested_without_end_is_cut():
    endless = []
    endless.append(endless)
    row = written(finished("failed", scores=[Score(entry(), Grade(0.5, False, (), None, {"it": endless}), 1.0)]))
    assert "nested too deep" in json.dumps(row["scores"][0]["details"])
    assert row["test_id"] == "case-1"


@given(st.text(st.characters()))
def test_any_text_is_one_line_of_utf_8(text):
    line = to_json(row_of(finished(output=text), RelativePaths(ROOT)))
    assert b"\n" not in line
    kept = json.loads(line.decode())["output"]
    assert kept == text if text.isascii() else len(kept) <= len(text)


def test_totals_read_what_a_row_says():
    subject = trial("refund-1", tags=("smoke",), repeat=2, aggregate="pass_any", sample=2)
    scores = [scored(required=True), scored(), graded(0.4, False, required=0.5), errored_score(required=True)]
    line = to_json(
        row_of(finished(trial=subject, scores=scores, cost_usd=0.5, judge_cost_usd=0.25), RelativePaths(ROOT))
    )
    facts = msgspec.json.decode(line, type=Row)
    assert (facts.test_id, facts.status, facts.key) == ("refund-1", "passed", subject.key)
    assert (facts.tags, facts.repeat, facts.aggregate, facts.sample) == (("smoke",), 2, "pass_any", 2)
    assert (facts.cost_usd, facts.judge_cost_usd, facts.threshold) == (0.5, 0.25, 0.8)
    assert [(gate.mark, gate.value) for gate in facts.gates] == [(1.0, 1.0), (0.5, 0.4), (1.0, 0.0)]
