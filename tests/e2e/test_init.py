from __future__ import annotations

import json

from jsonschema import Draft202012Validator
from yaml import safe_load

from agentv.app.schema import schema_text


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
