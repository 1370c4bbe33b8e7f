"""The work of an agent: read from artifacts, and as the page shows it."""

import json

import pytest
from msgspec.structs import replace

from agentv.extensions.view.pages.entries import (
    LONGEST,
    MOST_BYTES,
    MOST_LINES,
    MOST_STEPS,
    MOST_TEXT,
    shown_work,
    trace_json,
)
from agentv.model.run.trial import StoredWork
from agentv.model.values.trace import MessageStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.store.files.traces import write
from doubles.traces import WORK
from doubles.trials import finished


def test_each_step_is_there_with_what_it_says():
    told = trace_json(WORK, "artifacts/a/trace.json")
    shown = (told["agent"], told["calls"], told["errors"], told["cost_usd"], told["total"])
    assert shown == ("claude 2.1", 4, 1, 0.75, 11)
    assert told["steps"][2] == {"kind": "model", "at": 0.0, "name": "m-1", "took": 100.0, "cost_usd": 0.25,
                                "tokens": {"input": 10, "output": 5, "total": 15, "cached": 3, "reasoning": 2}}  # fmt: skip
    assert told["steps"][6] == {"kind": "tool", "at": 130.0, "depth": 1, "name": "shell", "native": "Bash", "status": "failed", "failed": 1,
                                "took": 50.0, "arguments": '{\n  "command": "pytest"\n}', "error": "exit 1"}  # fmt: skip
    assert (told["steps"][8]["kind"], told["steps"][8]["failed"]) == ("permission", 1)


def test_what_an_agent_reports_beside_the_count_of_the_gateway_is_named_so():
    counted, reported = UsageStep("m", TokenUsage(1, 1, 2), evidence="gateway"), UsageStep("m", TokenUsage(9, 9, 18))
    steps = trace_json(Trace((counted, reported)), "")["steps"]
    assert [one["name"] for one in steps] == ["m", "the agent reports"]


def test_steps_and_texts_are_bounded():
    many = Trace(tuple(MessageStep("user", "x") for _ in range(MOST_STEPS + 5)))
    told = trace_json(many, "")
    assert (len(told["steps"]), told["total"]) == (MOST_STEPS, MOST_STEPS + 5)
    long = Trace(tuple(MessageStep("user", "x" * 10**6) for _ in range(500)))
    told = trace_json(long, "")
    assert len(json.dumps(told)) < MOST_TEXT + 3 * LONGEST
    assert told["steps"][0]["text"].endswith("\n[the first 10,000 of 1,000,000 characters]")


def test_a_partial_trace_says_so():
    assert trace_json(replace(WORK, partial="cut"), "")["partial"] == "cut"


def of(**stored):
    return replace(finished("passed"), stored=StoredWork(**stored))


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run"
    (path / "artifacts" / "a").mkdir(parents=True)
    return path


def test_a_trace_and_a_diff(run):
    write(WORK, run / "artifacts" / "a")
    (run / "artifacts" / "a" / "diff.patch").write_text("+one\n-two\n")
    work = shown_work(run, of(trace_path="artifacts/a/trace.json", diff_path="artifacts/a/diff.patch"))
    diff = {"text": "+one\n-two\n", "lines": 2, "total": 2, "path": "artifacts/a/diff.patch"}
    assert work == {"trace": trace_json(WORK, "artifacts/a/trace.json"), "diff": diff}


@pytest.mark.parametrize(
    ("content", "lines", "total"),
    [
        (b"+line\n" * (MOST_LINES + 7), MOST_LINES, MOST_LINES + 7),
        (b"+" + b"x" * 999 + b"\n", 1, 1),
        ((b"+" + b"x" * 998 + b"\n") * 5000, 1000, 5000),
        (b"+" + b"x" * (MOST_BYTES + 1) + b"\n+b\n", 1, 2),
        (b"\xff\xfe no newline at the end", 1, 1),
        (b"", 0, 0),
    ],
)
def test_a_diff_is_bounded(run, content, lines, total):
    (run / "artifacts" / "a" / "diff.patch").write_bytes(content)
    diff = shown_work(run, of(diff_path="artifacts/a/diff.patch"))["diff"]
    assert (diff["lines"], diff["total"]) == (lines, total)
    assert len(diff["text"].encode()) <= MOST_BYTES


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"trace_path": "../x"}, "'../x' is outside the run's directory"),
        ({"diff_path": "/etc/passwd"}, "'/etc/passwd' is outside the run's directory"),
        ({"trace_path": "artifacts/gone/trace.json"}, "cannot read trace.json: No such file or directory"),
        ({"diff_path": "artifacts/gone/diff.patch"}, "No such file or directory"),
        ({"diff_path": "a\0b"}, "is no path"),
    ],
)
def test_what_cannot_be_read_is_told(run, stored, said):
    work = shown_work(run, of(**stored))
    assert said in work["work_problem"]
    assert len(work) == 1
