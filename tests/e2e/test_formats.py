"""`--format`, as programs get it."""

from __future__ import annotations

import json

import pytest

WRONG = "target: echo\ntests:\n  - {id: a, input: x, asert: [contains: x]}\n"
WARNED = "target: echo\ntests:\n  - {id: a, input: x, criteria: good, assert: [contains: x]}\n"
FAILING = "target: 'mock:%0A::error::no'\ntests:\n  - id: a\n    input: x\n    assert:\n      - contains: x\n"


def test_validate_counts_files(project):
    project.write("a.eval.yaml", WRONG)
    project.write("b.eval.yaml", WARNED)
    project.write("c.eval.yaml", WARNED.replace("criteria: good, ", ""))
    ended = project.run("validate", ".")
    assert ended.status == 2
    assert ended.stderr.endswith("\n\n1 error, 1 warning in 2 of 3 files\n")
    assert project.run("validate", ".", "--quiet").stderr == "1 error, 1 warning in 2 of 3 files\n"
    assert project.run("validate", "c.eval.yaml").stderr == "valid\n"
    assert project.run("validate", "b.eval.yaml", "c.eval.yaml", "-q").stderr == "1 warning in 1 of 2 files\nvalid\n"


def test_validate_annotates_for_github_on_stdout_alone(project):
    project.write("evals/a.eval.yaml", WRONG)
    ended = project.run("validate", "evals", "--format", "github")
    assert (ended.status, ended.stderr) == (2, "")
    place = "file=evals/a.eval.yaml,line=3,endLine=3,col=23,endColumn=27"
    assert ended.stdout.startswith(f"::error {place},title=agentv unknown-key::a case has no key 'asert'%0A")


def test_validate_writes_sarif_with_the_catalogues_help(project):
    project.write("a.eval.yaml", WRONG)
    ended = project.run("validate", "a.eval.yaml", "--format", "sarif")
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["results"][0]["ruleId"] == "unknown-key"
    assert run["tool"]["driver"]["rules"][0]["help"]["text"].startswith("unknown-key")
    assert (ended.status, ended.stderr) == (2, "")


@pytest.mark.parametrize("words", ["--json", "--format json"])
def test_json_has_two_names(project, words):
    project.write("a.eval.yaml", WRONG)
    assert json.loads(project.run("validate", "a.eval.yaml", *words.split()).stdout)[0]["code"] == "unknown-key"


def test_two_formats_are_refused(project):
    project.write("a.eval.yaml", WARNED)
    for command in ("validate", "eval"):
        ended = project.run(command, "a.eval.yaml", "--json", "--format", "github")
        assert (ended.status, ended.stdout) == (2, "")
        assert "conflict; use one of them" in ended.stderr


def test_eval_annotates_what_failed_and_nothing_of_an_answer_is_a_command(project):
    project.write("a.eval.yaml", FAILING)
    ended = project.run("eval", "a.eval.yaml", "--format", "github")
    assert ended.status == 1
    total, failed = ended.stdout.splitlines()
    assert failed.startswith("::error file=a.eval.yaml,line=6,")
    assert failed.endswith("%250A::error::no")
    assert total == "::error title=agentv eval::1 case: 0 passed, 1 failed, 0 errored"
    assert "::" not in ended.stderr


def test_eval_that_passes_annotates_its_total_and_warnings(project):
    project.write("a.eval.yaml", WARNED)
    ended = project.run("eval", "a.eval.yaml", "--format", "github")
    total, warned = ended.stdout.splitlines()
    assert warned.startswith("::warning file=a.eval.yaml,line=3,")
    assert (ended.status, total) == (0, "::notice title=agentv eval::1 case: 1 passed, 0 failed, 0 errored")


def test_eval_of_a_wrong_file_tells_it_in_the_format_asked_for(project):
    project.write("a.eval.yaml", WRONG)
    ended = project.run("eval", "a.eval.yaml", "--format", "github")
    assert (ended.status, ended.stderr) == (2, "")
    assert ended.stdout.startswith("::error file=a.eval.yaml,line=3,")
    ended = project.run("eval", "a.eval.yaml", "--format", "sarif")
    assert (ended.status, json.loads(ended.stdout)["runs"][0]["results"][0]["ruleId"]) == (2, "unknown-key")


def test_eval_writes_failed_trials_as_sarif(project):
    project.write("a.eval.yaml", FAILING)
    (run,) = json.loads(project.run("eval", "a.eval.yaml", "--format", "sarif").stdout)["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("case-failed", 6)
