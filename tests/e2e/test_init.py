from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from yaml import safe_load

from agentv.app.authored.schema import schema_text
from e2e.command import Project


def test_a_new_project_is_green_at_once_and_valid(project):
    assert project.run("init").status == 0
    ended = project.run("eval", "evals")
    assert (ended.status, "3 passed" in ended.stderr) == (0, True)
    assert project.run("validate", "evals", "--strict").status == 0


def test_a_worse_agent_turns_it_red(project):
    project.run("init", "bot")
    agent = project.path / "bot" / "agent.py"
    agent.write_text(agent.read_text().replace("I do not know", "A coffee is 3 euros"))
    assert project.run("eval", "bot/evals").status == 1


def test_a_project_that_cannot_be_written_is_told_plainly(project):
    project.write("evals", "a file in the place of the directory")
    ended = project.run("init")
    assert (ended.status, "Errno" in ended.stderr) == (2, False)
    reasons = ("a part of its path is a file", "a file exists in its place")
    assert any(f"cannot write evals/first.eval.yaml: {reason}" in ended.stderr for reason in reasons), ended.stderr


def test_what_stands_there_is_kept(project):
    mine = project.write("agent.py", "def answer(prompt): return 'mine'\n")
    ended = project.run("init")
    assert mine.read_text() == "def answer(prompt): return 'mine'\n"
    assert "kept agent.py" in ended.stderr
    again = project.run("init")
    assert "wrote" not in again.stderr


def test_the_schema_that_the_file_names_is_there_and_accepts_it(project):
    project.run("init")
    suite = project.path / "evals" / "first.eval.yaml"
    named = suite.read_text().splitlines()[0].partition("$schema=")[2]
    schema = (suite.parent / named).read_text()
    assert schema == schema_text("eval")
    assert list(Draft202012Validator(json.loads(schema)).iter_errors(safe_load(suite.read_text()))) == []


def test_a_directory_that_cannot_be_made_is_said(project):
    project.write("taken", "a file")
    ended = project.run("init", "taken/sub")
    assert ended.status != 0
    assert "taken" in ended.stderr


@pytest.mark.parametrize("git", [False, True])
def test_a_project_in_the_home_directory_is_green_and_keys_stay_closed(tmp_path, git):
    project = Project(tmp_path)
    home = {"HOME": str(tmp_path)}
    if git:
        project.write(".git/HEAD", "")
    project.write(".ssh/id_rsa", "k3y-of-mine")
    project.write(".aws/credentials.yaml", "k3y-of-mine")
    project.write("notes.txt", "private")
    assert project.run("init", env=home).status == 0
    ended = project.run("eval", "evals", env=home)
    assert (ended.status, "3 passed" in ended.stderr) == (0, True)
    for name in ("../.ssh/id_rsa", "../.aws/credentials.yaml", "../notes.txt"):
        said = f"[{{role: user, content: [{{type: file, value: {name}}}]}}]"
        project.write(
            "evals/a.eval.yaml", f"target: echo\ntests: [{{id: a, input: {said}, assert: [{{contains: hi}}]}}]\n"
        )
        refused = project.run("eval", "evals/a.eval.yaml", env=home)
        assert refused.status == 2
        assert "outside-repository" in refused.stderr
        assert "k3y" not in refused.stdout + refused.stderr
    project.write("b.eval.yaml", "target: echo\ntests: file://.aws/credentials.yaml\n")
    refused = project.run("eval", "b.eval.yaml", env=home)
    assert refused.status == 2
    assert "outside-repository" in refused.stderr


def test_a_run_that_cannot_be_written_names_another_place(project):
    project.write("a.eval.yaml", "target: echo\ntests: [{id: a, input: hi, assert: [contains: hi]}]\n")
    project.write(".agentv", "a file in the place of the directory")
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 2
    assert "--out DIRECTORY" in ended.stderr
    assert project.run("eval", "a.eval.yaml", "--out", "run").status == 0
