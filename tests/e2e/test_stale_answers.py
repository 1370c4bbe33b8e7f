"""Code that was edited is noticed by `--cache` and `--resume`, wherever it lies; what cannot be followed is said."""

from __future__ import annotations

import pytest

from e2e.command import Project

ONE, TWO = "print('one')\n", "print('two')\n"
NAME, OTHER = (
    "NAME = 'one'\n",
    "NAME = 'three'\n",
)  # of another length: Python's bytecode knows a file by second and size
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
EDITS = {
    "a directory of its own": ({"command": CALL_OF_AGENT, "cwd": "sub"}, {}, "sub/agent.py", ONE, TWO),
    "a line in a directory of its own": ({"command": "python3 agent.py", "cwd": "sub"}, {}, "sub/agent.py", ONE, TWO),
    "sys.path.insert": ({"command": CALL_OF_AGENT}, {"agent.py": INSERT + USE}, "lib/helper.py", NAME, OTHER),
    "sys.path.append": (
        {"command": "[python3, code/agent.py]"},
        {"code/agent.py": APPEND + USE},
        "shared/inner/helper.py",
        NAME,
        OTHER,
    ),
    "pkgutil": (
        {"command": CALL_OF_AGENT},
        {"agent.py": WALK, "plugins/__init__.py": ""},
        "plugins/one.py",
        NAME,
        OTHER,
    ),
    "a program of a program": ({"command": CALL_OF_AGENT}, {"agent.py": RUN}, "inner.py", ONE, TWO),
    "a shell script": (
        {"command": "[sh, run.sh]"},
        {"run.sh": 'cd "$(dirname "$0")"\nexec python3 "$PWD/inner.py"\n'},
        "inner.py",
        ONE,
        TWO,
    ),
    "a Makefile's program": (
        {"command": "[make, -s, all]"},
        {"Makefile": "all:\n\t@python3 inner.py\n"},
        "inner.py",
        ONE,
        TWO,
    ),
    "a constant on sys.path": (
        {"command": CALL_OF_AGENT},
        {
            "agent.py": f"import os, sys\nLIB = 'lib'\nP = os.path.join(os.path.dirname(__file__), LIB)\nsys.path += [P]\n{USE}"
        },
        "lib/helper.py",
        NAME,
        OTHER,
    ),
    "a path that another file adds": (
        {"command": CALL_OF_AGENT},
        {"agent.py": f"import places\n{USE}", "places.py": INSERT},
        "lib/helper.py",
        NAME,
        OTHER,
    ),
    "a module of a package, by a name that is put together": (
        {"command": CALL_OF_AGENT},
        {
            "agent.py": "import importlib\nn = ''.join('one')\nprint(importlib.import_module(f'plugins.{n}').NAME)\n",
            "plugins/__init__.py": "",
        },
        "plugins/one.py",
        NAME,
        OTHER,
    ),
    "exec": (
        {"command": CALL_OF_AGENT},
        {"agent.py": "exec(open('code.inc').read())\nprint(NAME)\n"},
        "code.inc",
        NAME,
        OTHER,
    ),
    "PYTHONPATH of a target": (
        {"command": CALL_OF_AGENT, "env": "{PYTHONPATH: lib}"},
        {"agent.py": USE},
        "lib/helper.py",
        NAME,
        OTHER,
    ),
    "PYTHONPATH of a shell script": (
        {"command": "[sh, run.sh]"},
        {"run.sh": 'export PYTHONPATH="$PWD/lib"\ncd code && python3 agent.py\n', "code/agent.py": USE},
        "lib/helper.py",
        NAME,
        OTHER,
    ),
    "PYTHONPATH of .env": (
        {"command": CALL_OF_AGENT},
        {"agent.py": USE, ".env": "PYTHONPATH=lib\n"},
        "lib/helper.py",
        NAME,
        OTHER,
    ),
    "PYTHONPATH of the line": (
        {"command": "PYTHONPATH=lib python3 agent.py"},
        {"agent.py": USE},
        "lib/helper.py",
        NAME,
        OTHER,
    ),
    "PATH of a target": (
        {"command": "[run]", "env": "{PATH: 'tools:/usr/bin:/bin'}"},
        {},
        "tools/run",
        "#!/bin/sh\necho one\n",
        "#!/bin/sh\necho two\n",
    ),
    "a Makefile": ({"command": "[make, -s, all]"}, {}, "Makefile", "all:\n\t@echo one\n", "all:\n\t@echo two\n"),
}


def target(**settings: str) -> str:
    said = ", ".join(f"{key}: {value}" for key, value in settings.items())
    return f"target: {{name: agent, provider: cli, {said}}}\ntests:\n  - {{id: a, input: x, assert: [{{contains: one}}]}}\n"


