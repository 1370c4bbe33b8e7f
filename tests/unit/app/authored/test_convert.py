from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from agentv.app.authored.convert import convert
from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError, UsageError

VALID = Path(__file__).parents[3] / "cases" / "valid"
SUITES = sorted(folder.name for folder in VALID.iterdir() if (folder / "suite.eval.yaml").is_file())


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / ".git").mkdir()
    with chdir(tmp_path):
        yield tmp_path


def loaded(path: Path) -> object:
    (suite,) = load(LoadRequest((str(path),), makes=True, for_run=False), registries()).suites
    return meaning(suite)


NO_WORD_FOR = {
    "evaluators-replace-in-evalcases": "a rule that hangs on how the key of the cases is spelled",
    "yaml-1.2-scalars": "octal and hexadecimal numbers, and infinity",
    "yaml-1.2-values": "infinity, and what is no number",
}
"""Suites that JSON Lines cannot say → what it has no word for."""


ELSEWHERE = ("tests-as-a-glob", "git-files", "transcripts")
"""The pattern of the one would match what is written beside it; the others need git hosts, and are no files of cases."""


@pytest.mark.parametrize("name", sorted({*SUITES} - {*NO_WORD_FOR, *ELSEWHERE}))
def test_every_suite_survives_the_way_to_json_lines_and_back(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    source = project / "suite.eval.yaml"
    lines, _ = convert(source, "jsonl", project / "lines.jsonl", {})
    (back,) = convert(lines, "yaml", project / "back.eval.yaml", {})
    assert loaded(back) == loaded(lines) == loaded(source)


@pytest.mark.parametrize("name", NO_WORD_FOR)
def test_what_json_lines_cannot_say_is_refused_and_nothing_is_left_behind(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    with pytest.raises(UsageError, match="would change meaning in jsonl"):
        convert(project / "suite.eval.yaml", "jsonl", project / "lines.jsonl", {})
    assert not list(project.glob("lines.*"))


NUMBERS = """
tests:
  - id: numbers
    input: a
    vars: {octal: 0o14, hex: 0x1F, plain: 1_000, exponent: 1e3, yes: yes, null: ~, time: "12:30", no: "no", zip: "007"}
    assert:
      - contains: 1.50
      - contains: 0x1F
      - contains: "true"
      - contains: true
      - equals: |
          two

          lines
      - contains: "trailing \\n space "
      - contains: "{{ '{{' }}"
"""


def test_numbers_keep_their_digits_and_texts_their_type(project: Path) -> None:
    source = project / "numbers.eval.yaml"
    source.write_text(NUMBERS)
    (out,) = convert(source, "yaml", project / "out.eval.yaml", {})
    text = out.read_text()
    assert yaml.safe_load(text)["tests"][0]["vars"]["no"] == "no"  # quoted, for those who read YAML 1.1
    assert "1.50" in text
    assert "0x1F" in text


def test_nothing_is_overwritten(project: Path) -> None:
    source = project / "suite.yaml"
    source.write_text("tests: [{id: a, input: b, assert: [{contains: b}]}]\n")
    with pytest.raises(UsageError, match="overwritten"):
        convert(source, "jsonl", None, {})
    assert sorted(path.name for path in project.iterdir()) == [".git", "suite.yaml"]


def test_a_source_that_is_wrong_is_refused(project: Path) -> None:
    source = project / "suite.eval.yaml"
    source.write_text("tests: [{id: a, input: b, assert: [{contians: b}]}]\n")
    with pytest.raises(LoadError):
        convert(source, "jsonl", None, {})
    assert sorted(path.name for path in project.iterdir()) == [".git", "suite.eval.yaml"]


def test_cases_from_elsewhere_are_gathered(project: Path) -> None:
    (project / "more.jsonl").write_text('{"id": "b", "input": "b", "assert": [{"contains": "b"}]}\n')
    source = project / "suite.eval.yaml"
    source.write_text("tests:\n  - {id: a, input: a, assert: [{contains: a}]}\n  - more.jsonl\n")
    (out,) = convert(source, "yaml", project / "all.eval.yaml", {})
    assert [case["id"] for case in yaml.safe_load(out.read_text())["tests"]] == ["a", "b"]


NO_PYTHON_FOR = {
    "message-forms": "a number that is written 1.50",
    "tests-as-json": "a number that is written 1.50",
    "yaml-1.2-scalars": "words that YAML reads as numbers, and are compared as text",
    "yaml-1.2-values": "infinity, and what is no number",
}
"""Suites that Python cannot say → what it has no word for."""


@pytest.mark.parametrize("name", NO_PYTHON_FOR)
def test_what_python_cannot_say_is_refused(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    with pytest.raises(UsageError, match=r"in python|to python"):
        convert(project / "suite.eval.yaml", "python", None, {})


@pytest.mark.parametrize("name", sorted({*SUITES} - {*ELSEWHERE, *NO_PYTHON_FOR}))
def test_every_suite_survives_the_way_to_python_and_back(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    source = project / "suite.eval.yaml"
    (made,) = convert(source, "python", project / "made.eval.py", {})
    (back,) = convert(made, "yaml", project / "back.eval.yaml", {})
    assert loaded(back) == loaded(made) == loaded(source)


def test_a_number_whose_digits_python_would_lose_is_refused(project: Path) -> None:
    source = project / "suite.eval.yaml"
    source.write_text("tests: [{id: price, input: b, assert: [{contains: 1.50}]}]\n")
    with pytest.raises(UsageError, match=r"1 case would change meaning in python: price"):
        convert(source, "python", None, {})
    assert sorted(path.name for path in project.iterdir()) == [".git", "suite.eval.yaml"]


def test_paths_are_seen_from_the_directory_of_the_new_file(project: Path) -> None:
    (project / "evals").mkdir()
    (project / "letter.md").write_text("I want a refund.")
    (project / "evals" / "check.py").write_text("def get_assert(output, context):\n    return True\n")
    source = project / "evals" / "suite.eval.yaml"
    source.write_text(
        "tests:\n"
        "  - id: a\n"
        "    input: [{role: user, content: [{type: file, value: ../letter.md}]}]\n"
        "    assert: [{type: python, value: check.py:get_assert}, {contains: check.py}]\n"
    )
    (out,) = convert(source, "yaml", project / "all.eval.yaml", {})
    (case,) = yaml.safe_load(out.read_text())["tests"]
    assert case["input"][0]["content"][0]["value"] == "./letter.md"
    assert case["assert"][0]["value"] == "./evals/check.py:get_assert"
    assert loaded(out) == loaded(source)
    assert out.is_file()


def test_rows_are_asked_what_the_suite_asks(project: Path) -> None:
    (project / "rows.csv").write_text("name,__expected\nAnn,contains:Ann\nBob,\n")
    (project / "rows.yaml").write_text('target: echo\ninput: "Hello {{ name }}"\nassert: [contains: Hello]\n')
    (out,) = convert(project / "rows.csv", "yaml", None, {})
    document = yaml.safe_load(out.read_text())
    assert "input" not in document
    assert [(case["id"], case["input"]) for case in document["tests"]] == [
        ("row-1", "Hello {{ name }}"),
        ("row-2", "Hello {{ name }}"),
    ]


def test_cases_that_were_made_elsewhere_leave_nothing_behind_when_they_cannot_be_written(project: Path) -> None:
    (project / "rows.csv").write_text("name\nAnn\n")
    source = project / "suite.eval.yaml"
    source.write_text(
        "target: echo\ninput: '{{ name | default(\"x\") }}'\ninput_files: [note.md]\nassert: [contains: a]\n"
        "tests:\n  - rows.csv\n  - {id: own, input: And here}\n"
    )
    (project / "note.md").write_text("note")
    before = sorted(path.name for path in project.iterdir())
    with pytest.raises(UsageError, match="1 case would change meaning in yaml: own"):
        convert(source, "yaml", project / "out.eval.yaml", {})
    assert sorted(path.name for path in project.iterdir()) == before
