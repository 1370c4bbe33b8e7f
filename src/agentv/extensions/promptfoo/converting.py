"""`agentv convert promptfooconfig.yaml`: promptfoo's configuration to an eval file (SPEC section 2)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentv.app.authored.convert import written
from agentv.app.authored.data_trust import needs_trust, trusting
from agentv.authoring.convert.emit import yaml_text
from agentv.authoring.source.boundary import Boundary, boundary_around
from agentv.authoring.source.files import repository_root
from agentv.authoring.source.nodes import MapNode, Node
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.extensions.promptfoo.called_code import call_code
from agentv.extensions.promptfoo.comments import with_comments
from agentv.extensions.promptfoo.configuration_file import NAMES, configuration_in
from agentv.extensions.promptfoo.translation.configuration import eval_file
from agentv.extensions.promptfoo.translation.source import Source

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Converted:
    """What came of a configuration.

    Attributes:
        path: the eval file that was written.
        left: what has no equivalent, with its place in the configuration; a hint cannot change a verdict.
        trusts: its rows of data run code, as they did for promptfoo, and it says that they may.
    """

    path: Path
    left: tuple[Diagnostic, ...]
    trusts: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether everything that could change a verdict was converted."""
        return all(one.severity == "hint" for one in self.left)


def from_promptfoo(
    source: Path, out: Path | None, *, allow_outside: bool = False, missing_empty: bool = False
) -> Converted:
    """Write promptfoo's configuration as an eval file.

    Args:
        source: the configuration.
        out: the eval file; None: named after the configuration.
        allow_outside: read files outside the repository, too.
        missing_empty: a variable that a test does not set is empty text, as in promptfoo.

    Raises:
        LoadError: it cannot be read, or names a file outside the repository that nobody allowed.
        UsageError: a file stands in the way, or is to be written elsewhere than beside it.
        OSError: a file cannot be read or written.
    """
    report = Report()
    root = _root(source, report)
    if not isinstance(root, MapNode):
        found = report.diagnostics or (Diagnostic("bad-eval-file", f"{source} is not a promptfoo configuration"),)
        raise LoadError(found)
    path = out or source.with_name(_name_for(source))
    if path.absolute().parent != source.absolute().parent:
        hint = f"write it to {source.with_name(path.name)}, and move both"
        raise UsageError(f"paths in {source.name} are relative to its directory, but {path} is in another one", hint)
    boundary = _boundary(source, is_open=allow_outside)
    configuration = Source(source.absolute().parent, report, boundary, call_code=call_code)
    made = eval_file(source, root, configuration, missing_empty=missing_empty)
    found = tuple(map(boundary.shown, report.diagnostics))
    if report.failed:
        raise LoadError(found)
    original = source.read_text(encoding="utf-8-sig")
    with written({path: with_comments(yaml_text(made), made, root, original)}):
        trusts = needs_trust(path, os.environ, allow_outside=allow_outside)
        if trusts:
            made = _ordered(trusting(made))
            path.write_text(with_comments(yaml_text(made), made, root, original), encoding="utf-8")
        return Converted(path, found, trusts)


def _ordered(made: Mapping[str, Node]) -> dict[str, Node]:
    """The keys with those of the cases at the end."""
    return {**{key: node for key, node in made.items() if key != "tests"}, "tests": made["tests"]}


def _boundary(source: Path, *, is_open: bool) -> Boundary:
    directory = str(source.absolute().parent)
    boundary = boundary_around(directory, repository_root(directory))
    boundary.is_open = is_open
    return boundary


def _root(source: Path, report: Report) -> Node | None:
    if source.suffix not in _SUFFIXES:
        return None
    return configuration_in(read_yaml(str(source.absolute()), source.read_bytes(), report).value)


def _name_for(source: Path) -> str:
    stem = "promptfoo" if source.name in NAMES else source.stem
    return f"{stem.removesuffix('.eval')}.eval.yaml"
