"""AgentV's spellings of a configuration: `execution`, `defaults`, `file://`, and keys that mean nothing here."""

from __future__ import annotations

from agentv.authoring.fields.agentv import translation
from agentv.authoring.fields.agentv.spellings import RUN
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import MapNode, Node, Place, Scalar, kind_of
from agentv.authoring.targets.catalog import one_default
from agentv.authoring.targets.passed_over import remark_on_keys
from agentv.authoring.targets.references import referenced

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
    return _Config(reading).of(root)


class _Config:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._items: dict[str, Node] = {}
        self._keys: dict[str, Place] = {}
        self._passed: dict[str, Place] = {}
        self._defaults: dict[str, list[Scalar]] = {"target": [], "judge": []}
        self._run: dict[str, tuple[Node, Place]] = {}
        self._threshold: tuple[Node, Place] | None = None

    def of(self, root: MapNode) -> MapNode:
        for key, written in root.items.items():
            at = root.keys[key]
            if key in NO_EFFECT and not (key == "results" and _is_server(written)):
                self._passed[key] = at
                continue
            node = written if key in {"providers", "targets"} else referenced(written, self._reading)
            if node is None:
                continue
            if key in {"execution", "defaults"}:
                self._dissolve(key, node)
            elif key in self._defaults and isinstance(node, Scalar) and isinstance(node.value, str):
                self._defaults[key].append(node)
                self._keys[key] = at
            else:
                self._items[key], self._keys[key] = node, at
        self._fill(root)
        run = self._items.get("run")
        if isinstance(run, MapNode):
            self._items["run"] = translation.run_block(run, self._reading)
        remark_on_keys(self._passed, self._reading.report)
        return MapNode(self._items, self._keys, root.at)

    def _dissolve(self, outer: str, node: Node) -> None:
        """The keys of `execution` or `defaults`, where they mean something here."""
        if isinstance(node, Scalar) and node.value is None:
            return
        if not isinstance(node, MapNode):
            self._reading.report.error("bad-value", node, f"'{outer}' must be a mapping, found {kind_of(node)}")
            return
        for key, value in node.items.items():
            at = node.keys[key]
            if key in _DEFAULTS:
                self._add_default(key, value, at)
            elif outer == "execution" and key in NO_EFFECT_IN_EXECUTION:
                self._passed[f"execution.{key}"] = at
            elif outer == "execution" and key == "threshold":
                self._threshold = value, at
            elif outer == "execution" and key in _RUN:
                self._run[key] = value, at
            elif not key.startswith("x-"):
                known = (*_DEFAULTS, *(("threshold", *_RUN) if outer == "execution" else ()))
                self._reading.unknown_key(key, node, known, f"'{outer}'")

    def _add_default(self, key: str, value: Node, at: Place) -> None:
        role = _DEFAULTS[key]
        if isinstance(value, Scalar) and isinstance(value.value, str) and value.value.strip():
            self._defaults[role].append(value)
            self._keys.setdefault(role, at)
        else:
            message = f"'{key}' must be the name of a target, found {kind_of(value)}"
            self._reading.report.error("bad-value", value, message)

    def _fill(self, root: MapNode) -> None:
        for role, given in self._defaults.items():
            found = one_default(role, given, None, self._reading)
            if found is not None:
                self._items[role] = found
        if self._threshold is not None:
            self._fill_threshold(*self._threshold)
        if not self._run:
            return
        own = self._items.get("run")
        items: dict[str, Node] = dict(own.items) if isinstance(own, MapNode) else {}
        keys: dict[str, Place] = dict(own.keys) if isinstance(own, MapNode) else {}
        for key, (node, at) in self._run.items():
            if key in items:
                message = f"'{key}' is set both here and in 'run'; keep one of them"
                self._reading.report.error("two-spellings", at, message)
            items[key], keys[key] = node, at
        self._items["run"] = MapNode(items, keys, own.at if own is not None else root.at)
        self._keys.setdefault("run", root.at)

    def _fill_threshold(self, node: Node, at: Place) -> None:
        if "threshold" in self._items:
            message = "'execution.threshold' and 'threshold' mean the same; keep one of them"
            self._reading.report.error("two-spellings", at, message)
        self._items["threshold"], self._keys["threshold"] = node, at
