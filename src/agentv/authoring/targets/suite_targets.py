"""Reads a project's files of targets, targets in separate files (`file://providers.yaml`), and a suite's targets."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.fields.spellings import TARGET
from agentv.authoring.fields.translation import translated_target
from agentv.authoring.source.files import Places, is_file, shown, upwards
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
    Canonical,
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    holds_placeholder,
    is_empty,
    node_of,
    plain,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_shared
from agentv.authoring.targets.registry import PASTE, TargetRegistry
from agentv.authoring.targets.target import read_target
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.values import Json, Span
from agentv.registry.types import Provider, Registry

_FILE = "file://"
_SUFFIXES = (".yaml", ".yml", ".json")


def is_reference(node: Node | None) -> bool:
    """Whether a node refers to a YAML or JSON file: `file://providers.yaml`."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return False
    written = node.value.strip()
    return written.startswith(_FILE) and written.endswith(_SUFFIXES)


def referenced(node: Node, reading: Reading) -> Node | None:
    """The node, or the content of the file to which it refers; None after reporting that it cannot be read."""
    found, _, _ = _followed(node, reading, ())
    return found


def entries_of(node: Node, reading: Reading, chain: tuple[str, ...] = ()) -> Iterator[tuple[Node, Reading]]:
    """The entries of a list with the contexts to read them in. The list and each entry may be in a file of its own."""
    found, reading, chain = _followed(node, reading, chain)
    if isinstance(found, MapNode) and chain:  # a file of targets, or of one target
        found = next((found.items[key] for key in ("providers", "targets") if key in found.items), found)
    if isinstance(found, ListNode):
        for item in found.items:
            yield from entries_of(item, reading, chain) if is_reference(item) else iter([(item, reading)])
    elif found is not None and is_reference(found):
        yield from entries_of(found, reading, chain)
    elif found is not None:
        yield found, reading


def _followed(node: Node, reading: Reading, chain: tuple[str, ...]) -> tuple[Node | None, Reading, tuple[str, ...]]:
    """The node to which a reference leads, perhaps over several files, its context, and the files on the way."""
    while isinstance(node, Scalar) and is_reference(node):
        beside = replace(reading, places=replace(reading.places, alone=False, _found={}))
        path = beside.find(Scalar(node.value, node.text.strip(), node.at), "file")
        if path is None:
            return None, reading, chain
        if path in chain:
            circle = " → ".join(map(shown, (*chain, path)))
            reading.report.error("target-cycle", node, f"target files refer to each other in a circle: {circle}")
            return None, reading, chain
        text = reading.text_of(path, node)
        root = read_shared(path, text, reading.report) if text is not None else None
        if root is None:
            return None, reading, chain
        chain = (*chain, path)
        node, reading = root, reading.rendering(reading.renders or holds_placeholder(root))
    return node, reading, chain


_FILES = ("targets.yaml", "targets.yml", "providers.yaml", "providers.yml")
_LISTS = ("targets", "providers")
_SCHEMA = frozenset({"$schema", "schema"})
_ROLES = {"target": ("target", "provider"), "judge": ("judge", "grader"), "user": ("user",)}
"""Role for which a project can set a default → its keys, the canonical one first."""


def open_registry(
    directory: str, providers: Registry[Provider], reading: Reading, *, more: tuple[Node, Reading] | None = None
) -> TargetRegistry:
    """The targets of the closest `.agentv` with a file of targets, in a directory or above it.

    Args:
        directory: where the search starts.
        providers: the known providers.
        reading: context of the suite.
        more: `providers` of the configuration, with its context. The targets of the closer file take precedence.
    """
    folders = (Path(parent) / ".agentv" for parent in upwards(directory, reading.places.root))
    found = ([path for name in _FILES if is_file(path := str(folder / name))] for folder in folders)
    paths = next(filter(None, found), [])
    registry = TargetRegistry(providers, paths[0] if paths else None)
    home = str(Path(paths[0]).parent.parent) if paths else ""
    if more is not None and len(more[1].places.suite) > len(home):
        _enter_configured(registry, more, ())
    for path in paths:
        _read_file(registry, path, home, reading)
    if more is not None and len(more[1].places.suite) <= len(home):
        _enter_configured(registry, more, registry.entries if more[1].places.suite != home else ())
    return registry


