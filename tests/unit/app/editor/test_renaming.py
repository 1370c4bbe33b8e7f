"""Renaming, in a project whose suites share cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv.app.editor.index import index_file
from agentv.app.editor.project import Project
from agentv.app.editor.renaming import name_at, rename
from agentv.errors import UsageError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "first.yaml").write_text("- id: a\n  input: hi\n")
    (tmp_path / "all.eval.yaml").write_text("tests:\n- cases/*.yaml\n- {id: b, input: hi, depends_on: a}\n")
    (tmp_path / "other.eval.yaml").write_text("tests:\n- {id: a, input: a}\n- {id: c, input: hi, depends_on: [a]}\n")
    return tmp_path


def renamed(project: Path, name: str, line: int, column: int, new: str) -> list[tuple[str, int]]:
    path = str(project / name)
    index = index_file(path, {}, "eval")
    found = name_at(index, line, column)
    spans = rename(found, new, path, Project.around(path, {})).spans
    return sorted((Path(span.file).name, span.line) for span in spans)


def test_a_case_is_renamed_in_the_suites_that_take_it_and_in_no_other(project: Path) -> None:
    assert renamed(project, "all.eval.yaml", 3, 34, "z") == [("all.eval.yaml", 3), ("first.yaml", 1)]
    assert renamed(project, "other.eval.yaml", 2, 8, "z") == [("other.eval.yaml", 2), ("other.eval.yaml", 3)]


def test_the_id_of_a_case_in_another_file_of_the_suite_is_taken(project: Path) -> None:
    with pytest.raises(UsageError, match=r"already a case 'a', in line 1 of first\.yaml"):
        renamed(project, "all.eval.yaml", 3, 8, "a")
    assert renamed(project, "all.eval.yaml", 3, 8, "c") == [("all.eval.yaml", 3)]
