"""Loads suites from paths, or reports the diagnostics of all files at once.

`check_file` checks any kind of file: an eval file, a template, a sidecar, or a file of a prompt or the project (SPEC
section 2).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.dialects.recognition import by_name, refuse_unreadable
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.loading.suite import SuiteReader
from agentv.authoring.loading.suite_builder import cases_beside
from agentv.authoring.source.files import (
    INPUT_FILES,
    META,
    SKIPPED_DIRECTORIES,
    TABLES,
    is_directory,
    is_exam,
    is_file,
    is_of_project,
    shown,
    template_home,
    templates_in,
)
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import node_of
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Suite
from agentv.model.values.values import Json, Span

__all__ = ["LoadRequest", "Loaded", "eval_files", "load", "load_entry"]

COLLECTED = ("*.eval.yaml", "*.eval.yml", "*.eval.py", "EVAL.yaml", "EVAL.yml")
"""Names of eval files to search for in a directory, besides exams and the names of dialects (SPEC section 2)."""

SUFFIXES = (".yaml", ".yml", ".jsonl", ".csv", ".json", *TABLES)
"""Suffixes of files that can be given by name, besides those that are searched for in a directory."""


class Loaded(Struct, frozen=True):
    """Valid suites and the warnings about their files; for `validate` also hints."""

    suites: tuple[Suite, ...]
    diagnostics: tuple[Diagnostic, ...]


def load(request: LoadRequest, registries: Registries) -> Loaded:
    """Load every suite that the request names.

    Raises:
        LoadError: a file is invalid; contains the diagnostics of all files.
        UsageError: a path does not exist, or a directory contains no eval file.
    """
    try:
        report = Report()
        suites: list[Suite | None] = []
        read: set[str] = set()
        for warning in registries.warnings:
            report.add(warning)
        for path in dict.fromkeys(eval_files(request.paths)):
            own = Report(hints=not request.for_run)  # so that errors in one file do not affect another
            reader = SuiteReader(path, request, registries, own)
            suites.append(reader.read())
            for found in reader.diagnostics:
                report.add(found)
            read |= reader.files.keys()
        made = structs.replace(request, allow_outside=True)  # made by a program, which can read any file
        for number, document in enumerate(request.documents, 1):
            own = Report(hints=not request.for_run)
            path = str(Path.cwd() / (f"suite-{number}" if len(request.documents) > 1 else "suite"))
            suites.append(SuiteReader(path, made, registries, own).read_document(document))
            for found in own.diagnostics:
                in_file = found.span is not None and found.span.file != path
                report.add(found if in_file else replace(found, span=None))
        if not request.for_run and not report.failed:  # an invalid file's includes may not have been read
            for found in unused_templates(filter(is_directory, request.paths), read):
                report.add(found)
        if report.failed:
            raise LoadError(report.diagnostics)
        return Loaded(tuple(suite for suite in suites if suite is not None), report.diagnostics)
    finally:
        if blocking := sys.modules.get("agentv.user_code.blocking"):  # only if user functions were called
            blocking.close_blocking()


def eval_files(paths: tuple[str, ...]) -> Iterator[str]:
    """The eval files for paths: files themselves, and those found in directories.

    Raises:
        UsageError: a path does not exist, or a directory contains no eval file.
    """
    for written in paths:
        path = Path(written)
        if is_directory(written):
            yield from _in_directory(written)
        elif is_file(written):
            refuse_others(written)
            yield _absolute(path)
        else:
            raise UsageError(f"{written} does not exist", _nearest_path(path))


def _nearest_path(path: Path) -> str | None:
    """A hint with the same path from one directory up or down, or the most similar name in its directory, or None."""
    if not path.is_absolute():
        above = next((up for up in (Path("..", path), Path(*path.parts[1:])) if up.parts and up.exists()), None)
        if above is not None:
            return f"did you mean '{above}'?"
    siblings = [one.name for one in path.parent.iterdir()] if is_directory(str(path.parent)) else []
    by_stem = {name.partition(".")[0]: name for name in siblings}  # similar suffixes do not count
    found = nearest(path.name.partition(".")[0], by_stem)
    return f"did you mean '{path.parent / by_stem[found]}'?" if found else None


def collected(directory: str) -> list[str]:
    """The eval files below a directory, sorted.

    Raises:
        UsageError: the directory cannot be searched.
    """
    try:
        return [str(path.absolute()) for path in sorted(_walk(Path(directory)))]
    except OSError as error:
        raise UsageError(f"{directory} cannot be searched: {error.strerror}: {error.filename}") from None


def is_named_eval_file(path: str) -> bool:
    """Whether a file given by name can be an eval file, judging by its suffix."""
    return Path(path).suffix in SUFFIXES or path.endswith(".eval.py")


def _in_directory(written: str) -> Iterator[str]:
    found = collected(written)
    if not found:
        patterns = "*.eval.yaml, *.eval.yml, *.eval.py, EVAL.yaml, promptfooconfig.yaml, and eval.yml next to a prompt"
        raise UsageError(f"{written} contains no eval files", f"eval files are named {patterns}; give others by name")
    for path in found:
        refuse_unreadable(shown(path))
        yield _absolute(Path(path))


def _absolute(path: Path) -> str:
    """The absolute path of a file without `..`, so that its parents are real directories."""
    written = path.absolute()
    if ".." not in written.parts:
        return str(written)
    return str(written.parent.resolve() / written.name)


def _walk(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        if path.is_dir():
            if path.name not in SKIPPED_DIRECTORIES and not path.is_symlink():
                yield from _walk(path)
        elif any(fnmatch(path.name, one) for one in COLLECTED) or by_name(path.name) or is_exam(str(path)):
            yield path


def refuse_others(written: str) -> None:
    """Raise if a file given by name cannot be an eval file.

    Raises:
        UsageError: the name is not that of an eval file, or the file is another tool's and cannot be read.
    """
    refuse_unreadable(written)
    if not is_named_eval_file(written):
        raise UsageError(f"{written} is not an eval file", f"eval files end in {', '.join(SUFFIXES)} or .eval.py")


def load_entry(
    entry: Json, directory: str, registries: Registries, env: Mapping[str, str]
) -> tuple[AssertionEntry | None, tuple[Diagnostic, ...]]:
    """The assertion for an entry of `assert` in an eval file of a directory, or None, and its diagnostics."""
    report = Report()
    path = str(Path(directory) / "assert.yaml")  # an eval file that does not exist
    reader = SuiteReader(path, LoadRequest((), process_env=env), registries, report)
    at = Span.start_of(path)
    entries = reader.entries_of(node_of([entry], at))
    found = tuple(replace(one, span=None) for one in report.diagnostics)
    return (entries[0] if entries and not report.failed else None), found


_YAML = (".yaml", ".yml")
_READ_BY_EXAMS = frozenset({META, *INPUT_FILES})
"""Files that a prompt's exam reads; they are checked by reading the exam."""


