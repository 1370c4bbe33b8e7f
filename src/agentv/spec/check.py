"""One file checked as what it is: an eval file, a template, a sidecar, or a file of the project (SPEC section 2)."""

from __future__ import annotations

from pathlib import Path

from agentv.errors import Diagnostic
from agentv.spec.report import Report
from agentv.spec.request import LoadRequest, Registries
from agentv.spec.suite import SuiteReader, cases_beside

_YAML = (".yaml", ".yml")
_PROJECT = ("targets", "config", "config.local")
"""What `.agentv` itself holds: names without their suffix."""


def check_file(path: str, request: LoadRequest, registries: Registries) -> tuple[Diagnostic, ...]:
    """All that is wrong with a file, sorted by place; a sidecar is checked with its cases.

    Args:
        path: absolute, of a file that exists.
        request: for `validate`; its paths are not looked at.
        registries: what names mean.
    """
    report = Report(hints=not request.for_run)
    file, own = Path(path), path
    is_project = file.suffix in _YAML and file.parent.name == ".agentv" and file.stem in _PROJECT
    if is_project:
        own = str(file.parent.parent / "eval.yaml")  # stands for the eval files that it holds for
    elif file.suffix in _YAML:
        own = cases_beside(path) or path
    reader = SuiteReader(own, request, registries, report)
    if is_project:
        reader.check_project()
        return tuple(one for one in reader.diagnostics if one.span is not None and one.span.file == path)
    if file.suffix in _YAML and file.parent.name == "templates" and file.parent.parent.name == ".agentv":
        reader.check_template()
    else:
        reader.read()
    return reader.diagnostics
