"""Translates the mappings of a file to canonical keys, so that the readers know only these.

Each function reports mistakes in keys: unknown ones, two spellings of one key, and keys that are not supported yet.
Values keep their positions, and diagnostics about a value name the key as authored. Targets come last in this module:
AgentV has more ways to write one, which depend on the provider (SPEC section 12).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import SHOWN_KEYS, ExtraKeys, Reading
from agentv.authoring.fields.spellings import CASE, DEFAULT_TEST, OPTIONS, RUN, SUITE, TARGET, Spellings
from agentv.authoring.source.files import TABLES, nearest_in_agentv
from agentv.authoring.source.nearest import MEANT, PROVIDERS, SETTINGS, folded, nearest, provider_name
from agentv.authoring.source.nodes import Canonical, ListNode, MapNode, Node, Place, Scalar, as_data, is_empty, plain
from agentv.authoring.source.report import Report
from agentv.model.values.values import Json, lazy_pattern
from agentv.registry.types import Provider, Registry

_FILES_OF_CASES = (".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", *TABLES)


def _with_name(root: MapNode, reading: Reading) -> tuple[MapNode, dict[str, Json]]:
    """Rename `dataset` or `suite` to `name`, or, if there is a `name`, return them as metadata."""
    older = [key for key in ("dataset", "suite") if key in root.items]
    items, keys = dict(root.items), dict(root.keys)
    others: dict[str, Json] = {}
    for key in older:
        node, at = items.pop(key), keys.pop(key)
        if isinstance(node, Scalar) and node.text.lower().endswith(_FILES_OF_CASES):
            message = f"'{key}' names the suite, and '{node.text}' looks like a file of cases"
            reading.report.error("bad-value", node, message, hint=f"did you mean 'tests: {node.text}'?")
        elif "name" in items:
            others[key] = plain(node)
        else:
            items["name"], keys["name"] = node, at
            reading.report.older(key, "name", at)
    return MapNode(items, keys, root.at), others


def _run_value(key: str, node: Node) -> Node:
    """Convert the values of older keys with another unit or meaning: `timeout_ms: 500`, `fail_on_error: true`."""
    if key == "timeout_ms" and isinstance(node, Scalar) and type(node.value) in (int, float):
        seconds = node.value / 1000
        return Scalar(seconds, repr(seconds), node.at)
    if key == "fail_on_error" and isinstance(node, Scalar) and isinstance(node.value, bool):
        return Scalar(1 if node.value else None, node.text, node.at)
    return node


def suite(node: MapNode, reading: Reading) -> tuple[Canonical, dict[str, Json]]:
    """Translate the outermost mapping of an eval file; also return its `dataset` and `suite` if it has a `name`."""
    named, others = _with_name(node, reading)
    made = translated(named, SUITE, reading, "an eval file")
    made.items = {key: one for key, one in made.items.items() if key != "$schema"}
    gathered(made, "run", reading)
    _within(made, "run", run_block, reading)
    return made, others


def gathered(made: Canonical, outer: str, reading: Reading) -> None:
    """Move values whose canonical key is `outer.key`, as translated from older places, into the mapping `outer`."""
    moved = {key: made.items.pop(key) for key in list(made.items) if key.startswith(f"{outer}.")}
    own = made.items.get(outer)
    if not moved or not (own is None or isinstance(own, MapNode)):
        return
    at = made.keys[next(iter(moved))]
    inner = MapNode({}, {}, at) if own is None else MapNode(dict(own.items), dict(own.keys), own.at)
    for written, value in moved.items():
        key = written.partition(".")[2]
        if key in inner.items:
            message = f"'{made.spelled[written]}' is set both here and in '{outer}'; keep one of them"
            reading.report.error("two-spellings", made.keys[written], message)
        inner.items[key], inner.keys[key] = value, made.keys[written]
    made.items[outer] = inner
    made.keys.setdefault(outer, at)


def run_block(node: MapNode, reading: Reading) -> Canonical:
    """Translate a `run:` block."""
    values = {key: _run_value(key, item) for key, item in node.items.items()}
    return translated(MapNode(values, node.keys, node.at), RUN, reading, f"'{reading.report.spelled(node, 'run')}'")


def case(node: MapNode, reading: Reading, *, replaces: bool = False) -> Canonical:
    """Translate an entry of `tests:` and its options. With `replaces`, its `evaluators` replace the suite's."""
    made = translated(node, CASE, reading, "a case")
    own = made.spelled.get("assert", "").rpartition(".")[2]
    if replaces and own == "evaluators" and getattr(made.get("skip_defaults"), "value", False) is False:
        at = made.keys["assert"]
        made.items["skip_defaults"], made.keys["skip_defaults"] = Scalar("assert", "assert", at), at
    if "options" in made.items:
        _within(made, "options", lambda one, own: translated(one, OPTIONS, own, "'options' of a case"), reading)
    return made


