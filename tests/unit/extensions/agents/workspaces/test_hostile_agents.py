"""Agents that cheat or do not end, each in every sandbox available on this machine."""

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest

from agentv.extensions.agents.workspaces import launcher
from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces
from agentv.model.suite.workspace import CopiedFiles, WorkspaceCommand
from agentv.model.values.response import Failure
from agentv.model.values.trace import WorkspaceChanges
from agentv.ports import FailingTests
from doubles.opened_workspaces import Place, agent, command_lines, printed
from needs import needs


def word() -> str:
    """Return a word that marks a test's processes in their command lines."""
    return f"7{os.urandom(4).hex().translate(str.maketrans('abcdef', '123456'))}"


def texts_below(directory: str) -> dict[str, str]:
    """Return path → text of the files in a directory."""
    root = Path(directory)
    return {
        str(one.relative_to(root)): one.read_text() for one in root.rglob("*") if one.suffix != ".pyc" and one.is_file()
    }


def is_gone(mark: str) -> bool:
    return not re.search(rf"sleep {mark}", command_lines())


@pytest.mark.parametrize(
    "script",
    [
        "(sleep {0} >/dev/null 2>&1 &) ; exit 0",
        "(setsid sleep {0} >/dev/null 2>&1 &) ; exit 0",
        "for i in $(seq 200); do (setsid sleep {0} >/dev/null 2>&1 &); done; exit 0",
    ],
)
def test_what_an_agent_leaves_running_has_ended_before_the_diff(place: Place, script: str) -> None:
    mark = word()
    trial = place.trial(script.format(mark))
    assert isinstance(trial.changes, WorkspaceChanges)
    assert is_gone(mark)


@needs("bwrap")
@pytest.mark.parametrize(
    "script",
    [
        "(setsid env -i /bin/sh -c '(/bin/sleep {0} &) ' >/dev/null 2>&1 &) ; exit 0",
        "cd /; (setsid env -i /bin/sh -c 'cd /; /bin/sleep {0}' >/dev/null 2>&1 &) ; exit 0",
    ],
)
def test_in_a_sandbox_what_shows_no_sign_of_its_trial_has_ended_too(tmp_path: Path, script: str) -> None:
    mark = word()
    assert isinstance(Place(tmp_path, "bwrap").trial(script.format(mark)).changes, WorkspaceChanges)
    assert is_gone(mark)


def test_a_program_that_ignores_sigterm_is_killed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = word()
    trial = place.trial(
        f"(setsid sh -c 'trap \"\" TERM; sleep {mark} & wait; sleep {mark}' >/dev/null 2>&1 &) ; sleep 0.3"
    )
    assert isinstance(trial.changes, WorkspaceChanges)
    assert is_gone(mark)


def test_a_fork_bomb_is_stopped(place: Place) -> None:
    mark = word()
    bomb = f"n=0; while [ $n -lt 1000 ]; do (sleep {mark} & sh -c 'sleep {mark}' &) ; n=$((n+1)); done; wait"
    trial = place.trial(f"({bomb}) >/dev/null 2>&1 & sleep 0.5", timeout_s=20)
    assert isinstance(trial.changes, WorkspaceChanges)
    assert is_gone(mark)


def test_an_agent_that_is_stopped_by_its_time_limit_leaves_nothing(place: Place) -> None:
    mark = word()
    began = time.monotonic()
    trial = place.trial(f"(setsid env -i /bin/sleep {mark} &) ; sleep {mark}", timeout_s=0.5)
    assert trial.agent.code == "timeout"
    assert is_gone(mark)
    assert time.monotonic() - began < launcher.GRACE_S + launcher.GIVE_UP_S


