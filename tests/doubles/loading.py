"""Files in a repository of their own, and the loader's results for them."""

from collections.abc import Mapping
from pathlib import Path

from agentv.app.registries import registries
from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.typed_entries import AssertionTypes
from agentv.authoring.fields.reading import Reading
from agentv.authoring.loading.load import LoadRequest, load
from agentv.authoring.source.files import DiskReader, Places
from agentv.authoring.source.nodes import Node
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic, LoadError
from agentv.model.suite.suite import Case, Suite
from agentv.model.values.values import EMPTY
from agentv.templating import Scope


def repository(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Create a directory with a `.git`, so that the search for a root stops there."""
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def outcome(path: Path, **request) -> tuple[tuple[Suite, ...], tuple[Diagnostic, ...]]:
    """Return the suites of a path, if any, and all diagnostics."""
    try:
        loaded = load(LoadRequest((str(path),), **request), registries())
    except LoadError as error:
        return (), error.diagnostics
    return loaded.suites, loaded.diagnostics


def suite_of(folder: Path, text: str, files: Mapping[str, str | bytes] = EMPTY, **request) -> Suite:
    """Return the suite of a valid text."""
    path = repository(folder, {"suite.eval.yaml": text, **files}) / "suite.eval.yaml"
    suites, found = outcome(path, **request)
    assert suites, [str(LoadError([one])) for one in found]
    return suites[0]


def case_of(folder: Path, text: str, files: Mapping[str, str | bytes] = EMPTY, **request) -> Case:
    """Return the only case of a suite with target `echo`; `text` is its item in the list."""
    lines = text.splitlines(keepends=True)
    case = "".join(f"{'  - ' if place == 0 else '    '}{line}" for place, line in enumerate(lines))
    (found,) = suite_of(folder, f"target: echo\njudge: mock:yes\ntests:\n{case}\n", files, **request).cases
    return found


def codes_and_lines(
    folder: Path, text: str, files: Mapping[str, str | bytes] = EMPTY, **request
) -> list[tuple[str, int]]:
    """Return the codes and lines of a text's diagnostics."""
    path = repository(folder, {"suite.eval.yaml": text, **files}) / "suite.eval.yaml"
    return [(one.code, one.span.line if one.span else 0) for one in outcome(path, **request)[1]]


def parsed(text: str, path: str = "/nowhere/file.yaml") -> Node:
    """Return the node of a valid YAML text."""
    report = Report()
    node = read_yaml(path, text.encode(), report).value
    assert node is not None, report.diagnostics
    return node


def reading_of(folder: Path, *, variables=EMPTY, env=EMPTY, renders: bool = False, hints: bool = False) -> Reading:
    """Return the state that parts of the loader get, for an eval file in a repository's root."""
    words = registries()
    root = str(folder)
    assertions = AssertionReader(AssertionTypes(words.assertions, words.custom(root, root)))
    scope = Scope(variables, env)
    return Reading(Report(hints=hints), DiskReader(), Places(root, root), scope, assertions.entries, renders)
