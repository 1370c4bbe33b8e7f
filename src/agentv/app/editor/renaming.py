"""Renaming of cases, targets and templates: every place of a name in a project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentv.app.editor.index import FileIndex, Name
from agentv.app.editor.project import Project, sources_of
from agentv.authoring.assertions.includes import NAME
from agentv.errors import UsageError
from agentv.lazy_dataclass import dataclass
from agentv.model.values.span import Span

_PLAIN = re.compile(r"[A-Za-z_][\w./@+-]*(?: [\w./@+-]+)*")
_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off"])


@dataclass(frozen=True, slots=True)
class Renaming:
    """A new name.

    Attributes:
        spans: where it replaces the old one.
        text: as it is written in YAML.
        files: path → new path, of a file whose name is the name.
    """

    spans: tuple[Span, ...]
    text: str
    files: Mapping[str, str]


def name_at(index: FileIndex, line: int, column: int) -> Name | None:
    """The name at a place, counted from 1."""
    return next((one for one in index.names if holds(one.span, line, column)), None)


def holds(span: Span, line: int, column: int) -> bool:
    """Whether a place is in a span, its end included."""
    return span.line <= line <= span.end_line and (span.line, span.column) <= (line, column) <= (
        span.end_line,
        span.end_column,
    )


def rename(name: Name, new: str, path: str, project: Project) -> Renaming:
    """Every place to change.

    Args:
        name: of the file at the path.
        new: the new name.
        path: of the file that the name stands in.
        project: of that file.

    Raises:
        UsageError: the new name cannot be one, or is taken.
    """
    new = new.strip()
    if not new or "\n" in new:
        raise UsageError("a name cannot be empty")
    if new == name.text:
        return Renaming((), new, {})
    files: dict[str, str] = {}
    if name.kind == "template":
        spans, files = _template(name, new, project)
    elif name.kind == "target":
        spans = _target(name, new, project)
    else:
        spans = _case(name, new, path, project)
    return Renaming(tuple(dict.fromkeys(spans)), _written(new), files)


def _case(name: Name, new: str, path: str, project: Project) -> list[Span]:
    """Cases of one suite: those of the file, and of files that take cases from it or that it takes cases from."""
    known = list(project.indexes())
    taken_from = {source for one in known if one.path == path for source in sources_of(one, project.root)}
    suite = [
        one for one in known if one.path == path or path in sources_of(one, project.root) or one.path in taken_from
    ]
    taken = next((one for index in suite for one in index.cases if one.id == new), None)
    if taken is not None:
        raise UsageError(f"there is already a case '{new}', in line {taken.first_line} of {Path(taken.name.file).name}")
    return [one.span for index in suite for one in index.names if (one.kind, one.text) == ("case", name.text)]


def _target(name: Name, new: str, project: Project) -> list[Span]:
    """Every place in files whose closest targets file is the same one."""
    if any(one.text == new for one in project.targets()):
        raise UsageError(f"there is already a target '{new}'")
    given = _given(name.text, project)
    if given is None:
        raise UsageError(f"no targets file of this project defines '{name.text}'")
    return [
        span
        for index in project.indexes()
        for span in _places(index, name)
        if _given(name.text, Project.around(index.path, project.edits)) == given
    ]


def _given(name: str, project: Project) -> Span | None:
    """Where the target is defined that a name means."""
    return next((one.span for one in project.targets() if one.text == name), None)


def _places(index: FileIndex, name: Name) -> Iterator[Span]:
    return (one.span for one in index.names if (one.kind, one.text) == (name.kind, name.text))


def _template(name: Name, new: str, project: Project) -> tuple[list[Span], dict[str, str]]:
    file = project.templates().get(name.text)
    if file is None:
        raise UsageError(f"'{name.text}' is no template of this project")
    if NAME.fullmatch(new) is None:
        raise UsageError("the name of a template contains no slash and does not begin with a dot")
    if new in project.templates():
        raise UsageError(f"there is already a template '{new}'")
    spans = [
        span
        for index in project.indexes()
        for span in _places(index, name)
        if project.template_of(name.text, index.path) == file
    ]
    return spans, {file: str(Path(file).with_name(new + Path(file).suffix))}


def _written(name: str) -> str:
    """A name in YAML, quoted where it would be read as something else."""
    plain = _PLAIN.fullmatch(name) is not None and name.lower() not in _WORDS
    return name if plain else json.dumps(name, ensure_ascii=False)
