"""`agentv results`: list, show, export and delete past runs; where they are stored; cases that are only shown."""

import csv
import json
import os
import pty
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from e2e.command import AGENTV, Ended, Project, stopped
from e2e.test_commands import imported
from e2e.test_interrupted import started, when_rows

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
    shown = (refused.status, "cannot ask for confirmation without a terminal: delete 1 run" in refused.stderr)
    assert shown == (2, True)
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


def test_trials_of_a_run_are_shown_and_chosen(ran):
    shown = ran.run("results", "show", status=0)
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
    ran.run("results", *words, status=2, says=said)
    assert not (ran.path / "x.csv").exists()


def test_reading_a_run_imports_nothing_heavy(ran):
    assert imported(ran, "results", "show") == (0, set())
    assert imported(ran, "results", "list") == (0, set())


RESULTS_PLACE_SUITE = "name: a\ntarget: echo\ntests: [{id: one, input: hi, assert: [{contains: hi}]}]\n"


@pytest.fixture
def outside(tmp_path: Path) -> Project:
    """A directory outside any git repository, wherever the tests run."""
    if any((parent / ".git").exists() for parent in (tmp_path, *tmp_path.parents)):
        pytest.skip("the temporary directory is inside git")
    return Project(tmp_path)


def at(project: Project, folder: str, *words: str) -> Ended:
    return Project(project.path / folder).run(*words, env={"HOME": str(project.path / "home")})


def places(project: Project) -> list[str]:
    """Return the directories with results below the project."""
    found = (Path(folder) for folder, _, _ in os.walk(project.path) if folder.endswith("/.agentv/results"))
    return sorted(str(path.parent.parent.relative_to(project.path)) for path in found if any(path.glob("*/run.json")))


def listed(project: Project, folder: str) -> int:
    ended = at(project, folder, "results", "list", "--json")
    assert ended.status == 0, ended.stderr
    return len(json.loads(ended.stdout))


def nested(project: Project) -> None:
    (project.path / "top/.agentv").mkdir(parents=True)
    (project.path / "top/sub/.agentv").mkdir(parents=True)
    project.write("top/sub/deep/a.eval.yaml", RESULTS_PLACE_SUITE)


def test_outside_git_the_nearest_agentv_holds_them_and_not_the_highest(outside):
    nested(outside)
    assert at(outside, "top/sub/deep", "eval", "a.eval.yaml").status == 0
    assert places(outside) == ["top/sub"]
    assert [listed(outside, folder) for folder in ("top/sub/deep", "top/sub", "top")] == [1, 1, 0]


@pytest.mark.parametrize("reader", ["top", "top/sub", "top/sub/deep"])
def test_what_ran_above_is_found_from_there_and_from_every_subfolder(outside, reader):
    nested(outside)
    assert at(outside, "top", "eval", "sub/deep/a.eval.yaml").status == 0
    assert places(outside) == ["top"]
    assert listed(outside, reader) == 1
    assert at(outside, reader, "results", "show", "last").status == 0
    assert at(outside, reader, "compare", "last", "last").status == 0
    suite = os.path.relpath(outside.path / "top/sub/deep/a.eval.yaml", outside.path / reader)
    resumed = at(outside, reader, "eval", suite, "--resume")
    assert (resumed.status, places(outside), listed(outside, reader)) == (0, ["top"], 1), resumed.stderr


def test_an_eval_file_elsewhere_keeps_them_in_its_own_agentv(outside):
    nested(outside)
    (outside.path / "other").mkdir()
    assert at(outside, "other", "eval", "../top/sub/deep/a.eval.yaml").status == 0
    assert places(outside) == ["top/sub"]


def test_without_any_agentv_the_working_directory_holds_them(outside):
    outside.write("evals/a.eval.yaml", RESULTS_PLACE_SUITE)
    (outside.path / "here/deep").mkdir(parents=True)
    assert at(outside, "here", "eval", "../evals/a.eval.yaml").status == 0
    assert places(outside) == ["here"]
    assert [listed(outside, folder) for folder in ("here", "here/deep")] == [1, 1]


def test_the_home_directory_holds_none_of_what_runs_below_it(outside):
    (outside.path / "home/.agentv").mkdir(parents=True)
    outside.write("home/work/evals/a.eval.yaml", RESULTS_PLACE_SUITE)
    assert at(outside, "home/work", "eval", "evals").status == 0
    assert places(outside) == ["home/work"]
    assert listed(outside, "home/work/evals") == 1


