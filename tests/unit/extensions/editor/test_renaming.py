"""Renaming, in a project whose suites share cases."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import UsageError
from agentv.extensions.editor.index import index_file
from agentv.extensions.editor.project import Project
from agentv.extensions.editor.renaming import name_at, rename
from agentv.model.values.span import Span


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
    spans = rename(found, new, path, Project.around(path, {})).edits
    return sorted((Path(span.file).name, span.line) for span in spans)


def test_the_id_of_a_case_in_another_file_of_the_suite_is_taken(project: Path) -> None:
    with pytest.raises(UsageError, match=r"already a case 'a', in line 1 of first\.yaml"):
        renamed(project, "all.eval.yaml", 3, 8, "a")
    assert renamed(project, "all.eval.yaml", 3, 8, "c") == [("all.eval.yaml", 3)]


def changed(text: str, edits: Mapping[Span, str]) -> str:
    lines = text.split("\n")
    for span, new in sorted(edits.items(), reverse=True):
        line = lines[span.line - 1]
        lines[span.line - 1] = line[: span.column - 1] + new + line[span.end_column - 1 :]
    return "\n".join(lines)


def in_one_file(tmp_path: Path, text: str, new: str) -> str:
    """The text after a renaming of its first case."""
    path = str(tmp_path / "a.eval.yaml")
    edits = {path: text.encode()}
    name = index_file(path, edits, "eval").names[0]
    return changed(text, rename(name, new, path, Project.around(path, edits)).edits)


def test_anchors_tags_quotes_and_comments_are_kept(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for before, after in (
        ("- id: &x one  # c\n- id: b\n  depends_on: *x\n", "- id: &x 'z: 1'  # c\n- id: b\n  depends_on: *x\n"),
        ("- {id: &x !!str one, a: 1}\n- id: b\n  depends_on: [one]\n", "- {id: &x !!str 'z: 1', a: 1}\n- id: b\n  depends_on: ['z: 1']\n"),
        ("- {\"id\":\"one\"}\n- id: b\n  depends_on: ['one']\n", "- {\"id\":'z: 1'}\n- id: b\n  depends_on: ['z: 1']\n"),
        ("- &b {id: one}\n- {<<: *b, id: two}\n", "- &b {id: 'z: 1'}\n- {<<: *b, id: two}\n"),
    ):  # fmt: skip
        found = in_one_file(tmp_path, f"tests:\n{before}", "z: 1")
        assert found.replace('"z: 1"', "'z: 1'") == f"tests:\n{after}"
        assert read_yaml("a", found.encode(), Report()).valid


def test_what_cannot_be_replaced_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for text, reason in (
        ("- id: |\n    one\n", "in line 2 of a.eval.yaml it is written over several lines"),
        ("- id: one\n- id: b\n  depends_on:\n  - >-\n    one\n", "in line 5 of .* several lines"),
        ("- id: &x\n    one\n", "several lines"),
        ("- id: !!int 5\n", "has a tag"),
        ("- id: &x one\n  input: *x\n", "an alias uses it for something else"),
        ("- id: &x one\n  vars: {id: *x}\n", "an alias uses it for something else"),
    ):
        with pytest.raises(UsageError, match=reason):
            in_one_file(tmp_path, f"tests:\n{text}", "z")


def test_templates_are_renamed_where_a_path_names_them(tmp_path: Path) -> None:
    folder = tmp_path / ".agentv" / "templates"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (folder / "tpl.yaml").write_text("assert: [{contains: hi}]\n")
    (folder / "other.yaml").write_text("assert: [{include: tpl.yaml}, {include: ./tpl.yaml}]\n")
    path = tmp_path / "a.eval.yaml"
    head = "tests:\n- id: a\n  assert:\n  - include: tpl\n"
    text = f"{head}  - include: ./.agentv/templates/tpl.yaml\n  - include: '/.agentv/templates/tpl.yaml'\n"
    path.write_text(f"{text}  - include: ./tpl.yaml\n")
    index = index_file(str(path), {}, "eval")
    project = Project.around(str(path), {})
    found = rename(name_at(index, 4, 15), "new", str(path), project)
    assert sorted((Path(span.file).name, span.line, new) for span, new in found.edits.items()) == [
        ("a.eval.yaml", 4, "new"),
        ("a.eval.yaml", 5, "./.agentv/templates/new.yaml"),
        ("a.eval.yaml", 6, "'/.agentv/templates/new.yaml'"),
        ("other.yaml", 1, "./new.yaml"),
        ("other.yaml", 1, "new.yaml"),
    ]
    assert found.files == {str(folder / "tpl.yaml"): str(folder / "new.yaml")}
    with pytest.raises(UsageError, match="this is a path"):
        rename(name_at(index, 5, 15), "new", str(path), project)
    for wrong in ("x\x07", "x" * 300, "con:", "con", "a/b", ".a", "a.", "é" * 120):
        with pytest.raises(UsageError, match=r"control characters|the name of a template"):
            rename(name_at(index, 4, 15), wrong, str(path), project)