def default_test(node: MapNode, reading: Reading) -> Canonical:
    """Translate `default_test:` and its options."""
    what = f"'{reading.report.spelled(node, 'default_test')}'"
    made = translated(node, DEFAULT_TEST, reading, what)
    _within(made, "options", lambda one, own: translated(one, OPTIONS, own, f"'options' of {what}"), reading)
    return made


def _within(made: Canonical, key: str, translate: Callable[[MapNode, Reading], Canonical], reading: Reading) -> None:
    """Translate the mapping under a key. A value that is not a mapping is left for the reader to report."""
    inner = made.items.get(key)
    if isinstance(inner, MapNode):
        own = translate(inner, reading)
        made.items = {**made.items, key: own}
        reading.report.carry(inner, own)


def translated(node: MapNode, spellings: Spellings, reading: Reading, what: str | None) -> Canonical:
    """A mapping translated to canonical keys.

    Args:
        node: the mapping as authored.
        spellings: spellings of the mapping's kind.
        reading: context with the report.
        what: name of the mapping's kind in messages; None: unknown keys are kept, as another reader knows more keys.
    """
    if node.items.keys() <= spellings.canonical:
        return Canonical(node.items, node.keys, node.at)
    spelled: dict[str, str] = {}
    made = Canonical({}, {}, node.at, spelled)
    _Translation(spellings, reading, made, spelled).add_all(node)
    if what is not None:
        _report_unknown(made, spellings, reading, what)
    return made


class _Translation(Struct):
    spellings: Spellings
    reading: Reading
    made: Canonical
    spelled: dict[str, str]

    def add_all(self, node: MapNode) -> None:
        spellings = self.spellings
        for key, value in node.items.items():
            at = node.keys[key]
            inside = spellings.nested.get(key)
            if key in spellings.not_yet:
                self._report_not_yet(key, at)
            elif inside is None:
                self._put(spellings.older.get(key, key), key, value, at)
            elif isinstance(value, MapNode):
                self._flatten(key, value, inside)
            elif not is_empty(value):
                self.reading.report.unfit(value, f"'{key}' must be a mapping")

    def _flatten(self, outer: str, value: MapNode, inside: Mapping[str, str]) -> None:
        for key, item in value.items.items():
            at = value.keys[key]
            canonical = inside.get(key)
            if canonical in self.spellings.not_yet:
                self._report_not_yet(f"{outer}.{key}", at)
            elif canonical is not None:
                self._put(canonical, f"{outer}.{key}", item, at)
            elif f"{outer}.{key}" in self.spellings.no_effect:
                self.reading.report.warning("no-effect", at, f"'{outer}.{key}' has no effect")
            elif not key.startswith("x-"):
                self._put(f"{outer}.{key}", f"{outer}.{key}", item, at)

    def _report_not_yet(self, written: str, at: Place) -> None:
        """Report a key that is not supported yet."""
        tolerated = self.spellings.tolerates and not self.reading.strict_env
        add = self.reading.report.warning if tolerated else self.reading.report.error
        add("not-yet", at, f"'{written}' is recognized but not supported yet")

    def _put(self, canonical: str, written: str, value: Node, at: Place) -> None:
        made = self.made
        if canonical in made.items:
            other = self.spelled[canonical]
            self.reading.report.error("two-spellings", at, f"'{written}' and '{other}' mean the same; keep one of them")
            return
        if written != canonical and written not in self.spellings.equal:
            spellings, better = self.spellings, canonical
            if not isinstance(value, ListNode):  # suggest `target` for a single value, `targets` for a list
                better = next((one for one in spellings.equal if spellings.older.get(one) == canonical), canonical)
            self.reading.report.older(written, better, at)
        if written != canonical:
            self.reading.report.spell(value, written, canonical)
        made.items[canonical], made.keys[canonical], self.spelled[canonical] = value, at, written


