"""Targets: from `.agentv/targets.yaml`, inline, or as `provider:rest` strings (SPEC section 12)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentv.model.span import Span
from agentv.model.suite import TargetSpec
from agentv.registry.table import Registry
from agentv.registry.types import Provider
from agentv.spec.decode import FILE, INVALID, shape_of
from agentv.spec.files import Places, nearest_in_agentv
from agentv.spec.nearest import did_you_mean
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, kind_of, plain
from agentv.spec.reading import Reading
from agentv.spec.schema import AuthoredTarget
from agentv.spec.spellings import SETTINGS, TARGET, translate
from agentv.spec.yaml import read_yaml
from agentv.templating import has_placeholder

PASTE = """write a .agentv/targets.yaml such as
  targets:
    - name: my-agent
      provider: cli
      command: ./my-agent {PROMPT}
  defaults:
    target: my-agent
or name one on the command line: --target 'cli:./my-agent {PROMPT}'"""

JUDGE_PASTE = """name one with --judge, AGENTV_JUDGE, 'judge:' in the eval file, or in .agentv/targets.yaml
  defaults:
    judge: my-judge"""

_SECRET = re.compile(r"(?:.*[_-])?(?:api_?key|token|secret|authorization|password)", re.IGNORECASE)
_COUNTS = frozenset({"max_tokens", "token"})
MASK = "[redacted]"


@dataclass(slots=True)
class TargetBook:
    """The targets that one directory can name.

    Attributes:
        path: the `targets.yaml` in force; None where there is none.
        default_target, default_judge: names from its `defaults`.
    """

    providers: Registry[Provider]
    path: str | None = None
    default_target: Scalar | None = None
    default_judge: Scalar | None = None
    _entries: dict[str, MapNode] = field(default_factory=dict)
    _reading: Reading | None = None
    _specs: dict[str, TargetSpec | None] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names that targets.yaml defines."""
        return list(self._entries)

    def resolve(self, written: str, at: Node | None, reading: Reading) -> TargetSpec | None:
        """The target of a name or a `provider:rest` string; None when there is none, which is reported."""
        if written == "default" and written not in self._entries and self.default_target is not None:
            return self.resolve(self.default_target.text, self.default_target, self._reading or reading)
        if written in self._entries:
            return self._named(written, reading)
        if written not in self._specs:
            self._specs[written] = self._from_string(written, at, reading)
        return self._specs[written]

    def inline(self, node: Node, reading: Reading) -> TargetSpec | None:
        """The target that a node says: a string to resolve, or a mapping of settings."""
        node = reading.rendered(node) if isinstance(node, Scalar) else node
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            return self.resolve(node.value.strip(), node, reading)
        if isinstance(node, MapNode):
            return read_target(node, self.providers, reading)
        reading.report.error("bad-value", node, f"a target is a name or a mapping, found {kind_of(node)}")
        return None

    def check(self) -> None:
        """Read every target of the file, used or not, so that `validate` finds all its mistakes."""
        for name in self._entries:
            if self._reading is not None:
                self._named(name, self._reading)

    def _named(self, name: str, reading: Reading) -> TargetSpec | None:
        if name not in self._specs:
            self._specs[name] = read_target(self._entries[name], self.providers, self._reading or reading)
        return self._specs[name]

    def _from_string(self, written: str, at: Node | None, reading: Reading) -> TargetSpec | None:
        head, colon, rest = written.partition(":")
        name = head.strip().lower().replace("_", "-")
        if name in self.providers.not_yet:
            reading.report.error("not-yet", at, f"the provider '{name}' is known and not supported yet")
            return None
        provider = self.providers.find(name)
        if provider is None or (not colon and not provider.bare):
            self._unknown(written, at, reading, bare=provider)
            return None
        place: Any = at.at if at is not None else Span("", 0, 0, 0, 0)
        pairs: dict[str, Node] = {"name": Scalar(written, written, place), "provider": Scalar(name, name, place)}
        if colon:
            short = provider.settings.short
            if short is None:
                reading.report.error("bad-target", at, f"'{name}' takes nothing after the colon, found '{rest}'")
                return None
            pairs[short] = Scalar(rest, rest, place)
        return read_target(MapNode(pairs, dict.fromkeys(pairs, place), place), self.providers, reading)

    def _unknown(self, written: str, at: Node | None, reading: Reading, *, bare: Provider | None) -> None:
        notes = [f"looked in {self.path}" if self.path else "no .agentv/targets.yaml was found"]
        hint = did_you_mean(written.partition(":")[0], [*self._entries, *self.providers])
        if bare is not None:
            hint = f"as a provider it needs a setting: write '{bare.name}:…'" if bare.settings.short else None
        if written == "default":
            hint, notes = None, [*notes, *PASTE.splitlines()]
        reading.report.error("unknown-target", at, f"no target '{written}'", hint=hint, notes=notes)


