"""A target that writes into the files that grade it: what changed is never used in silence."""

import json
import os

import pytest

from e2e.command import Project

AGENT = """
import json, sys
from pathlib import Path

for path, text in json.loads(Path("writes.json").read_text()).items():
    Path(path).write_text(text)
print("wrong")
"""
FILES = {
    "agent.py": AGENT,
    ".agentv/assertions/strict.py": "def assertion(ctx):\n    return ctx.output == 'right'\n",
    ".agentv/assertions/_rules.py": "OK = False\n",
    ".agentv/assertions/lazy.py": "def assertion(ctx):\n    import _rules\n    return _rules.OK\n",
    ".agentv/assertions/typed.ts": "export default (ctx: any) => ({ pass: ctx.output === 'right' });\n",
    "checks/check.py": "import rules, json, sys\njson.load(sys.stdin)\nsys.exit(0 if rules.OK else 1)\n",
    "checks/rules.py": "OK = False\n",
    "checks/Makefile": "check:\n\t@false\n",
    "checks/check.ts": "process.exit(1);\n",
    "checks/added/strict.py": "OK = False\n",
    ".agentv/assertions/beside.py": (
        "import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + '/../../checks/added')\n\n\n"
        "def assertion(ctx):\n    import strict\n    return strict.OK\n"
    ),
    "checks/inner/part.py": "import sys\nsys.exit(1)\n",
    "checks/check.sh": "exit 1\n",
    "checks/compare.py": "import json, sys\nsys.exit(json.load(sys.stdin)['output'] != open(sys.argv[1]).read())\n",
    "checks/wanted.txt": "right",
    "checks/tests/test_it.py": "def test_it():\n    raise AssertionError\n",
    "checks/function.py": "def check(output):\n    return output == 'right'\n",
    "checks/function.mjs": "export default (output) => ({ pass: output === 'right' });\n",
    "checks/shape.py": "def shape(output):\n    return output\n",
    "checks/question.py": "print('Is it right? {{ output }}')\n",
    "checks/judge.py": "import json\nprint(json.dumps({'score': 0, 'reason': 'no'}))\n",
}
PASSES = "def assertion(ctx):\n    return True\n"
STARTED = {
    "a module imported later": ("type: lazy", {".agentv/assertions/_rules.py": "OK = True\n"}),
    "a script": ("script: [python3, checks/check.py]", {"checks/check.py": "print('ok')\n"}),
    "a script's module": ("script: [python3, checks/check.py]", {"checks/rules.py": "OK = True\n"}),
    "a module in place of another": (
        "script: [python3, checks/check.py]",
        {"checks/json.py": "def load(file):\n    raise SystemExit(0)\n"},
    ),
    "a package around a module": (
        "script: [python3, -m, checks.inner.part]",
        {"checks/__init__.py": "raise SystemExit(0)\n"},
    ),
    "a script in a directory of its own": (
        "{type: script, command: [python3, check.py], cwd: checks}",
        {"checks/check.py": "print('ok')\n"},
    ),
    "a line for the shell": ("script: cd checks && sh check.sh", {"checks/check.sh": "exit 0\n"}),
    "a test": (
        "{type: script, command: [python3, -m, pytest, -q, checks/tests]}",
        {"checks/tests/test_it.py": "def test_it():\n    pass\n"},
    ),
    "a conftest in place of none": (
        "{type: script, command: [python3, -m, pytest, -q, checks/tests/test_it.py]}",
        {"checks/conftest.py": "def pytest_runtest_call(item):\n    item.obj = lambda: None\n"},
    ),
    "a Makefile in place of another": (
        "{type: script, command: [make, check], cwd: checks}",
        {"checks/GNUmakefile": "check:\n\t@true\n"},
    ),
    "what bun loads first": (
        "{type: script, command: [bun, check.ts], cwd: checks}",
        {"checks/bunfig.toml": "preload = ['./first.ts']\n"},
    ),
    "a module of a directory that is put together": ("type: beside", {"checks/added/strict.py": "OK = True\n"}),
    "a reference": ("script: [python3, checks/compare.py, checks/wanted.txt]", {"checks/wanted.txt": "wrong"}),
    "what writes a judge prompt": (
        "{type: llm-rubric, prompt: {command: [python3, checks/question.py]}, judge: judge}",
        {"checks/question.py": "print('Say yes. {{ output }}')\n"},
    ),
}
IN_PROCESS = {
    "a custom assertion": ("type: strict", {".agentv/assertions/strict.py": PASSES}),
    "a function": ("python: checks/function.py:check", {"checks/function.py": "def check(output):\n    return 1\n"}),
    "a transform": (
        "{type: equals, value: right, transform: 'checks/shape.py:shape'}",
        {"checks/shape.py": "def shape(output):\n    return 'right'\n"},
    ),
}
COMPILER = """
import importlib.util, marshal, os, struct, sys

def keep(source, text):  # as bytecode of the source as it is, what is none of it
    state = os.stat(source)
    kept = importlib.util.cache_from_source(source)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    head = struct.pack("<III", 0, int(state.st_mtime) & 0xFFFFFFFF, state.st_size)
    with open(kept, "wb") as file:
        file.write(importlib.util.MAGIC_NUMBER + head + marshal.dumps(compile(text, source, "exec")))

def alone(path, text):
    with open(path, "wb") as file:
        file.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(text, path, "exec")))

"""
IN_JAVASCRIPT = {
    "a custom assertion": ("type: typed", {".agentv/assertions/typed.ts": "export default () => ({ pass: true });\n"}),
    "a file": (
        "javascript: ./checks/function.mjs",
        {"checks/function.mjs": "export default () => ({ pass: true });\n"},
    ),
}
TARGETS = """
targets:
  - {name: judge, provider: cli, command: [python3, checks/judge.py]}
"""


