import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from agentv.app.results.deleting import delete, named_runs, pin, runs_by_age
from agentv.app.results.listing import compared_run, compared_totals_of, listed_run, listed_runs, totals_of
from agentv.app.results.selecting import choose, side_by_side
from agentv.app.results.stored import open_run
from agentv.app.trend import trend
from agentv.cli.results import delete_command as command
from agentv.errors import ExitStatus, StoreError, UsageError
from agentv.model.run.matrix import Counts
from agentv.model.run.runs import Selection
from agentv.model.values.response import RUN_INTERRUPTED, Failure
from agentv.sdk import evaluate
from agentv.store.files.directory import RunDirectory, read_document
from agentv.store.journal.answers import HEADER
from doubles.stored_runs import write_rows, write_run, write_summary
from doubles.trials import finished, trial

AGENTS = """def right(prompt): return "yes"
def wrong(prompt):
    if "c" in prompt: raise RuntimeError("broken")
    return "yes" if "a" in prompt else "no"
"""
SUITE = {
    "name": "s",
    "targets": ["python:agents.py:right", "python:agents.py:wrong"],
    "tests": [{"id": name, "input": name[0], "assert": [{"equals": "yes"}]} for name in ("a", "b[x]", "c", "d")],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("project")
    (path / ".agentv").mkdir()
    (path / "agents.py").write_text(AGENTS)
    (path / "a.eval.yaml").write_text(json.dumps(SUITE))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        evaluate("a.eval.yaml")
        yield open_run("last", action="show")


def ids(found):
    return [case.case_id for case in found.cases]


def test_columns_disagree_by_their_verdicts_not_by_their_samples(tmp_path):
    def samples(case, target, *statuses, aggregate="pass_any"):
        given = {"target": target, "repeat": len(statuses), "aggregate": aggregate}
        return [finished(one, trial=trial(case, sample=at, **given)) for at, one in enumerate(statuses, 1)]

    rows = [
        *samples("same", "a", "passed", "failed"),
        *samples("same", "b", "passed", "passed"),
        *samples("other", "a", "failed", "failed"),
        *samples("other", "b", "passed", "failed"),
        *samples("not run", "a", "passed"),
        *samples("not run", "b", "skipped"),
    ]
    write_run(tmp_path / "run", rows, {})
    found = side_by_side(open_run(str(tmp_path / "run"), action="show"), Selection(), different=True)
    assert (ids(found), found.matching) == (["other"], 1)


def test_names_select_answers_and_a_limit_cases(run):
    found = side_by_side(run, Selection(targets=("*:wrong",), cases=("b[x]",)))
    assert (ids(found), found.targets) == (["b[x]"], ("python:agents.py:wrong",))
    assert (len(side_by_side(run, Selection(), 1).cases), side_by_side(run, Selection(), 1).matching) == (1, 4)
    assert ids(side_by_side(run, Selection(), 0)) == []
    with pytest.raises(UsageError, match=r"no trial of the run .* matches --target 'x'"):
        side_by_side(run, Selection(targets=("x",)))


def test_a_killed_run_is_compared_when_it_is_shown(run, tmp_path):
    totals = compared_totals_of(run.path, run.record)
    assert [one.verdict for one in totals.matrix.comparisons] == ["inconclusive"]
    killed = tmp_path / "killed"
    shutil.copytree(run.path, killed)
    (killed / "summary.json").unlink()
    assert compared_totals_of(killed, run.record).matrix == totals.matrix
    assert compared_run(killed).summary.matrix == totals.matrix


NOW = datetime(2026, 11, 30, tzinfo=UTC)
DAYS = (1, 10, 20, 29)


@pytest.fixture
def results(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for day in DAYS:
        with RunDirectory.create(tmp_path, datetime(2026, 11, day, 12, tzinfo=UTC)):
            pass
    return tmp_path / ".agentv" / "results"


def days(meant):
    return [int(path.name[6:8]) for path in meant.paths]


@pytest.mark.parametrize(
    ("older", "keep", "found"),
    [
        (None, 1, [1, 10, 20]),
        (None, 0, [1, 10, 20, 29]),
        (timedelta(days=5), 0, [1, 10, 20]),
        (timedelta(days=5), 3, [1]),
        (timedelta(hours=12), 0, [1, 10, 20]),
        (timedelta(hours=11), 0, [1, 10, 20, 29]),
    ],
)
def test_old_runs_go_and_the_newest_stay(results, older, keep, found):
    assert days(runs_by_age(older, keep, NOW)) == found


def test_of_a_run_whose_id_says_no_time_its_file_does(results):
    min(results.glob("2026*")).rename(results / "mine")
    assert (results / "mine") not in runs_by_age(timedelta(days=5), 0, datetime.now(UTC)).paths
    assert (results / "mine") in runs_by_age(timedelta(days=5), 0, datetime.now(UTC) + timedelta(days=6)).paths


def test_a_run_that_is_being_written_or_a_link_is_passed_over(results):
    first, second, third, _ = sorted(results.glob("2026*"))
    elsewhere = results.parent / "elsewhere"
    shutil.move(second, elsewhere)
    second.symlink_to(elsewhere)
    (third / "run.json").write_text("{")
    with RunDirectory.open(first):
        meant = runs_by_age(None, 1, NOW)
    assert meant.paths == ()
    for word, why in zip(("being written", "a symlink", "run.json"), meant.not_deleted, strict=True):
        assert word in why
    assert (elsewhere / "run.json").exists()


def test_what_may_not_go_is_refused_before_anything_goes(results, tmp_path):
    *_, last = sorted(results.glob("2026*"))
    (tmp_path / "link").symlink_to(last)
    with pytest.raises(StoreError, match="it is a symlink"):
        named_runs([last.name, "link"])
    with pytest.raises(UsageError, match="cannot delete: no run 'other'"):
        named_runs([last.name, "other"])
    with RunDirectory.open(last), pytest.raises(UsageError, match=f"still being written, in .*{last.name}$"):
        named_runs([last.name])
    assert len(list(results.glob("2026*"))) == len(DAYS)


def test_one_that_cannot_be_deleted_does_not_keep_the_others(results):
    first, second, *_ = sorted(results.glob("2026*"))
    (second / "notes.txt").write_text("mine")
    meant = runs_by_age(None, 0, NOW)
    (first / "run.json").write_text(json.dumps({"run_id": 1}))
    deleted = delete(meant)
    assert (deleted.runs, len(deleted.errors)) == (3, 1)
    assert deleted.left == (f"{second} was not deleted, because it also contains notes.txt",)
    assert {path.name for path in results.glob("2026*")} == {first.name, second.name}


@pytest.mark.parametrize("damage", [None, "{", "[]", '{"run_id": 1}'])
def test_a_run_whose_record_is_gone_or_damaged_can_be_deleted(results, damage):
    first, *_, last = sorted(results.glob("2026*"))
    for path in (first, last):
        (path / "run.json").unlink()
        (path / "journal.jsonl").write_bytes(HEADER)
        if damage is not None:
            (path / "run.json").write_text(damage)
    assert delete(named_runs([first.name])).runs == 1
    meant = runs_by_age(None, 0, NOW)
    assert (len(meant.paths), meant.refused, len(meant.listed())) == (3, False, 3)
    assert delete(meant).runs == 3
    assert list(results.glob("2026*")) == []


def test_what_agentv_may_not_have_written_stays_and_is_no_success(results):
    (max(results.glob("2026*")) / "run.json").write_text("{}")
    meant = runs_by_age(None, 0, NOW)
    assert (len(meant.paths), meant.refused) == (3, True)
    ended = CliRunner().invoke(command, ["--keep", "0", "--yes"], standalone_mode=False)
    assert ended.return_value == ExitStatus.ERRORED


def test_a_pinned_run_stays(results):
    pin(min(path.name for path in results.iterdir() if path.is_dir()))
    found = runs_by_age(None, 1, NOW)
    assert days(found) == [10, 20]
    assert found.not_deleted[0].endswith("was not deleted: it is pinned as a baseline")
    assert not found.refused


AGENTV = [sys.executable, "-P", "-m", "agentv"]

GREETINGS = {
    "name": "greetings",
    "target": "echo",
    "threshold": 1,
    "tests": [
        {"id": "hello", "input": "hello", "assert": [{"contains": "hello"}]},
        {"id": "bye", "tags": ["smoke"], "input": "bye", "assert": [{"contains": "hello"}]},
    ],
}


@pytest.fixture
def greeted(tmp_path, monkeypatch):
    """Write a run with a passed and a failed case; return its directory."""
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(GREETINGS))
    return evaluate("a.eval.yaml").directory


def only():
    (one,) = listed_runs(None).runs
    return one


def cut(greeted, rows):
    """Truncate a run as if it had been killed after this many rows."""
    (greeted / "summary.json").unlink(missing_ok=True)
    lines = (greeted / "index.jsonl").read_bytes().splitlines(keepends=True)
    (greeted / "index.jsonl").write_bytes(b"".join(lines[:rows]))


def test_a_finished_run_names_only_what_ran(tmp_path, greeted):
    shutil.rmtree(greeted)
    targets = [{"name": name, "provider": "mock", "response": name} for name in ("good", "bad")]
    suite = {"name": "two", "targets": targets, "tests": [{"id": "a", "input": "x", "assert": [{"contains": "good"}]}]}
    (tmp_path / "a.eval.yaml").write_text(json.dumps(suite))
    evaluate("a.eval.yaml")
    assert only().targets == ("good", "bad")
    evaluate("a.eval.yaml", last_failed=True)
    assert next(listed_runs(1).runs).targets == ("bad",)


def test_samples_that_were_not_needed_are_not_missed(greeted, tmp_path):
    shutil.rmtree(greeted)
    early = {"repeat": {"max": 30, "until": "decided"}}
    (tmp_path / "a.eval.yaml").write_text(json.dumps({**GREETINGS, "threshold": 0.8, "run": early}))
    again = evaluate("a.eval.yaml").directory
    assert again is not None
    one = only()
    assert (one.state, one.done, one.planned) == ("finished", 19, 60)
    cut(again, 18)
    assert (only().state, only().done) == ("interrupted", 18)


def test_trials_of_interrupted_agents_are_not_done(tmp_path):
    path, stopped = tmp_path / "r", {"status": "errored", "error": Failure(RUN_INTERRUPTED, "Ctrl-C")}
    ended = [finished(trial=trial("a")), *(finished(trial=trial(one), **stopped) for one in "bc")]
    write_run(path, ended, {"trials": 3})
    write_summary(path, totals_of(path, read_document(path / "run.json"))[0].as_json())
    assert (listed_run(path).state, listed_run(path).done) == ("interrupted", 1)
    rows = (path / "index.jsonl").read_bytes().splitlines(keepends=True)
    (path / "index.jsonl").write_bytes(b"".join(rows[:2]))
    assert listed_run(path).done == 1


def test_a_summary_that_is_older_than_the_rows_does_not_count(greeted):
    lines = (greeted / "index.jsonl").read_bytes().splitlines(keepends=True)
    (greeted / "index.jsonl").write_bytes(lines[0])
    summed = (greeted / "summary.json").stat().st_mtime_ns
    os.utime(greeted / "index.jsonl", ns=(summed + 1, summed + 1))
    one = only()
    assert one.state == "interrupted"
    assert one.summary.cases.skipped == 1


def test_a_summary_that_was_edited_is_not_shown_until_the_run_is_resumed(greeted):
    written, path = only().summary, greeted / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pass_rate": 1.0}))
    repair = f"agentv eval --resume={greeted.name} writes it again"
    assert (only().state, only().problem) == ("unreadable", f"{path} was changed after it was written; {repair}")
    with pytest.raises(UsageError, match="1 run left out") as refused:
        trend("greetings", 20, "pass rate")
    assert "summary.json was changed after it was written" in refused.value.hint
    assert subprocess.run([*AGENTV, "compare", "last", "last"], check=False).returncode == 2
    evaluate("a.eval.yaml", resume=greeted.name)
    assert (only().state, only().summary) == ("finished", replace(written, duration_ms=only().duration_ms, processes=2))


@pytest.mark.parametrize("kept", ["summary.json", None])
def test_a_row_that_was_edited_is_in_no_total(greeted, kept):
    rows = greeted / "index.jsonl"
    rows.write_text(rows.read_text().replace('"status":"failed"', '"status":"passed"'))
    os.utime(rows, (2e9, 2e9))
    if kept is None:
        (greeted / "summary.json").unlink()
    assert (only().state, only().summary) == ("unreadable", None)
    assert "index.jsonl:2: this row was changed after it was written" in only().problem


@pytest.mark.parametrize("rows", [1, 2])
def test_a_summary_that_nothing_vouches_for_gives_what_rows_do_not_tell(greeted, rows):
    path = greeted / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pass_rate": 1.0, "cut": "fail-fast"}))
    written = (greeted / "index.jsonl").read_bytes().splitlines()[:rows]
    path.rename(greeted / "kept")
    write_rows(greeted, written)
    (greeted / "kept").rename(path)
    summary = only().summary
    assert (summary.pass_rate, summary.cut) == (1 / rows, "fail-fast")
    assert summary.duration_ms == json.loads(path.read_text())["duration_ms"]


@pytest.fixture
def shown_run(greeted):
    return open_run("last", action="show")


def test_chosen_trials_are_read_and_no_others(shown_run):
    chosen = choose(shown_run, Selection(statuses=("failed",)))
    assert {one.trial.case.id for one in chosen.run.results()} == {"bye"}
    assert (chosen.counts, chosen.wanted) == (Counts(1, 0, 1, 0, 0), 1)


@pytest.mark.parametrize(
    ("selection", "said", "nearest"),
    [
        (Selection(cases=("by", "x*")), "--case 'by'", "bye"),
        (Selection(cases=("bye", "x*")), "--case 'x*'", None),  # together with an existing case
        (Selection(("failed",), tags=("a",), suites=("b",)), "--suite 'b'", None),
        (Selection(cases=("helo",)), "--case 'helo'", "hello"),
        (Selection(suites=("greeting",)), "--suite 'greeting'", "greetings"),
        (Selection(targets=("ecco",), cases=("hello",)), "--target 'ecco'", "echo"),
        (Selection(tags=("smok",)), "--tag 'smok'", "smoke"),
    ],
)
def test_a_name_that_nothing_has_is_refused_and_the_nearest_is_said(shown_run, selection, said, nearest):
    with pytest.raises(UsageError, match=f"no trial of the run .* matches {re.escape(said)}$") as refused:
        choose(shown_run, selection)
    assert refused.value.hint == (nearest and f"did you mean '{nearest}'?")


def test_totals_of_a_run_that_was_killed_are_computed(shown_run):
    (shown_run.path / "summary.json").unlink()
    found, timed = totals_of(shown_run.path, shown_run.record)
    assert (found.cases, found.duration_ms, timed) == (Counts(2, 1, 1, 0, 0), 0.0, False)


def test_a_run_that_is_still_being_written_is_taken_only_where_that_is_asked_for(greeted):
    with RunDirectory.open(greeted):
        where = os.path.relpath(greeted)
        with pytest.raises(UsageError, match=f"^the run {greeted.name} is still being written, in {where}$"):
            open_run("last", action="show")
        assert open_run("last", action="show", partial=True).run_id == greeted.name
    assert open_run("last", action="show").run_id == greeted.name