def test_what_is_written_after_the_answer_is_not_graded(place: Place) -> None:
    writer = "while :; do date +%N >> late.txt; sleep 0.01; done"
    trial = place.trial(f"(setsid sh -c '{writer}' >/dev/null 2>&1 &) ; sleep 0.2", grade="sleep 0.3; cat late.txt")
    late = next(line for line in trial.patch.splitlines() if line.startswith("@@"))
    count = int(re.search(r"\+1?,?(\d+) @@", late)[1])  # type: ignore[index]
    assert len(printed(trial.graded).splitlines()) == count


def test_a_workspace_replaced_by_a_link_is_not_followed(plain: Place) -> None:
    outside = plain.file("outside/secret.txt", "secret\n").parent
    plain.file("template/a.txt", "a\n")
    plain.file("hidden/test.txt", "hidden\n")
    script = f'cd /; rm -rf "$OLDPWD"; ln -s {outside} "$OLDPWD"'
    trial = plain.trial(script, hidden=(CopiedFiles(str(plain.root / "hidden")),), grade="ls")
    assert trial.kinds == {"a.txt": "deleted"}
    assert [one.name for one in outside.iterdir()] == ["secret.txt"]
    assert printed(trial.graded) == "test.txt\n"


@pytest.mark.parametrize(
    "script",
    [
        "git init -q .; echo b > b.txt; rm -rf .git",
        "git init -q .; echo b > b.txt",
        "echo 'gitdir: /nowhere' > .git; echo b > b.txt",
        "echo '*' > .gitignore; echo b > b.txt",
        "mkdir .git; printf '[core]\\n\\tfsmonitor = touch /tmp/ran; touch ran\\n' > .git/config; echo b > b.txt",
        (
            "printf '* filter=evil diff=evil -text\\n' > .gitattributes; git init -q .; "
            "git config filter.evil.clean 'touch ran; cat'; git config diff.evil.textconv 'touch ran; cat'; echo b > b.txt"
        ),
        (
            "printf '[filter \"evil\"]\\n\\tclean = touch ran\\n' > $HOME/.gitconfig; "
            "printf '* filter=evil\\n' > .gitattributes; echo b > b.txt"
        ),
    ],
)
def test_git_of_the_agent_hides_nothing_and_runs_nothing(place: Place, script: str) -> None:
    trial = place.trial(script)
    assert trial.kinds["b.txt"] == "added"
    assert "+b\n" in trial.patch
    assert "ran" not in trial.kinds


def test_attributes_do_not_make_a_text_binary(plain: Place) -> None:
    plain.file("template/code.py", "one\n")
    trial = plain.trial("echo '* -diff binary' > .gitattributes; echo two > code.py")
    assert "-one\n+two\n" in trial.patch


def test_nested_repositories_and_submodules_show_their_files(plain: Place) -> None:
    trial = plain.trial("git init -q inner; echo x > inner/x.txt; git init -q inner/deep; echo y > inner/deep/y.txt")
    assert trial.kinds == {"inner/x.txt": "added", "inner/deep/y.txt": "added"}


def test_special_files_do_not_hang_the_diff(place: Place) -> None:
    socket = "import socket; socket.socket(socket.AF_UNIX).bind('sock')"
    trial = place.trial(f'mkfifo pipe; python3 -c "{socket}"; ln -s /dev/zero zero; ln -s pipe link')
    assert trial.kinds == {"pipe": "added", "sock": "added", "zero": "added", "link": "added"}
    assert "+a named pipe\n" in trial.patch
    assert "+/dev/zero\n" in trial.patch


def test_a_tree_that_is_nested_deep_ends(plain: Place) -> None:
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\nopen('x', 'w').close()"
    trial = plain.trial(f'echo a > a.txt; python3 -c "{deep}"', keep=False)
    assert trial.kinds["a.txt"] == "added"
    assert any(path.startswith("d/d/") for path in trial.kinds)


def test_directories_without_permissions_hide_nothing_and_are_removed(place: Place) -> None:
    trial = place.trial("mkdir -p a/b; echo x > a/b/x; chmod 000 a/b/x a/b a")
    assert trial.kinds == {"a/b/x": "added"}


