"""`--cache`: answers used again across runs while assertions are edited, each sample its own."""

from __future__ import annotations

import json
import sqlite3

import pytest

AGENT = """
import os

def answer(prompt, case_id):
    with open("asked.txt", "a") as file:
        file.write(case_id + "\\n")
    return {"output": f"{prompt} {os.urandom(4).hex()}", "cost_usd": 0.5}
"""
SUITE = """
target: {name: agent, provider: python, function: "agent.py:answer"}
tests:
  - {id: a, input: red, assert: [{contains: red}]}
  - {id: b, input: blue, assert: [{contains: blue}]}
"""


@pytest.fixture
def cached(project):
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    assert project.run("eval", "a.eval.yaml", "--cache").status == 0
    (project.path / "asked.txt").unlink()
    return project


def asked(project) -> list[str]:
    path = project.path / "asked.txt"
    return sorted(path.read_text().split()) if path.exists() else []


def file(project):
    return project.path / ".agentv" / "cache" / "answers.sqlite"


def test_an_edited_assertion_asks_nobody_and_costs_nothing(cached):
    cached.write("a.eval.yaml", SUITE.replace("contains: red", "contains: r"))
    ended = cached.run("eval", "a.eval.yaml", "--cache", "-o", "out")
    assert ended.status == 0, ended.stderr
    assert asked(cached) == []
    assert [row["reused"] for row in cached.rows("out")] == [True, True]
    assert json.loads((cached.path / "out" / "summary.json").read_text())["cost_usd"] is None


def test_an_edited_input_and_an_edited_target_are_asked(cached):
    cached.write("a.eval.yaml", SUITE.replace("input: red", "input: dark red"))
    cached.run("eval", "a.eval.yaml", "--cache")
    assert asked(cached) == ["a"]
    cached.write("agent.py", AGENT + "# another\n")
    cached.run("eval", "a.eval.yaml", "--cache")
    assert asked(cached) == ["a", "a", "b"]


def test_the_file_may_ask_for_it_and_the_flag_wins(cached):
    cached.write("a.eval.yaml", SUITE + "run: {cache: true}\n")
    cached.run("eval", "a.eval.yaml")
    assert asked(cached) == []
    cached.run("eval", "a.eval.yaml", "--no-cache")
    assert asked(cached) == ["a", "b"]


def test_samples_do_not_collapse_into_one_answer(cached):
    ended = cached.run("eval", "a.eval.yaml", "--cache", "--repeat", "3", "-o", "out")
    assert ended.status == 0, ended.stderr
    assert asked(cached) == ["a", "a", "b", "b"]  # the first sample of each was there
    outputs = {(row["test_id"], row["output"]) for row in cached.rows("out")}
    assert len(outputs) == 6
    again = cached.run("eval", "a.eval.yaml", "--cache", "--repeat", "3", "-o", "again")
    assert again.status == 0
    assert {(row["test_id"], row["output"]) for row in cached.rows("again")} == outputs


def test_what_there_is_and_how_to_be_rid_of_it(cached):
    told = cached.run("cache", "stats")
    assert (told.status, ".agentv/cache/answers.sqlite: 2 answers" in told.stdout, "2  agent" in told.stdout) == (
        0,
        True,
        True,
    )
    stats = json.loads(cached.run("cache", "stats", "--json").stdout)
    assert (stats["answers"], stats["by_target"]) == (2, {"agent": 2})
    assert "deleted 0 answers" in cached.run("cache", "clear", "--older-than", "1").stdout
    assert "deleted 2 answers" in cached.run("cache", "clear").stdout
    assert "no stored answers" in cached.run("cache", "stats").stdout
    cached.run("eval", "a.eval.yaml", "--cache")
    assert asked(cached) == ["a", "b"]


def test_no_secret_is_kept(project):
    target = "{provider: cli, command: 'echo it is $API_TOKEN', env: {API_TOKEN: hunter2222}}"
    project.write("a.eval.yaml", f"target: {target}\ntests:\n  - {{id: a, input: x, assert: [{{contains: it}}]}}\n")
    assert project.run("eval", "a.eval.yaml", "--cache").status == 0
    assert b"hunter2222" not in b"".join(path.read_bytes() for path in file(project).parent.iterdir())
    assert "no stored answers" in project.run("cache", "stats").stdout


@pytest.mark.parametrize("content", [b"this is no database, whatever it is called" * 100, b""])
def test_a_file_that_is_no_cache_is_told_or_made_one(project, content):
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    project.write(".agentv/cache/answers.sqlite", content)
    ended = project.run("eval", "a.eval.yaml", "--cache")
    assert ended.status == 0, ended.stderr
    assert ("the cache is damaged" in ended.stderr) == bool(content)
    aside = project.path / ".agentv/cache/answers.sqlite.damaged"
    assert (aside.read_bytes() if aside.exists() else b"") == content
    assert "2 answers" in project.run("cache", "stats").stdout


def test_a_bit_that_flipped_turns_no_answer(cached):
    with sqlite3.connect(file(cached)) as database:
        (body,) = database.execute("SELECT answer FROM answers WHERE \"case\" = 'a'").fetchone()
        database.execute("UPDATE answers SET answer = ? WHERE \"case\" = 'a'", (body.replace(b"a", b"c", 1),))
    database.close()
    assert cached.run("eval", "a.eval.yaml", "--cache").status == 0
    assert asked(cached) == ["a"]


def test_a_cache_of_the_version_before_is_used(cached):
    with sqlite3.connect(file(cached)) as database:
        database.executescript(
            """
            CREATE TABLE before (
                key TEXT PRIMARY KEY, target TEXT NOT NULL, "case" TEXT NOT NULL, kept TEXT NOT NULL,
                answer BLOB NOT NULL
            ) WITHOUT ROWID;
            INSERT INTO before SELECT key, target, "case", kept, answer FROM answers;
            DROP TABLE answers;
            ALTER TABLE before RENAME TO answers;
            PRAGMA user_version = 1;
            """
        )
    database.close()
    assert cached.run("eval", "a.eval.yaml", "--cache").status == 0
    assert asked(cached) == []


def test_a_cache_that_is_a_link_is_not_written_through(project):
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    mine = project.write("mine", "")
    (project.path / ".agentv/cache").mkdir(parents=True)
    file(project).symlink_to(mine)
    ended = project.run("eval", "a.eval.yaml", "--cache")
    assert ended.status == 2, ended.stderr
    assert mine.read_text() == ""


def test_a_cache_of_a_newer_agentv_is_refused(cached):
    with sqlite3.connect(file(cached)) as database:
        database.execute("PRAGMA user_version = 3")
    database.close()
    ended = cached.run("eval", "a.eval.yaml", "--cache")
    assert ended.status == 2
    assert "was written by a newer agentv" in ended.stderr


def test_an_empty_answer_is_not_kept(project):
    project.write("agent.py", AGENT.replace('f"{prompt} {os.urandom(4).hex()}"', '" "'))
    project.write("a.eval.yaml", SUITE)
    assert "empty-output" in project.run("eval", "a.eval.yaml", "--cache").stderr
    assert "no stored answers" in project.run("cache", "stats").stdout


def test_an_answer_that_only_calls_a_tool_is_kept(project):
    calls = '[{"role": "assistant", "content": "", "tool_calls": [{"name": "find", "arguments": {}}]}]'
    project.write("agent.py", AGENT.replace('f"{prompt} {next(COUNT)}"', calls))
    project.write("a.eval.yaml", SUITE)
    project.run("eval", "a.eval.yaml", "--cache")
    assert "2 answers" in project.run("cache", "stats").stdout
