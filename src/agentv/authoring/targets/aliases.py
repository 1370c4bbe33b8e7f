"""`use_target`: a target that is another name of one (AgentV)."""

from __future__ import annotations

from collections.abc import Container

from agentv.authoring.fields.agentv.spellings import TARGET
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, kind_of

USE_TARGET = "use_target"
_KEYS = frozenset({"name", USE_TARGET, "hooks"})
_SETTINGS = frozenset({"provider", "id", "config"})
"""Keys of a mapping that is a target of its own."""

_DECIDING = frozenset({"provider", "judge", "env", "allow_empty", "thoughts"})
"""Keys of a target without which an answer or its verdict may be another."""


def refers(node: MapNode, names: Container[str]) -> bool:
    """Whether a mapping of a suite refers to a target: by `use_target`, or by the name of one and no settings."""
    if USE_TARGET in node.items:
        return True
    name = node.get("name")
    return isinstance(name, Scalar) and name.text in names and _SETTINGS.isdisjoint(node.items)


def check_alias(node: MapNode, reading: Reading) -> bool:
    """Report keys beside `use_target` that mean nothing there; whether the others can be used."""
    report = reading.report.section()
    for key, at in node.keys.items():
        if key == "hooks":
            add = report.error if reading.strict_env else report.warning
            add("not-yet", at, "'hooks' is recognized but not supported yet")
        elif TARGET.older.get(key) == "name":
            report.older(key, "name", at)
        elif key in TARGET.known and key not in _KEYS:
            message = f"'{key}' has no effect beside '{USE_TARGET}'"
            if TARGET.older.get(key, key) in _DECIDING:
                report.warning("no-effect", at, message, hint=f"set it on the target that '{USE_TARGET}' names")
            else:
                report.remark("no-effect", at, message)
        elif key not in _KEYS and not key.startswith("x-"):
            extra = ExtraKeys(hinted=tuple(TARGET.known), older=TARGET.superseded)
            reading.reporting_to(report).unknown_key(key, node, sorted(_KEYS), f"a target with '{USE_TARGET}'", extra)
    return not report.failed


def written_target(node: Node, reading: Reading) -> str | None:
    """The name that `use_target` gives; None after reporting a missing one."""
    found = reading.rendered(node)
    if found is None:
        return None
    if is_empty(found):
        message = f"'{USE_TARGET}' is empty; it needs the name of a target"
        reading.report.error("missing-value", node, message)
        return None
    if isinstance(found, Scalar) and isinstance(found.value, str):
        return found.value.strip()
    reading.report.error("bad-value", node, f"'{USE_TARGET}' must be the name of a target, found {kind_of(found)}")
    return None


def report_cycle(chain: tuple[str, ...], at: Node, reading: Reading) -> None:
    """Report names, of targets or of files, that lead back to where they began."""
    reading.report.error("target-cycle", at, f"targets refer to each other in a circle: {' → '.join(chain)}")