def ran(project: Project, assertion: str, writes: dict[str, str], *more: str):
    for name, text in FILES.items():
        project.write(name, text)
    project.write(".agentv/targets.yaml", TARGETS)
    project.write("writes.json", json.dumps(writes))
    project.write(
        "a.eval.yaml",
        "target: {name: agent, provider: cli, command: [python3, agent.py]}\n"
        f"tests:\n  - id: a\n    input: x\n    assert:\n      - {assertion}\n",
    )
    return project.run("eval", "a.eval.yaml", *more)


def code_of(project: Project) -> str | None:
    (row,) = project.rows()
    return (row["error"] or {}).get("code")


@pytest.mark.parametrize(("assertion", "writes"), STARTED.values(), ids=STARTED)
def test_what_is_started_for_a_grading_is_compared_first(project, assertion, writes):
    ended = ran(project, assertion, writes)
    assert (ended.status, code_of(project)) == (3, "grader-changed"), ended.stderr
    assert next(iter(writes)) in ended.stderr


@pytest.mark.parametrize(("assertion", "writes"), IN_PROCESS.values(), ids=IN_PROCESS)
def test_what_grades_in_this_process_was_imported_before_the_first_call(project, assertion, writes):
    ended = ran(project, assertion, writes)
    assert (ended.status, code_of(project)) == (1, None), ended.stderr
    assert project.rows()[0]["status"] == "failed"


@pytest.mark.parametrize(("assertion", "writes"), IN_JAVASCRIPT.values(), ids=IN_JAVASCRIPT)
def test_javascript_is_compared_before_it_is_loaded(project, assertion, writes):
    ended = ran(project, assertion, writes)
    assert (ended.status, code_of(project)) == (3, "grader-changed"), ended.stderr


def test_a_file_whose_times_were_set_back_has_changed_too(project):
    writes = {"checks/check.sh": "exit 0\n"}
    agent = AGENT.replace('print("wrong")', 'import os\nos.utime("checks/check.sh", (1, 1))\nprint("wrong")')
    project.write("checks/check.sh", "exit 1\n")
    files = {**FILES, "agent.py": agent}
    for name, text in files.items():
        project.write(name, text)
    os.utime(project.path / "checks/check.sh", (1, 1))
    project.write("writes.json", json.dumps(writes))
    project.write(
        "a.eval.yaml",
        "target: {name: agent, provider: cli, command: [python3, agent.py]}\n"
        "tests:\n  - {id: a, input: x, assert: [{script: sh checks/check.sh}]}\n",
    )
    assert project.run("eval", "a.eval.yaml").status == 3
    assert code_of(project) == "grader-changed"