SHOW_ONLY_SUITE = """\
name: s
show_only: true
prompts: ["Greet {{ name }}.", {label: short, prompt: "Hi {{ name }}"}]
target: echo
tests:
  - {id: ann, vars: {name: Ann}}
  - {id: bob, vars: {name: Bob}, assert: [{contains: Bob}]}
  - {id: cyd, vars: {name: Cyd}, assert: [{type: contains, value: Bob, weight: 0}]}
"""


def test_shown_cases_are_counted_and_never_pass(project):
    project.write("a.eval.yaml", SHOW_ONLY_SUITE)
    ended = project.run("eval", "a.eval.yaml", "-o", "run.xml", "-o", "run.json", status=1)
    assert "3 cases: 1 passed, 0 failed, 0 errored, 2 shown" in ended.stderr
    assert "2 cases were shown, not checked; --allow-unchecked accepts this" in ended.stderr
    assert "SHOWN ann with prompt-1: Greet Ann." in ended.stderr
    written = json.loads((project.path / "run.json").read_text())
    assert written["summary"]["cases"]["shown"] == 2
    assert (written["summary"]["judged"], written["summary"]["pass_rate"]) == (2, 1.0)
    statuses = {(row["test_id"], row["status"], row["score"]) for row in written["rows"]}
    assert statuses == {("ann", "shown", None), ("bob", "passed", 1.0), ("cyd", "shown", None)}
    (suite,) = ET.parse(project.path / "run.xml").getroot()  # written by agentv
    assert (suite.get("tests"), suite.get("skipped"), suite.get("failures")) == ("6", "4", "0")


def test_only_the_flag_accepts_shown_cases(project):
    project.write("a.eval.yaml", SHOW_ONLY_SUITE)
    assert project.run("eval", "a.eval.yaml", "--filter", "ann").status == 1
    allowed = project.run("eval", "a.eval.yaml", "--filter", "ann", "--allow-unchecked")
    assert (allowed.status, "accepts this" in allowed.stderr) == (0, False)
    project.write("a.eval.yaml", SHOW_ONLY_SUITE.replace("contains: Bob}]}", "contains: Zoe}]}"))
    assert project.run("eval", "a.eval.yaml", "--allow-unchecked").status == 1


def test_an_error_of_a_shown_case_is_an_error(project):
    project.write(
        "a.eval.yaml", SHOW_ONLY_SUITE.replace("target: echo", "target: {name: m, provider: mock, error: boom}")
    )
    project.run("eval", "a.eval.yaml", "--filter", "ann", "--allow-unchecked", status=3)


def test_a_run_whose_checks_were_taken_away_does_not_compare_as_well(project):
    checked = SHOW_ONLY_SUITE.replace(
        "{id: ann, vars: {name: Ann}}", "{id: ann, vars: {name: Ann}, assert: [{contains: Ann}]}"
    )
    project.write("a.eval.yaml", checked)
    project.run("eval", "a.eval.yaml", "-o", "before")
    project.write("a.eval.yaml", SHOW_ONLY_SUITE)
    project.run("eval", "a.eval.yaml", "-o", "after")
    ended = project.run("compare", "before", "after", "--fail-on", "any")
    assert ended.status != 0, ended.stdout + ended.stderr


EXPORTS_SUITE = """target: echo
tests:
  - {id: good, input: hello, assert: [contains: hello]}
  - {id: bad, input: hello, assert: [contains: bye]}
"""


@pytest.fixture
def suite(project):
    project.write("a.eval.yaml", EXPORTS_SUITE)
    return project


def cases_in(file):
    return sum(1 for _ in ET.parse(file).iter("testcase"))