def write(project: Project, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = project.write(name, text)
        if text.startswith("#!"):
            file.chmod(0o755)


@pytest.mark.parametrize(("settings", "files", "edited", "before", "after"), EDITS.values(), ids=EDITS)
def test_code_that_was_edited_is_asked_again(project, settings, files, edited, before, after):
    write(project, {**files, edited: before, "a.eval.yaml": target(**settings)})
    assert project.run("eval", "a.eval.yaml", "--cache").status == 0
    project.write(edited, after)
    ended = project.run("eval", "a.eval.yaml", "--cache")
    assert ended.status == 1, ended.stderr


def test_a_transform_that_was_edited_grades_again(project):
    text = "target: {name: it, provider: mock, response: hi}\ntests:\n  - id: a\n    input: x\n"
    write(project, {"t.py": "def t(output):\n    return 'one'\n"})
    project.write("a.eval.yaml", f"{text}    assert: [{{type: equals, value: one, transform: 't.py:t'}}]\n")
    assert project.run("eval", "a.eval.yaml", "-o", "run").status == 0
    project.write("t.py", "def t(output):\n    return 'three'\n")
    assert project.run("eval", "a.eval.yaml", "-o", "run", "--resume").status == 1


def test_an_importable_module_is_followed(project):
    project.write("lib/agent.py", "def answer(prompt):\n    return 'one'\n")
    text = target(command="x").replace("provider: cli, command: x", 'provider: python, function: "agent:answer"')
    project.write("a.eval.yaml", text)
    env = {"PYTHONPATH": str(project.path / "lib")}
    assert project.run("eval", "a.eval.yaml", "--cache", env=env).status == 0
    project.write("lib/agent.py", "def answer(prompt):\n    return 'three'\n")
    assert project.run("eval", "a.eval.yaml", "--cache", env=env).status == 1


NOTE = "agentv caches what 'agent' starts by its command text and does not notice changes to the files it uses"


@pytest.mark.parametrize(
    ("command", "files", "said"),
    [
        ("[sh, agent.sh]", {"agent.sh": "echo one\n"}, False),
        ("echo one", {}, False),
        ("[env, echo, one]", {}, True),
        (CALL_OF_AGENT, {"agent.py": "import subprocess\nprint('one')\n"}, True),
        (CALL_OF_AGENT, {"agent.py": ONE}, False),
        (CALL_OF_AGENT, {"agent.py": "import os, sys\nsys.path.append(os.environ['HOME'])\n" + ONE}, True),
        (CALL_OF_AGENT, {"agent.py": "import inner\n", "inner.py": "exec('pr' + 'int(' + repr('one') + ')')\n"}, True),
    ],
)
def test_what_cannot_be_followed_is_said_once(project, command, files, said):
    write(project, {**files, "a.eval.yaml": target(command=command)})
    ended = project.run("eval", "a.eval.yaml", "--cache")
    assert ended.status == 0, ended.stderr
    assert ended.stderr.count(NOTE) == said
    assert NOTE not in project.run("eval", "a.eval.yaml").stderr


def test_fingerprint_names_more_files_of_a_target(project):
    write(project, {"data/deep/words.txt": "one", "run": "", "unrelated.txt": ""})
    project.write("a.eval.yaml", target(command="[env, cat, data/deep/words.txt]", fingerprint="['data/**/*.txt']"))
    first = project.run("eval", "a.eval.yaml", "--cache")
    assert first.status == 0
    assert NOTE not in first.stderr
    project.write("unrelated.txt", "other")
    project.write("data/deep/more.txt", "")
    project.write("data/deep/words.txt", "two")
    assert project.run("eval", "a.eval.yaml", "--cache").status == 1


def test_a_pattern_that_matches_nothing_is_an_error(project):
    project.write("a.eval.yaml", target(command="echo one", fingerprint="['data/*.txt']"))
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 2
    assert "no file matches 'data/*.txt'" in ended.stderr
    assert "a.eval.yaml:1:" in ended.stderr


def test_what_a_script_writes_is_neither_a_grader_nor_part_of_the_key(project):
    text = "target: {name: it, provider: mock, response: hi}\ntests:\n  - id: a\n    input: x\n"
    entry = "'python3 check.py > out.log; grep -q ok out.log'"
    write(project, {"check.py": "import os\nprint('ok', os.urandom(4).hex())\n", "out.log": "old"})
    project.write("a.eval.yaml", f"{text}    assert: [{{script: {entry}}}]\n")
    for _ in range(2):
        ended = project.run("eval", "a.eval.yaml")
        assert ended.status == 0, ended.stderr
