"""`--cache` reuses answers across runs, separately for each sample; it and `--resume` notice edited code, wherever it
is."""

import json
import sqlite3
from typing import NamedTuple

import pytest

from e2e.command import Project

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
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE})
    assert project.run("eval", "a.eval.yaml", "--cache").status == 0
    (project.path / "asked.txt").unlink()
    return project


def file(project):
    return project.path / ".agentv" / "cache" / "answers.sqlite"


def test_an_edited_assertion_asks_nobody_and_costs_nothing(cached):
    cached.write("a.eval.yaml", SUITE.replace("contains: red", "contains: r"))
    cached.run("eval", "a.eval.yaml", "--cache", "-o", "out", status=0)
    assert sorted(cached.asked) == []
    assert [row["reused"] for row in cached.rows("out")] == [True, True]
    assert cached.summary()["cost_usd"] is None


def test_an_edited_input_and_an_edited_target_are_asked(cached):
    cached.write("a.eval.yaml", SUITE.replace("input: red", "input: dark red"))
    cached.run("eval", "a.eval.yaml", "--cache")
    assert sorted(cached.asked) == ["a"]
    cached.write("agent.py", AGENT + "# another\n")
    cached.run("eval", "a.eval.yaml", "--cache")
    assert sorted(cached.asked) == ["a", "a", "b"]


def test_the_file_may_ask_for_it_and_the_flag_wins(cached):
    cached.write("a.eval.yaml", SUITE + "run: {cache: true}\n")
    cached.run("eval", "a.eval.yaml")
    assert sorted(cached.asked) == []
    cached.run("eval", "a.eval.yaml", "--no-cache")
    assert sorted(cached.asked) == ["a", "b"]


def test_samples_do_not_collapse_into_one_answer(cached):
    cached.run("eval", "a.eval.yaml", "--cache", "--repeat", "3", "-o", "out", status=0)
    assert sorted(cached.asked) == ["a", "a", "b", "b"]  # the first sample of each was cached
    outputs = {(row["test_id"], row["output"]) for row in cached.rows("out")}
    assert len(outputs) == 6
    cached.run("eval", "a.eval.yaml", "--cache", "--repeat", "3", "-o", "again", status=0)
    assert {(row["test_id"], row["output"]) for row in cached.rows("again")} == outputs


def test_what_there_is_and_how_to_be_rid_of_it(cached):
    told = cached.run("cache", "stats")
    shown = (told.status, ".agentv/cache/answers.sqlite: 2 answers" in told.stdout, "2  agent" in told.stdout)
    assert shown == (0, True, True)
    stats = json.loads(cached.run("cache", "stats", "--json").stdout)
    assert (stats["answers"], stats["by_target"]) == (2, {"agent": 2})
    assert "deleted 0 answers" in cached.run("cache", "clear", "--older-than", "1").stdout
    assert "deleted 2 answers" in cached.run("cache", "clear").stdout
    assert "no stored answers" in cached.run("cache", "stats").stdout
    cached.run("eval", "a.eval.yaml", "--cache")
    assert sorted(cached.asked) == ["a", "b"]


def test_no_secret_is_kept(project):
    target = "{provider: cli, command: 'echo it is $API_TOKEN', env: {API_TOKEN: hunter2222}}"
    project.write("a.eval.yaml", f"target: {target}\ntests:\n  - {{id: a, input: x, assert: [{{contains: it}}]}}\n")
    assert project.run("eval", "a.eval.yaml", "--cache").status == 0
    assert b"hunter2222" not in b"".join(path.read_bytes() for path in file(project).parent.iterdir())
    assert "no stored answers" in project.run("cache", "stats").stdout


@pytest.mark.parametrize("content", [b"this is no database, whatever it is called" * 100, b""])
def test_a_file_that_is_no_cache_is_told_or_made_one(project, content):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE, ".agentv/cache/answers.sqlite": content})
    ended = project.run("eval", "a.eval.yaml", "--cache", status=0)
    assert ("the cache is damaged" in ended.stderr) == bool(content)
    aside = project.path / ".agentv/cache/answers.sqlite.damaged"
    assert (aside.read_bytes() if aside.exists() else b"") == content
    assert "2 answers" in project.run("cache", "stats").stdout


def test_a_cache_that_is_a_link_is_not_written_through(project):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE})
    mine = project.write("mine", "")
    (project.path / ".agentv/cache").mkdir(parents=True)
    file(project).symlink_to(mine)
    project.run("eval", "a.eval.yaml", "--cache", status=2)
    assert mine.read_text() == ""


def test_a_cache_of_a_newer_agentv_is_refused(cached):
    with sqlite3.connect(file(cached)) as database:
        database.execute("PRAGMA user_version = 4")
    database.close()
    cached.run("eval", "a.eval.yaml", "--cache", status=2, says="was written by a newer agentv")


def test_an_empty_answer_is_not_kept(project):
    project.write_files({"agent.py": AGENT.replace('f"{prompt} {os.urandom(4).hex()}"', '" "'), "a.eval.yaml": SUITE})
    assert "empty-output" in project.run("eval", "a.eval.yaml", "--cache").stderr
    assert "no stored answers" in project.run("cache", "stats").stdout


