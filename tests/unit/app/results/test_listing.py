import json
import os
import shutil
import subprocess
import sys

import pytest
from msgspec.structs import replace

from agentv.app.results.listing import listed_runs
from agentv.app.trend import trend
from agentv.errors import UsageError
from agentv.sdk import evaluate
from doubles.stored_runs import write_rows

AGENTV = [sys.executable, "-P", "-m", "agentv"]

SUITE = {
    "name": "greetings",
    "target": "echo",
    "threshold": 1,
    "tests": [
        {"id": "hello", "input": "hello", "assert": [{"contains": "hello"}]},
        {"id": "bye", "input": "bye", "assert": [{"contains": "hello"}]},
    ],
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(SUITE))
    return evaluate("a.eval.yaml").directory


def only():
    (one,) = listed_runs(None).runs
    return one


def cut(run, rows):
    """The run as it was when it was killed after so many rows."""
    (run / "summary.json").unlink(missing_ok=True)
    lines = (run / "index.jsonl").read_bytes().splitlines(keepends=True)
    (run / "index.jsonl").write_bytes(b"".join(lines[:rows]))


def test_a_finished_run_names_only_what_ran(tmp_path, run):
    shutil.rmtree(run)
    targets = [{"name": name, "provider": "mock", "response": name} for name in ("good", "bad")]
    suite = {"name": "two", "targets": targets, "tests": [{"id": "a", "input": "x", "assert": [{"contains": "good"}]}]}
    (tmp_path / "a.eval.yaml").write_text(json.dumps(suite))
    evaluate("a.eval.yaml")
    assert only().targets == ("good", "bad")
    evaluate("a.eval.yaml", last_failed=True)
    assert next(listed_runs(1).runs).targets == ("bad",)


def test_samples_that_were_not_needed_are_not_missed(run, tmp_path):
    shutil.rmtree(run)
    early = {"repeat": {"max": 30, "until": "decided"}}
    (tmp_path / "a.eval.yaml").write_text(json.dumps({**SUITE, "threshold": 0.8, "run": early}))
    again = evaluate("a.eval.yaml").directory
    assert again is not None
    one = only()
    assert (one.state, one.done, one.planned) == ("finished", 19, 60)
    cut(again, 18)
    assert (only().state, only().done) == ("interrupted", 18)


def test_a_summary_that_is_older_than_the_rows_does_not_count(run):
    lines = (run / "index.jsonl").read_bytes().splitlines(keepends=True)
    (run / "index.jsonl").write_bytes(lines[0])
    summed = (run / "summary.json").stat().st_mtime_ns
    os.utime(run / "index.jsonl", ns=(summed + 1, summed + 1))
    one = only()
    assert one.state == "interrupted"
    assert one.summary is not None
    assert one.summary.cases.skipped == 1


def test_a_summary_that_was_edited_is_not_shown_until_the_run_is_resumed(run):
    written, path = only().summary, run / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pass_rate": 1.0}))
    repair = f"agentv eval --resume={run.name} writes it again"
    assert (only().state, only().problem) == ("unreadable", f"{path} was changed after it was written; {repair}")
    with pytest.raises(UsageError, match="1 run left out") as refused:
        trend("greetings", 20, "pass rate")
    assert "summary.json was changed after it was written" in refused.value.hint
    assert subprocess.run([*AGENTV, "compare", "last", "last"], check=False).returncode == 2
    evaluate("a.eval.yaml", resume=run.name)
    assert (only().state, only().summary) == ("finished", replace(written, duration_ms=only().duration_ms, processes=2))


@pytest.mark.parametrize("kept", ["summary.json", None])
def test_a_row_that_was_edited_is_in_no_total(run, kept):
    rows = run / "index.jsonl"
    rows.write_text(rows.read_text().replace('"status":"failed"', '"status":"passed"'))
    os.utime(rows, (2e9, 2e9))
    if kept is None:
        (run / "summary.json").unlink()
    assert (only().state, only().summary) == ("unreadable", None)
    assert "index.jsonl:2: this row was changed after it was written" in only().problem


@pytest.mark.parametrize("rows", [1, 2])
def test_a_summary_that_nothing_vouches_for_gives_what_rows_do_not_tell(run, rows):
    path = run / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pass_rate": 1.0, "cut": "fail-fast"}))
    written = (run / "index.jsonl").read_bytes().splitlines()[:rows]
    path.rename(run / "kept")
    write_rows(run, written)
    (run / "kept").rename(path)
    summary = only().summary
    assert (summary.pass_rate, summary.cut) == (1 / rows, "fail-fast")
    assert summary.duration_ms == json.loads(path.read_text())["duration_ms"]
