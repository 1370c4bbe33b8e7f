from __future__ import annotations

import json
from statistics import stdev

import pytest

from agentv.app.trend import trend
from agentv.errors import StoreError, UsageError
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.series.series import Change, Context, error_of_mean, error_of_rate
from agentv.store.files.directory import RunDirectory
from doubles.stored_runs import write_rows, write_summary


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
            write_summary(run, {"schema_version": 1, "by_suite": groups})
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
    assert found.context == Context()


def test_a_suite_that_falls_is_told_and_the_mean_score_can_be_followed(store):
    for number, passed in enumerate((10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0)):
        store(number, refunds=passed)
    assert trend("refunds", 20, "pass rate").direction == "falls"
    assert trend("refunds", 20, "mean score").points[0].value == 0.5
    assert trend("refunds", 20, "mean score").line.effect == pytest.approx(
        trend("refunds", 20, "pass rate").line.effect / 2
    )


def test_runs_that_have_nothing_to_say_are_counted(store):
    store(1, refunds=5)
    store(2)  # killed
    running = store(3, refunds=6)
    judged_nothing = store(4, refunds=0)
    nothing = {"cases": {"total": 3, "passed": 0, "failed": 0, "errored": 3, "skipped": 0}, "pass_rate": None}
    write_summary(judged_nothing, {"schema_version": 1, "by_suite": {"refunds": nothing | {"mean_score": None}}})
    store(5, other=5)
    with RunDirectory.open(running):
        found = trend("refunds", 20, "pass rate")
    assert ([point.value for point in found.points], found.context.passed_over) == ([0.5], 3)
    assert (found.direction, found.line) == ("too few runs", None)


def test_the_only_suite_needs_no_name(store):
    store(1, refunds=5)
    assert trend(None, 20, "pass rate").suite == "refunds"
    store(2, other=5)
    with pytest.raises(UsageError, match="runs of 2 suites") as refused:
        trend(None, 20, "pass rate")
    assert refused.value.hint == "choose one with --suite: other, refunds"


def test_where_there_is_no_run_the_nearest_name_is_told(store):
    with pytest.raises(UsageError, match="no run in"):
        trend(None, 20, "pass rate")
    store(1, refunds=5)
    with pytest.raises(UsageError, match="no run of suite 'refund' in") as refused:
        trend("refund", 20, "pass rate")
    assert "did you mean 'refunds'?" in refused.value.hint


def test_a_summary_of_another_make_is_named(store):
    run = store(1, refunds=5)
    write_summary(run, {"schema_version": 1, "by_suite": {"refunds": {"cases": 3}}})
    with pytest.raises(StoreError, match=f"{run.name}: its summary.json was not written by agentv"):
        trend("refunds", 20, "pass rate")


def rows(run, *cases, **more):
    """What was asked: pairs of an id and a hash."""
    row = {"target": "t", "suite": "refunds", "status": "passed", "score": 1.0}
    lines = (json.dumps(row | {"test_id": case, "case_sha256": digest} | more) for case, digest in cases)
    write_rows(run, (line.encode() for line in lines))


def record(run, **more):
    (run / "run.json").write_text(json.dumps({"schema_version": 1, "run_id": run.name} | more))


@pytest.mark.parametrize("settings", [{"regrade": "last"}, {"replay": "answers.jsonl"}])
def test_answers_that_were_there_before_are_no_new_points(store, settings):
    store(1, refunds=5)
    record(store(2, refunds=9), settings=settings)
    found = trend("refunds", 20, "pass rate")
    assert ([point.value for point in found.points], found.context.not_new) == ([0.5], 1)


def test_a_run_is_passed_over_where_all_its_answers_came_from_the_cache(store):
    for number, reused in ((1, True), (2, False)):
        run = store(number, refunds=number)
        record(run, settings={"cache": True})
        rows(run, ("a", "1"), reused=reused)
    found = trend("refunds", 20, "pass rate")
    assert ([point.value for point in found.points], found.context.not_new) == ([0.2], 1)


def test_runs_of_cases_that_had_failed_are_no_points(store):
    for number in (1, 2):
        store(number, refunds=7)
    record(store(3, refunds=0), settings={"last_failed": [["", "refunds", "a", None, "gpt", None]]})
    found = trend("refunds", 20, "pass rate")
    assert ([point.value for point in found.points], found.context.last_failed) == ([0.7, 0.7], 1)


def test_samples_that_ended_early_are_left_out_of_mean_scores_only(store):
    for number, more in ((1, {}), (2, {"alpha": 0.05, "repeat": 9})):
        rows(store(number, refunds=number), ("a", "1"), **more)
    found = trend("refunds", 20, "mean score")
    assert (len(found.points), found.context.ended_early) == (1, 1)
    assert len(trend("refunds", 20, "pass rate").points) == 2
    assert found.points[0].run_id == "20261121T140301Z-7f3a"


def test_what_changed_from_run_to_run_is_found(store):
    first, second, third, fourth = (store(number, refunds=5) for number in (1, 2, 3, 4))
    rows(first, ("a", "1"), ("b", "1"))
    rows(second, ("a", "2"), ("b", "1"))
    rows(third, ("a", "2"), ("c", "1"), ("d", "1"))
    rows(fourth, ("a", "2"), ("c", "1"), ("d", "1"), target="u")
    assert trend("refunds", 20, "pass rate").context.changes == (
        Change(second.name, edited=1),
        Change(third.name, added=2, gone=1),
        Change(fourth.name, targets=True),
    )