def test_an_answer_that_only_calls_a_tool_is_kept(project):
    calls = '[{"role": "assistant", "content": "", "tool_calls": [{"name": "find", "arguments": {}}]}]'
    project.write_files({"agent.py": AGENT.replace('f"{prompt} {next(COUNT)}"', calls), "a.eval.yaml": SUITE})
    project.run("eval", "a.eval.yaml", "--cache")
    assert "2 answers" in project.run("cache", "stats").stdout


ONE, TWO = "print('one')\n", "print('two')\n"
NAME, OTHER = (
    "NAME = 'one'\n",
    "NAME = 'three'\n",
)  # of a different length: Python's bytecode cache compares only seconds and size
INSERT = "import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\n"
APPEND = (
    "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).parent.parent / 'shared' / 'inner'))\n"
)
USE = "import helper\nprint(helper.NAME)\n"
WALK = (
    "import importlib, pkgutil\nimport plugins\n"
    "for found in pkgutil.iter_modules(plugins.__path__):\n"
    "    print(importlib.import_module('plugins.' + found.name).NAME)\n"
)
RUN = "import subprocess, sys\nsubprocess.run([sys.executable, 'inner.py'])\n"
CALL_OF_AGENT = "[python3, agent.py]"


class Edit(NamedTuple):
    """A target's settings, the files that it uses, and the edited file."""

    settings: dict[str, str] = {"command": CALL_OF_AGENT}  # noqa: RUF012 - it is only read
    files: dict[str, str] = {}  # noqa: RUF012
    edited: str = "lib/helper.py"
    before: str = NAME
    after: str = OTHER


BY_NAME = "import importlib\nn = ''.join('one')\nprint(importlib.import_module(f'plugins.{n}').NAME)\n"
CONSTANT = f"import os, sys\nLIB = 'lib'\nP = os.path.join(os.path.dirname(__file__), LIB)\nsys.path += [P]\n{USE}"
IN_SHELL = {"run.sh": 'cd "$(dirname "$0")"\nexec python3 "$PWD/inner.py"\n'}
WITH_EXPORT = {"run.sh": 'export PYTHONPATH="$PWD/lib"\ncd code && python3 agent.py\n', "code/agent.py": USE}
MAKE = {"command": "[make, -s, all]"}
EDITS = {
    "a directory of its own": Edit({"command": CALL_OF_AGENT, "cwd": "sub"}, {}, "sub/agent.py", ONE, TWO),
    "a line in a directory of its own": Edit(
        {"command": "python3 agent.py", "cwd": "sub"}, {}, "sub/agent.py", ONE, TWO
    ),
    "sys.path.insert": Edit(files={"agent.py": INSERT + USE}),
    "sys.path.append": Edit(
        {"command": "[python3, code/agent.py]"}, {"code/agent.py": APPEND + USE}, "shared/inner/helper.py"
    ),
    "pkgutil": Edit(files={"agent.py": WALK, "plugins/__init__.py": ""}, edited="plugins/one.py"),
    "a program of a program": Edit(files={"agent.py": RUN}, edited="inner.py", before=ONE, after=TWO),
    "a shell script": Edit({"command": "[sh, run.sh]"}, IN_SHELL, "inner.py", ONE, TWO),
    "a Makefile's program": Edit(MAKE, {"Makefile": "all:\n\t@python3 inner.py\n"}, "inner.py", ONE, TWO),
    "a constant on sys.path": Edit(files={"agent.py": CONSTANT}),
    "a path that another file adds": Edit(files={"agent.py": f"import places\n{USE}", "places.py": INSERT}),
    "a module of a package, by a name that is put together": Edit(
        files={"agent.py": BY_NAME, "plugins/__init__.py": ""}, edited="plugins/one.py"
    ),
    "exec": Edit(files={"agent.py": "exec(open('code.inc').read())\nprint(NAME)\n"}, edited="code.inc"),
    "PYTHONPATH of a target": Edit({"command": CALL_OF_AGENT, "env": "{PYTHONPATH: lib}"}, {"agent.py": USE}),
    "PYTHONPATH of a shell script": Edit({"command": "[sh, run.sh]"}, WITH_EXPORT),
    "PYTHONPATH of .env": Edit(files={"agent.py": USE, ".env": "PYTHONPATH=lib\n"}),
    "PYTHONPATH of the line": Edit({"command": "PYTHONPATH=lib python3 agent.py"}, {"agent.py": USE}),
    "PATH of a target": Edit(
        {"command": "[run]", "env": "{PATH: 'tools:/usr/bin:/bin'}"},
        edited="tools/run",
        before="#!/bin/sh\necho one\n",
        after="#!/bin/sh\necho two\n",
    ),
    "a Makefile": Edit(MAKE, edited="Makefile", before="all:\n\t@echo one\n", after="all:\n\t@echo two\n"),
}


