"""`agentv eval … -o FILE`: a run in other formats, and `agentv results report`."""

import csv
import json
import signal
import xml.etree.ElementTree as ET

import pytest

from e2e.test_interrupted import started, when_rows

SUITE = """target: echo
tests:
  - {id: good, input: hello, assert: [contains: hello]}
  - {id: bad, input: hello, assert: [contains: bye]}
"""


@pytest.fixture
def suite(project):
    project.write("a.eval.yaml", SUITE)
    return project


def cases_in(file):
    return sum(1 for _ in ET.parse(file).iter("testcase"))


def test_several_exports_beside_the_directory(suite):
    outs = ("-o", "out", "-o", "report.xml", "-o", "out/rows.csv", "-o", "all.json", "-o", "rows.jsonl", "-o", "pr.md")
    ended = suite.run("eval", "a.eval.yaml", *outs)
    assert ended.status == 1
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
    ended = suite.run("eval", "a.eval.yaml", "-o", out)
    assert ended.status == 2
    assert told in ended.stderr
    assert [one.name for one in (suite.path / ".agentv" / "results").iterdir()] == ["old"]


def test_an_interrupted_run_is_exported_as_far_as_it_came_and_its_resume_as_a_whole(project):
    process = started(project, "-o", "report.xml", "-o", "rows.jsonl")
    when_rows(project.path / "out" / "index.jsonl", 8)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
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
    suite.write("a.eval.yaml", SUITE.replace("target: echo", "target: mock:changed"))
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
    ended = suite.run("results", "report", *words)
    assert ended.status == 2
    assert told in ended.stderr