def open_book(directory: str, providers: Registry[Provider], reading: Reading) -> TargetBook:
    """The closest `.agentv/targets.yaml` above a directory."""
    path, _ = nearest_in_agentv(directory, reading.places.root, "targets.yaml")
    if path is None:
        path, _ = nearest_in_agentv(directory, reading.places.root, "targets.yml")
    book = TargetBook(providers, path)
    text = reading.text_of(path, Scalar(path, path, Span(path, 1, 1, 1, 2))) if path else None
    root = read_yaml(path, text.encode(), reading.report) if text is not None and path else None
    if root is None or path is None or text is None:
        return book
    home = str(Path(path).parent.parent)
    scope = reading.scope if has_placeholder(text) else None
    from dataclasses import replace

    book._reading = replace(reading, places=Places(home, reading.places.root, alone=True), scope=scope)  # noqa: SLF001
    _fill(book, root, book._reading)  # noqa: SLF001
    return book


def _fill(book: TargetBook, root: Node, reading: Reading) -> None:
    if isinstance(root, ListNode):
        root = MapNode({"targets": root}, {"targets": root.at}, root.at)
    if not isinstance(root, MapNode):
        reading.report.error("bad-value", root, f"targets.yaml is a mapping with 'targets', found {kind_of(root)}")
        return
    for key in root.items:
        if key not in {"targets", "defaults"} and not key.startswith("x-"):
            reading.unknown_key(key, root, ("targets", "defaults"), "targets.yaml")
    listed = root.get("targets")
    if listed is not None and not isinstance(listed, ListNode):
        reading.report.error("bad-value", listed, f"'targets' must be a list, found {kind_of(listed)}")
    for entry in listed.items if isinstance(listed, ListNode) else ():
        _enter(book, entry, reading)
    _fill_defaults(book, root.get("defaults"), reading)


def _fill_defaults(book: TargetBook, defaults: Node | None, reading: Reading) -> None:
    if defaults is None:
        return
    if not isinstance(defaults, MapNode):
        reading.report.error("bad-value", defaults, f"'defaults' must be a mapping, found {kind_of(defaults)}")
        return
    for key, node in defaults.items.items():
        if key not in {"target", "judge"}:
            reading.unknown_key(key, defaults, ("target", "judge"), "'defaults'")
        elif not isinstance(node, Scalar) or not isinstance(node.value, str):
            reading.report.error("bad-value", node, f"'{key}' must name a target, found {kind_of(node)}")
    book.default_target = _text_node(defaults.get("target"))
    book.default_judge = _text_node(defaults.get("judge"))


def _text_node(node: Node | None) -> Scalar | None:
    return node if isinstance(node, Scalar) and isinstance(node.value, str) and node.value else None


def _enter(book: TargetBook, entry: Node, reading: Reading) -> None:
    if not isinstance(entry, MapNode):
        reading.report.error("bad-value", entry, f"a target must be a mapping, found {kind_of(entry)}")
        return
    name = next((node for key in ("name", "id", "label") if (node := entry.get(key)) is not None), None)
    if not isinstance(name, Scalar) or not name.text.strip() or name.value is None:
        reading.report.error("missing-key", entry, "a target needs 'name'")
        return
    entries = book._entries  # noqa: SLF001
    if name.text in entries:
        first = entries[name.text].at
        from agentv.spec.nodes import span_of

        reading.report.error(
            "duplicate-target", name, f"two targets are called '{name.text}'; first at line {span_of(first).line}"
        )
        return
    entries[name.text] = entry


