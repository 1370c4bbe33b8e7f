"""Names of providers, older ones and AgentV's own ways to name one."""

from __future__ import annotations

import os
import re

from agentv.authoring.fields.agentv.names import PROVIDERS
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import nearest_in_agentv
from agentv.authoring.source.nodes import MapNode, Node, Scalar
from agentv.authoring.source.report import Report
from agentv.registry.table import Registry
from agentv.registry.types import Provider

_WRAPPER = "agentv"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_PROGRAMS = (".ts", ".js", ".mts", ".mjs")


def provider_name(written: str) -> str:
    """The canonical name of the provider in a `provider:rest` string."""
    name = written.partition(":")[0].strip().lower().replace("_", "-")
    return PROVIDERS.get(name, name)


def report_older_provider(written: str, at: Node | None, report: Report) -> None:
    """Note an older name of a provider in a `provider:rest` string; the canonical one is a hint."""
    head, colon, rest = written.partition(":")
    name = head.strip().lower().replace("_", "-")
    if name in PROVIDERS:
        report.older(written, f"{PROVIDERS[name]}{colon}{rest}", at)


def report_not_yet(name: str, at: Node | None, report: Report) -> None:
    """Report the use of a provider that is not built yet."""
    hint = "read its sessions with 'agentv import copilot', and grade them with 'provider: replay'"
    message = f"the provider '{name}' is recognized but not supported yet"
    report.error("not-yet", at, message, hint=hint if name == "copilot-log" else None)


def without_wrapper(written: str) -> str:
    """The `provider:model` string inside `agentv:provider:model`, which is AgentV's way to name a model's provider."""
    head, colon, rest = written.partition(":")
    return rest if colon and head.strip().lower() == _WRAPPER and ":" in rest else written


def as_provider(at: MapNode, providers: Registry[Provider], reading: Reading) -> MapNode:
    """A target of `agentv` as one of the provider that its model names; one of `.agentv/providers/NAME.ts` as `cli`."""
    said = at.get("provider")
    if not isinstance(said, Scalar) or not isinstance(said.value, str):
        return at
    name = provider_name(said.value)
    if name == _WRAPPER:
        return _of_model(at, said)
    if name in providers.names or name in providers.not_yet or ":" in said.value:
        return at
    home = reading.places.suite
    names = [os.path.join("providers", f"{said.value.strip()}{suffix}") for suffix in _PROGRAMS]  # noqa: PTH118  # as in files
    path, _ = nearest_in_agentv(home, reading.places.root, *names)
    if path is None:
        return at
    command = Scalar(None, f"bun run {os.path.relpath(path, home)} {{PROMPT}}", said.at)
    command.value = command.text
    items: dict[str, Node] = {"command": command, **at.items, "provider": Scalar("cli", "cli", said.at)}
    return MapNode(items, {"command": at.keys["provider"], **at.keys}, at.at)


def _of_model(at: MapNode, said: Scalar) -> MapNode:
    """`provider: agentv` with `model: openai:gpt-5` is `provider: openai:gpt-5`."""
    model = at.get("model")
    written = without_wrapper(said.value)
    if written == said.value and isinstance(model, Scalar) and ":" in model.text:
        items = {key: one for key, one in at.items.items() if key != "model"}
        return MapNode({**items, "provider": Scalar(model.text, model.text, model.at)}, at.keys, at.at)
    return MapNode({**at.items, "provider": Scalar(written, written, said.at)}, at.keys, at.at)


def named_variables(settings: MapNode) -> MapNode:
    """`settings:` of the oldest files, where a value that looks like the name of a variable is one."""
    items: dict[str, Node] = {}
    for key, node in settings.items.items():
        is_name = isinstance(node, Scalar) and isinstance(node.value, str) and _VARIABLE.fullmatch(node.value)
        items[key] = Scalar(f"${{{{ {node.value} }}}}", node.text, node.at) if is_name else node  # type: ignore[union-attr]  # as was seen
        if isinstance(node, MapNode) and key == "env":
            items[key] = named_variables(node)
    return MapNode(items, settings.keys, settings.at)
