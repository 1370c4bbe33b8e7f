"""Cases that check nothing and are only shown: never a pass, in no view."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

SUITE = """\
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
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml", "-o", "run.xml", "-o", "run.json")
    assert ended.status == 1, ended.stderr
    assert "3 cases: 1 passed, 0 failed, 0 errored, 2 shown" in ended.stderr
    assert "2 cases were shown, not checked; --allow-unchecked accepts this" in ended.stderr
    assert "SHOWN ann with prompt-1: Greet Ann." in ended.stderr
    written = json.loads((project.path / "run.json").read_text())
    assert written["summary"]["cases"]["shown"] == 2
    assert (written["summary"]["judged"], written["summary"]["pass_rate"]) == (2, 1.0)
    statuses = {(row["test_id"], row["status"], row["score"]) for row in written["rows"]}
    assert statuses == {("ann", "shown", None), ("bob", "passed", 1.0), ("cyd", "shown", None)}
    (suite,) = ET.parse(project.path / "run.xml").getroot()  # our own file
    assert (suite.get("tests"), suite.get("skipped"), suite.get("failures")) == ("6", "4", "0")


def test_only_the_flag_accepts_shown_cases(project):
    project.write("a.eval.yaml", SUITE)
    assert project.run("eval", "a.eval.yaml", "--filter", "ann").status == 1
    allowed = project.run("eval", "a.eval.yaml", "--filter", "ann", "--allow-unchecked")
    assert (allowed.status, "accepts this" in allowed.stderr) == (0, False)
    project.write("a.eval.yaml", SUITE.replace("contains: Bob}]}", "contains: Zoe}]}"))
    assert project.run("eval", "a.eval.yaml", "--allow-unchecked").status == 1


def test_an_error_of_a_shown_case_is_an_error(project):
    project.write("a.eval.yaml", SUITE.replace("target: echo", "target: {name: m, provider: mock, error: boom}"))
    ended = project.run("eval", "a.eval.yaml", "--filter", "ann", "--allow-unchecked")
    assert ended.status == 3, ended.stderr


def test_a_run_whose_checks_were_taken_away_does_not_compare_as_well(project):
    checked = SUITE.replace("{id: ann, vars: {name: Ann}}", "{id: ann, vars: {name: Ann}, assert: [{contains: Ann}]}")
    project.write("a.eval.yaml", checked)
    project.run("eval", "a.eval.yaml", "-o", "before")
    project.write("a.eval.yaml", SUITE)
    project.run("eval", "a.eval.yaml", "-o", "after")
    ended = project.run("compare", "before", "after", "--fail-on", "any")
    assert ended.status != 0, ended.stdout + ended.stderr
