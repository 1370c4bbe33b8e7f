"""`agentv plugins`: the extensions that are here, and every plugin that is installed, with what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentv.app.registries import source
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
from agentv.registry.plugins import LoadedPlugin, Plugin, PluginSource, Problem, words_of
from agentv.registry.types import summary_of
from agentv.user_code.plugins import source_of_extensions
from agentv.version import __version__

KINDS: Mapping[str, str] = {ASSERTIONS: "assertion", PROVIDERS: "target", EXPORT_FORMATS: "report"}


def list_plugins() -> tuple[ListedPlugin, ...]:
    """All installed plugins, by kind and name. Each is imported; errors are reported for it alone."""
    sources = (source_of_extensions(), *(source(kind) for kind in dict.fromkeys([*KINDS, *kinds()])))
    return tuple(one for found in sources for one in _of_source(found))


def list_extensions() -> tuple[ListedPlugin, ...]:
    """Agentv's own extensions, by name."""
    added = owners()
    shown = [kind for kind in kinds() if kind not in _UNSEEN]
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


_UNSEEN = {BESIDE_RUNS, COMMAND_SECTIONS, ENDPOINTS, PAGES, PORTS, SCHEMA_DEFS, SIGNS}
"""Kinds whose names are written nowhere."""


def _names(owned: Mapping[str, str], extension: str) -> tuple[str, ...]:
    return tuple(name for name, owner in owned.items() if owner == extension)


def _of_source(found: PluginSource) -> Iterator[ListedPlugin]:
    for plugin in sorted(found.plugins, key=lambda one: (one.name, one.package)):
        problem = found.problems.get(plugin)
        yield _listed(plugin, problem or found.find(plugin.name))


def _listed(plugin: Plugin, found: LoadedPlugin | Problem | None) -> ListedPlugin:
    facts = (KINDS.get(plugin.kind) or words_of(plugin.kind), plugin.name, plugin.package, plugin.version)
    place = (plugin.value, plugin.file, plugin.line)
    if isinstance(found, Problem):
        status: PluginStatus = "shadowed" if found.code == "shadowed-plugin" else "broken"
        return ListedPlugin(*facts, status, "", *place, None, found.code, found.message, found.hint)
    return ListedPlugin(*facts, "ok", summary_of(found.value) if found is not None else "", *place)
