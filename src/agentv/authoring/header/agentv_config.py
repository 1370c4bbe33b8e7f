"""AgentV's spellings of a configuration: `execution`, `defaults`, `file://`, and keys that mean nothing here."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.authoring.fields.agentv import translation
from agentv.authoring.fields.agentv.spellings import RUN
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Canonical, MapNode, Node, Place, Scalar, kind_of
from agentv.authoring.targets.catalog import one_default, referenced

NO_EFFECT = frozenset(
    {
        "$schema",
        "dashboard",
        "env_from",
        "env_path",
        "git_cache",
        "guideline_patterns",
        "hooks",
        "projects",
        "refs",
        "required_version",
        "results",
        "results_by_project",
        "studio",
        "tags",
        "tests",
    }
)
"""Keys of a configuration that only AgentV's own program acts on."""

NO_EFFECT_IN_EXECUTION = frozenset(
    {
        "export_otel",
        "keep_workspaces",
        "otel_backend",
        "otel_capture_content",
        "otel_file",
        "otel_group_turns",
        "pool_slots",
        "pool_workspaces",
        "trace_file",
        "verbose",
        "workspace_path",
    }
)

_DEFAULTS = {"target": "target", "provider": "target", "judge": "judge", "grader": "judge"}
_RUN = RUN.canonical | RUN.older.keys()


def _is_server(results: Node) -> bool:
    """Whether `results` names a server that runs are pushed to; AgentV has a repository there."""
    return isinstance(results, MapNode) and not {"remote", "token"}.isdisjoint(results.items)


def canonical_config(root: MapNode, reading: Reading) -> MapNode:
    """A configuration by its canonical keys; one hint lists what is passed over."""
    report = reading.report
    spelled: dict[str, str] = {}
    made = Canonical({}, {}, root.at, spelled)
    defaults: dict[str, list[Scalar]] = {"target": [], "judge": []}
    for outer, holder, key, node in _values(root, reading, made.no_effect):
        role, at = _DEFAULTS.get(key), holder.keys[key]
        known = (*_DEFAULTS, *(("threshold", *_RUN) if outer == "execution" else ()))
        if role is not None and isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            defaults[role].append(node)
            made.keys.setdefault(role, at)
        elif role is not None and outer:
            report.error("bad-value", node, f"'{key}' must be the name of a target, found {kind_of(node)}")
        elif not outer:
            made.items[key], made.keys[key] = node, at
        elif key in known:
            name = f"run.{key}" if key in _RUN else "execution.threshold"
            made.items[name], made.keys[name], spelled[name] = node, at, f"{outer}.{key}"
        elif not key.startswith("x-"):
            reading.unknown_key(key, holder, known, f"'{outer}'")
    for role, given in defaults.items():
        found = one_default(role, given, None, reading)
        if found is not None:
            made.items[role] = found
    _move_settings(made, reading)
    report.remark_on_keys(made.no_effect)
    return made


def _move_settings(made: Canonical, reading: Reading) -> None:
    """Put what `execution` says of the threshold and of runs in its place."""
    threshold = made.items.pop("execution.threshold", None)
    if threshold is not None:
        if "threshold" in made.items:
            message = "'execution.threshold' and 'threshold' mean the same; keep one of them"
            reading.report.error("two-spellings", made.keys["execution.threshold"], message)
        made.items["threshold"], made.keys["threshold"] = threshold, made.keys["execution.threshold"]
    translation.gathered(made, "run", reading)
    run = made.items.get("run")
    if isinstance(run, MapNode):
        made.items["run"] = translation.run_block(run, reading)


def _values(root: MapNode, reading: Reading, passed: dict[str, Place]) -> Iterator[tuple[str, MapNode, str, Node]]:
    """The values of a configuration and of its `execution` and `defaults`, with what holds them."""
    for key, written in root.items.items():
        if key in NO_EFFECT and not (key == "results" and _is_server(written)):
            passed[key] = root.keys[key]
            continue
        node = written if key in {"providers", "targets"} else referenced(written, reading)
        if key in {"execution", "defaults"} and isinstance(node, MapNode):
            for inner, value in node.items.items():
                if key == "execution" and inner in NO_EFFECT_IN_EXECUTION:
                    passed[f"execution.{inner}"] = node.keys[inner]
                else:
                    yield key, node, inner, value
        elif node is not None and key not in {"execution", "defaults"}:
            yield "", root, key, node
        elif node is not None and not (isinstance(node, Scalar) and node.value is None):
            reading.report.error("bad-value", node, f"'{key}' must be a mapping, found {kind_of(node)}")
