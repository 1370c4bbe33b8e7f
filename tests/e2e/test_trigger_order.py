"""The queries of `triggering:` are answered before the first case's model is called, at any number of workers."""

from __future__ import annotations

import pytest

AGENT = """
import time

def note(what):
    with open("log", "a") as log:
        log.write(what + "\\n")

def answer(prompt):
    note("model")
    return "hi"

def judge(prompt):
    note("asked")
    time.sleep(0.05)
    note("answered")
    return "" if "say nothing" in prompt else "YES"
"""
TARGETS = """
targets:
  - {name: m, provider: python, function: "agent.py:answer"}
  - {name: j, provider: python, function: "agent.py:judge"}
defaults: {target: m, judge: j}
"""
EXAM = """
triggering:
  should_trigger: [greet Ann, greet Bob, greet Cy, QUERY]
cases:
  - {name: a, inputs: {name: x}, assertions: [{contains: hi}]}
  - {name: b, inputs: {name: y}, assertions: [{contains: hi}]}
"""


def exam(project, query: str, *words: str):
    project.write("prompts/p/prompt.md", "Greet {{ name }}\n")
    project.write("prompts/p/meta.yaml", "description: greets people\nstatus: draft\n")
    project.write("prompts/p/eval.yml", EXAM.replace("QUERY", query))
    project.write("agent.py", AGENT)
    project.write(".agentv/targets.yaml", TARGETS)
    ended = project.run("eval", "prompts/p/eval.yml", *words)
    return ended, (project.path / "log").read_text().split()


@pytest.mark.parametrize("workers", ["1", "3", "50"])
def test_no_model_is_called_before_the_last_query_is_answered(project, workers):
    ended, log = exam(project, "greet Dee", "-j", workers)
    assert ended.status == 0, ended.stderr
    assert log.count("answered") == 4
    assert log[8:] == ["model", "model"]


def test_an_empty_reply_fails_its_query_as_one_that_cannot_be_read(project):
    ended, log = exam(project, "say nothing", "-j", "8")
    assert ended.status == 1, ended.stderr
    assert "unreadable: it is empty" in ended.stderr + ended.stdout
    assert log[8:] == ["model", "model"]


def test_after_a_failed_query_no_model_is_called_where_the_first_failure_ends_the_run(project):
    _, log = exam(project, "say nothing", "-j", "8", "--fail-fast")
    assert "model" not in log
