import json
from itertools import chain

import pytest

from agentv.app.results.deleting import pin
from agentv.app.trend import trend
from agentv.errors import UsageError
from agentv.store.files.directory import RunDirectory
from agentv.store.rows.reading import read_rows
from agentv.store.totals.summary import PlannedCounts, summarize
from doubles.stored_runs import scored_trials, write_rows, write_run, write_summary
from doubles.trials import finished, trial

CASES = [f"c{number}" for number in range(100)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return a function that writes runs of 100 cases from a number, the failed cases and more fields."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def write(number, failing=(), *, cases=CASES, target="gpt", suite="refunds", planned=None, **record):
        run = tmp_path / ".agentv" / "results" / f"20261121T1403{number:02}Z-7f3a"
        results = [
            *scored_trials({one: float(one not in failing) for one in cases}, target=target, suite=suite),
            *record.pop("more", ()),
        ]
        suites = [{"name": suite, "targets": [{"name": target, "model": record.pop("model", "x")}]}]
        counts = {"trials": planned or len(results), "cases": planned or len(results)}
        write_run(run, results, {"suites": suites, "planned": counts, "git_commit": f"{number:040}"} | record)
        return run

    return write


def rate(store, *counts, **more):
    """Write runs of 100 cases with these numbers of passes; the failing cases overlap as far as possible."""
    return [store(number, CASES[count:], **more) for number, count in enumerate(counts, 1)]


def directions(found):
    return [run.change.direction for run in found.runs if run.change is not None]


def test_a_step_is_shown_at_the_run_in_which_it_happens(store):
    rate(store, 87, 86, 87, 58, 57)
    found = trend("refunds", 20, "pass rate")
    assert [run.value for run in found.runs] == [0.87, 0.86, 0.87, 0.58, 0.57]
    assert directions(found) == [None, None, "lower", None]
    change = found.runs[3].change
    assert (change.before, change.cases, change.difference) == ("20261121T140303Z-7f3a", 100, pytest.approx(-0.29))
    assert change.interval[0] < -0.29 < change.interval[1] < 0
    assert (found.target, found.baseline, found.pinned) == ("gpt", "20261121T140301Z-7f3a", False)
    assert found.from_baseline.direction == "lower"
    assert found.runs[3].commit == f"{4:040}"


def test_a_later_run_retracts_nothing(store):
    shown = {}
    for number, count in enumerate((87, 86, 58, 57, 90, 90), 1):
        store(number, CASES[count:])
        for last in (2, 20):  # the length of the list changes no position
            for run in trend("refunds", last, "pass rate").runs:
                if run.change is not None:
                    assert shown.setdefault(run.run_id, run.change) == run.change
    assert [change.direction for change in shown.values()] == [None, "lower", None, "higher", None]
    assert trend("refunds", 2, "pass rate").earlier == 4


def test_the_pinned_run_is_the_baseline_wherever_it_is(store):
    first, *_ = rate(store, 57, 86, 87, 87)
    found = trend("refunds", 2, "pass rate")
    assert (found.baseline, found.from_baseline.direction) == ("20261121T140303Z-7f3a", None)
    pin(first.name)
    found = trend("refunds", 2, "pass rate")
    assert (found.baseline, found.pinned, found.from_baseline.direction) == (first.name, True, "higher")
    pin("last")
    assert trend("refunds", 2, "pass rate").from_baseline is None
    pin("last", remove=True)
    assert trend("refunds", 2, "pass rate").baseline == first.name


def test_a_run_elsewhere_is_not_pinned(store, tmp_path):
    store(1)
    write_run(tmp_path / "out", [finished(trial=trial())])
    with pytest.raises(UsageError, match="it is not in"):
        pin("out")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"planned": 120}, "did not run all of its cases"),
        (
            {"partial": {"cases": 50, "of": 100, "why": ["tag", "limit"], "trials": 50, "of_trials": 100}},
            "ran 50 of 100 cases (--tag --limit)",
        ),
        ({"settings": {"rerun": "failed"}}, "ran its failed cases again"),
        ({"settings": {"replay": "answers.jsonl"}}, "graded stored answers (--replay)"),
        ({"settings": {"regrade": "last"}}, "graded stored answers (--regrade)"),
        ({"target": "claude"}, "ran on claude"),
    ],
)
def test_partial_runs_and_other_targets_are_left_out_and_listed(store, more, reason):
    store(1)
    left = store(2, CASES[:90], **more)
    store(3)
    found = trend("refunds", 20, "pass rate", target="gpt")
    assert ([run.value for run in found.runs], directions(found)) == ([1.0, 1.0], [None])
    (one,) = found.left_out
    assert one.run_id == left.name
    assert one.reason.startswith(reason)


