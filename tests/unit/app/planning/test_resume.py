"""Resumed runs: their totals cover their own cases, whatever was edited, removed or called since."""

import json
import os
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import Outcome, evaluate
from agentv.app.settings import EvalSettings
from agentv.errors import StoreError, UsageError
from agentv.model.run.events import Event, RunResumed, TrialFinished, TrialKept
from agentv.store.journal.answers import row_checksum_line
from doubles.loading import repository

SUITE = """\
name: shop
target: echo
tests:
  - {id: a, input: one, tags: [smoke], assert: [{contains: one}]}
  - {id: b, input: two, assert: [{contains: no}]}
  - {id: c, input: three, assert: [{contains: three}]}
"""
LINKED = """\
target: echo
tests:
  - {id: login, input: hello, assert: [{contains: hello}]}
  - {id: mail, input: mail, depends_on: login, assert: [{contains: mail}]}
  - {id: sent, input: sent, depends_on: mail, assert: [{contains: sent}]}
  - {id: other, input: other, assert: [{contains: other}]}
"""


@pytest.fixture
def project(tmp_path):
    repository(tmp_path, {"a.eval.yaml": SUITE})
    with chdir(tmp_path):
        yield tmp_path


def run(**options: Any) -> tuple[Outcome, list[Event]]:
    settings = {"paths": ("a.eval.yaml",), "process_env": {}, "out": "run", **options}
    events: list[Event] = []
    return evaluate(prepare(EvalSettings(**settings)), events.append), events


def lines(name: str) -> list[dict[str, Any]]:
    path = Path("run", name)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def document(name: str) -> dict[str, Any]:
    return json.loads(Path("run", name).read_text())


def ids(name: str) -> list[str]:
    return sorted(row["test_id"] for row in lines(name))


def ran(events: list[Event]) -> dict[str, str]:
    return {one.result.trial.case.id: one.result.status for one in events if isinstance(one, TrialFinished)}


def forget(*cases: str) -> None:
    """Remove the rows of these cases, as if the run had been killed before writing them."""
    index = Path("run", "index.jsonl")
    kept = [line for line in index.read_text().splitlines(keepends=True) if json.loads(line)["test_id"] not in cases]
    index.write_text("".join(kept))
    Path("run", "summary.json").unlink()


def edit(old: str, new: str, suite: str = SUITE) -> None:
    assert old in suite
    Path("a.eval.yaml").write_text(suite.replace(old, new))


def test_what_depends_on_an_edited_case_is_decided_anew(project):
    Path("a.eval.yaml").write_text(LINKED)
    assert run()[0].summary.cases.passed == 4
    edit("contains: hello", "contains: welcome", LINKED)

    outcome, events = run(resume="last")

    assert ran(events) == {"login": "failed", "mail": "skipped", "sent": "skipped"}
    assert next(one for one in events if isinstance(one, RunResumed)) == RunResumed(1, 3, 0)
    cases = outcome.summary.cases
    assert (cases.passed, cases.failed, cases.skipped) == (1, 1, 2)
    assert (ids("index.jsonl"), ids("history.jsonl")) == (["login", "other"], ["login", "mail", "sent"])
    assert outcome.status == 1  # skipped cases add nothing to the failed case's status


@pytest.mark.parametrize("choice", [{}, {"filter": "[ba]"}, {"tags": ("smoke",)}])
def test_the_run_keeps_the_cases_that_it_began_with(project, choice):
    run(filter="[ab]")
    forget("b")
    outcome, _ = run(resume="last", **choice)
    assert outcome.summary.cases.total == document("run.json")["planned"]["cases"] == 2
    assert document("run.json")["settings"]["filter"] == "[ab]"
    assert ids("index.jsonl") == (["a"] if choice.get("tags") else ["a", "b"])


@pytest.mark.parametrize("choice", [{"filter": "b"}, {"limit": 1, "exclude_tags": ("smoke",)}])
def test_a_choice_is_one_of_what_there_is_to_do_and_the_totals_are_of_all(project, choice):
    run()
    forget("b", "c")
    outcome, events = run(resume="last", **choice)
    assert ran(events) == {"b": "failed"}
    assert next(one for one in events if isinstance(one, RunResumed)) == RunResumed(1, 1, 0)
    cases = outcome.summary.cases
    assert (cases.total, cases.passed, cases.failed, cases.skipped) == (3, 1, 1, 1)
    assert outcome.status == 3  # a case was not run
    assert document("run.json")["settings"]["filter"] is None
    assert run(resume="last")[0].summary.cases.skipped == 0


def test_what_failed_is_tried_again_where_it_is_chosen(project):
    edit("contains: three", "contains: no")
    run()
    outcome, events = run(rerun="failed", filter="c")
    assert ran(events) == {"c": "failed"}
    assert outcome.summary.cases.failed == 2
    assert ids("history.jsonl") == ["c"]


