"""`agentv plugins`: the extensions that are here, and every plugin that is installed, with what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentv.app.plugins.sources import source
from agentv.model.suite.plugins import ListedPlugin, PluginStatus
from agentv.registry.extensions import extensions
from agentv.registry.plugins import ASSERTIONS, REPORTS, TARGETS, LoadedPlugin, Plugin, Problem
from agentv.registry.types import summary_of
from agentv.version import __version__

KINDS: Mapping[str, str] = {ASSERTIONS: "assertion", TARGETS: "target", REPORTS: "report"}


def list_plugins() -> tuple[ListedPlugin, ...]:
    """All installed plugins, by kind and name. Each is imported; errors are reported for it alone."""
    return tuple(one for group in KINDS for one in _of_group(group))


def list_extensions() -> tuple[ListedPlugin, ...]:
    """Agentv's own extensions, by name."""
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
        )
        for name, module in extensions().items()
    )


def _of_group(group: str) -> Iterator[ListedPlugin]:
    found = source(group)
    for plugin in sorted(found.plugins, key=lambda one: (one.name, one.package)):
        problem = found.problems.get(plugin)
        yield _listed(plugin, problem or found.find(plugin.name))


def _listed(plugin: Plugin, found: LoadedPlugin | Problem | None) -> ListedPlugin:
    facts = (KINDS[plugin.group], plugin.name, plugin.package, plugin.version)
    place = (plugin.value, plugin.file, plugin.line)
    if isinstance(found, Problem):
        status: PluginStatus = "shadowed" if found.code == "shadowed-plugin" else "broken"
        return ListedPlugin(*facts, status, "", *place, found.code, found.message, found.hint)
    return ListedPlugin(*facts, "ok", summary_of(found.value) if found is not None else "", *place)