def places_of(home: str, reading: Reading) -> Places:
    """The places for paths in a project file, which are relative to the directory that contains `.agentv`."""
    places = reading.places
    return Places(home, places.root, alone=True, climbs=False, boundary=places.boundary, beside=places.suite)


def _read_file(registry: TargetRegistry, path: str, home: str, reading: Reading) -> None:
    report = reading.report.section()
    text = reading.reporting_to(report).text_of(path, Scalar(path, path, Span.start_of(path)))
    root = read_shared(path, text, report) if text is not None else None
    if root is None:
        registry.unreadable = registry.unreadable or report.failed
        return
    own = replace(reading, places=places_of(home, reading), renders=True)
    registry.first_reading = registry.first_reading or own
    name = Path(path).name
    if isinstance(root, ListNode) or is_reference(root):
        root = MapNode({"targets": root}, {"targets": root.at}, root.at)
    if not isinstance(root, MapNode):
        own.report.unfit(root, f"{name} must be a mapping with 'targets'")
        return
    known = (*_LISTS, "defaults")
    passed: dict[str, Place] = {}
    for key, at in root.keys.items():
        if key in _SCHEMA:
            passed[key] = at
        elif key not in known and not key.startswith("x-"):
            own.unknown_key(key, root, known, name)
    for key in _LISTS:
        passed |= _enter_all(registry, key, root.get(key), own)
    own.report.remark_on_keys(passed)
    _fill_defaults(registry, root.get("defaults"), own)


def _enter_all(registry: TargetRegistry, key: str, listed: Node | None, reading: Reading) -> dict[str, Place]:
    """Enter the targets of a list, and return their keys that have no effect."""
    passed: dict[str, Place] = {}
    if listed is not None and not isinstance(listed, ListNode) and not is_reference(listed):
        hint = "write each target as '- name: NAME'" if isinstance(listed, MapNode) else None
        reading.report.unfit(listed, f"'{key}' must be a list", hint=hint)
        return passed
    for entry, own in entries_of(listed, reading) if listed is not None else ():
        passed |= _enter(registry, entry, own)
    return passed


def _enter_configured(registry: TargetRegistry, more: tuple[Node, Reading], outer: Iterable[str]) -> None:
    """Enter the targets of a configuration, except those whose names are in `outer`, from a closer file."""
    closer, (node, reading) = frozenset(outer), more
    if not isinstance(node, ListNode) and not is_reference(node):
        reading.report.unfit(node, "'providers' must be a list")
        return
    registry.first_reading = registry.first_reading or reading
    for entry, own in entries_of(node, reading):
        _enter(registry, entry, own, closer)


def _fill_defaults(registry: TargetRegistry, defaults: Node | None, reading: Reading) -> None:
    if defaults is None:
        return
    if not isinstance(defaults, MapNode):
        reading.report.unfit(defaults, "'defaults' must be a mapping")
        return
    known = [key for keys in _ROLES.values() for key in keys]
    for key, node in defaults.items.items():
        if key not in known:
            reading.unknown_key(key, defaults, tuple(_ROLES), "'defaults'")
        elif not isinstance(node, Scalar) or not isinstance(node.value, str):
            reading.report.unfit(node, f"'{key}' must be the name of a target")
    registry.default_target = one_default("target", _values(defaults, "target"), registry.default_target, reading)
    registry.default_judge = one_default("judge", _values(defaults, "judge"), registry.default_judge, reading)
    registry.default_user = one_default("user", _values(defaults, "user"), registry.default_user, reading)


def _values(defaults: MapNode, role: str) -> list[Scalar]:
    """The values of a default, one for each spelling of its key."""
    found = (defaults.get(key) for key in _ROLES[role])
    return [node for node in found if isinstance(node, Scalar) and isinstance(node.value, str) and node.value]


