from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from agentv.app.convert import convert
from agentv.app.meaning import meaning
from agentv.app.wiring import registries
from agentv.errors import LoadError, UsageError
from agentv.spec.load import LoadRequest, load

VALID = Path(__file__).parents[2] / "cases" / "valid"
SUITES = sorted(folder.name for folder in VALID.iterdir() if (folder / "suite.eval.yaml").is_file())


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / ".git").mkdir()
    with chdir(tmp_path):
        yield tmp_path


def loaded(path: Path) -> object:
    (suite,) = load(LoadRequest((str(path),), for_run=False), registries()).suites
    return meaning(suite)


NO_WORD_FOR = {
    "evaluators-replace-in-evalcases": "a rule that hangs on how the key of the cases is spelled",
    "yaml-1.2-scalars": "octal and hexadecimal numbers, and infinity",
}
"""Suites that JSON Lines cannot say → what it has no word for."""


PATTERN = "tests-as-a-glob"
"""Its pattern would match what is written beside it."""


@pytest.mark.parametrize("name", sorted({*SUITES} - {*NO_WORD_FOR, PATTERN}))
def test_every_suite_survives_the_way_to_json_lines_and_back(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    source = project / "suite.eval.yaml"
    lines, _ = convert(source, "jsonl", project / "lines.jsonl", {})
    (back,) = convert(lines, "yaml", project / "back.eval.yaml", {})
    assert loaded(back) == loaded(lines) == loaded(source)


@pytest.mark.parametrize("name", NO_WORD_FOR)
def test_what_json_lines_cannot_say_is_refused_and_nothing_is_left_behind(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    with pytest.raises(UsageError, match="would not mean the same as jsonl"):
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