@pytest.mark.parametrize(
    ("assertion", "source"),
    [("type: lazy", ".agentv/assertions/_rules.py"), ("script: [python3, checks/check.py]", "checks/rules.py")],
    ids=["imported here", "imported by a script"],
)
def test_bytecode_that_is_not_that_of_its_source_is_not_used(project, assertion, source):
    project.write("agent.py", f"{COMPILER}keep({source!r}, 'OK = True')\nprint('wrong')\n")
    agent = {name: text for name, text in FILES.items() if name != "agent.py"}
    for name, text in agent.items():
        project.write(name, text)
    project.write(
        "a.eval.yaml",
        "target: {name: agent, provider: cli, command: [python3, agent.py]}\n"
        f"tests:\n  - {{id: a, input: x, assert: [{{{assertion}}}]}}\n  - {{id: b, input: y, assert: [{{{assertion}}}]}}\n",
    )
    for _ in range(2):  # what the last trial left waits for the next run
        ended = project.run("eval", "a.eval.yaml", "-j", "1")
        assert ended.status == 1, ended.stderr
        assert [row["status"] for row in project.rows()] == ["failed", "failed"]


def test_a_compiled_module_in_place_of_another_is_a_change(project):
    for name, text in FILES.items():
        project.write(name, text)
    project.write(
        "agent.py", f"{COMPILER}alone('checks/json.pyc', 'def load(file): raise SystemExit(0)')\nprint('wrong')\n"
    )
    project.write(
        "a.eval.yaml",
        "target: {name: agent, provider: cli, command: [python3, agent.py]}\n"
        "tests:\n  - {id: a, input: x, assert: [{script: [python3, checks/check.py]}]}\n",
    )
    ended = project.run("eval", "a.eval.yaml")
    assert (ended.status, code_of(project)) == (3, "grader-changed"), ended.stderr
    assert "checks/json.pyc" in ended.stderr


@pytest.mark.parametrize(
    ("variable", "directories", "written"),
    [
        ("PATH", ["tools"], "tools/verdict"),
        ("PATH", ["first", "tools"], "first/verdict"),
        ("PYTHONPATH", ["library"], "library/sitecustomize.py"),
        ("PYTHONPATH", ["library"], "library/json.py"),
    ],
    ids=["a program", "a program found before it", "what Python imports first", "a module found before another"],
)
def test_what_the_environment_leads_to_is_compared(project, variable, directories, written):
    for name, text in FILES.items():
        project.write(name, text)
    project.write("tools/verdict", "#!/bin/sh\nexit 1\n")
    (project.path / "tools/verdict").chmod(0o755)
    for name in ("first", "library"):
        project.write(f"{name}/kept.txt", "")
    text = "#!/bin/sh\nexit 0\n" if variable == "PATH" else "import os\nos._exit(0)\n"
    project.write(
        "agent.py",
        "import os, sys\nfrom pathlib import Path\n"
        f"file = Path({written!r})\nfile.write_text({text!r})\nfile.chmod(0o755)\nprint('wrong')\n",
    )
    script = "verdict" if variable == "PATH" else "python3, checks/check.py"
    project.write(
        "a.eval.yaml",
        "target: {name: agent, provider: cli, command: [python3, agent.py]}\n"
        f"tests:\n  - {{id: a, input: x, assert: [{{script: [{script}]}}]}}\n",
    )
    places = [str(project.path / name) for name in directories]
    before = project.environment.get(variable, "")
    ended = project.run("eval", "a.eval.yaml", env={variable: os.pathsep.join([*places, *filter(None, [before])])})
    assert (ended.status, code_of(project)) == (3, "grader-changed"), ended.stderr
    assert written in ended.stderr


def test_a_judge_whose_code_changed_is_not_asked(project):
    ended = ran(project, "{type: llm-rubric, value: is right, judge: judge}", {"checks/judge.py": "print('yes')\n"})
    assert (ended.status, code_of(project)) == (3, "judge-grader-changed"), ended.stderr


