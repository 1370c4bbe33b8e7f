"""Traces of a stored run's trials, and their conversions."""

import json

import atif
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.extensions.agents.commands.stored_traces import (
    export_atif,
    export_otlp,
    figures_of,
    traced_trials,
    trials_of_case,
)
from agentv.model.values.response import Failure
from agentv.model.values.trace import ToolCallStep, Trace
from agentv.store.files.traces import write
from doubles.traces import WORK


def row(case, **more):
    told = {"test_id": case, "key": f"key-{case}", "target": "claude", "sample": 1, "timestamp": "2026-01-01T00:00:10Z", "input": [{"role": "user", "content": "mend it"}],
            "output": "done", "status": "passed", "score": 1.0, "duration_ms": 1000.0, "token_usage": None, "cost_usd": None}  # fmt: skip
    return {**told, **more}


@pytest.fixture
def make(tmp_path):
    def made(*rows):
        path = tmp_path / "run"
        path.mkdir()
        (path / "index.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
        for one in rows:
            if one.get("trace_path", "").startswith("artifacts/") and one["score"] is not None:
                write(WORK, (path / one["trace_path"]).parent)
        return StoredRun(path, str(tmp_path), "run-1", {}, {})

    return made


def test_a_trial_has_the_trace_of_its_artifact(make):
    run = make(row("refund", trace_path="artifacts/a/trace.json", variant="bare", sample=2))
    (trial,) = traced_trials(run)
    assert trial.trace == WORK
    assert trial.name == "refund on claude, bare, sample 2"


@pytest.mark.parametrize("path", ["../outside/trace.json", "/etc/passwd", "artifacts/../../x"])
def test_a_trace_lies_within_the_run(make, path):
    (trial,) = traced_trials(make(row("a", trace_path=path)))
    assert trial.trace == Failure("bad-trace", f"'{path}' is outside the run's directory")


def test_a_link_that_leads_out_of_the_run_is_not_followed(make, tmp_path):
    run = make(row("a", score=None, trace_path="artifacts/a/trace.json"))
    write(WORK, tmp_path / "outside")
    (run.path / "artifacts").mkdir()
    (run.path / "artifacts" / "a").symlink_to(tmp_path / "outside")
    (trial,) = traced_trials(run)
    assert isinstance(trial.trace, Failure)


def test_a_case_that_is_not_there_names_the_nearest(make):
    run = make(row("refund"), row("shipping"))
    with pytest.raises(UsageError, match="no case 'refnd' in the run run-1") as caught:
        trials_of_case(run, "refnd", {})
    assert caught.value.hint == "did you mean 'refund'?"
    with pytest.raises(UsageError, match="no trial of 'refund' in the run run-1 matches --sample 3") as caught:
        trials_of_case(run, "refund", {"sample": 3, "target": None})
    assert caught.value.hint == "there are 1"
    assert len(trials_of_case(run, "refund", {"sample": 1, "target": "claude"})) == 1


def test_figures_leave_out_what_a_trial_does_not_say(make):
    run = make(
        row("a", trace_path="artifacts/a/trace.json", duration_ms=1000.0),
        row("b", score=0.0, duration_ms=3000.0, token_usage={"total": 100}, cost_usd=1.0),
        row("c", score=None, duration_ms=2000.0, trace_path="artifacts/gone/trace.json"),
    )
    figures = figures_of(traced_trials(run))
    counts = {
        name: None if found is None else (found.count, found.mean, found.percentiles[0])
        for name, found in figures.measures.items()
    }
    assert counts == {
        "score": (2, 0.5, 0.5),
        "duration_ms": (3, 2000.0, 2000.0),
        "cost_usd": (2, 0.875, 0.875),
        "tokens": (2, 70.0, 70.0),
        "tool_calls": (1, 4.0, 4.0),
    }
    assert (figures.trials, figures.partial) == (3, 0)
    assert figures.unread == ("c on claude: cannot read trace.json: No such file or directory",)


def test_calls_of_a_partial_trace_are_not_counted(make, tmp_path):
    run = make(row("a", trace_path="artifacts/a/trace.json"))
    write(Trace((ToolCallStep("x", {}),), partial="cut"), run.path / "artifacts" / "a")
    figures = figures_of(traced_trials(run))
    assert (figures.partial, figures.measures["tool_calls"]) == (1, None)


def test_traces_are_exported_as_otlp(make, tmp_path):
    run = make(row("a", trace_path="artifacts/a/trace.json"), row("b"), row("none", output=None, input=[]))
    assert list(export_otlp(run, [tmp_path / "out.pb"])) == [
        f"wrote {tmp_path / 'out.pb'}: 2 traces",
        "not exported: none on claude: the trial has neither a trace nor an answer",
    ]
    message = TracesData.FromString((tmp_path / "out.pb").read_bytes())
    first = message.resource_spans[0].scope_spans[0].spans[0]
    about = {one.key: one.value.string_value for one in first.attributes}
    assert (about["agentv.case.id"], about["agentv.run.id"], about["agentv.target"]) == ("a", "run-1", "claude")
    assert first.start_time_unix_nano == 1767225609 * 10**9, "it ended at :10 and took a second"
    list(export_otlp(run, [tmp_path / "out.json"]))
    assert len(json.loads((tmp_path / "out.json").read_text())["resourceSpans"]) == 2


def test_traces_are_exported_as_atif(make, tmp_path):
    run = make(row("a", trace_path="artifacts/a/trace.json"), row("b"))
    list(export_atif(run, [tmp_path / "out.jsonl"]))
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [atif.Trajectory.model_validate(one).extra["agentv"]["case_id"] for one in rows] == ["a", "b"]
    assert rows[0]["steps"][3]["timestamp"] == "2026-01-01T00:00:09.100Z"
    with pytest.raises(UsageError, match="can hold one trajectory, and there are 2"):
        list(export_atif(run, [tmp_path / "out.json"]))


def test_a_run_without_answers_has_nothing_to_export(make, tmp_path):
    with pytest.raises(UsageError, match="no trial of the run run-1 has a trace"):
        list(export_atif(make(row("none", output=None, input=[])), [tmp_path / "x.json"]))


@pytest.mark.parametrize(
    ("form", "name"), [(export_otlp, "x.csv"), (export_otlp, "x.jsonl"), (export_atif, "x.pb"), (export_atif, "x")]
)
def test_the_suffix_is_one_of_the_format(form, name, make, tmp_path):
    with pytest.raises(UsageError, match="its name must end in"):
        list(form(make(row("a")), [tmp_path / name]))