def target(**settings: str) -> str:
    said = ", ".join(f"{key}: {value}" for key, value in {"name": "agent", **settings}.items())
    return f"target: {{provider: cli, {said}}}\ntests:\n  - {{id: a, input: x, assert: [{{contains: one}}]}}\n"


def write(project: Project, files: dict[str, str], folder: str = ".") -> None:
    for name, text in files.items():
        file = project.write(f"{folder}/{name}", text)
        if text.startswith("#!"):
            file.chmod(0o755)


def test_code_that_was_edited_is_asked_again(project):
    for place, edit in EDITS.items():
        files = {**edit.files, edit.edited: edit.before, "a.eval.yaml": target(**edit.settings)}
        write(project, files, place)
    project.run("eval", ".", "--cache", status=0)
    for place, edit in EDITS.items():
        project.write(f"{place}/{edit.edited}", edit.after)
    project.run("eval", ".", "--cache")
    assert [row["eval_path"] for row in project.rows() if row["status"] != "failed"] == []
    assert len(project.rows()) == len(EDITS)


def test_a_transform_that_was_edited_grades_again(project):
    text = "target: {name: it, provider: mock, response: hi}\ntests:\n  - id: a\n    input: x\n"
    write(project, {"t.py": "def t(output):\n    return 'one'\n"})
    project.write("a.eval.yaml", f"{text}    assert: [{{type: equals, value: one, transform: 't.py:t'}}]\n")
    assert project.run("eval", "a.eval.yaml", "-o", "run").status == 0
    project.write("t.py", "def t(output):\n    return 'three'\n")
    assert project.run("eval", "a.eval.yaml", "-o", "run", "--resume").status == 1


def test_an_importable_module_is_followed(project):
    project.write("lib/agent.py", "def answer(prompt):\n    return 'one'\n")
    case = "{id: a, input: x, assert: [{contains: one}]}"
    project.write("a.eval.yaml", f"target: 'python:agent:answer'\ntests: [{case}]\n")
    env = {"PYTHONPATH": str(project.path / "lib")}
    assert project.run("eval", "a.eval.yaml", "--cache", env=env).status == 0
    project.write("lib/agent.py", "def answer(prompt):\n    return 'three'\n")
    assert project.run("eval", "a.eval.yaml", "--cache", env=env).status == 1


NOTE = "agentv caches what '{}' starts by its command text and does not notice changes to the files it uses"
FOLLOWED = {
    "shell": ("[sh, agent.sh]", {"agent.sh": "echo one\n"}),
    "line": ("echo one", {}),
    "python": (CALL_OF_AGENT, {"agent.py": ONE}),
}
NOT_FOLLOWED = {
    "env": ("[env, echo, one]", {}),
    "program": (CALL_OF_AGENT, {"agent.py": "import subprocess\nprint('one')\n"}),
    "path": (CALL_OF_AGENT, {"agent.py": "import os, sys\nsys.path.append(os.environ['HOME'])\n" + ONE}),
    "exec": (CALL_OF_AGENT, {"agent.py": "import inner\n", "inner.py": "exec('pr' + 'int(' + repr('one') + ')')\n"}),
}


def test_what_cannot_be_followed_is_said_once(project):
    for name, (command, files) in {**FOLLOWED, **NOT_FOLLOWED}.items():
        write(project, {**files, "a.eval.yaml": target(name=name, command=command)}, name)
    ended = project.run("eval", ".", "--cache", status=0)
    names = "', '".join(sorted(NOT_FOLLOWED))
    assert ended.stderr.count(NOTE.format(names)) == ended.stderr.count("does not notice changes") == 1
    assert "does not notice changes" not in project.run("eval", ".").stderr


def test_fingerprint_names_more_files_of_a_target(project):
    write(project, {"data/deep/words.txt": "one", "run": "", "unrelated.txt": ""})
    project.write("a.eval.yaml", target(command="[env, cat, data/deep/words.txt]", fingerprint="['data/**/*.txt']"))
    first = project.run("eval", "a.eval.yaml", "--cache", status=0)
    assert NOTE.format("agent") not in first.stderr
    project.write_files({"unrelated.txt": "other", "data/deep/more.txt": "", "data/deep/words.txt": "two"})
    assert project.run("eval", "a.eval.yaml", "--cache").status == 1


def test_a_pattern_that_matches_nothing_is_an_error(project):
    project.write("a.eval.yaml", target(command="echo one", fingerprint="['data/*.txt']"))
    ended = project.run("eval", "a.eval.yaml", status=2, says="no file matches 'data/*.txt'")
    assert "a.eval.yaml:1:" in ended.stderr


def test_what_a_script_writes_is_neither_a_grader_nor_part_of_the_key(project):
    text = "target: {name: it, provider: mock, response: hi}\ntests:\n  - id: a\n    input: x\n"
    entry = "'python3 check.py > out.log; grep -q ok out.log'"
    write(project, {"check.py": "import os\nprint('ok', os.urandom(4).hex())\n", "out.log": "old"})
    project.write("a.eval.yaml", f"{text}    assert: [{{script: {entry}}}]\n")
    for _ in range(2):
        project.run("eval", "a.eval.yaml", status=0)
