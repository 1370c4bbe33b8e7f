"""Keys of AgentV's targets that mean nothing here: passed over, and listed in one hint for each file."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentv.authoring.source.nodes import MapNode, Node, Place, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.targets.provider_names import provider_name
from agentv.registry.table import Registry
from agentv.registry.types import Provider

NO_EFFECT = frozenset(
    {
        "batch_requests",
        "cli_verbose",
        "fallback_targets",
        "keep_output_files",
        "keep_temp_files",
        "log_dir",
        "log_directory",
        "log_format",
        "log_output_format",
        "provider_batching",
        "stream_log",
        "subagent_mode_allowed",
        "timeout_ms",
        "trace",
        "verbose",
        "workspace_template",
    }
)
"""They show or keep more of a call, join calls that are made one by one here, or belong to agents. AgentV itself never
reads `timeout_ms` of a target, and no longer the keys of batches."""

_DEFAULTS = {"runtime": ("host",)}
"""Keys that ask for nothing at these values, and otherwise for what is not built."""

_NOT_YET = frozenset({"container", "environment", "execution_traces", "install", "transcripts"})


def settings_in(items: Mapping[str, Node], at: MapNode, taken: Collection[str], report: Report) -> dict[str, Node]:
    """The keys of a target that are read here. One that asks for what is not built yet is reported.

    Args:
        items: the target's keys.
        at: the mapping that holds them, for positions.
        taken: the settings of its provider.
        report: gets what is wrong.
    """
    found = {}
    for key, node in items.items():
        if key in taken:
            found[key] = node
        elif key in _NOT_YET or (key in _DEFAULTS and not _asks_nothing(key, node)):
            text = f"'{key}: {node.text}'" if isinstance(node, Scalar) and key in _DEFAULTS else f"'{key}'"
            report.error("not-yet", at.keys[key], f"{text} is recognized but not supported yet")
        elif key not in NO_EFFECT and key not in _DEFAULTS:
            found[key] = node
    return found


def without_effect_in(flat: MapNode, providers: Registry[Provider]) -> dict[str, Place]:
    """The keys of a target that are passed over. Those of a provider that is not built yet are its own."""
    said = flat.get("provider")
    is_text = isinstance(said, Scalar) and isinstance(said.value, str)
    provider = providers.find(provider_name(said.value)) if isinstance(said, Scalar) and is_text else None
    taken = {one.rstrip("_") for one in getattr(provider.settings, "__dataclass_fields__", ())} if provider else set()
    return {
        key: flat.keys[key]
        for key, node in flat.items.items()
        if provider is not None and key not in taken and (key in NO_EFFECT or _asks_nothing(key, node))
    }


def remark_on_keys(keys: Mapping[str, Place], report: Report) -> None:
    """One hint that lists the keys of a file that have no effect."""
    if keys:
        listed = ", ".join(f"'{key}'" for key in sorted(keys))
        verb = "has" if len(keys) == 1 else "have"
        report.remark("no-effect", next(iter(keys.values())), f"{listed} {verb} no effect in agentv")


def _asks_nothing(key: str, node: Node) -> bool:
    return isinstance(node, Scalar) and (node.value is None or node.value in _DEFAULTS.get(key, ()))
