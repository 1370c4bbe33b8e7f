from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from agentv.cli.main import run
from agentv.errors import ExitStatus


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    with chdir(tmp_path):
        yield tmp_path


def test_a_configuration_of_promptfoo_needs_no_format(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "prompts: a\nproviders: echo\ntests: [{assert: [{type: contains, value: a}]}]\n"
    (project / "promptfooconfig.yaml").write_text(text)
    assert run(["convert", "promptfooconfig.yaml"]) == ExitStatus.PASSED
    assert capsys.readouterr().err == "wrote promptfoo.eval.yaml\n"
    (project / "promptfooconfig.yaml").write_text(f"{text}sharing: true\n")
    assert run(["convert", "promptfooconfig.yaml", "-o", "other.eval.yaml"]) == ExitStatus.PASSED
    assert capsys.readouterr().err == (
        "Left out; no verdict depends on it:\n"
        "  results are local files; agentv has no sharing service\n"
        "    promptfooconfig.yaml:4:1: 'sharing' is omitted\n"
        "wrote other.eval.yaml\n"
    )


def test_what_has_no_equivalent_is_printed_once_by_what_to_do(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = ", ".join("{type: moderation, value: hate}" for _ in range(2))
    text = f"prompts: a\nproviders: echo\ntests:\n  - assert: [{checks}]\n  - assert: [{{type: human, value: a}}]\n"
    (project / "promptfooconfig.yaml").write_text(text)
    assert run(["convert", "promptfooconfig.yaml"]) == ExitStatus.FAILED
    assert capsys.readouterr().err == (
        "Not converted; the eval file does not run before you decide:\n"
        "  call the moderation service from an assertion of type python or script\n"
        "    promptfooconfig.yaml:4:21, promptfooconfig.yaml:4:54: 'moderation' has no equivalent\n"
        "  judge the answer with llm-rubric\n"
        "    promptfooconfig.yaml:5:21: 'human' has no equivalent\n"
        "wrote promptfoo.eval.yaml\n"
    )
    assert run(["convert", "promptfooconfig.yaml", "-o", "b.eval.yaml", "--json"]) == ExitStatus.FAILED
    found = json.loads(capsys.readouterr().out)
    assert [(one["line"], one["severity"]) for one in found] == [(4, "warning"), (4, "warning"), (5, "warning")]


def test_a_variable_that_a_test_does_not_set_is_empty_where_that_is_asked_for(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = "assert: [{type: equals, value: a }]"
    text = f"prompts: 'a{{{{ b }}}}'\nproviders: echo\ntests: [{{vars: {{b: ''}}, {check}}}, {{vars: {{c: d}}, {check}}}]\n"
    (project / "promptfooconfig.yaml").write_text(text)
    assert run(["convert", "promptfooconfig.yaml"]) == ExitStatus.FAILED
    assert "or convert with --missing-vars empty" in capsys.readouterr().err
    assert run(["convert", "promptfooconfig.yaml", "-o", "b.eval.yaml", "--missing-vars", "empty"]) == ExitStatus.PASSED
    assert run(["eval", "b.eval.yaml", "-q"]) == ExitStatus.PASSED


def test_a_suite_needs_a_format(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "a.eval.yaml").write_text("tests: [{id: a, input: a, assert: [contains: a]}]\n")
    assert run(["convert", "a.eval.yaml"]) == ExitStatus.WRONG
    assert "add --to yaml, --to jsonl, --to csv or --to python" in capsys.readouterr().err


def test_what_cannot_be_rows_is_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "a.eval.yaml").write_text("tests: [{id: a, input: a, repeat: 2, tags: [b], assert: [contains: a]}]\n")
    assert run(["convert", "a.eval.yaml", "--to", "csv"]) == ExitStatus.WRONG
    assert capsys.readouterr().err == (
        "error: 1 case cannot be written as rows; nothing was written\n"
        "  case 'a': repeat: no column represents it\n"
        "  case 'a': tags: no column represents it\n"
    )


def test_a_suite_in_python_is_made_and_a_mapping_that_people_edit_comes_out(project: Path) -> None:
    (project / "made.eval.py").write_text(
        "suite = {'target': 'echo', 'tests': [{'id': n, 'input': 'x', 'assert': [{'equals': 'x\\ny'}]} for n in 'ab']}\n"
    )
    assert run(["convert", "made.eval.py", "--to", "python", "-o", "out.eval.py"]) == ExitStatus.PASSED
    assert (project / "out.eval.py").read_text() == (
        '"""Cases for agentv."""\n\n'
        "suite = {\n"
        "    'name': 'made',\n"
        "    'target': 'echo',\n"
        "    'tests': [\n"
        + "".join(
            "        {\n"
            f"            'id': '{name}',\n"
            "            'input': 'x',\n"
            "            'assert': [\n"
            "                {\n"
            "                    'equals': (\n"
            "                        'x\\n'\n"
            "                        'y'\n"
            "                    ),\n"
            "                },\n"
            "            ],\n"
            "        },\n"
            for name in "ab"
        )
        + "    ],\n}\n"
    )