class FileCheck(Struct, frozen=True):
    """Result of checking a file.

    Attributes:
        diagnostics: sorted by position.
        read: absolute paths of all files that were read for it.
        dialect: what the file is, such as `a promptfoo configuration`, if it is another tool's; otherwise None.
    """

    diagnostics: tuple[Diagnostic, ...]
    read: frozenset[str]
    dialect: str | None = None


def unused_in(paths: Iterable[str], read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for every template below the directories in `paths` that was not read, unless a comment ignores it."""
    from agentv.authoring.source.ignores import without_ignored

    for found in unused_templates(filter(is_directory, paths), read):
        if found.span is not None:
            yield from without_ignored([found], {found.span.file: Path(found.span.file).read_bytes()}, reported=())


def check_file(path: str, request: LoadRequest, registries: Registries) -> FileCheck:
    """All diagnostics of a file; a sidecar is checked with its cases.

    Args:
        path: absolute path of an existing file.
        request: options of `validate`; its paths are ignored.
        registries: meaning of names.
    """
    from agentv.authoring.prompt_library import exam_above, prompt_file_of  # not needed for a run

    report = Report(hints=not request.for_run)
    file, own = Path(path), path
    exam = exam_above(path) if file.name in _READ_BY_EXAMS else None
    is_project = is_of_project(file)
    if is_project:
        own = str(file.parent.parent / "eval.yaml")  # an eval file to which the project file would apply
    elif exam is not None:
        own = exam
    elif file.suffix in _YAML:
        own = cases_beside(path) or path
    reader = SuiteReader(own, request, registries, report)
    if is_project:
        reader.check_project()
        found = tuple(
            one
            for one in reader.diagnostics
            if one.span is not None
            # in the file itself, or in a file that it names
            and (one.span.file == path or (one.span.file != own and not is_of_project(Path(one.span.file))))
        )
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


_HOME = (".agentv", "templates")


def unused_templates(directories: Iterable[str], read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for every template below the directories that was not read.

    Single files are not enough, because others may include the template.

    Args:
        directories: paths as given.
        read: absolute paths of all files that the suites below these directories read.
    """
    for path in sorted({path for directory in directories for path in _templates_below(directory)} - set(read)):
        message = "no eval file includes this template"
        yield Diagnostic("unused-template", message, Span.start_of(path), "warning")


def _templates_below(directory: str) -> Iterator[str]:
    for folder, inside, _ in os.walk(directory):
        home = Path(folder, *_HOME)
        if _HOME[0] in inside:
            yield from templates_in(str(home.absolute())).values()
        inside[:] = [name for name in inside if not name.startswith(".") and name != "node_modules"]