def test_links_are_recorded_and_not_followed(plain: Place) -> None:
    secret = plain.file("outside/secret.txt", "secret-text\n")
    trial = plain.trial(f"ln -s {secret} leak; ln -s {secret.parent} dir; ln -s / root")
    assert trial.kinds == {"leak": "added", "dir": "added", "root": "added"}
    assert "secret-text" not in trial.patch


def test_a_planted_link_is_not_written_through(place: Place) -> None:
    outside = place.file("outside/precious.txt", "precious\n")
    place.file("hidden/tests/test_it.py", "hidden\n")
    place.file("hidden/run.sh", "run\n")
    script = f"ln -s {outside.parent} tests; ln -s {outside} run.sh"
    trial = place.trial(script, hidden=(CopiedFiles(str(place.root / "hidden")),), grade="cat tests/test_it.py run.sh")
    assert printed(trial.graded) == "hidden\nrun\n"
    assert outside.read_text() == "precious\n"
    assert [one.name for one in outside.parent.iterdir()] == ["precious.txt"]


@pytest.mark.parametrize(
    "planted",
    [
        "mkfifo tests",
        "mkdir -p tests/test_it.py/x",
        "mkdir tests; chmod 500 tests",
        "mkdir -p tests/test_it.py/a/b; chmod 500 tests/test_it.py/a tests",
        "chmod 000 .",
        "touch tests",
    ],
)
def test_whatever_is_planted_where_hidden_files_go_is_replaced(plain: Place, planted: str) -> None:
    plain.file("hidden/test_it.py", "hidden\n")
    hidden = (CopiedFiles(str(plain.root / "hidden"), "tests"),)
    assert printed(plain.trial(planted, hidden=hidden, grade="cat tests/test_it.py").graded) == "hidden\n"


@pytest.mark.parametrize(
    "script",
    [
        "echo no > tests/a.py",
        "rm tests/a.py",
        "mv tests/a.py tests/b.py",
        "mv tests other; ln -s other tests",
        "mv tests other; touch tests",
        "rm -r tests",
        "chmod +x tests/a.py",
        "rm tests/a.py; ln -s ../x tests/a.py",
        "echo 'import os' > tests/conftest.py",
        "cp -p tests/a.py keep; echo b > tests/a.py; touch -r keep tests/a.py",
    ],
)
def test_what_is_protected_is_reported_however_it_was_changed(plain: Place, script: str) -> None:
    plain.file("template/tests/a.py", "a\n")
    trial = plain.trial(script, protected=("tests/**",), ignore=("tests/**",))
    assert trial.changes.protected


def test_code_planted_for_graders_written_in_python_is_not_loaded(place: Place) -> None:
    planted = "import os; os.write(1, b'PLANTED ')"
    names = "sitecustomize usercustomize pytest json site"
    script = (
        f'for n in {names}; do echo "{planted}" > $n.py; done; mkdir -p bin .local/lib; '
        "printf '#!/bin/sh\\necho PLANTED\\n' > bin/pytest; cp bin/pytest python3; chmod +x bin/pytest python3; "
        'mkdir -p "$HOME/.local/lib/python3.11/site-packages"; '
        f'echo "{planted}" > "$HOME/.local/lib/python3.11/site-packages/usercustomize.py"; '
        f'echo "{planted}" > "$HOME/.pythonrc"; printf \'touch x\' > "$HOME/.profile"'
    )
    grade = "python3 -c 'import json; print(json.dumps(1))'; python3 -m json.tool </dev/null 2>/dev/null; which python3; ls -A ~"
    trial = place.trial(script, grade=grade)
    said = printed(trial.graded)
    assert "PLANTED" not in said
    assert said.startswith("1\n/")
    assert trial.kinds["sitecustomize.py"] == "added"
    assert trial.path not in said