def _report_unknown(made: Canonical, spellings: Spellings, reading: Reading, what: str) -> None:
    """Report the unknown keys of a mapping and remove them. Keys that they may mean are not reported as missing."""
    canonical, free = spellings.canonical, ("x-", "run.", "$schema") if spellings is SUITE else ("x-",)
    unknown = [key for key in made.items if key not in canonical and not key.startswith(free)]
    if not unknown:
        return
    known, older = spellings.known, spellings.older
    extra = ExtraKeys(hinted=tuple(known), older=spellings.superseded)
    for key in unknown:
        of_run = spellings is SUITE and key in RUN.canonical
        hint = f"it belongs under 'run': run: {{{key}: …}}" if of_run else None
        reading.unknown_key(key, made, canonical, what, extra, hint=hint)
    near = (nearest(key, known) or MEANT.get(key, key) for key in islice(unknown, SHOWN_KEYS))
    made.not_missing = frozenset(older.get(key, key) for key in near)
    if "turns" in made.not_missing:
        made.not_missing |= {"input", "assert"}  # not required in a case with turns
    for key in unknown:
        del made.items[key]


NO_EFFECT = frozenset(
    {"cli_verbose", "keep_output_files", "keep_temp_files", "log_dir", "log_directory", "log_format"}
    | {"log_output_format", "stream_log", "trace", "verbose"}
    | {"batch_requests", "provider_batching", "fallback_targets", "timeout_ms"}
    | {"subagent_mode_allowed", "workspace_template"}
)
"""Keys of a target that are ignored: they add output, batch calls that agentv makes one by one, or configure agents.
AgentV itself never reads a target's `timeout_ms`, and no longer reads the keys for batches."""

_DEFAULTS = {"runtime": ("host",)}
"""Key → values that have no effect; other values are not supported yet."""

_NOT_YET = frozenset({"container", "environment", "execution_traces", "install", "transcripts"})

_WRAPPER = "agentv"
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_PROGRAMS = (".ts", ".js", ".mts", ".mjs")


def translated_target(node: MapNode, providers: Registry[Provider], reading: Reading) -> Canonical:
    """Translate the mapping of a target; mistakes in its keys are reported."""
    flat = _with_provider(_flattened(node, providers, reading.report), providers, reading)
    authored = flat.get("provider")
    provider = providers.find(provider_name(authored.text)) if isinstance(authored, Scalar) else None
    taken = shape_of(provider.settings).rules.keys() if provider is not None else frozenset()
    older = {old: new for old, new in SETTINGS.items() if new in taken and old not in taken}
    made = translated(flat, replace(TARGET, older={**TARGET.older, **older}), reading, None)
    gathered(made, "retry", reading)
    for key in [one for one in made.items if provider is not None and one not in {*taken, *TARGET.canonical}]:
        value, at = made.items[key], made.keys[key]
        nothing = isinstance(value, Scalar) and (value.value is None or value.value in _DEFAULTS.get(key, ()))
        if key in _NOT_YET or (key in _DEFAULTS and not nothing):
            text = f"'{key}: {value.text}'" if isinstance(value, Scalar) and key in _DEFAULTS else f"'{key}'"
            reading.report.error("not-yet", at, f"{text} is recognized but not supported yet")
        elif key in NO_EFFECT or key in _DEFAULTS:
            made.no_effect[key] = at
        else:
            continue
        del made.items[key]
    return made


def canonical_provider(written: str, at: Node | None, report: Report) -> str:
    """A `provider:rest` string with the provider's canonical name; an older name is reported as a hint."""
    text = without_wrapper(written)
    head, colon, rest = text.partition(":")
    if folded(head) in PROVIDERS:
        report.older(text, f"{provider_name(head)}{colon}{rest}", at)
    return f"{provider_name(head)}{colon}{rest}"