def read_target(node: MapNode, providers: Registry[Provider], reading: Reading) -> TargetSpec | None:
    """A target out of its mapping; None when something is wrong, which is reported."""
    before = reading.report.errors
    translated = translate(_flattened(node), TARGET, reading.report)
    map_node = translated.map
    common = {key: one for key, one in translated.items.items() if key in TARGET.canonical}
    authored = shape_of(AuthoredTarget).decode(common, map_node, reading, "a target")
    provider = _provider(map_node, providers, reading)
    if authored is INVALID or provider is None:
        return None
    own = {SETTINGS.get(key, key): one for key, one in translated.items.items() if key not in TARGET.canonical}
    _, colon, rest = authored.provider.partition(":")
    if colon and provider.settings.short:
        own[provider.settings.short] = Scalar(rest, rest, map_node.items["provider"].at)
    settings = shape_of(provider.settings).decode(
        own, map_node, reading, f"a {provider.name} target", known=TARGET.known
    )
    if settings is INVALID or reading.report.errors > before:
        return None
    rendered = {key: plain(reading.rendered(one)) if reading.scope else plain(one) for key, one in own.items()}
    shown, secrets = mask({**rendered, "env": dict(authored.env)})
    reading.secrets.update(secrets)
    return TargetSpec(
        name=authored.name or authored.provider,
        provider=provider.name,
        settings=settings,
        env=authored.env,
        judge=authored.judge,
        workers=authored.workers,
        timeout_s=authored.timeout_s,
        allow_empty=authored.allow_empty,
        secrets=frozenset(secrets),
        public={"provider": provider.name, **shown},
        fingerprint=_fingerprint(provider.name, shown, settings, reading),
    )


def _flattened(node: MapNode) -> MapNode:
    """`config:` (newer AgentV) dissolved into the mapping that holds it."""
    config = node.get("config")
    if not isinstance(config, MapNode):
        return node
    items = {key: one for key, one in node.items.items() if key != "config"}
    return MapNode({**config.items, **items}, {**config.keys, **node.keys}, node.at)


def _provider(node: MapNode, providers: Registry[Provider], reading: Reading) -> Provider | None:
    said = node.get("provider")
    if not isinstance(said, Scalar) or not isinstance(said.value, str):
        if said is None:
            reading.report.error("missing-key", node, f"a target needs 'provider': one of {', '.join(providers)}")
        return None
    name = said.value.partition(":")[0].strip().lower().replace("_", "-")
    if name in providers.not_yet:
        reading.report.error("not-yet", said, f"the provider '{name}' is known and not supported yet")
        return None
    provider = providers.find(name)
    if provider is None:
        hint = did_you_mean(name, providers)
        notes = () if hint else (f"there are: {', '.join(providers)}",)
        reading.report.error("unknown-provider", said, f"no provider '{name}'", hint=hint, notes=notes)
    return provider


def mask(settings: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The settings with secrets masked, and the secrets: under `api_key`, `*_token`, `*_secret`, `authorization`."""
    secrets: set[str] = set()

    def masked(value: Any, *, hide: bool) -> Any:
        if isinstance(value, Mapping):
            return {key: masked(one, hide=hide or is_secret(key)) for key, one in value.items()}
        if isinstance(value, list):
            return [masked(one, hide=hide) for one in value]
        if hide and value not in (None, ""):
            secrets.update(_pieces(str(value)))
            return MASK
        return value

    return {key: masked(one, hide=is_secret(key)) for key, one in settings.items()}, secrets


def is_secret(key: str) -> bool:
    """Whether what a key holds must never be written."""
    return key.lower() not in _COUNTS and _SECRET.fullmatch(key) is not None


def _pieces(value: str) -> Iterator[str]:
    """A secret, and its words: `Bearer sk-…` is as secret without its first word."""
    yield value
    yield from (word for word in value.split() if len(word) >= 8)  # shorter words are not secrets


def _fingerprint(provider: str, shown: Mapping[str, Any], settings: object, reading: Reading) -> str:
    digest = hashlib.sha256(json.dumps([provider, shown], sort_keys=True, default=str).encode())
    for path in _files_in(settings):
        try:
            digest.update(reading.reader.read(path))
        except OSError:
            continue  # it is reported where the target is used
    return digest.hexdigest()


def _files_in(settings: object) -> Iterator[str]:
    """The files that the settings name: a target's own code or recording."""
    for rule in shape_of(type(settings)).rules.values():
        value = getattr(settings, rule.name)
        path = value if rule.kind is FILE else getattr(value, "path", None)
        if isinstance(path, str):
            yield path
