"""`agentv results`: runs that were, listed, shown, exported and deleted."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest

from e2e.command import AGENTV

SUITE = """
name: support
target: "mock:You can return it within 30 days."
tests:
  - {id: refund, input: Can I return a lamp?, assert: [{contains: 30 days}]}
  - {id: shipping, input: How long does it take?, assert: [{contains: 5 days}]}
"""


@pytest.fixture
def ran(project):
    project.write("evals/a.eval.yaml", SUITE)
    assert project.run("eval", "evals").status == 1
    return project


def test_runs_are_listed_for_people_and_for_programs(ran):
    shown = ran.run("results", "list")
    assert (shown.status, "finished  1 of 2" in shown.stdout, "1 run" in shown.stdout) == (0, True, True)
    (run,) = json.loads(ran.run("results", "list", "--json").stdout)
    assert (run["state"], run["suites"], run["cases"]["failed"]) == ("finished", ["support"], 1)


def test_a_run_is_deleted_only_where_somebody_says_so(ran):
    refused = ran.run("results", "delete", "last")
    assert (refused.status, "cannot ask for confirmation without a terminal: delete 1 run" in refused.stderr) == (
        2,
        True,
    )
    assert len(json.loads(ran.run("results", "list", "--json").stdout)) == 1
    assert ran.run("results", "delete", "last", "--yes").stdout == "deleted 1 run\n"
    assert ran.run("results", "list", "--json").stdout == "[]\n"


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked(ran, answer, left):
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    process = subprocess.run(
        [AGENTV, "results", "delete", "last"],
        cwd=ran.path,
        env=ran.environment,
        stdin=theirs,
        capture_output=True,
        timeout=180,
        check=True,
    )
    os.close(ours)
    os.close(theirs)
    assert b"1 of 2" in process.stdout
    assert b"delete 1 run, 0.0 MB? [y/N]" in process.stderr
    assert len(json.loads(ran.run("results", "list", "--json").stdout)) == left


def test_old_runs_are_deleted(ran):
    assert ran.run("results", "delete", "--older-than", "30d", "--yes").stdout == "no runs to delete\n"
    assert ran.run("results", "delete", "--older-than", "0h", "--keep", "0", "--yes").stdout == "deleted 1 run\n"


def test_trials_of_a_run_are_shown_and_chosen(ran):
    shown = ran.run("results", "show")
    assert shown.status == 0
    assert "PASSED refund on mock:" in shown.stdout
    assert "FAILED shipping on mock:" in shown.stdout
    failed = ran.run("results", "show", "last", "--failed").stdout
    assert ("refund on" in failed, "shipping on" in failed) == (False, True)
    one = ran.run("results", "show", "--limit", "1").stdout
    assert "1 of 2 trials shown (1 passed, 1 failed, 0 errored); --limit N shows more" in one
    assert "no matching trials in this run" in ran.run("results", "show", "--errored").stdout


def test_as_json_the_chosen_rows_are_those_of_the_file(ran):
    told = json.loads(ran.run("results", "show", "--json", "--case", "ship*").stdout)
    assert told["rows"] == [row for row in ran.rows() if row["test_id"] == "shipping"]
    assert told["summary"]["cases"]["total"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "20200101T000000Z-0000"], "cannot show: no run"),
        (["show", "--case", "refunds"], "matches --case 'refunds'"),
        (["export", "last"], "no output file"),
        (["export", "last", "-o", "x.docx"], "unknown suffix"),
        (["export", "last", "--tag", "a", "-o", "x.csv"], "matches --tag 'a'"),
    ],
)
def test_what_cannot_be_shown_or_exported_is_said(ran, words, said):
    ended = ran.run("results", *words)
    assert (ended.status, said in ended.stderr) == (2, True), ended.stderr
    assert not (ran.path / "x.csv").exists()


def test_reading_a_run_imports_nothing_heavy(ran):
    from e2e.test_imports import imported

    assert imported(ran, "results", "show") == (0, set())
    assert imported(ran, "results", "list") == (0, set())


def test_a_run_whose_last_row_was_cut_off_is_shown_and_exported_without_it(ran):
    index = next((ran.path / ".agentv" / "results").glob("*/index.jsonl"))
    index.write_bytes(index.read_bytes()[:-100])
    (run,) = json.loads(ran.run("results", "list", "--json").stdout)
    assert (run["state"], run["done"], run["trials"]["skipped"]) == ("interrupted", 1, 1)
    assert len(json.loads(ran.run("results", "show", "--json").stdout)["rows"]) == 1
    assert ran.run("results", "export", "-o", "rows.jsonl", "-o", "rows.csv").status == 0
    assert len((ran.path / "rows.jsonl").read_text().splitlines()) == 1