def without_wrapper(written: str) -> str:
    """A `provider:model` string without AgentV's prefix `agentv:`."""
    head, colon, rest = written.partition(":")
    return rest if colon and folded(head) == _WRAPPER and ":" in rest else written


def _flattened(node: MapNode, providers: Registry[Provider], report: Report) -> MapNode:
    """Move the keys of `config:` (newer AgentV) and `settings:` (oldest AgentV) into the target's own mapping.

    A `config` that is a setting of the provider is kept. Without a `provider`, an `id` that names one is the provider,
    as in promptfoo.
    """
    for outer in ("config", "settings"):
        inner = node.get(outer)
        if isinstance(inner, MapNode) and not (outer == "config" and _takes_config(node, inner, providers)):
            items = {key: one for key, one in node.items.items() if key != outer}
            own = _named_variables(inner) if outer == "settings" else inner
            for key, one in own.items.items():
                if key in items and plain(one) != plain(items[key]):
                    message = f"'{key}' is set in '{outer}' and beside it too; keep one of them"
                    report.error("two-spellings", own.keys[key], message)
            node = MapNode({**own.items, **items}, {**inner.keys, **node.keys}, node.at)
    identity = node.get("id")
    if "provider" in node.items or not isinstance(identity, Scalar) or not isinstance(identity.value, str):
        return node
    head = provider_name(identity.value)
    if head not in providers.names and head not in providers.not_yet:
        return node
    pairs = {"provider" if key == "id" else key: one for key, one in node.items.items()}
    keys = {"provider" if key == "id" else key: at for key, at in node.keys.items()}
    return MapNode(pairs, keys, node.at)


def _takes_config(node: MapNode, config: MapNode, providers: Registry[Provider]) -> bool:
    """Whether `config` is a setting of the provider: it declares one, and its main setting is not in this mapping."""
    authored = node.get("provider") or node.get("id")
    provider = providers.find(provider_name(authored.text)) if isinstance(authored, Scalar) else None
    return (
        provider is not None
        and "config" in shape_of(provider.settings).rules
        and provider.settings.short not in config.items
    )


def _named_variables(settings: MapNode) -> MapNode:
    """`settings:` of the oldest AgentV files, in which a value like `API_KEY` names an environment variable."""
    items: dict[str, Node] = {}
    for key, node in settings.items.items():
        items[key] = node
        if isinstance(node, Scalar) and isinstance(node.value, str) and _VARIABLE.fullmatch(node.value):
            items[key] = Scalar(f"${{{{ {node.value} }}}}", node.text, node.at)
        elif isinstance(node, MapNode) and key == "env":
            items[key] = _named_variables(node)
    return MapNode(items, settings.keys, settings.at)


def _with_provider(flat: MapNode, providers: Registry[Provider], reading: Reading) -> MapNode:
    """The target with its provider's canonical name, on which the meaning of other keys depends.

    For the provider `agentv`, the model names the provider. A script `.agentv/providers/NAME.ts` becomes `cli`.
    """
    authored = flat.get("provider")
    rendered = reading.rendered(authored) if authored is not None else None
    if not isinstance(rendered, Scalar) or not isinstance(rendered.value, str):
        return flat
    items, keys = dict(flat.items), dict(flat.keys)
    model, home = items.get("model"), reading.places.suite
    written, at = rendered.value, rendered.at
    if folded(written) == _WRAPPER and isinstance(model, Scalar) and ":" in model.text:
        written, at = model.text, items.pop("model").at
    elif provider_name(written) not in {_WRAPPER, *providers.names, *providers.not_yet} and ":" not in written:
        names = [os.path.join("providers", f"{written.strip()}{suffix}") for suffix in _PROGRAMS]  # noqa: PTH118
        path, _ = nearest_in_agentv(home, reading.places.root, *names)
        if path is not None:
            command = f"bun run {os.path.relpath(path, home)} {{PROMPT}}"
            items = {"command": Scalar(command, command, at), **items}
            keys = {"command": keys["provider"], **keys}
            written = "cli"
    place: Place = at
    value = canonical_provider(written, Scalar(written, written, place), reading.report)
    # the authored text is the default name of the target
    items["provider"] = as_data(Scalar(value, without_wrapper(written), place))
    return MapNode(items, keys, flat.at)