def one_default(role: str, given: Iterable[Scalar], other: Scalar | None, reading: Reading) -> Scalar | None:
    """The default for a role. If several places of a project set different ones, this is reported."""
    for node in given:
        if other is None:
            other = node
        elif node.text.strip() != other.text.strip():
            place = span_of(other.at)
            message = f"the default {role} is '{node.text}' here and '{other.text}' in {shown(place.file)}:{place.line}"
            reading.report.error("conflicting-defaults", node, message, hint="keep one of them")
    return other


def _correct_name(made: Canonical, reading: Reading) -> None:
    """Report a misspelling of the key `name`, if there is one, and correct it."""
    misspelt = next(
        (key for key in made.items if key not in TARGET.known and nearest(key, TARGET.known) == "name"), None
    )
    if misspelt is not None:
        reading.unknown_key(misspelt, made, ("name",), "a target")
        made.items["name"], made.keys["name"] = made.items.pop(misspelt), made.keys[misspelt]


def _enter(registry: TargetRegistry, entry: Node, reading: Reading, closer: Container[str] = ()) -> Mapping[str, Place]:
    """Enter a target, unless a closer file has one with its name, and return its keys that have no effect."""
    if isinstance(entry, Scalar) and isinstance(entry.value, str) and ":" in entry.value:
        return {}  # a `provider:rest` string is a target wherever it is named
    if not isinstance(entry, MapNode):
        reading.report.unfit(entry, "a target must be a mapping")
        return {}
    own = reading.reporting_to(reading.report.empty_copy())  # errors are reported where the target is used
    made = translated_target(entry, registry.providers, own)
    if "name" not in made.items:
        _correct_name(made, reading)
    name = made.get("name")
    if not isinstance(name, Scalar) or is_empty(name):
        reading.report.error("missing-key", name or entry, "a target needs 'name'")
        return made.no_effect
    if name.text in closer:
        return {}
    first = registry.entries.get(name.text)
    if first is None:
        registry.entries[name.text], registry.homes[name.text] = made, own
        return made.no_effect
    place, here = span_of(first.at), span_of(made.at)
    if place == here:
        pass  # the same file under two names
    elif place.file == here.file:
        message = f"two targets are named '{name.text}'; the first is at line {place.line}"
        reading.report.error("duplicate-target", name, message)
    elif plain(first) != plain(made):
        message = f"target '{name.text}' has other settings in {shown(place.file)}:{place.line}"
        reading.report.error("duplicate-target", name, message, hint="keep one of them")
    return made.no_effect


PASTE_MODEL = """name one on the command line: --target {provider}:MODEL, or in .agentv/targets.yaml
  defaults:
    target: {provider}:MODEL"""


