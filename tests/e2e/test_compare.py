import json

import pytest

from doubles.stored_runs import update_checksums
from e2e.command import Project

pytestmark = pytest.mark.libraries

SUITE = """
name: shop
tests:
  - id: returns
    expand: true
    vars: {item: [lamp, chair, desk, sofa, shelf, rug, bed, stool]}
    input: "May I return a {{ item }}?"
    assert: [contains: 30 days]
  - {id: broken, input: boom, assert: [contains: 30 days]}
"""

AGENT = """
def good(prompt):
    return "Yes, within 30 days."

def bad(prompt):
    if prompt == "boom":
        raise RuntimeError("out of order")
    return "No."
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two runs of one suite: `good`, and `bad`, in which one case errors. Tests add their own runs."""
    project = Project(tmp_path_factory.mktemp("compare"))
    project.write_files({".git/HEAD": "", "evals/shop.eval.yaml": SUITE, "agent.py": AGENT})
    project.run("eval", "evals", "-t", "python:agent.py:good", "--out", "good", "-q")
    project.run("eval", "evals", "-t", "python:agent.py:bad", "--out", "bad", "-q")
    return project


def test_a_candidate_that_is_shown_to_be_worse_fails(compared):
    ended = compared.run("compare", "good", "bad", status=1)
    assert "worse: the mean score is 1.000 lower" in ended.stdout
    assert "    before: Yes, within 30 days.\n    after: No.\n" in ended.stdout
    assert ended.stderr == "warning: 1 case errored in one of the runs: shop: broken\n"


def test_a_better_candidate_and_the_run_itself_pass(compared):
    assert compared.run("compare", "bad", "good").status == 0
    ended = compared.run("compare", "good", "good", "--fail-on", "any")
    assert (ended.status, "no difference: both are the same run" in ended.stdout) == (0, True)


def test_one_case_that_broke_is_no_regression_unless_any_is(compared):
    lines = (compared.path / "good" / "index.jsonl").read_text().splitlines()
    row = json.loads(lines[0]) | {"status": "failed", "score": 0.0}
    compared.write("once/index.jsonl", "\n".join([json.dumps(row), *lines[1:]]) + "\n")
    for name in ("run.json", "journal.jsonl"):
        compared.write(f"once/{name}", (compared.path / "good" / name).read_bytes())
    refused = compared.run("compare", "good", "once", status=2)
    assert "once/index.jsonl:1: this row was changed after it was written" in refused.stderr
    update_checksums(compared.path / "once")
    assert compared.run("compare", "good", "once").status == 0
    ended = compared.run("compare", "good", "once", "--fail-on", "any", "--limit", "0")
    assert (ended.status, "fails: 1 case passed in the base and does not in the candidate" in ended.stderr) == (1, True)
    assert "(failed)" in ended.stderr


def test_any_case_that_passed_must_pass_and_not_vanish_or_break(compared):
    lines = (compared.path / "good" / "index.jsonl").read_text().splitlines()
    row = json.loads(lines[0]) | {"status": "errored", "score": None}
    for name in ("run.json", "journal.jsonl"):
        for run in ("gone", "broke"):
            compared.write(f"{run}/{name}", (compared.path / "good" / name).read_bytes())
    compared.write("gone/index.jsonl", "\n".join(lines[1:]) + "\n")
    compared.write("broke/index.jsonl", "\n".join([json.dumps(row), *lines[1:]]) + "\n")
    update_checksums(compared.path / "broke")
    for run, told in (("gone", "(missing)"), ("broke", "(errored)")):
        assert compared.run("compare", "good", run).status == 0
        compared.run("compare", "good", run, "--fail-on", "any", status=1, says=told)


def test_where_nothing_was_judged_in_both_there_is_no_verdict_and_no_success(compared):
    compared.run("eval", "evals", "-t", "python:agent.py:bad", "--filter", "broken", "--out", "errored", "-q")
    ended = compared.run("compare", "good", "errored")
    assert (ended.status, "nothing to compare" in ended.stdout) == (3, True)
