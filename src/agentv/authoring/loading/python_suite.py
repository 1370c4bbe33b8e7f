"""`*.eval.py`: a Python file that defines `suite`, or a function `suite()` (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agentv.authoring.fields.python_source import read_definitions
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import MapNode, Node, node_of
from agentv.authoring.source.python_values import BAD_SUITE, traced
from agentv.authoring.source.python_values import SUITE as NAME
from agentv.authoring.source.report import Report
from agentv.model.suite.suite import CODE_TIMEOUT_S, Suite
from agentv.model.values.span import Span
from agentv.ports import CodeCall
from agentv.user_code.functions.guard import ForeignError
from agentv.user_code.workers.blocking import call_blocking

ReadMade = Callable[[MapNode, Report], Suite | None]
"""(what an eval file would hold, where mistakes go) → the suite."""


def read_python_suite(path: str, report: Report, read_made: ReadMade, *, for_run: bool) -> Suite | None:
    """The suite of a file, or None if anything is invalid, which is reported.

    Args:
        path: of the file.
        report: receives the diagnostics.
        read_made: reads the object that the file defines.
        for_run: run the file; otherwise only its syntax tree is checked, and there is no suite.
    """
    at = _defined(path, report)
    if at is None:
        return None
    if not for_run:
        report.remark("unchecked-cases", at, f"'{NAME}' is not run here: it is checked when it runs")
        return None
    try:
        made = call_blocking(
            CodeCall(
                "authoring",
                "agentv.authoring.source.python_values:authored_suite",
                {"file": path},
                code=BAD_SUITE,
                what=Path(path).name,
                directory=str(Path(path).parent),
            ),
            CODE_TIMEOUT_S,
        )
    except ForeignError as error:
        report.error(error.failure.code, at, error.failure.message)
        return None
    own = Report(hints=report.hints)
    suite = read_made(_mapping(node_of(made, at)), own)
    if own.count:
        own = _located(made, own, read_made, at)
    for one in own.diagnostics:
        report.add(one)
    return suite


def _defined(path: str, report: Report) -> Span | None:
    """Where the file defines its suite, as far as can be said without running it."""
    top = Span(path, 1, 1, 1, 2)
    try:
        source = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        report.error("missing-file", top, f"cannot read {shown(path)}: {error.strerror}")
        return None
    except UnicodeDecodeError as error:
        report.error("not-utf-8", top, f"not UTF-8 text (byte {error.start + 1})")
        return None
    found = read_definitions(path, source, BAD_SUITE, report)
    if found is None:
        return None
    if NAME not in found.names and not found.open:
        near = nearest(NAME, found.names)
        hint = f"rename '{near}' to '{NAME}'" if near else "make one with agentv.Suite"
        report.error(BAD_SUITE, top, f"a Python eval file must define '{NAME}', or a function '{NAME}()'", hint=hint)
        return None
    required = found.functions.get(NAME, ())
    at = found.names.get(NAME, top)
    if required:
        message = f"'{NAME}' is called without arguments, but requires {', '.join(required)}"
        report.error(BAD_SUITE, at, message, hint="give its parameters defaults")
        return None
    return at


def _mapping(node: Node) -> MapNode:
    assert isinstance(node, MapNode)  # noqa: S101  # it was made of a mapping
    return node


def _located(made: Mapping[str, Any], found: Report, read_made: ReadMade, at: Span) -> Report:
    """The same mistakes with the way to what is wrong, `tests[2].input`: read once more, part by part."""
    exact = Report(hints=found.hints)
    node, paths = traced(made, at.file)
    read_made(_mapping(node), exact)
    located = Report(hints=found.hints)
    for one in (exact if exact.agrees_with(found) else found).diagnostics:
        way = paths.get(one.span)
        message = f"{way}: {one.message}" if way else one.message
        located.add(replace(one, span=at if one.span in paths else one.span, message=message))
    return located
