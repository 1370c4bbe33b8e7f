"""Renaming of cases, targets and templates: every place of a name in a project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentv.authoring.assertions.includes import NAME
from agentv.errors import UsageError
from agentv.extensions.editor.index import FileIndex, Name
from agentv.extensions.editor.project import Project, sources_of
from agentv.extensions.editor.written_text import UNPRINTABLE, written
from agentv.model.values.span import Span

_TEMPLATE = re.compile(r'[^./\\:*?"<>|][^/\\:*?"<>|]*(?<![. ])')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
"""What Windows takes for a device, whatever its ending."""

_LONGEST = 200
"""Bytes of a file's name that every file system can hold."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """A new name.

    Attributes:
        edits: where it replaces the old one, and as what it is written there.
        files: path → new path, of a file whose name is the name.
    """

    edits: Mapping[Span, str]
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
    if not new:
        raise UsageError("a name cannot be empty")
    if UNPRINTABLE.search(new):
        raise UsageError("a name cannot contain control characters")
    if new == name.text:
        return Renaming({}, {})
    if name.kind == "template":
        return _template(name, new, project)
    found = _target(name, new, project) if name.kind == "target" else _case(name, new, path, project)
    return Renaming(_edits((one, new) for one in found), {})


def _edits(changes: Iterable[tuple[Name, str]]) -> dict[Span, str]:
    """The new text of each place.

    Raises:
        UsageError: one cannot be replaced.
    """
    edits: dict[Span, str] = {}
    for name, new in changes:
        span, place = name.span, name.place
        if place.fixed:
            raise UsageError(
                f"cannot rename '{name.text}': in line {span.line} of {Path(span.file).name} it {place.fixed}"
            )
        edits[span] = written(new, place.quote)
    return edits


def _case(name: Name, new: str, path: str, project: Project) -> list[Name]:
    """Cases of one suite: those of the file, and of files that take cases from it or that it takes cases from."""
    known = list(project.indexes())
    taken_from = {source for one in known if one.path == path for source in sources_of(one, project.root)}
    suite = [
        one for one in known if one.path == path or path in sources_of(one, project.root) or one.path in taken_from
    ]
    taken = next((one for index in suite for one in index.cases if one.id == new), None)
    if taken is not None:
        raise UsageError(f"there is already a case '{new}', in line {taken.first_line} of {Path(taken.name.file).name}")
    return [one for index in suite for one in _uses(index, name)]


def _target(name: Name, new: str, project: Project) -> list[Name]:
    """Every place in files whose closest targets file is the same one."""
    if any(one.text == new for one in project.targets()):
        raise UsageError(f"there is already a target '{new}'")
    given = _given(name.text, project)
    if given is None:
        raise UsageError(f"no targets file of this project defines '{name.text}'")
    return [
        one
        for index in project.indexes()
        for one in _uses(index, name)
        if _given(name.text, Project.around(index.path, project.edits)) == given
    ]


def _given(name: str, project: Project) -> Span | None:
    """Where the target is defined that a name means."""
    return next((one.span for one in project.targets() if one.text == name), None)


def _uses(index: FileIndex, name: Name) -> Iterator[Name]:
    return (one for one in index.names if (one.kind, one.text) == (name.kind, name.text))


def _template(name: Name, new: str, project: Project) -> Renaming:
    """The file of a template, and each `include:` that means it, by its name or by a path."""
    if NAME.fullmatch(name.text) is None:
        raise UsageError("this is a path; rename the template where it is included by its name")
    file = project.template_of(name.text, name.span.file)
    if file is None:
        raise UsageError(f"'{name.text}' is no template of this project")
    suffix = Path(file).suffix
    new = new.removesuffix(suffix)
    if _TEMPLATE.fullmatch(new) is None or len(f"{new}{suffix}".encode()) > _LONGEST or _DEVICE.fullmatch(new):
        raise UsageError(
            'the name of a template contains no slash and none of \\ : * ? " < > |, does not begin with a dot, '
            f"and has at most {_LONGEST} bytes"
        )
    beside = f"{name.text.rpartition('/')[0]}/{new}".lstrip("/")
    if beside in project.templates():
        raise UsageError(f"there is already a template '{beside}'")
    changes = []
    for index in project.indexes():
        for one in index.names:
            if one.kind == "template" and project.template_of(one.text, index.path) == file:
                base = one.text.rpartition("/")[2]
                ending = suffix if base.endswith(suffix) else ""
                changes.append((one, f"{one.text.removesuffix(base)}{new}{ending}"))
    return Renaming(_edits(changes), {file: str(Path(file).with_name(new + suffix))})