def test_the_path_of_graders_never_leads_into_the_workspace(place: Place) -> None:
    place.env["PATH"] = f"bin:.:{os.environ['PATH']}"
    trial = place.trial("mkdir bin; printf '#!/bin/sh\\necho PLANTED\\n' > bin/ls; chmod +x bin/ls; ls", grade="ls")
    assert printed(trial.agent) == "PLANTED\n"
    assert printed(trial.graded) == "bin\n"


def test_secrets_of_the_parent_reach_nobody(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_SECRET", "sk-planted")
    monkeypatch.setenv("PYTHONPATH", "/planted")
    look = "env; set"
    if place.sandbox == "bwrap":
        look += "; cat /proc/*/environ"
    trial = place.trial(look, grade=look)
    for said in (printed(trial.agent), printed(trial.graded)):
        assert "planted" not in said


@needs("bwrap")
def test_bwrap_hides_the_project_the_hidden_files_and_the_home(tmp_path: Path) -> None:
    place = Place(tmp_path, "bwrap")
    secret = place.file("project/answers.txt", "answer\n")
    place.file("hidden/test_it.py", "hidden\n")
    home = Path.home()
    script = f"cat {secret} {place.root}/hidden/test_it.py; ls {home} {place.root}; ls {place.root}/workspaces/*; touch /usr/x {home}/x"
    trial = place.trial(f"({script}) 2>&1; true", hidden=(CopiedFiles(str(place.root / "hidden")),))
    said = printed(trial.agent)
    assert "answer\n" not in said
    assert "hidden\n" not in said
    assert not (home / "x").exists()
    assert "cannot touch '/usr/x'" in said
    assert trial.kinds == {}


@needs("bwrap")
def test_paths_of_the_sandbox_lead_to_the_workspace_and_nowhere_else(tmp_path: Path) -> None:
    place = Place(tmp_path, "bwrap")
    secret = place.file("outside/secret.txt", "secret\n")
    mounts = {"/app": "", "/logs": "made/logs"}
    script = f"mkdir made; echo a > /app/a.txt; ln -s {secret.parent} made/logs"
    trial = place.trial(script, mounts=mounts, grade="cat /app/a.txt; cat /logs/secret.txt 2>/dev/null || echo none")
    assert printed(trial.graded) == "a\nnone\n"


def test_a_link_to_where_hidden_files_will_be_is_reported(place: Place) -> None:
    hidden = (CopiedFiles(str(place.file("hidden/expected.txt", "42\n")), "tests/expected.txt"),)
    trial = place.trial("mkdir tests; ln -s tests/expected.txt VERSION; ln -s nowhere other", hidden=hidden)
    assert trial.changes.protected == ("VERSION",)


def test_hidden_files_are_written_again_before_each_command_of_a_grader(place: Place) -> None:
    hidden = (CopiedFiles(str(place.file("hidden/test_it.py", "hidden\n")), "tests/test_it.py"),)
    trial = place.trial("true", hidden=hidden, grade="cat tests/test_it.py; echo forged > tests/test_it.py", grades=2)
    assert printed(trial.graded) == "hidden\n"


def test_a_grader_runs_no_monitor_of_the_agents_repository(place: Place) -> None:
    script = "git init -q .; git config core.fsmonitor 'touch ran;'; git config core.pager 'touch ran;'"
    trial = place.trial(script, grade="git status >/dev/null; ls")
    assert "ran" not in printed(trial.graded).split()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cp ../plan conftest.py", ("conftest.py",)),
        ("mkdir tests other src; echo > tests/conftest.py; echo > other/conftest.py", ()),  # one is hidden, one elsewhere
        ("""mkdir src x.egg-info; echo > src/__init__.py; echo > src/pytest.py; echo '[console_scripts]' > x.egg-info/entry_points.txt""", ()),
        ("""echo A=1 > .env; echo '{"name": "b", "scripts": {"test": "jest"}}' > package.json""", ()),
        ("mkdir -p tests/unit; echo > tests/unit/conftest.py; echo > tests/pytest.ini", ("tests/pytest.ini",)),
        ("echo '[tool.pytest.ini_options]' >> pyproject.toml", ("pyproject.toml",)),
        ("sed -i s/-q/-x/ tox.ini; echo '[more]' >> pyproject.toml", ("tox.ini",)),
        ("echo '[more]' >> tox.ini; rm pyproject.toml", ()),
        ("mkdir x.egg-info; echo '[pytest11]' > x.egg-info/entry_points.txt", ("x.egg-info/entry_points.txt",)),
        ("mkdir -p venv/lib; echo 'import x' > venv/lib/a.pth", ("venv/lib/a.pth",)),
        ("mkdir tests; echo > tests/__init__.py; echo > __init__.py", ("__init__.py", "tests/__init__.py")),
        ("echo > sitecustomize.py; mkdir _pytest; echo > _pytest/a.py", ("_pytest/a.py", "sitecustomize.py")),
        ("mkdir tests; echo > tests/json.py; echo > json.py; echo > random.py", ("json.py", "tests/json.py")),
        ("echo > tests.py; mkdir -p tests/test_it; echo > tests/test_it/a.py", ("tests.py", "tests/test_it/a.py")),
        ("mkdir -p tests/more src; echo > tests/more/data.txt; echo > tests/own.py; echo > src/data.txt", ("tests/more/data.txt",)),
        ("mkdir a; printf 'abcd\\0\\0\\0\\0' > a/a.pyc; cp -r a __pycache__; printf 'abcd\\1\\0\\0\\0' > __pycache__/b.pyc", ("__pycache__/b.pyc",)),
        ("echo PYTEST_ADDOPTS=-x > .env", (".env",)),
        ("echo > jest.config.js; echo > vitest.config.ts; echo > .babelrc", (".babelrc", "jest.config.js", "vitest.config.ts")),
        ("""echo '{"name": "a", "scripts": {"test": "exit 0"}}' > package.json""", ("package.json",)),
        ("""echo '{"scripts": {"test": "jest"}, "jest": {"bail": 1}}' > package.json""", ("package.json",)),
        ("rm tox.ini", ("tox.ini",)),
        ("rm -f pyproject.toml; ln -s /etc/passwd pyproject.toml", ()),
    ],
)  # fmt: skip
def test_what_configures_hidden_tests_is_named(plain: Place, script: str, expected: tuple[str, ...]) -> None:
    plain.file("template/pyproject.toml", "[project]\nname = 'a'\n")
    plain.file("template/tox.ini", "[pytest]\naddopts = -q\n")
    plain.file("template/package.json", '{"name": "a", "scripts": {"test": "jest"}}')
    plain.file("hidden/test_it.py", "import json\ndef test_it(): assert open('data.txt')\n")
    plain.file("hidden/conftest.py", "")
    script = script.replace("cp ../plan", "echo >")
    trial = plain.trial(script, hidden=(CopiedFiles(str(plain.root / "hidden"), "tests"),))
    assert trial.changes.test_config == expected