def test_another_model_under_the_same_name_is_another_target(store):
    for number, model in ((1, "x"), (2, "x"), (3, "y")):
        run = store(number, refunds=5)
        rows(run, ("a", "1"))
        record(run, suites=[{"name": "refunds", "targets": [{"name": "t", "model": model}]}])
    assert trend("refunds", 20, "pass rate").context.changes == (Change("20261121T140303Z-7f3a", targets=True),)


def test_how_sure_a_run_is_goes_by_its_cases(store):
    run = store(1, refunds=8)
    lines = [{"test_id": str(number), "case_sha256": "1", "score": number / 10} for number in range(10)]
    asked = ({"suite": "refunds", "target": target} | row for row in lines for target in "tu")
    write_rows(run, (json.dumps(row).encode() for row in asked))
    assert trend("refunds", 20, "pass rate").points[0].error == error_of_rate(0.8, 10)
    scores = [number / 10 for number in range(10)]
    (point,) = trend("refunds", 20, "mean score").points
    assert point.error == pytest.approx(error_of_mean(scores)) == pytest.approx(stdev(scores) / 10**0.5)


def test_where_all_runs_are_copies_it_is_said(store):
    record(store(1, refunds=5), settings={"regrade": "last"})
    with pytest.raises(UsageError, match="1 with reused answers"):
        trend("refunds", 20, "pass rate")


def test_a_threshold_that_was_changed_is_told_and_no_rate_is_subtracted_across_it(store):
    for number in range(8):
        run = store(number, refunds=9 if number < 4 else 3)
        judged = {"threshold": 0.8 if number < 4 else 0.95, "score": 0.9}
        lines = [
            {"suite": "refunds", "target": "t", "test_id": str(case), "case_sha256": "1"}
            | {"status": "passed" if (case + number) % 10 < (9 if number < 4 else 3) else "failed"}
            | judged
            for case in range(10)
        ]
        write_rows(run, [json.dumps(line).encode() for line in lines])
    found = trend("refunds", 20, "pass rate")
    assert found.context.changes == (Change("20261121T140304Z-7f3a", rules=("threshold 0.8 → 0.95",)),)
    assert (found.first, found.direction, found.cases) == (4, "no trend is shown", 10)
    # the scores are told by no threshold: they can be followed across it
    assert trend("refunds", 20, "mean score").first == 0


def test_a_run_that_was_cut_is_passed_over(store):
    store(1, refunds=5)
    cut = store(2, refunds=9)
    write_summary(cut, {"schema_version": 1, "by_suite": {"refunds": group(9)}, "cut": "fail-fast"})
    found = trend("refunds", 20, "pass rate")
    assert ([point.value for point in found.points], found.context.passed_over) == ([0.5], 1)


def by_target(run, suites, **passed):
    """A summary that has the results of targets, and a `run.json` that names them."""
    write_summary(
        run,
        {
            "schema_version": 1,
            "by_suite": dict.fromkeys(suites, group(5)),
            "by_target": {name: group(count) for name, count in passed.items()},
        },
    )
    record(run, suites=[{"name": name, "targets": [{"name": one} for one in passed]} for name in suites])


def test_one_target_is_followed_alone(store):
    for number in range(3):
        by_target(store(number, refunds=5), ["refunds"], gpt=number, claude=8)
    by_target(store(3, refunds=5), ["refunds", "other"], gpt=9)
    by_target(store(4, refunds=5), ["refunds"], claude=9)
    found = trend("refunds", 20, "pass rate", target="gpt")
    assert (found.target, [point.value for point in found.points]) == ("gpt", [0.0, 0.1, 0.2])
    assert found.context == Context(undivided=1)
    assert trend("refunds", 20, "pass rate").target is None


def test_a_target_that_no_run_has_is_told_with_the_nearest_and_all_others(store):
    by_target(store(1, refunds=5), ["refunds"], gpt=1, claude=8)
    by_target(store(2, refunds=5), ["refunds", "other"], gpt=1, gemini=8)
    by_target(store(3, other=5), ["other"], mistral=1)
    with pytest.raises(UsageError, match=r"no run of suite 'refunds' in .* has a target 'gtp'") as refused:
        trend("refunds", 20, "pass rate", target="gtp")
    assert refused.value.hint == "did you mean 'gpt'? the suite's targets: claude, gemini, gpt"
    with pytest.raises(UsageError) as refused:
        trend("refunds", 20, "pass rate", target="something-else")
    assert refused.value.hint == "the suite's targets: claude, gemini, gpt"
    with pytest.raises(UsageError, match=r"with target 'gemini' in .* can be used .*1 of several suites") as refused:
        trend("refunds", 20, "pass rate", target="gemini")
    assert refused.value.hint is None
    with pytest.raises(UsageError) as refused:
        trend("refund", 20, "pass rate", target="gpt")
    assert refused.value.hint == "did you mean 'refunds'?"


def test_of_many_targets_some_are_named(store):
    by_target(store(1, refunds=5), ["refunds"], **{f"t{number:02}": 1 for number in range(23)})
    with pytest.raises(UsageError) as refused:
        trend("refunds", 20, "pass rate", target="x")
    assert refused.value.hint.endswith("t18, t19 and 3 more")
