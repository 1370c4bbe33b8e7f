"""`agentv plugins`, and rendering of plugins' reports: an error in one affects neither the run nor other exports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentv.app.registries import source
from agentv.errors import UsageError
from agentv.model.suite.configured import ListedPlugin, PluginStatus
from agentv.registry.extensions import (
    ASSERTIONS,
    BESIDE_RUNS,
    COMMAND_SECTIONS,
    ENDPOINTS,
    EXPORT_FORMATS,
    PAGES,
    PORTS,
    PROVIDERS,
    SCHEMA_DEFS,
    SIGNS,
    extensions,
    kinds,
    owners,
)
from agentv.registry.plugins import LoadedPlugin, Plugin, Problem, words_of
from agentv.registry.types import ReportFormat, RunData, summary_of
from agentv.user_code.guard import ForeignError, foreign_code, output_to_stderr
from agentv.user_code.plugins import source_of_extensions
from agentv.version import __version__

KINDS: Mapping[str, str] = {ASSERTIONS: "assertion", PROVIDERS: "target", EXPORT_FORMATS: "report"}


def list_plugins() -> tuple[ListedPlugin, ...]:
    """Import all installed plugins and list them by kind and name; a broken plugin does not affect the others."""
    sources = (source_of_extensions(), *(source(kind) for kind in dict.fromkeys([*KINDS, *kinds()])))
    return tuple(
        _listed(plugin, found.problems.get(plugin) or found.find(plugin.name))
        for found in sources
        for plugin in sorted(found.plugins, key=lambda one: (one.name, one.package))
    )


def list_extensions() -> tuple[ListedPlugin, ...]:
    """Return agentv's own extensions, by name."""
    added = owners()
    shown = [kind for kind in kinds() if kind not in _HIDDEN_KINDS]
    return tuple(
        ListedPlugin(
            "extension",
            name,
            "agentv",
            __version__,
            "ok",
            (module.__doc__ or "").split("\n")[0],
            module.__name__,
            module.__file__ or "",
            1,
            {words_of(kind): names for kind in shown if (names := _names(added.get(kind, {}), name))},
        )
        for name, module in extensions().items()
    )


_HIDDEN_KINDS = {BESIDE_RUNS, COMMAND_SECTIONS, ENDPOINTS, PAGES, PORTS, SCHEMA_DEFS, SIGNS}
"""Kinds whose names users never write."""


def _names(owned: Mapping[str, str], extension: str) -> tuple[str, ...]:
    return tuple(name for name, owner in owned.items() if owner == extension)


def _listed(plugin: Plugin, found: LoadedPlugin | Problem | None) -> ListedPlugin:
    facts = (KINDS.get(plugin.kind) or words_of(plugin.kind), plugin.name, plugin.package, plugin.version)
    place = (plugin.value, plugin.file, plugin.line)
    if isinstance(found, Problem):
        status: PluginStatus = "shadowed" if found.code == "shadowed-plugin" else "broken"
        return ListedPlugin(*facts, status, "", *place, None, found.code, found.message, found.hint)
    return ListedPlugin(*facts, "ok", summary_of(found.value) if found is not None else "", *place)


_END = object()
"""Sentinel: the report has no further pieces."""


def report_suffixes() -> list[str]:
    """Return the file suffixes of plugins' reports, such as `.tap` for the report `tap`, without importing plugins."""
    return [f".{name}" for name in sorted(source(EXPORT_FORMATS).places)]


def report_format(suffix: str) -> ReportFormat | None:
    """Return the report format for a suffix, or None if no plugin provides one.

    Raises:
        UsageError: the plugin is broken.
    """
    found = source(EXPORT_FORMATS).find(suffix.lower().removeprefix("."))
    if isinstance(found, Problem):
        raise UsageError(f"[{found.code}] {found.message}", found.hint)
    if not isinstance(found, LoadedPlugin):
        return None
    return ReportFormat(suffix, found.value, found.code)  # type: ignore[arg-type]  # plugin_checks ensures a function


def render_report(report: ReportFormat, run: RunData) -> Iterator[str]:
    """Yield the text of a report, piece by piece.

    Raises:
        UsageError: the plugin raises, or yields something that is not a string.
    """
    try:
        with output_to_stderr(), foreign_code("bad-plugin", report.plugin.title):
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
        with output_to_stderr(), foreign_code("bad-plugin", report.plugin.title):
            return next(pieces, _END)
    except ForeignError as error:
        raise _failed(error.failure.message) from error


def _failed(why: str) -> UsageError:
    return UsageError(f"[bad-plugin] {why}", "the run is kept: 'agentv results export' writes it in another format")