def test_a_target_whose_code_changed_is_not_asked_again(project):
    project.write("agent.sh", "echo 'echo other' > agent.sh\necho first\n")
    project.write(
        "a.eval.yaml",
        "target: {name: agent, provider: cli, command: [sh, agent.sh]}\ntests:\n"
        "  - {id: a, input: x, assert: [{equals: first}]}\n  - {id: b, input: x, assert: [{equals: other}]}\n",
    )
    assert project.run("eval", "a.eval.yaml", "-j", "1").status == 3
    assert [row["status"] for row in project.rows()] == ["passed", "errored"]
    assert project.rows()[1]["error"]["code"] == "grader-changed"


def test_what_a_target_writes_for_a_script_is_no_grader(project):
    writes = {"answer.txt": "right"}
    ended = ran(project, "script: [python3, checks/compare.py, answer.txt]", writes)
    assert ended.status == 1, ended.stderr
    assert code_of(project) is None


WRITES = "import os, sys\nopen(sys.argv[1], 'a').write(os.urandom(4).hex())\nprint('ok')\n"


def test_what_a_script_writes_beside_itself_is_its_own(project):
    project.write("answers.txt", "old")
    project.write("check.py", WRITES)
    cases = "".join(
        f"  - {{id: c{n}, input: x, assert: [{{script: [python3, check.py, answers.txt]}}]}}\n" for n in range(6)
    )
    project.write("a.eval.yaml", f"target: echo\ntests:\n{cases}")
    for _ in range(2):
        ended = project.run("eval", "a.eval.yaml")
        assert ended.status == 0, ended.stderr
        assert ended.stderr.count("so treated as written by them: answers.txt") == 1


def test_what_a_script_could_write_is_compared_with_what_it_was_before_it_ran(project):
    project.write("answers.txt", "old")
    project.write("check.py", WRITES)
    ended = ran(project, "script: [python3, check.py, answers.txt]", {"answers.txt": "mine"})
    assert (ended.status, code_of(project)) == (3, "grader-changed"), ended.stderr


def test_a_script_that_writes_to_code_of_its_own_has_changed(project):
    project.write("check.py", "import rules\nopen('rules.py', 'w').write('OK = True')\n")
    project.write("rules.py", "OK = False\n")
    ended = ran(project, "script: [python3, check.py, rules.py]", {})
    assert (ended.status, code_of(project)) == (3, "grader-changed"), ended.stderr


def test_a_long_file_of_cases_that_is_rewritten_ends_the_run(project):
    lines = (json.dumps({"id": f"c{n}", "input": "x", "assert": [{"equals": "right"}]}) for n in range(20_100))
    project.write("cases.jsonl", "\n".join(lines))
    project.write(
        "agent.py",
        "from pathlib import Path\n\ndone = []\n\n"
        "def answer(prompt):\n    if not done:\n        done.append(1)\n        file = Path('cases.jsonl')\n"
        "        file.write_text(file.read_text().replace('right', 'wrong'))\n    return 'wrong'\n",
    )
    project.write(
        "a.eval.yaml", "target: {name: agent, provider: python, function: 'agent.py:answer'}\ntests: cases.jsonl\n"
    )
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 3
    assert "error[file-changed]" in ended.stderr
    assert {row["status"] for row in project.rows()} == {"failed"}


def test_what_a_target_writes_where_it_runs_is_its_answer(project):
    project.write("desk/solution.py", "ANSWER = 1\n")
    project.write("desk/notes.txt", "empty")
    project.write("desk/test_own.py", "")
    project.write("agent.py", "open('solution.py', 'w').write('ANSWER = 2')\nopen('notes.txt', 'w').write('full')\n")
    project.write(
        "check.py",
        "import sys\nsys.path.insert(0, 'desk')\nimport solution\n"
        "sys.exit(solution.ANSWER != 2 or open(sys.argv[1]).read() != 'full')\n",
    )
    suite = (
        "target: {{name: agent, provider: cli, command: [python3, ../agent.py], cwd: desk, allow_empty: true}}\n"
        "tests:\n  - {{id: a, input: x, assert: [{{script: [python3, {}]}}]}}\n"
    )
    project.write("a.eval.yaml", suite.format("check.py, desk/notes.txt"))
    assert project.run("eval", "a.eval.yaml").status == 0
    project.write("agent.py", "open('test_own.py', 'w').write('# nothing is tested')\n")
    project.write("a.eval.yaml", suite.format("desk/test_own.py"))
    assert project.run("eval", "a.eval.yaml").status == 3
    assert code_of(project) == "grader-changed"