@pytest.mark.parametrize(
    ("choice", "told"), [({"filter": "c"}, "--filter c"), ({"filter": "*", "limit": 3}, "--filter * --limit 3")]
)
def test_cases_that_are_none_of_the_run_are_refused(project, choice, told):
    run(filter="[ab]")
    with pytest.raises(UsageError, match=r"selects 1 trial that is not part of the run run") as refused:
        run(resume="last", **choice)
    assert told in str(refused.value)
    assert ids("index.jsonl") == ["a", "b"]


def test_the_same_sample_is_gone_on_with(project):
    run(sample=2, seed=5)
    drawn = ids("index.jsonl")
    forget(drawn[0])
    outcome, _ = run(resume="last")
    assert ids("index.jsonl") == drawn
    assert outcome.summary.cases.total == 2


@pytest.mark.parametrize(("given", "flag"), [({"targets": ("mock:hi",)}, "--target mock:hi"), ({"judge": "echo"}, "")])
def test_a_target_of_the_command_line_is_named_again(project, given, flag):
    run(**given)
    with pytest.raises(UsageError, match="started with --") as refused:
        run(resume="last")
    assert flag in str(refused.value)
    assert run(resume="last", **given)[0].summary.cases.total == 3


def test_rows_that_do_not_count_any_more_are_moved(project):
    run()
    Path("a.eval.yaml").write_text(SUITE.replace("input: one", "input: one more").rpartition("  - {id: c")[0])
    outcome, events = run(resume="last")
    assert ran(events) == {"a": "passed"}
    assert (ids("index.jsonl"), ids("history.jsonl")) == (["a", "b"], ["a", "c"])
    assert outcome.summary.cases.total == 2
    assert "moved 2 outdated rows to history.jsonl: cases were edited, " in outcome.notes[0]


def test_a_doubled_row_counts_and_is_shown_once(project):
    run()
    index = Path("run", "index.jsonl")
    index.write_text(index.read_text() + index.read_text().splitlines(keepends=True)[1])
    outcome, events = run(resume="last")
    assert [one.result.trial.case.id for one in events if isinstance(one, TrialKept)] == ["a", "c", "b"]
    assert outcome.summary.cases.total == 3
    assert len(lines("index.jsonl")) == 3


def test_a_move_that_was_cut_short_counts_no_cost_twice(project):
    answer = '#!/bin/sh\necho \'{"output": "two", "cost_usd": 0.25}\'\n'
    Path("agent.sh").write_text(answer)
    Path("agent.sh").chmod(0o755)
    edit("target: echo", "target: {provider: cli, command: ./agent.sh}")
    run(filter="b")
    row = Path("run", "index.jsonl").read_bytes()
    Path("run", "history.jsonl").write_bytes(row)  # killed before the row was removed from the index
    assert run(resume="last")[0].summary.cost_usd == 0.25
    assert run(rerun="failed")[0].summary.cost_usd == 0.5
    assert len(lines("history.jsonl")) == 2
    assert run(resume="last")[0].summary.cost_usd == 0.5


JUDGED = """\
target: python:agent.py:answer
judge: python:agent.py:judge
tests:
  - {id: a, input: one, repeat: 2, assert: [{contains: one}, is right]}
  - {id: b, turns: [{input: two}, {input: three}], assert: [{contains: three}]}
"""
AGENT = """\
import json

def answer(prompt):
    return {"output": prompt, "cost_usd": 1.0, "token_usage": {"input": 1, "output": 1}}

def judge(prompt):
    checks = [{"id": "r1", "satisfied": True}]
    return {"output": json.dumps({"checks": checks}), "cost_usd": 0.25, "token_usage": {"input": 1, "output": 1}}
"""


@pytest.fixture
def judged(project):
    Path("agent.py").write_text(AGENT)
    Path("a.eval.yaml").write_text(JUDGED)
    first = run()[0].summary
    assert (first.cost_usd, first.judge_cost_usd, first.cases.passed) == (4.0, 0.25, 2)
    return project


def test_what_is_graded_anew_is_paid_for_once(judged):
    edit("contains: one", "contains: on", JUDGED)
    second = run(resume="last")[0].summary
    assert (second.cost_usd, second.judge_cost_usd, second.cases.passed) == (4.0, 0.25, 2)
    assert [row["reused"] for row in lines("index.jsonl") if row["test_id"] == "a"] == [True, True]
    edit("is right", "is bright", JUDGED)  # the judge's request changed, the target's did not
    third = run(resume="last")[0].summary
    assert (third.cost_usd, third.judge_cost_usd) == (4.0, 0.5)
    Path("a.eval.yaml").write_text(JUDGED)
    fourth = run(resume="last")[0].summary
    assert (fourth.cost_usd, fourth.judge_cost_usd) == (4.0, 0.5)
    assert fourth.token_usage.total == 8


