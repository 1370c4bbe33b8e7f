import json
from array import array
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.model.run.grade import Check, Grade
from agentv.model.run.trial import Score
from agentv.model.values.message import Message, TextBlock, ToolCall
from agentv.model.values.response import TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.store.files.encoding import to_json
from agentv.store.rows.reading import places_in_order, read_placed_rows, variable_names
from agentv.store.rows.results import read_results_at
from agentv.store.rows.rows import row_of
from doubles.trials import ROOT, entry, finished, scored, trial

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
    return json.loads(to_json(row_of(result, ROOT)))


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
            "messages": [{"role": "assistant", "content": "Let me see"}, {"role": "assistant", "content": "Two"}],
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
        {"role": "assistant", "content": {"a": 1}, "tool_calls": [{"id": "c1", "name": "find", "arguments": {"q": 1}}]},
    ]


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
    line = to_json(row_of(finished(output=text), ROOT))
    assert b"\n" not in line
    kept = json.loads(line.decode())["output"]
    assert kept == text if text.isascii() else len(kept) <= len(text)


RECORD = {
    "suites": [
        {
            "name": "refunds",
            "path": "evals/refund.eval.yaml",
            "targets": [{"name": "gpt"}, {"name": "claude"}],
            "prompts": [{"id": "long"}, {"id": "brief"}],
        }
    ]
}


def ordering_written(path, *trials):
    rows = (row_of(finished(trial=one), ROOT) for one in trials)
    path.write_bytes(b"".join(to_json(row) + b"\n" for row in rows))
    return path


def test_rows_have_the_order_of_suites_cases_prompts_targets_and_samples(tmp_path):
    wanted = [
        trial("z", position=1, prompt_id="long", target="gpt"),
        trial("z", position=1, prompt_id="long", target="claude", sample=1),
        trial("z", position=1, prompt_id="long", target="claude", sample=2),
        trial("z", position=1, prompt_id="brief", target="gpt"),
        trial("a", position=2, prompt_id="long", target="gpt"),
        trial("a", position=10, prompt_id="long", target="gpt"),
    ]
    path = ordering_written(tmp_path / "index.jsonl", *reversed(wanted))
    found = [result.trial for result in read_results_at(path, ROOT, places_in_order(read_placed_rows(path), RECORD))]
    shown = [(one.case.position, one.case.prompt_id, one.target.name, one.sample) for one in found]
    assert shown == [(one.case.position, one.case.prompt_id, one.target.name, one.sample) for one in wanted]


def test_a_run_without_rows_has_none(tmp_path):
    assert places_in_order(read_placed_rows(tmp_path / "index.jsonl"), {}) == array("q")
    assert variable_names(tmp_path / "index.jsonl", ()) == []
