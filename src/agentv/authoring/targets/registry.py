"""The targets that a directory can name: those of `.agentv/targets.yaml`, and `provider:rest` strings (section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.trust import refuse_data, refuses_provider, refuses_target
from agentv.authoring.source.files import Places, nearest_in_agentv, shown
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import (
    NOWHERE,
    ListNode,
    MapNode,
    Node,
    Scalar,
    holds_placeholder,
    is_empty,
    kind_of,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import TARGET
from agentv.authoring.source.yaml import read_shared
from agentv.authoring.targets.target import (
    PLUGINS_COMMAND,
    flattened,
    provider_name,
    read_target,
    report_older_provider,
)
from agentv.lazy_dataclass import dataclass
from agentv.model.suite.suite import DEFAULT_RETRY, Retry, TargetSpec
from agentv.model.values.span import Span
from agentv.registry.table import Registry
from agentv.registry.types import Provider

PASTE = """write a .agentv/targets.yaml such as
  targets:
    - name: my-agent
      provider: cli
      command: ./my-agent {PROMPT}
  defaults:
    target: my-agent
or name one on the command line: --target 'cli:./my-agent {PROMPT}'"""

DEFAULT = "default"
"""The name that means the project's default target where no target is called so."""


@dataclass(slots=True)
class TargetRegistry:
    """The targets that one directory can name.

    Attributes:
        path: the `targets.yaml` in force; None where there is none.
        default_target, default_judge: names from its `defaults`.
        retry: of the suite; what a target says of it wins.
        lone_models: a name that means nothing else is the id of a model of Anthropic's, as exams have it.
    """

    providers: Registry[Provider]
    path: str | None = None
    default_target: Scalar | None = None
    default_judge: Scalar | None = None
    retry: Retry = DEFAULT_RETRY
    lone_models: bool = False
    _entries: dict[str, MapNode] = field(default_factory=dict)
    _reading: Reading | None = None
    _read: dict[str, TargetSpec | None] = field(default_factory=dict)
    _lone: dict[str, str] = field(default_factory=dict)
    _specs: dict[tuple[str, str, bool], TargetSpec] = field(default_factory=dict)

    def resolve(self, written: str, at: Node | None, reading: Reading) -> TargetSpec | None:
        """The target of a name or a `provider:rest` string; None when there is none, which is reported."""
        if written in self._entries:
            return self._named(written, reading)
        if reading.data and refuses_target(
            Scalar(written, written, at.at if at is not None else NOWHERE), reading.report
        ):
            return None
        default = self.default_target
        if written == DEFAULT and default is not None and default.text != DEFAULT:
            return self.resolve(default.text, default, self._reading or reading)
        if self.lone_models and ":" not in written:
            if written not in self._lone:
                self._lone[written] = self._of_anthropic(written)
            written = self._lone[written]
        key = (written, reading.places.suite, reading.places.typed)  # what paths in it mean
        if key not in self._specs:
            found = self._from_string(written, at, reading.rendering(False))
            if found is None:
                return None  # and reported again at the next place that names it
            self._specs[key] = found
        return self._specs[key]

    def _of_anthropic(self, written: str) -> str:
        """The `provider:model` string that a lone id of a model stands for; nothing that is nearly a name is one."""
        if written == DEFAULT or provider_name(written) in self.providers.not_yet:
            return written
        known = (*self._entries, *self.providers.names)
        return written if nearest(provider_name(written), known) else f"anthropic:{written}"

    def inline(self, node: Node, reading: Reading) -> TargetSpec | None:
        """The target that a node says: a string to resolve, or a mapping of settings."""
        found = reading.rendered(node) if isinstance(node, Scalar) else node
        if isinstance(found, Scalar) and isinstance(found.value, str) and found.value.strip():
            return self.resolve(found.value.strip(), found, reading)
        if isinstance(found, MapNode):
            if reading.data and self._refuses_settings(found, reading):
                return None
            return read_target(found, self.providers, reading, self.retry)
        if found is not None:
            reading.report.error("bad-value", found, f"a target must be a name or a mapping, found {kind_of(found)}")
        return None

    def _refuses_settings(self, node: MapNode, reading: Reading) -> bool:
        """Whether data spells out a target that it may not, which is then reported."""
        provider = flattened(node, self.providers).get("provider")
        name = provider_name(provider.text) if isinstance(provider, Scalar) else ""
        if not refuses_provider(name, alone=False):
            return False
        refuse_data(node, reading.report, "write a name: a target in .agentv/targets.yaml, or 'provider:model'")
        return True

    def judge_of(self, name: str) -> Node | None:
        """Where the target of that name names its judge."""
        entry = self._entries.get(name)
        spelled = TARGET.spelled("judge") if entry is not None else ()
        return next((entry.items[key] for key in spelled if entry and key in entry.items), None)

    def check(self) -> None:
        """Read every target of the file, used or not, so that `validate` finds all its mistakes."""
        for name in self._entries:
            if self._reading is not None:
                self._named(name, self._reading)

    @property
    def entries(self) -> Mapping[str, MapNode]:
        """The targets of the file by their names, as they are written."""
        return self._entries

    def read_alone(self, name: str, report: Report) -> TargetSpec | None:
        """One target of the file, and what is wrong with it in a report of its own."""
        if self._reading is None:
            return None
        return read_target(self._entries[name], self.providers, replace(self._reading, report=report))

    def _named(self, name: str, reading: Reading) -> TargetSpec | None:
        if name not in self._read:
            at = self._reading or reading
            self._read[name] = read_target(self._entries[name], self.providers, at, self.retry)
        return self._read[name]

    def _from_string(self, written: str, at: Node | None, reading: Reading) -> TargetSpec | None:
        _, colon, rest = written.partition(":")
        name = provider_name(written)
        if name in self.providers.not_yet:
            reading.report.error("not-yet", at, f"the provider '{name}' is recognized but not supported yet")
            return None
        provider = self.providers.find(name)
        report_older_provider(written, at, reading.report)
        if provider is None or (not colon and not provider.bare):
            self._unknown(written, at, reading, bare=provider)
            return None
        place: Any = at.at if at is not None else NOWHERE
        said = f"{name}:{rest}" if colon else name
        pairs: dict[str, Node] = {"name": Scalar(written, written, place), "provider": Scalar(said, said, place)}
        made = MapNode(pairs, dict.fromkeys(pairs, place), place)
        return read_target(made, self.providers, reading, self.retry)

    def _unknown(self, written: str, at: Node | None, reading: Reading, *, bare: Provider | None) -> None:
        notes = [f"looked in {shown(self.path)}" if self.path else "no .agentv/targets.yaml was found"]
        if reading.report.crowded:
            reading.report.error("unknown-target", at, f"no target '{written}'", notes=notes)
            return
        problem = self.providers.problem(provider_name(written))
        if problem is not None:
            reading.report.error(problem.code, at, problem.message, hint=problem.hint, notes=(PLUGINS_COMMAND,))
            return
        hint = did_you_mean(written.partition(":")[0].strip(), [*self._entries, *self.providers.names])
        if bare is not None:
            hint = f"as a provider, it needs a setting: write '{bare.name}:…'" if bare.settings.short else None
        elif hint is None and self._entries:
            notes.append(f"there are {', '.join(self._entries)}")
        if written == DEFAULT:
            hint = None
            notes += [] if self._entries else PASTE.splitlines()
        reading.report.error("unknown-target", at, f"no target '{written}'", hint=hint, notes=notes)


