"""Paths in, suites out, or every diagnostic of every file at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.model.assertion import AssertionEntry
from agentv.model.span import Span
from agentv.model.suite import Suite
from agentv.model.values import Json
from agentv.spec.exam import is_exam
from agentv.spec.files import is_directory, is_file
from agentv.spec.nearest import did_you_mean
from agentv.spec.nodes import node_of
from agentv.spec.report import Report
from agentv.spec.request import LoadRequest, Registries
from agentv.spec.suite import SuiteReader
from agentv.spec.unused import unused_templates

__all__ = ["LoadRequest", "Loaded", "Registries", "eval_files", "load", "load_assertion"]

COLLECTED = ("*.eval.yaml", "*.eval.yml", "*.eval.py", "EVAL.yaml", "EVAL.yml")
"""What a directory is searched for (SPEC section 2)."""

SUFFIXES = (".yaml", ".yml", ".jsonl", ".csv", ".json")
"""Of files that may be given by name, beside those that a directory is searched for."""

PASSED_OVER = frozenset({".agentv", ".git", "node_modules", "__pycache__", ".venv"})
"""Directories that are not searched: no project keeps its eval files there."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Suites that are right, and the warnings of their files; for `validate` hints too."""

    suites: tuple[Suite, ...]
    diagnostics: tuple[Diagnostic, ...]


def load(request: LoadRequest, registries: Registries) -> Loaded:
    """Every suite that the request names.

    Raises:
        LoadError: a file is wrong; holds the diagnostics of all files.
        UsageError: a path does not exist, or a directory holds no eval file.
    """
    report = Report()
    suites: list[Suite] = []
    read: set[str] = set()
    for path in dict.fromkeys(eval_files(request.paths)):
        own = Report(hints=not request.for_run)  # of its own, so that one wrong file does not look like another's fault
        reader = SuiteReader(path, request, registries, own)
        suites += _kept(reader.read(), reader.diagnostics, report)
        read |= reader.files.keys()
    for number, document in enumerate(request.documents, 1):
        own = Report(hints=not request.for_run)
        path = str(Path.cwd() / (f"suite-{number}" if len(request.documents) > 1 else "suite"))
        suites += _kept(SuiteReader(path, request, registries, own).read_document(document), own.diagnostics, report)
    if not request.for_run and not report.failed:  # a file that is wrong may not have come to its includes
        for found in unused_templates(filter(is_directory, request.paths), read):
            report.add(found)
    if report.failed:
        raise LoadError(report.diagnostics)
    return Loaded(tuple(suites), report.diagnostics)


def _kept(suite: Suite | None, found: Iterable[Diagnostic], report: Report) -> list[Suite]:
    for one in found:
        report.add(one)
    return [suite] if suite is not None else []


def eval_files(paths: tuple[str, ...]) -> Iterator[str]:
    """The eval files that paths mean: a file is itself, a directory is searched.

    Raises:
        UsageError: a path does not exist, or a directory holds no eval file.
    """
    for written in paths:
        path = Path(written)
        if is_directory(written):
            yield from _in_directory(path, written)
        elif is_file(written):
            _refuse_others(path, written)
            yield str(path.absolute())
        else:
            siblings = [one.name for one in path.parent.iterdir()] if is_directory(str(path.parent)) else []
            raise UsageError(f"{written} does not exist", did_you_mean(path.name, siblings))


def _in_directory(directory: Path, written: str) -> Iterator[str]:
    try:
        found = sorted(_walk(directory))
    except OSError as error:
        raise UsageError(f"{written} cannot be searched: {error.strerror}: {error.filename}") from None
    if not found:
        patterns = "*.eval.yaml, *.eval.yml, *.eval.py or EVAL.yaml, and eval.yml beside a prompt"
        raise UsageError(f"{written} holds no eval file", f"eval files are called {patterns}; others are given by name")
    for path in found:
        yield str(path.absolute())


def _walk(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        if path.is_dir():
            if path.name not in PASSED_OVER and not path.is_symlink():
                yield from _walk(path)
        elif any(fnmatch(path.name, pattern) for pattern in COLLECTED) or is_exam(str(path)):
            yield path


def _refuse_others(path: Path, written: str) -> None:
    if path.suffix not in SUFFIXES and not path.name.endswith(".eval.py"):
        raise UsageError(f"{written} is no eval file", f"eval files end in {', '.join(SUFFIXES)} or .eval.py")


def load_assertion(
    name: str, options: Mapping[str, Json], directory: str, registries: Registries, env: Mapping[str, str]
) -> tuple[AssertionEntry | None, tuple[Diagnostic, ...]]:
    """One assertion by its type's name, as an eval file in a directory would see it; None with what is wrong."""
    report = Report()
    path = str(Path(directory) / "assert.yaml")  # stands for the eval file that is not there
    reader = SuiteReader(path, LoadRequest((), process_env=env), registries, report)
    at = Span(path, 1, 1, 1, 2)
    entries = reader.entries_of(node_of([{"type": name, **options}], at))
    found = tuple(replace(one, span=None) for one in report.diagnostics)
    return (entries[0] if entries and not report.failed else None), found
