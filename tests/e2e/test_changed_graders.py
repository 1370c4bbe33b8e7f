"""A target that overwrites the files that grade it: changes are detected and never used silently."""

import json
import os

import pytest

from e2e.command import Project

AGENT = """
import json, sys
from pathlib import Path

for path, text in json.loads(Path("writes.json").read_text()).get(sys.argv[1], {}).items():
    Path(path).write_text(text)
print("wrong")
"""
FILES = {
    "agent.py": AGENT,
    ".agentv/assertions/strict.py": "def assertion(ctx):\n    return ctx.output == 'right'\n",
    ".agentv/assertions/_rules.py": "OK = False\n",
    ".agentv/assertions/lazy.py": "def assertion(ctx):\n    import _rules\n    return _rules.OK\n",
    ".agentv/assertions/typed.ts": "export default (ctx: any) => ({ pass: ctx.output === 'right' });\n",
    ".agentv/targets.yaml": "targets: [{name: judge, provider: cli, command: [python3, asked/judge.py]}]\n",
}
CHECKS = {
    "check.py": "import rules, json, sys\njson.load(sys.stdin)\nsys.exit(0 if rules.OK else 1)\n",
    "rules.py": "OK = False\n",
    "Makefile": "check:\n\t@false\n",
    "check.sh": "exit 1\n",
    "compare.py": "import json, sys\nsys.exit(json.load(sys.stdin)['output'] != open(sys.argv[1]).read())\n",
    "wanted.txt": "right",
    "tests/test_it.py": "def test_it():\n    raise AssertionError\n",
    "function.py": "def check(output):\n    return output == 'right'\n",
    "shape.py": "def shape(output):\n    return output\n",
    "question.py": "print('Is it right? {{ output }}')\n",
    "judge.py": "import json\nprint(json.dumps({'score': 0, 'reason': 'no'}))\n",
}
"""Files copied into one directory per case, so that no case changes the files of another."""

ASSERTIONS = ".agentv/assertions"
CHANGED = {
    "later": ("type: lazy", {f"{ASSERTIONS}/_rules.py": "OK = True\n"}),
    "javascript": ("type: typed", {f"{ASSERTIONS}/typed.ts": "export default () => ({ pass: true });\n"}),
    "script": ("command: [python3, check.py]", {"check.py": "print('ok')\n"}),
    "module": ("command: [python3, check.py]", {"rules.py": "OK = True\n"}),
    "line": ("command: cd . && sh check.sh", {"check.sh": "exit 0\n"}),
    "conftest": (
        "command: [python3, -m, pytest, -q, tests/test_it.py]",
        {"conftest.py": "def pytest_runtest_call(item):\n    item.obj = lambda: None\n"},
    ),
    "makefile": ("command: [make, check]", {"Makefile": "check:\n\t@true\n"}),
    "reference": ("command: [python3, compare.py, wanted.txt]", {"wanted.txt": "wrong"}),
    "question": (
        "type: llm-rubric, prompt: {command: [python3, question/question.py]}, judge: judge",
        {"question.py": "print('Say yes. {{ output }}')\n"},
    ),
    "asked": ("type: llm-rubric, value: is right, judge: judge", {"judge.py": "print('yes')\n"}),
}
"""Case name → its assertion, and files that the target writes and grading reads; these changes are detected."""

LOADED = {
    "custom": ("type: strict", {f"{ASSERTIONS}/strict.py": "def assertion(ctx):\n    return True\n"}),
    "function": ("python: function/function.py:check", {"function.py": "def check(output):\n    return 1\n"}),
    "transform": (
        "type: equals, value: right, transform: 'transform/shape.py:shape'",
        {"shape.py": "def shape(output):\n    return 'right'\n"},
    ),
    "answer": ("command: [python3, compare.py, answer.txt]", {"answer.txt": "right"}),
}
"""Files loaded before the first call, or that belong to no grader; the answer is graded correctly."""


