"""AgentV's ways to write a target, translated to the keys of `AuthoredTarget` and of its provider (SPEC section 12)."""

from __future__ import annotations

import os

from msgspec.structs import replace

from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.names import PROVIDERS, SETTINGS, folded, provider_name
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.spellings import TARGET
from agentv.authoring.fields.translation import gathered, translated
from agentv.authoring.source.files import nearest_in_agentv
from agentv.authoring.source.nodes import Canonical, MapNode, Node, Place, Scalar, as_data, plain
from agentv.authoring.source.report import Report
from agentv.model.values.values import lazy_pattern
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

_WRAPPER = "agentv"
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_PROGRAMS = (".ts", ".js", ".mts", ".mjs")


def translated_target(node: MapNode, providers: Registry[Provider], reading: Reading) -> Canonical:
    """The mapping of a target by its canonical keys; mistakes of its keys are reported."""
    flat = _with_provider(_flattened(node, providers, reading.report), providers, reading)
    said = flat.get("provider")
    provider = providers.find(provider_name(said.text)) if isinstance(said, Scalar) else None
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
    """A `provider:rest` string with the canonical name of its provider; an older one is a hint."""
    text = without_wrapper(written)
    head, colon, rest = text.partition(":")
    if folded(head) in PROVIDERS:
        report.older(text, f"{provider_name(head)}{colon}{rest}", at)
    return f"{provider_name(head)}{colon}{rest}"


def without_wrapper(written: str) -> str:
    """The `provider:model` string inside `agentv:provider:model`, which is AgentV's way to name a model's provider."""
    head, colon, rest = written.partition(":")
    return rest if colon and folded(head) == _WRAPPER and ":" in rest else written


def _flattened(node: MapNode, providers: Registry[Provider], report: Report) -> MapNode:
    """`config:` (newer AgentV) and `settings:` (the oldest) dissolved into the mapping that holds them.

    A `config` that is a setting of the provider's own stays. `id` is the provider where there is no other, as in
    promptfoo.
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
    """Whether the provider declares `config` itself, and its main setting does not stand in there (newer AgentV)."""
    said = node.get("provider") or node.get("id")
    provider = providers.find(provider_name(said.text)) if isinstance(said, Scalar) else None
    return (
        provider is not None
        and "config" in shape_of(provider.settings).rules
        and provider.settings.short not in config.items
    )


def _named_variables(settings: MapNode) -> MapNode:
    """`settings:` of the oldest files, where a value that looks like the name of a variable is one."""
    items: dict[str, Node] = {}
    for key, node in settings.items.items():
        items[key] = node
        if isinstance(node, Scalar) and isinstance(node.value, str) and _VARIABLE.fullmatch(node.value):
            items[key] = Scalar(f"${{{{ {node.value} }}}}", node.text, node.at)
        elif isinstance(node, MapNode) and key == "env":
            items[key] = _named_variables(node)
    return MapNode(items, settings.keys, settings.at)


def _with_provider(flat: MapNode, providers: Registry[Provider], reading: Reading) -> MapNode:
    """The target with the canonical name of its provider, on which the meaning of other keys depends.

    A target of `agentv` is one of the provider that its model names; one of `.agentv/providers/NAME.ts` is `cli`.
    """
    said = flat.get("provider")
    rendered = reading.rendered(said) if said is not None else None
    if not isinstance(rendered, Scalar) or not isinstance(rendered.value, str):
        return flat
    items, keys = dict(flat.items), dict(flat.keys)
    model, home = items.get("model"), reading.places.suite
    written, at = rendered.value, rendered.at
    if folded(written) == _WRAPPER and isinstance(model, Scalar) and ":" in model.text:
        written, at = model.text, items.pop("model").at
    elif provider_name(written) not in {_WRAPPER, *providers.names, *providers.not_yet} and ":" not in written:
        names = [os.path.join("providers", f"{written.strip()}{suffix}") for suffix in _PROGRAMS]  # noqa: PTH118  # as in files
        path, _ = nearest_in_agentv(home, reading.places.root, *names)
        if path is not None:
            command = f"bun run {os.path.relpath(path, home)} {{PROMPT}}"
            items = {"command": Scalar(command, command, at), **items}
            keys = {"command": keys["provider"], **keys}
            written = "cli"
    place: Place = at
    value = canonical_provider(written, Scalar(written, written, place), reading.report)
    # what was written is the name of a target without one
    items["provider"] = as_data(Scalar(value, without_wrapper(written), place))
    return MapNode(items, keys, flat.at)