def test_several_exports_beside_the_directory(suite):
    outs = ("-o", "out", "-o", "report.xml", "-o", "out/rows.csv", "-o", "all.json", "-o", "rows.jsonl", "-o", "pr.md")
    ended = suite.run("eval", "a.eval.yaml", *outs, status=1)
    assert "exports: report.xml, out/rows.csv, all.json, rows.jsonl, pr.md" in ended.stderr
    root = suite.path
    assert cases_in(root / "report.xml") == 2
    with (root / "out" / "rows.csv").open(newline="") as file:
        assert [row["test_id"] for row in csv.DictReader(file)] == ["good", "bad"]
    assert [row["test_id"] for row in json.loads((root / "all.json").read_text())["rows"]] == ["good", "bad"]
    assert (root / "rows.jsonl").read_text() == (root / "out" / "index.jsonl").read_text()
    assert (root / "pr.md").read_text().startswith("### agentv: 2 cases: 1 passed, 1 failed, 0 errored\n")
    assert json.loads(suite.run("eval", "a.eval.yaml", "-q", "--json", "-o", "b.csv").stdout)["cases"]["total"] == 2


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("none/a.csv", "the directory none does not exist"),
        ("a.htm", "did you mean '.html'?"),
        ("directory.md", "it is a directory"),
        ("cases.jsonl", "an input of this run"),
        (".agentv/results/old/index.jsonl", "is one of the run's own files"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_runs(suite, out, told):
    (suite.path / "directory.md").mkdir()
    suite.write(".agentv/results/old/run.json", "{}")
    suite.write(".agentv/results/old/index.jsonl", "")
    suite.write("a.eval.yaml", "target: echo\ntests: cases.jsonl\n")
    suite.write("cases.jsonl", '{"id": "a", "input": "x", "assert": [{"contains": "x"}]}\n')
    suite.run("eval", "a.eval.yaml", "-o", out, status=2, says=told)
    assert [one.name for one in (suite.path / ".agentv" / "results").iterdir()] == ["old"]


def test_an_interrupted_run_is_exported_as_far_as_it_came_and_its_resume_as_a_whole(project):
    process = started(project, "-o", "report.xml", "-o", "rows.jsonl")
    when_rows(project.path / "out" / "index.jsonl", 8)
    stderr = stopped(process, status=130)
    kept = len(project.rows("out"))
    assert len((project.path / "rows.jsonl").read_text().splitlines()) == kept
    report = (project.path / "report.xml").read_text()
    assert f"{60 - kept} trials not run" in report
    assert cases_in(project.path / "report.xml") == kept + 1
    going_on = stderr.rsplit("Resume with:\n  agentv ", 1)[1].split("\n")[0].split()
    assert going_on[-5:] == ["-o", "report.xml", "-o", "rows.jsonl", "--resume=out"]

    assert project.run(*going_on).status == 0
    assert len((project.path / "rows.jsonl").read_text().splitlines()) == 60
    assert cases_in(project.path / "report.xml") == 60


def test_reports_of_a_run_that_was(suite):
    suite.run("eval", "a.eval.yaml", "-q")
    ended = suite.run("results", "report", "--md", "-", "--junit", "report.txt")
    assert (ended.status, ended.stderr) == (0, "wrote report.txt\n")
    assert ended.stdout.startswith("### agentv: 2 cases")
    assert cases_in(suite.path / "report.txt") == 2


def test_a_page_of_a_run_and_of_what_changed_since_another(suite):
    suite.run("eval", "a.eval.yaml", "-q", "-o", "before")
    suite.write("a.eval.yaml", EXPORTS_SUITE.replace("target: echo", "target: mock:changed"))
    assert suite.run("eval", "a.eval.yaml", "-q", "-o", "after", "-o", "alone.html").status == 1
    ended = suite.run("results", "report", "after", "--html", "both.html", "--against", "before")
    assert (ended.status, ended.stderr) == (0, "wrote both.html\n")
    alone, both = ((suite.path / name).read_text() for name in ("alone.html", "both.html"))
    assert alone.startswith("<!doctype html>")
    ids = [json.loads((suite.path / name / "run.json").read_text())["run_id"] for name in ("before", "after")]
    assert [one in alone for one in ids] == [False, True]
    assert [one in both for one in ids] == [True, True]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no report given"),
        (("--md", "a", "--junit", "a"), "two reports use the same file"),
        (("--md", "a", "--against", "last"), "--against requires --html"),
        (("out", "--html", "a", "--against", "empty"), "nothing to report: the run empty"),
        (("other", "--md", "a"), "no run 'other'"),
        (("out", "--md", "none/a.md"), "the directory none does not exist"),
        (("empty", "--md", "a.md"), "no trial of the run empty has finished"),
    ],
)
def test_a_report_that_cannot_be_is_refused(suite, words, told):
    suite.write(".agentv/results/empty/run.json", '{"schema_version": 1, "run_id": "empty"}')
    suite.run("eval", "a.eval.yaml", "-q", "-o", "out")
    suite.run("results", "report", *words, status=2, says=told)