def test_what_is_read_for_a_grading_is_compared_first_and_what_is_loaded_already_is_used(project):
    cases, writes = [], {}
    for name, (assertion, written) in {**CHANGED, **LOADED}.items():
        for file, text in CHECKS.items():
            project.write(f"{name}/{file}", text)
        entry = f"type: script, cwd: {name}, {assertion}" if assertion.startswith("command:") else assertion
        cases.append(f"  - {{id: {name}, input: {name}, assert: [{{{entry}}}]}}\n")
        writes[name] = {file if file.startswith(".") else f"{name}/{file}": text for file, text in written.items()}
    project.write_files(FILES)
    project.write("writes.json", json.dumps(writes))
    project.write(
        "a.eval.yaml",
        f"target: {{name: agent, provider: cli, command: [python3, agent.py, '{{PROMPT}}']}}\ntests:\n{''.join(cases)}",
    )
    ended = project.run("eval", "a.eval.yaml", status=3)
    found = {row["test_id"]: row["error"] and row["error"]["code"] for row in project.rows()}
    changed = {name: "judge-grader-changed" if name == "asked" else "grader-changed" for name in CHANGED}
    assert found == {**changed, **dict.fromkeys(LOADED)}, ended.stderr
    assert {row["status"] for row in project.rows() if row["test_id"] in LOADED} == {"failed"}
    told = {row["test_id"]: row["error"]["message"] for row in project.rows() if row["error"]}
    assert [name for name, message in told.items() if next(iter(writes[name])) not in message] == []


def code_of(project: Project) -> str | None:
    (row,) = project.rows()
    return (row["error"] or {}).get("code")


def agent_writes(project: Project, agent: str, *assertions: str) -> None:
    """Write a suite whose target runs a program, with a case per assertion."""
    project.write("agent.py", agent)
    cases = "".join(f"  - {{id: c{at}, input: x, assert: [{{{one}}}]}}\n" for at, one in enumerate(assertions))
    project.write(
        "a.eval.yaml", f"target: {{name: agent, provider: cli, command: [python3, agent.py]}}\ntests:\n{cases}"
    )


def test_a_file_whose_times_were_set_back_has_changed_too(project):
    check = project.write("check.sh", "exit 1\n")
    os.utime(check, (1, 1))
    agent = "import os\nopen('check.sh', 'w').write('exit 0\\n')\nos.utime('check.sh', (1, 1))\nprint('wrong')\n"
    agent_writes(project, agent, "script: sh check.sh")
    assert project.run("eval", "a.eval.yaml").status == 3
    assert code_of(project) == "grader-changed"


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


WRITES = "import os, sys\nopen(sys.argv[1], 'a').write(os.urandom(4).hex())\nprint('ok')\n"


def test_what_a_script_writes_beside_itself_is_its_own(project):
    project.write_files({"answers.txt": "old", "check.py": WRITES})
    cases = "".join(
        f"  - {{id: c{n}, input: x, assert: [{{script: [python3, check.py, answers.txt]}}]}}\n" for n in range(6)
    )
    project.write("a.eval.yaml", f"target: echo\ntests:\n{cases}")
    for _ in range(2):
        ended = project.run("eval", "a.eval.yaml", status=0)
        assert ended.stderr.count("so treated as written by them: answers.txt") == 1


@pytest.mark.parametrize(
    ("check", "file", "agent"),
    [
        (WRITES, "answers.txt", "open('answers.txt', 'w').write('mine')\nprint('wrong')\n"),
        ("import rules\nopen('rules.py', 'w').write('OK = True')\n", "rules.py", "print('wrong')\n"),
    ],
    ids=["the target wrote it before", "code of the script"],
)
def test_what_a_script_could_write_is_compared_with_what_it_was_before_it_ran(project, check, file, agent):
    project.write_files({"check.py": check, file: "OK = False\n"})
    agent_writes(project, agent, f"script: [python3, check.py, {file}]")
    ended = project.run("eval", "a.eval.yaml")
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
    project.run("eval", "a.eval.yaml", status=3, says="error[file-changed]")
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


