"""Reports of plugins: from a run to text. An error in one loses neither the run nor the other exports."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.app.registries import source
from agentv.errors import UsageError
from agentv.registry.extensions import EXPORT_FORMATS
from agentv.registry.plugins import LoadedPlugin, Problem
from agentv.registry.types import ReportFormat, RunData
from agentv.user_code.guard import ForeignError, apart_from_output, foreign_code

_END = object()
"""After the last piece of a report."""


def report_suffixes() -> list[str]:
    """The suffixes of files that plugins write: `.tap` for the report `tap`. Imports no plugin."""
    return [f".{name}" for name in source(EXPORT_FORMATS).names]


def report_format(suffix: str) -> ReportFormat | None:
    """The report of a suffix; None where no plugin has it.

    Raises:
        UsageError: its plugin is broken.
    """
    found = source(EXPORT_FORMATS).find(suffix.lower().removeprefix("."))
    if isinstance(found, Problem):
        raise UsageError(f"[{found.code}] {found.message}", found.hint)
    if not isinstance(found, LoadedPlugin):
        return None
    return ReportFormat(suffix, found.value, found.code)  # type: ignore[arg-type]  # it was checked to be a function


def render_report(report: ReportFormat, run: RunData) -> Iterator[str]:
    """The text of a report, piece by piece.

    Raises:
        UsageError: as pieces are taken: the plugin raises, or gives what is no text.
    """
    try:
        with apart_from_output(), foreign_code("bad-plugin", report.plugin.title):
            given: object = report.render(run)
            pieces: Iterator[object] = iter((given,)) if isinstance(given, str) else iter(given)  # type: ignore[call-overload]  # foreign
    except ForeignError as error:
        raise _failed(error.failure.message) from error
    while (piece := _next(pieces, report)) is not _END:
        if not isinstance(piece, str):
            raise _failed(f"{report.plugin.title} must give text, and gave {type(piece).__name__}")
        yield piece


def _next(pieces: Iterator[object], report: ReportFormat) -> object:
    try:
        with apart_from_output(), foreign_code("bad-plugin", report.plugin.title):
            return next(pieces, _END)
    except ForeignError as error:
        raise _failed(error.failure.message) from error


def _failed(why: str) -> UsageError:
    return UsageError(f"[bad-plugin] {why}", "the run is kept: 'agentv results export' writes it in another format")