def test_a_run_that_is_being_written_or_was_cut_is_left_out(store):
    store(1)
    cut = store(2)
    whole = summarize(read_rows(cut / "index.jsonl"), run_id="x", planned=PlannedCounts(100, 100), duration_ms=1.0)
    write_summary(cut, whole.cut_short("fail-fast").as_json())
    with RunDirectory.open(store(3)):
        found = trend("refunds", 20, "pass rate")
    assert [one.reason for one in found.left_out] == ["did not run all of its cases", "is still running"]
    assert len(found.runs) == 1


def test_answers_that_all_came_from_the_cache_are_no_new_run(store):
    store(1)
    run = store(2, settings={"cache": True})
    assert len(trend("refunds", 20, "pass rate").runs) == 2
    rows = [json.dumps(json.loads(line) | {"reused": True}) for line in (run / "index.jsonl").read_text().splitlines()]
    write_rows(run, [row.encode() for row in rows])
    found = trend("refunds", 20, "pass rate")
    assert [one.reason for one in found.left_out] == ["graded stored answers (--cache)"]


def test_errored_cases_are_bounds(store):
    errored = [finished("errored", trial=trial(one)) for one in CASES[60:]]
    store(1, CASES[87:])
    store(2, CASES[40:60], cases=CASES[:60], more=errored)
    change = trend("refunds", 20, "pass rate").runs[1].change
    assert (change.direction, change.errors_decide, change.cases) == (None, True, 60)


def test_what_differs_between_two_runs_is_noted_and_edited_cases_are_not_compared(store):
    store(1)
    edited = scored_trials(dict.fromkeys(CASES[:3], 1.0), sha256="d" * 64)
    store(2, cases=CASES[3:99], more=[*edited, *scored_trials({"new": 1.0})], model="y")
    found = trend("refunds", 20, "pass rate")
    assert found.runs[1].change.cases == 96
    shown = found.runs[1].notes
    assert shown == ("cases: 3 edited, 1 new, 1 gone; these are not compared", "other settings of the target")


def test_runs_without_a_common_case_are_not_compared(store):
    store(1, cases=["a", "b"])
    store(2, cases=["c", "d"])
    found = trend("refunds", 20, "pass rate")
    assert (found.runs[1].change, found.from_baseline) == (None, None)


def test_one_target_of_a_run_with_several_suites_and_targets(store):
    others = chain(scored_trials({"x": 0.0}, target="claude"), scored_trials({"x": 0.0}, suite="other"))
    suites = [
        {"name": "refunds", "targets": [{"name": "gpt"}, {"name": "claude"}]},
        {"name": "other", "targets": [{"name": "gpt"}]},
    ]
    store(1, more=list(others), suites=suites)
    with pytest.raises(UsageError, match="the newest run of suite 'refunds' has 2 targets") as refused:
        trend("refunds", 20, "pass rate")
    assert refused.value.hint == "choose one with --target: gpt, claude"
    with pytest.raises(UsageError, match="runs of 2 suites") as refused:
        trend(None, 20, "pass rate")
    assert refused.value.hint == "choose one with --suite: other, refunds"
    found = trend("refunds", 20, "pass rate", target="gpt")
    assert (found.runs[0].value, found.runs[0].total) == (1.0, 100)


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ({"suite": "refund"}, "no run of suite 'refund' in", "did you mean 'refunds'?"),
        ({"suite": "refunds", "target": "gtp"}, "has a target 'gtp'", "did you mean 'gpt'? the suite's targets: gpt"),
        ({"suite": "refunds", "target": "else"}, "has a target 'else'", "the suite's targets: gpt"),
    ],
)
def test_where_there_is_no_run_the_nearest_name_is_named(store, asked, message, hint):
    with pytest.raises(UsageError, match="no finished run in"):
        trend(None, 20, "pass rate")
    store(1)
    assert trend(None, 20, "pass rate").suite == "refunds"
    with pytest.raises(UsageError, match=message) as refused:
        trend(asked["suite"], 20, "pass rate", target=asked.get("target"))
    assert refused.value.hint == hint