def open_registry(directory: str, providers: Registry[Provider], reading: Reading) -> TargetRegistry:
    """The closest `.agentv/targets.yaml` above a directory."""
    path, _ = nearest_in_agentv(directory, reading.places.root, "targets.yaml", "targets.yml")
    registry = TargetRegistry(providers, path)
    text = reading.text_of(path, Scalar(path, path, Span(path, 1, 1, 1, 2))) if path else None
    root = read_shared(path, text, reading.report) if text is not None and path else None
    if root is None or path is None:
        return registry
    home = str(Path(path).parent.parent)
    places = Places(home, reading.places.root, alone=True, boundary=reading.places.boundary)
    registry._reading = replace(reading, places=places, renders=holds_placeholder(root))  # noqa: SLF001
    _fill(registry, root, registry._reading)  # noqa: SLF001
    return registry


def _fill(registry: TargetRegistry, root: Node, reading: Reading) -> None:
    if isinstance(root, ListNode):
        root = MapNode({"targets": root}, {"targets": root.at}, root.at)
    if not isinstance(root, MapNode):
        reading.report.error("bad-value", root, f"targets.yaml must be a mapping with 'targets', found {kind_of(root)}")
        return
    for key in root.items:
        if key not in {"targets", "defaults"} and not key.startswith("x-"):
            reading.unknown_key(key, root, ("targets", "defaults"), "targets.yaml")
    listed = root.get("targets")
    if listed is not None and not isinstance(listed, ListNode):
        reading.report.error("bad-value", listed, f"'targets' must be a list, found {kind_of(listed)}")
    for entry in listed.items if isinstance(listed, ListNode) else ():
        _enter(registry, entry, reading)
    _fill_defaults(registry, root.get("defaults"), reading)


def _fill_defaults(registry: TargetRegistry, defaults: Node | None, reading: Reading) -> None:
    if defaults is None:
        return
    if not isinstance(defaults, MapNode):
        reading.report.error("bad-value", defaults, f"'defaults' must be a mapping, found {kind_of(defaults)}")
        return
    for key, node in defaults.items.items():
        if key not in {"target", "judge"}:
            reading.unknown_key(key, defaults, ("target", "judge"), "'defaults'")
        elif not isinstance(node, Scalar) or not isinstance(node.value, str):
            reading.report.error("bad-value", node, f"'{key}' must be the name of a target, found {kind_of(node)}")
    registry.default_target = _text_node(defaults.get("target"))
    registry.default_judge = _text_node(defaults.get("judge"))


def _text_node(node: Node | None) -> Scalar | None:
    return node if isinstance(node, Scalar) and isinstance(node.value, str) and node.value else None


def _enter(registry: TargetRegistry, entry: Node, reading: Reading) -> None:
    if not isinstance(entry, MapNode):
        reading.report.error("bad-value", entry, f"a target must be a mapping, found {kind_of(entry)}")
        return
    flat = flattened(entry, registry.providers)
    name = next((node for key in TARGET.spelled("name") if (node := flat.get(key)) is not None), None)
    if not isinstance(name, Scalar) or is_empty(name):
        reading.report.error("missing-key", name or entry, "a target needs 'name'")
        return
    entries = registry._entries  # noqa: SLF001  # the registry is being made
    if name.text in entries:
        first = span_of(entries[name.text].at).line
        message = f"two targets are named '{name.text}'; the first is at line {first}"
        reading.report.error("duplicate-target", name, message)
        return
    entries[name.text] = flat
