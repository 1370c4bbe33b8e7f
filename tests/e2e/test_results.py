"""`agentv results`: runs that were, listed, shown, exported and deleted."""

from __future__ import annotations

import json

import pytest

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


def test_without_runs_there_is_nothing_to_list(project):
    assert project.run("results", "list").stdout == "no run in .agentv/results\n"
    assert project.run("results", "list", "--json").stdout == "[]\n"