def test_what_configures_tests_is_restored_byte_by_byte_in_a_large_workspace(plain: Place) -> None:
    plain.file("hidden/test_it.py", "")
    earlier = "# caf\u00e9\nx = 1\n".encode("latin-1")
    Path(plain.file("template/zz/conftest.py", "")).write_bytes(earlier)
    for number in range(30):
        plain.file(f"template/{number}.txt", "many words\n" * 90_000)

    async def work(workspaces: LocalWorkspaces) -> bytes:
        hidden = (CopiedFiles(str(plain.root / "hidden"), "zz"),)
        workspace = await workspaces.open(plain.spec(hidden=hidden), None, {})
        await agent(workspace, "echo > zz/conftest.py")
        assert isinstance(await workspace.finish(), WorkspaceChanges)
        assert await workspace.restore_test_config(()) == ("zz/conftest.py",)
        found = workspace.read("zz/conftest.py")
        await workspace.close(keep=False)
        return found

    assert plain.run(work) == earlier


@pytest.mark.parametrize("allowed", [(), ("*.py", "*.ini", "*.json", ".env")])
def test_what_configures_tests_is_as_it_was_unless_it_is_allowed(plain: Place, allowed: tuple[str, ...]) -> None:
    before = {
        "conftest.py": "x = 1\n",
        "tox.ini": "[tox]\nenvlist = py\n[pytest]\naddopts = -q\n",
        "package.json": '{"scripts": {"test": "jest"}}',
        ".env": "A=1\n",
    }
    changed = {
        "conftest.py": "x = 2\n",
        "tox.ini": "[pytest]\naddopts = --collect-only\n[tox]\nenvlist = py, mypy\n",
        "package.json": '{"scripts": {"test": "exit 0", "build": "tsc"}, "jest": {"bail": 1}}',
        ".env": "A=2\nPYTEST_ADDOPTS=-x\n",
        "sitecustomize.py": "import os\n",
    }
    for name, text in before.items():
        plain.file(f"template/{name}", text)
    for name, text in changed.items():
        plain.file(f"changed/{name}", text)
    plain.file("hidden/test_it.py", "")

    async def work(workspaces: LocalWorkspaces) -> dict[str, str]:
        workspace = await workspaces.open(
            plain.spec(hidden=(CopiedFiles(str(plain.root / "hidden"), "tests"),)), None, {}
        )
        await agent(workspace, f"cp -r {plain.root}/changed/. .")
        assert isinstance(await workspace.finish(), WorkspaceChanges)
        restored = await workspace.restore_test_config(allowed)
        assert restored == (() if allowed else tuple(sorted(changed)))
        found = texts_below(workspace.path)
        await workspace.close(keep=False)
        return found

    found = plain.run(work)
    found.pop("tests/test_it.py")
    if allowed:
        assert found == changed
        return
    assert found.keys() == before.keys()
    assert found["conftest.py"] == "x = 1\n"
    assert found["tox.ini"] == "[tox]\nenvlist = py, mypy\n[pytest]\naddopts = -q\n"
    assert json.loads(found["package.json"]) == {"scripts": {"test": "jest", "build": "tsc"}}
    assert found[".env"] == "A=2\n"