def test_an_answer_that_was_in_no_row_counts(judged):
    edit("contains: one", "contains: on", JUDGED)
    run(resume="last")
    forget("a", "b")  # killed before the rows were written: the history holds those of the first process
    edit("contains: on", "contains: o", JUDGED.replace("contains: one", "contains: on"))
    summary = run(resume="last")[0].summary
    assert (summary.cost_usd, summary.judge_cost_usd) == (4.0, 0.25)


def test_only_the_turns_that_were_asked_anew_are_paid_for(judged):
    edit("input: three", "input: three more", JUDGED)
    summary = run(resume="last")[0].summary
    assert (summary.cost_usd, summary.cases.passed) == (5.0, 2)
    (row,) = (row for row in lines("index.jsonl") if row["test_id"] == "b")
    assert (row["cost_usd"], "reused" in row) == (1.0, False)


def test_what_is_asked_anew_is_paid_for_again(judged):
    edit("contains: one", "contains: none", JUDGED)
    assert run(resume="last")[0].summary.cost_usd == 4.0
    assert run(rerun="failed")[0].summary.cost_usd == 6.0
    edit("contains: one", "contains: no", JUDGED)
    assert run(resume="last")[0].summary.cost_usd == 6.0


def test_a_process_that_was_killed_lasted_until_its_last_row_whatever_the_date_was(project):
    run()
    record = document("run.json")
    Path("run", "run.json").write_text(json.dumps(record | {"started": "2026-11-21T10:00:00Z", "processes": 1}))
    rows = Path("run", "index.jsonl").read_bytes().splitlines()
    Path("run", "summary.json").unlink()
    with Path("run", "journal.jsonl").open("ab") as journal:
        journal.write(row_checksum_line(json.loads(rows[-1])["key"], rows[-1], 30_000))
    os.utime("run/journal.jsonl", (1795255230, 1795255230))
    assert 30_000 <= run(resume="last")[0].summary.duration_ms < 35_000
    assert document("run.json")["started"] == "2026-11-21T10:00:00Z"
    assert 30_000 <= document("run.json")["duration_before_ms"] < 35_000


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("name: shop", "name: store", "lacks 'shop' in a.eval.yaml, with which the run"),
        ("a.eval.yaml", "b.eval.yaml", "this command has 'shop' in b.eval.yaml"),
    ],
)
def test_a_suite_of_another_name_is_told(project, old, new, told):
    run()
    before = Path("run", "index.jsonl").read_bytes()
    Path("a.eval.yaml").unlink()
    path = "b.eval.yaml" if new.startswith("b.") else "a.eval.yaml"
    Path(path).write_text(SUITE.replace(old, new))
    with pytest.raises(UsageError) as refused:
        run(resume="last", paths=(path,))
    assert told in str(refused.value)
    assert Path("run", "index.jsonl").read_bytes() == before


@pytest.mark.parametrize("named", ["last", "id", "directory"])
def test_a_run_without_its_record_is_told_and_no_older_one_taken(project, named):
    run(out=None)
    newest = run(out=None)[0].directory
    (newest / "run.json").unlink()
    name = {"last": "last", "id": newest.name, "directory": str(newest)}[named]
    with pytest.raises(UsageError, match=f"{newest.name} has no run.json any more: it was removed"):
        run(out=None, resume=name)


def test_a_run_directory_without_its_record_is_told(project):
    run()
    Path("run", "run.json").unlink()
    with pytest.raises(StoreError, match=r"has no run.json any more: it was removed"):
        run(resume="last")


@pytest.mark.parametrize("damaged", ["run.json", "summary.json"])
def test_a_damaged_file_of_a_run_keeps_no_answer_from_it(project, damaged):
    before = run()[0].summary
    Path("run", damaged).write_text("{")
    outcome, *_ = run(resume="last")
    assert outcome.summary.cases == before.cases
    assert outcome.summary.trials == before.trials
    assert ("moved it to run.json.damaged" in " ".join(outcome.notes)) == (damaged == "run.json")


def test_a_journal_that_was_cut_asks_for_what_it_lacks_alone(project):
    before = run()[0].summary
    lines = Path("run", "journal.jsonl").read_bytes().splitlines(keepends=True)
    Path("run", "journal.jsonl").write_bytes(b"".join(line for line in lines if b'"row":' not in line))
    outcome, events = run(resume="last")
    assert outcome.summary.cases == before.cases
    assert [(one.complete, one.regraded, one.to_call) for one in events if isinstance(one, RunResumed)] == [(0, 3, 0)]
