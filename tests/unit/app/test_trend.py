from __future__ import annotations

import json

import pytest

from agentv.app.trend import trend
from agentv.errors import StoreError, UsageError
from agentv.stats.proportion import wilson_interval
from agentv.store.directory import RunDirectory


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Writes runs: their suites with how many cases passed, of ten."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def write(number, **passed):
        run = tmp_path / ".agentv" / "results" / f"20261121T1403{number:02}Z-7f3a"
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps({"schema_version": 1, "run_id": run.name}))
        if passed:
            groups = {name: group(count) for name, count in passed.items()}
            (run / "summary.json").write_text(json.dumps({"schema_version": 1, "by_suite": groups}))
        return run

    return write


def group(passed):
    cases = {"total": 10, "passed": passed, "failed": 10 - passed, "errored": 0, "skipped": 0}
    return {"cases": cases, "pass_rate": passed / 10, "mean_score": passed / 20}


def test_the_last_runs_of_a_suite_in_their_order(store):
    for number in range(12):
        store(number, refunds=number % 10, other=10)
    found = trend("refunds", 4, "pass rate")
    assert [point.value for point in found.points] == [0.8, 0.9, 0.0, 0.1]
    assert found.points[0].interval == wilson_interval(8, 10)
    assert found.points[-1].run_id == "20261121T140311Z-7f3a"
    assert found.passed_over == 0


def test_a_suite_that_falls_is_told_and_the_mean_score_can_be_followed(store):
    for number, passed in enumerate((9, 9, 8, 8, 7, 7, 6, 5)):
        store(number, refunds=passed)
    assert trend("refunds", 20, "pass rate").direction == "falls"
    assert trend("refunds", 20, "mean score").points[0].value == 0.45
    assert trend("refunds", 20, "mean score").least_squares.slope == pytest.approx(
        trend("refunds", 20, "pass rate").least_squares.slope / 2
    )


def test_runs_that_have_nothing_to_say_are_counted(store):
    store(1, refunds=5)
    store(2)  # killed
    running = store(3, refunds=6)
    judged_nothing = store(4, refunds=0)
    nothing = {"cases": {"total": 3, "passed": 0, "failed": 0, "errored": 3, "skipped": 0}, "pass_rate": None}
    (judged_nothing / "summary.json").write_text(
        json.dumps({"schema_version": 1, "by_suite": {"refunds": nothing | {"mean_score": None}}})
    )
    store(5, other=5)
    with RunDirectory.open(running):
        found = trend("refunds", 20, "pass rate")
    assert ([point.value for point in found.points], found.passed_over) == ([0.5], 3)
    assert (found.direction, found.least_squares) == ("too few runs", None)


def test_the_only_suite_needs_no_name(store):
    store(1, refunds=5)
    assert trend(None, 20, "pass rate").suite == "refunds"
    store(2, other=5)
    with pytest.raises(UsageError, match="runs of 2 suites") as refused:
        trend(None, 20, "pass rate")
    assert refused.value.hint == "name one with --suite: other, refunds"


def test_where_there_is_no_run_the_nearest_name_is_told(store):
    with pytest.raises(UsageError, match="no run in"):
        trend(None, 20, "pass rate")
    store(1, refunds=5)
    with pytest.raises(UsageError, match="no run of suite 'refund' in") as refused:
        trend("refund", 20, "pass rate")
    assert "did you mean 'refunds'?" in refused.value.hint


def test_a_summary_of_another_make_is_named(store):
    run = store(1, refunds=5)
    (run / "summary.json").write_text(json.dumps({"schema_version": 1, "by_suite": {"refunds": {"cases": 3}}}))
    with pytest.raises(StoreError, match=f"{run.name}: its summary.json is not one of agentv's"):
        trend("refunds", 20, "pass rate")
