"""`agentv convert promptfooconfig.yaml`: promptfoo's configuration to an eval file (SPEC section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentv.app.convert import written
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.spec.emit import yaml_text
from agentv.spec.nodes import MapNode, Node
from agentv.spec.promptfoo import NAMES, eval_file, is_promptfoo
from agentv.spec.report import Report
from agentv.spec.yaml import read_yaml

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Converted:
    """What came of a configuration.

    Attributes:
        path: the eval file that was written.
        left: what has no equivalent, with its place in the configuration.
    """

    path: Path
    left: tuple[Diagnostic, ...]


def from_promptfoo(source: Path, out: Path | None) -> Converted | None:
    """Write promptfoo's configuration as an eval file; None where the file is none.

    Raises:
        LoadError: it cannot be read.
        UsageError: a file stands in the way, or is to be written elsewhere than beside it.
        OSError: a file cannot be read or written.
    """
    report = Report()
    root = _root(source, report)
    if not is_promptfoo(source, root):
        return None
    if not isinstance(root, MapNode):
        found = report.diagnostics or (Diagnostic("bad-eval-file", f"{source} is no configuration of promptfoo's"),)
        raise LoadError(found)
    path = out or source.with_name(_name_for(source))
    if path.absolute().parent != source.absolute().parent:
        hint = f"write it to {source.with_name(path.name)}, and move both"
        raise UsageError(f"the paths in {source.name} begin beside it, and {path} lies elsewhere", hint)
    text = yaml_text(eval_file(source, root, report))
    if report.failed:
        raise LoadError(report.diagnostics)
    with written({path: text}):
        return Converted(path, report.diagnostics)


def _root(source: Path, report: Report) -> Node | None:
    return read_yaml(str(source.absolute()), source.read_bytes(), report) if source.suffix in _SUFFIXES else None


def _name_for(source: Path) -> str:
    stem = "promptfoo" if source.name in NAMES else source.stem
    return f"{stem.removesuffix('.eval')}.eval.yaml"