@pytest.mark.parametrize(
    ("command", "ends"),
    [
        ("{python} -m pytest -q -p no:cacheprovider -p no:agentv tests", 1),
        ("{python} -m pytest -q -p no:cacheprovider -p no:agentv tests/test_it.py::test_it", 1),
        ("{python} -m unittest discover -s tests", 1),
        ("true", 0),
    ],
)
def test_hidden_tests_that_must_fail_do(plain: Place, command: str, ends: int) -> None:
    test = '"""Doc."""\nfrom __future__ import annotations\nimport unittest\n'
    test += "def test_it(): return 1\nclass A(unittest.TestCase):\n    def test_it(self): self.assertTrue(1)\n"
    plain.file("hidden/test_it.py", test)
    plain.file("hidden/data.json", "{}")

    async def work(workspaces: LocalWorkspaces) -> FailingTests | Failure | None:
        workspace = await workspaces.open(
            plain.spec(hidden=(CopiedFiles(str(plain.root / "hidden"), "tests"),)), None, {}
        )
        await workspace.finish()
        assert await workspace.restore_test_config(()) == ()
        found = await workspace.run_failing_tests(WorkspaceCommand(shell=command.format(python=sys.executable)), ())
        assert texts_below(workspace.path) == {"tests/test_it.py": test, "tests/data.json": "{}"}
        await workspace.close(keep=False)
        return found

    found = plain.run(work)
    assert (found.names, found.ended.status, found.loaded, found.cheated) == ({"test_it::test_it"}, ends, ends == 1, "")
