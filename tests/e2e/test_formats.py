"""`--format`, as programs get it."""

from __future__ import annotations

import json

WRONG = "target: echo\ntests:\n  - {id: a, input: x, asert: [contains: x]}\n"
FAILING = "target: 'mock:%0A::error::no'\ntests:\n  - id: a\n    input: x\n    assert:\n      - contains: x\n"


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


def test_eval_annotates_what_failed_and_nothing_of_an_answer_is_a_command(project):
    project.write("a.eval.yaml", FAILING)
    ended = project.run("eval", "a.eval.yaml", "--format", "github")
    assert ended.status == 1
    total, failed = ended.stdout.splitlines()
    assert failed.startswith("::error file=a.eval.yaml,line=6,")
    assert failed.endswith("%250A::error::no")
    assert total == "::error title=agentv eval::1 case: 0 passed, 1 failed, 0 errored"
    assert "::" not in ended.stderr


def test_eval_writes_failed_trials_as_sarif(project):
    project.write("a.eval.yaml", FAILING)
    (run,) = json.loads(project.run("eval", "a.eval.yaml", "--format", "sarif").stdout)["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("case-failed", 6)
