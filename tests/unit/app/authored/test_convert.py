from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from agentv.app.authored.convert import convert
from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError, UsageError
from doubles.thorough import each_third

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


@pytest.mark.parametrize("name", [*each_third(sorted({*SUITES} - {*NO_WORD_FOR, *ELSEWHERE}), 0)])
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


@pytest.mark.parametrize("name", [*each_third(sorted({*SUITES} - {*ELSEWHERE, *NO_PYTHON_FOR}), 1)])
def test_every_suite_survives_the_way_to_python_and_back(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    source = project / "suite.eval.yaml"
    (made,) = convert(source, "python", project / "made.eval.py", {})
    (back,) = convert(made, "yaml", project / "back.eval.yaml", {})
    assert loaded(back) == loaded(made) == loaded(source)
