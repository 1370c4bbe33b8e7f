"""Entries for a report's trials."""

import json

import pytest
from msgspec.structs import replace

from agentv.extensions.view.pages.entries import (
    LONGEST_STEP_TEXT,
    MOST_BYTES,
    MOST_LINES,
    MOST_STEPS,
    MOST_TEXT,
    NAMES,
    TEASER,
    Entries,
    early_facts,
    teaser,
    trace_and_diff,
    trace_json,
)
from agentv.model.run.cases import Sample
from agentv.model.run.trial import StoredWork
from agentv.model.values.trace import MessageStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.stats.samples.deciding import Rule, stopped_by, unbiased_rate
from agentv.store.files.traces import write
from doubles.html_reports import early_stopped_samples, samples
from doubles.traces import WORK
from doubles.trials import finished, graded, scored


def test_names_of_assertions_are_bounded():
    entries = Entries()
    for number in range(NAMES + 5):
        entries.short(finished(scores=[scored(True, name=f"a{number}")]))
    assert len(entries.tables()["assertions"]) == NAMES + 1
    assert entries.tables()["assertions"][-1] == ("contains", None)


def test_of_samples_that_may_end_early_the_bounds_are_those_that_hold_whenever_one_looks():
    entries = Entries()
    for one in [
        *early_stopped_samples("low", *[False] * 12),
        *early_stopped_samples("open", True, False),
        *samples(True, False),
    ]:
        entries.short(one)
    low, still, ordinary = entries.tables()["early"]
    assert (low["why"], low["alpha"]) == ("below", 0.05)
    assert low["bounds"][0] == 0
    assert low["bounds"][1] < 0.8
    assert (still, ordinary) == ({"alpha": 0.05, "why": None, "bounds": None, "rate": None}, None)
    assert low["rate"] == 0.0


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (finished("errored"), "timeout: no answer after 3 s"),
        (finished("failed"), "output lacks '30 days'"),
        (finished("failed", scores=[graded(0.3, False, name="tone")]), "tone: scored 0.30"),
        (finished(output="\n You may.\nYes."), "You may. Yes."),
        (finished(output=None), ""),
        (finished(output="x\u202e" * 1000), ("x\\u202e" * 30)[: TEASER - 1] + "…"),
    ],
)
def test_one_line_says_why(result, expected):
    assert teaser(result) == expected


PASS, FAIL, ERRED = Sample("passed", 1.0), Sample("failed", 0.0), Sample("errored", None)
EARLY = Rule(20, 0.8, alpha=0.05)


def test_a_case_whose_samples_ended_has_its_bounds_and_its_rate_without_bias():
    samples = [PASS, FAIL, FAIL, FAIL, FAIL, FAIL]
    stopped = stopped_by(samples, EARLY)
    rate = unbiased_rate(stopped, threshold=0.8, alpha=0.05, repeat=20)
    shown = early_facts(samples, EARLY)
    assert shown == {"alpha": 0.05, "why": "below", "bounds": [stopped.low, stopped.high], "rate": rate}
    assert 0 < rate < 1


def test_a_case_whose_only_sample_errored_has_neither():
    assert early_facts([ERRED], EARLY) == {"alpha": 0.05, "why": "errored", "bounds": None, "rate": None}
    found = early_facts([PASS, ERRED], EARLY)
    assert (found["rate"], found["bounds"][0] >= 0) == (None, True)


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
    assert len(json.dumps(told)) < MOST_TEXT + 3 * LONGEST_STEP_TEXT
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
    work = trace_and_diff(run, of(trace_path="artifacts/a/trace.json", diff_path="artifacts/a/diff.patch"))
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
    diff = trace_and_diff(run, of(diff_path="artifacts/a/diff.patch"))["diff"]
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
    work = trace_and_diff(run, of(**stored))
    assert said in work["work_problem"]
    assert len(work) == 1
