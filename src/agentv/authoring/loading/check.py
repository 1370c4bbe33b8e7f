"""One file checked as what it is: an eval file, a template, a sidecar, a prompt's or the project's (SPEC section 2)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from agentv.authoring.dialects.exam_cases import INPUT_FILES
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.loading.suite import SuiteReader
from agentv.authoring.loading.suite_builder import cases_beside
from agentv.authoring.prompt_library import exam_above, prompt_file_of
from agentv.authoring.source.files import META, is_directory, is_of_project, template_home, templates_in
from agentv.authoring.source.ignores import without_ignored
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.values.values import Span

_YAML = (".yaml", ".yml")
_OF_PROMPTS = frozenset({META, *INPUT_FILES})
"""Files that the exam of a prompt reads; what is wrong with them shows there."""


class FileCheck(Struct, frozen=True):
    """What a check of a file found.

    Attributes:
        diagnostics: sorted by position.
        read: the absolute paths of all files that were read for it.
        dialect: what the file is, such as `a promptfoo configuration`, if it is another tool's.
    """

    diagnostics: tuple[Diagnostic, ...]
    read: frozenset[str]
    dialect: str | None = None


def unused_in(paths: Iterable[str], read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for every template below the directories among the paths that no file was read from.

    A comment in the template's first lines silences it.
    """
    for found in unused_templates(filter(is_directory, paths), read):
        if found.span is not None:
            yield from without_ignored([found], {found.span.file: Path(found.span.file).read_bytes()}, reported=())


def check_file(path: str, request: LoadRequest, registries: Registries) -> FileCheck:
    """All diagnostics of a file; a sidecar is checked with its cases.

    Args:
        path: absolute, of a file that exists.
        request: for `validate`; its paths are ignored.
        registries: meaning of names.
    """
    report = Report(hints=not request.for_run)
    file, own = Path(path), path
    exam = exam_above(path) if file.name in _OF_PROMPTS else None
    is_project = is_of_project(file)
    if is_project:
        own = str(file.parent.parent / "eval.yaml")  # stands for the eval files that it holds for
    elif exam is not None:
        own = exam
    elif file.suffix in _YAML:
        own = cases_beside(path) or path
    reader = SuiteReader(own, request, registries, report)
    if is_project:
        reader.check_project()
        found = tuple(one for one in reader.diagnostics if one.span is not None and _concerns(path, one.span.file, own))
        return FileCheck(found, frozenset(reader.files))
    if exam is not None:
        reader.read()
        found = tuple(one for one in reader.diagnostics if one.span is not None and one.span.file == path)
        return FileCheck(found, frozenset(reader.files))
    if file.name == META and prompt_file_of(file.parent) is not None:
        reader.check_meta()
    elif file.suffix in _YAML and template_home(path) is not None:
        reader.check_template()
    else:
        reader.read()
    return FileCheck(reader.diagnostics, frozenset(reader.files), reader.dialect)


def _concerns(path: str, found: str, stand_in: str) -> bool:
    """Whether a mistake in the file `found` shows at a project's file: it is its own, or of a file that it names."""
    return found == path or (found != stand_in and not is_of_project(Path(found)))


_HOME = (".agentv", "templates")


def unused_templates(directories: Iterable[str], read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for every template below the directories that was not read.

    Only for directories: with single files, other files may include the template.

    Args:
        directories: as given.
        read: absolute paths of all files that the suites below these directories read.
    """
    for path in sorted({path for directory in directories for path in _templates_below(directory)} - set(read)):
        message = "no eval file includes this template"
        yield Diagnostic("unused-template", message, Span(path, 1, 1, 1, 2), "warning")


def _templates_below(directory: str) -> Iterator[str]:
    for folder, inside, _ in os.walk(directory):
        home = Path(folder, *_HOME)
        if _HOME[0] in inside:
            yield from templates_in(str(home.absolute())).values()
        inside[:] = [name for name in inside if not name.startswith(".") and name != "node_modules"]