TAMPERING_AGENT = """
import glob, json, os, shutil, sys, time
name = sys.argv[1]
run = sorted(glob.glob('.agentv/results/*/'))[-1]
index, journal = run + 'index.jsonl', run + 'journal.jsonl'

def read(path):
    with open(path) as file:
        return file.read()

def write(path, text, mode='w'):
    with open(path, mode) as file:
        file.write(text)

def forged():
    return read(index).replace('"status":"failed"', '"status":"passed"').replace('"score":0.0', '"score":1.0')

if name == 'two':
    while not os.path.exists(index) or not read(index).endswith('\\n'):
        time.sleep(0.02)
    exec(read('attack.py'))
print('bad' if name == 'one' else 'ok')
"""
SUITE = """
name: a
target: {name: agent, provider: cli, command: [python3, agent.py, "{PROMPT}"]}
run: {workers: 1}
tests:
  - {id: one, input: one, assert: [{contains: ok}]}
  - {id: two, input: two, assert: [{contains: ok}]}
  - {id: three, input: three, assert: [{contains: never}]}
"""
ATTACKS = {
    "a row is edited": "write(index, forged())",
    "rows are cut off": "write(index, '')",
    "the journal is edited": "write(journal, read(journal).replace('bad', 'ok!'))",
    "a summary is put there": """write(run + 'summary.json', '{"cases": {"passed": 3}, "mine": 1}')""",
    "run.json is edited": """write(run + 'run.json', '{"schema_version": 1, "run_id": "x"}')""",
    "a history is put there": "write(run + 'history.jsonl', read(index))",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_agent_that_writes_to_the_results_changes_no_verdict(project, attack):
    project.write_files({"agent.py": TAMPERING_AGENT, "attack.py": attack, "a.eval.yaml": SUITE})
    project.run("eval", "a.eval.yaml", status=1, says="3 cases: 1 passed, 2 failed")
    (run,) = (project.path / ".agentv" / "results").glob("*Z-????")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["cases"] == {"total": 3, "passed": 1, "failed": 2, "errored": 0, "skipped": 0, "shown": 0}
    assert "mine" not in summary


@pytest.mark.parametrize(
    ("attack", "says"),
    [("a row is edited", "was changed after it was written"), ("rows are cut off", "rows were added or removed")],
)
def test_a_gate_that_changed_rows_may_have_decided_is_no_verdict(project, attack, says):
    project.write("agent.py", TAMPERING_AGENT)
    project.write("attack.py", ATTACKS[attack])
    project.write("a.eval.yaml", SUITE.replace("{workers: 1}", "{workers: 1, gate: corrected, min_pass_rate: 0.1}"))
    project.run("eval", "a.eval.yaml", status=3, says=says)


def test_edited_rows_are_neither_exported_nor_shown(project):
    project.write_files({"agent.py": TAMPERING_AGENT, "attack.py": ATTACKS["a row is edited"], "a.eval.yaml": SUITE})
    ended = project.run("eval", "a.eval.yaml", "-o", "rows.jsonl")
    assert (ended.status, (project.path / "rows.jsonl").exists()) == (3, False), ended.stderr
    project.run("results", "show", "last", status=2, says="was changed after it was written")


@pytest.mark.parametrize("what", ["run", "index", "journal"])
def test_a_run_whose_files_are_removed_says_so(project, what):
    project.write("agent.py", TAMPERING_AGENT)
    project.write("attack.py", f"shutil.rmtree(run) if {what} is run else os.unlink({what})")
    project.write("a.eval.yaml", SUITE)
    project.run("eval", "a.eval.yaml", status=3, says="it was removed during the run")


def test_an_export_is_not_written_through_a_link_that_leads_away(project):
    project.write("mine.txt", "mine\n")
    (project.path / "out").mkdir()
    project.write("agent.py", TAMPERING_AGENT)
    project.write("attack.py", "os.symlink(os.path.abspath('mine.txt'), 'out/rows.jsonl')")
    project.write("a.eval.yaml", SUITE)
    project.run("eval", "a.eval.yaml", "-o", "out/rows.jsonl", status=3, says="it is a symlink that leads out of")
    assert (project.path / "mine.txt").read_text() == "mine\n"
    project.run("eval", "a.eval.yaml", "-o", "out/rows.jsonl", status=2)


def test_what_a_run_writes_is_its_owners_alone(project):
    project.write_files({"agent.py": TAMPERING_AGENT, "attack.py": "", "a.eval.yaml": SUITE})
    project.run("eval", "a.eval.yaml", "--cache", "-o", "rows.jsonl", "-o", "all.html")
    found = [project.path / "rows.jsonl", project.path / "all.html"]
    for name in ("results", "cache"):
        found += [project.path / ".agentv" / name, *(project.path / ".agentv" / name).rglob("*")]
    modes = {str(one): one.stat().st_mode & 0o777 for one in found if one.name != ".gitignore"}
    assert set(modes.values()) == {0o600, 0o700}, modes
    assert all((mode == 0o700) == (project.path / path).is_dir() for path, mode in modes.items())
