"""Files in a repository of their own, and what the loader makes of them."""

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
    """A directory with `.git` in it, so that nothing above it is looked at."""
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def outcome(path: Path, **request) -> tuple[tuple[Suite, ...], tuple[Diagnostic, ...]]:
    """The suites of a path, if there are any, and all that was found."""
    try:
        loaded = load(LoadRequest((str(path),), **request), registries())
    except LoadError as error:
        return (), error.diagnostics
    return loaded.suites, loaded.diagnostics


def suite_of(folder: Path, text: str, files: Mapping[str, str | bytes] = EMPTY, **request) -> Suite:
    """The suite that a text is; it must be right."""
    path = repository(folder, {"suite.eval.yaml": text, **files}) / "suite.eval.yaml"
    suites, found = outcome(path, **request)
    assert suites, [str(LoadError([one])) for one in found]
    return suites[0]


def case_of(folder: Path, text: str, files: Mapping[str, str | bytes] = EMPTY, **request) -> Case:
    """The only case of a suite on the target `echo`, given as it would stand in the list."""
    lines = text.splitlines(keepends=True)
    case = "".join(f"{'  - ' if place == 0 else '    '}{line}" for place, line in enumerate(lines))
    (found,) = suite_of(folder, f"target: echo\njudge: mock:yes\ntests:\n{case}\n", files, **request).cases
    return found


def found_in(folder: Path, text: str, files: Mapping[str, str | bytes] = EMPTY, **request) -> list[tuple[str, int]]:
    """The codes and lines of what is wrong with a text."""
    path = repository(folder, {"suite.eval.yaml": text, **files}) / "suite.eval.yaml"
    return [(one.code, one.span.line if one.span else 0) for one in outcome(path, **request)[1]]


def parsed(text: str, path: str = "/nowhere/file.yaml") -> Node:
    """The node that a text is; it must be YAML."""
    report = Report()
    node = read_yaml(path, text.encode(), report).value
    assert node is not None, report.diagnostics
    return node


def reading_of(folder: Path, *, variables=EMPTY, env=EMPTY, renders: bool = False, hints: bool = False) -> Reading:
    """What the parts of the loader get, for an eval file in a folder that is a repository's root."""
    words = registries()
    root = str(folder)
    assertions = AssertionReader(AssertionTypes(words.assertions, words.custom(root, root)))
    scope = Scope(variables, env)
    return Reading(Report(hints=hints), DiskReader(), Places(root, root), scope, assertions.entries, renders)