class SuiteTargets(Struct, frozen=True):
    """The targets and judges of one suite.

    Attributes:
        path: path of the eval file.
        of_targets, of_judge, of_default_judge: errors in them, kept until it is known whether a case uses them.
    """

    request: LoadRequest
    registry: TargetRegistry
    path: str
    of_targets: Report = field(default_factory=Report)
    of_judge: Report = field(default_factory=Report)
    of_default_judge: Report = field(default_factory=Report)

    def asked(self, node: Node | None, reading: Reading) -> Iterator[TargetSpec]:
        """The systems under test: those of the request, or else `node`, the eval file's targets.

        Two targets with the same name are reported, because their rows could not be distinguished. From now on, the
        command line and cases can use the names of the targets that the eval file defines.
        """
        unread = reading.reporting_to(reading.report.empty_copy())  # errors are reported when a target is read
        for item, own in () if node is None or is_empty(node) else entries_of(node, unread):
            if not isinstance(item, MapNode):
                continue
            made = translated_target(item, self.registry.providers, own)
            name = own.rendered(made.items["name"]) if "name" in made.items else None
            if isinstance(name, Scalar) and not is_empty(name):
                self.registry.enter_own(name.text.strip(), made, item, own)
        first: dict[str, Node | None] = {}
        for target, at in self._named(node, reading):
            if target is None:
                continue
            if target.name in first:
                self._report_twice(target.name, at, first[target.name], reading)
            else:
                first[target.name] = at
                yield target

    def _named(self, node: Node | None, reading: Reading) -> Iterator[tuple[TargetSpec | None, Node | None]]:
        """Each target, or None if it is invalid, with the node in a file that names it."""
        if self.request.given_target is not None:
            yield self._given(self.request.given_target, reading), None
        elif self.request.targets:
            for name in self.request.targets:
                yield self.registry.typed(name, reading), None
        elif node is None or is_empty(node):
            default = self.registry.default_target
            later = self.of_targets
            found = self.registry.resolve(default.text, default, reading, later=later) if default else None
            yield found, default
        else:
            for item, own in entries_of(node, reading):
                yield self.registry.inline(item, own, later=self.of_targets), item

    def judge(self, node: Node | None, reading: Reading) -> TargetSpec | None:
        """The judge of the eval file."""
        if node is None:
            return None
        found = self.registry.inline(node, reading, later=self.of_judge)
        if found is None:
            self.of_judge.fail()
        return found

    def forced_judge(self, reading: Reading) -> TargetSpec | None:
        """The judge of the request, from the command line or from Python."""
        if self.request.given_judge is not None:
            return self._given(self.request.given_judge, reading)
        return self.registry.typed(self.request.judge, reading) if self.request.judge is not None else None

    def default_judge(self, reading: Reading) -> TargetSpec | None:
        """The project's default judge."""
        default = self.registry.default_judge
        if default is None:
            return None
        found = self.registry.resolve(default.text, default, reading, later=self.of_default_judge)
        if found is None:
            self.of_default_judge.fail()
        return found

    def settle(self, suite: Suite, reading: Reading, *, untargeted: bool, judged: bool) -> None:
        """Report errors in the suite's targets and judges that are used, once all cases were read.

        Args:
            suite: the suite, with those targets and judges that are valid.
            reading: context of the suite.
            untargeted: a case has no target of its own.
            judged: an assertion needs the suite's judge.
        """
        judged = judged and suite.forced_judge is None
        named = suite.judge is not None or bool(self.of_judge.diagnostics)
        by_targets = bool(suite.targets) and all(target.judge for target in suite.targets)
        self.registry.settle(self.of_targets, reading, used=untargeted)
        self.registry.settle(self.of_judge, reading, used=judged)
        self.registry.settle(self.of_default_judge, reading, used=judged and not named and not by_targets)

    def need(self, node: Node | None, span: Span | None, reading: Reading, *, untargeted: bool) -> None:
        """Report a missing target if a case has none of its own and nothing else names one."""
        request = self.request
        named = (
            request.given_target is not None or request.targets or not is_empty(node) or self.registry.default_target
        )
        if request.for_run and untargeted and not named and not self.registry.unreadable:
            message, provider = "no target is set, so there is nothing to test", self.registry.default_provider
            paste = PASTE if provider is None else PASTE_MODEL.replace("{provider}", provider)
            reading.report.error("no-target", span, message, notes=paste.splitlines())

    def _report_twice(self, name: str, at: Node | None, first: Node | None, reading: Reading) -> None:
        if at is None or first is None:
            reading.report.error("duplicate-target", None, f"--target '{name}' is given twice")
            return
        written = self._name_of(at, reading)
        subject = f"two targets are named '{name}'"
        if isinstance(written, Scalar) and written.text.strip() != name:
            subject = f"'{written.text}' means the target '{name}', which is named twice"
        message = f"{subject}; the first is at line {span_of(self._name_of(first, reading).at).line}"
        hint = "give each a different 'name'" if isinstance(at, MapNode) or isinstance(first, MapNode) else None
        reading.report.error("duplicate-target", written, message, hint=hint)

    def _name_of(self, node: Node, reading: Reading) -> Node:
        """The node with the name of an inline target, or the whole node if it has none."""
        if not isinstance(node, MapNode):
            return node
        made = translated_target(node, self.registry.providers, reading.reporting_to(reading.report.empty_copy()))
        return made.get("name") or node

    def _given(self, given: TargetSpec | Mapping[str, Json], reading: Reading) -> TargetSpec | None:
        if isinstance(given, TargetSpec):
            return given
        node = node_of(given, Span.start_of(self.path))
        assert isinstance(node, MapNode)  # noqa: S101  # made from a mapping
        reading = reading.rendering(False)
        made = translated_target(node, self.registry.providers, reading)
        return read_target(made, self.registry.providers, reading, self.registry.retry)
