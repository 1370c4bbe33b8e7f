"""`config` of promptfoo's prompts: settings that models get with that prompt, as providers of their own."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.options import is_option
from agentv.extensions.promptfoo.translation.provider_prompts import labels_of, matched_prompts, prompts_of_provider
from agentv.extensions.promptfoo.translation.providers.provider_tables import DOCUMENTS
from agentv.extensions.promptfoo.translation.source import items_of, mapping, text_node

_MERGING = (
    "anthropic:messages:",
    "azure:chat:",
    "bedrock:",
    "google:",
    "openai:chat:",
    "openai:gpt-",
    "openai:o",
    "vertex:",
)
"""What the ids of providers begin with that merge the settings of a prompt into their own."""

_PROGRAMS = ("echo", "exec:", "file://", "python:", "javascript:", "http:", "https:", "webhook:")

_KEY = "config"


def with_prompt_settings(root: MapNode) -> MapNode:
    """The configuration with the settings of prompts in providers, each of which gets the prompts with its settings.

    Where some provider takes no settings from prompts, or is defined in another file, the prompts keep them.
    """
    place = "providers" if "providers" in root.items else "targets"
    given, said = root.get(place), root.get("prompts")
    providers = items_of(given)
    prompts = said.items if isinstance(said, ListNode) else []
    settings = [one.get(_KEY) if isinstance(one, MapNode) else None for one in prompts]
    if not any(isinstance(one, MapNode) for one in settings) or not all(map(_merges, providers)):
        return root
    if len(prompts) > 1 and not all(labels_of(one) for one in prompts):
        return root
    made = [one for provider in providers for one in _each(provider, prompts, settings)]
    bare: list[Node] = [_without(one) for one in prompts]
    kept: dict[str, Node] = {place: ListNode(made, root.at), "prompts": ListNode(bare, root.at)}
    return mapping(root, {**root.items, **kept})


def with_default_settings(root: MapNode) -> MapNode:
    """The configuration with the settings of models among `defaultTest.options` in the `config` of its providers.

    promptfoo merges them into the settings of every call. They stay where some provider may not take them so.
    """
    place = "providers" if "providers" in root.items else "targets"
    given, default = root.get(place), root.get("defaultTest")
    providers = items_of(given)
    options = default.get("options") if isinstance(default, MapNode) else None
    if not isinstance(options, MapNode) or not isinstance(default, MapNode):
        return root
    settings = {key: item for key, item in options.items.items() if not is_option(key)}
    if not settings or not all(_merges(one) or is_program(one) for one in providers):
        return root
    left = mapping(options, {key: item for key, item in options.items.items() if key not in settings})
    shared = MapNode(settings, options.keys, options.at)
    made = [_merged(one, shared, {}) if _merges(one) else one for one in providers]
    kept: dict[str, Node] = {
        place: ListNode(made, root.at),
        "defaultTest": mapping(default, {**default.items, "options": left}),
    }
    return mapping(root, {**root.items, **kept})


def is_program(provider: Node) -> bool:
    """Whether a provider is an echo, a command or a file, which takes no settings of models."""
    identity = provider.get("id") if isinstance(provider, MapNode) else provider
    text = identity.text if isinstance(identity, Scalar) else ""
    return text.startswith(_PROGRAMS) and not text.endswith(DOCUMENTS)


def _merges(provider: Node) -> bool:
    identity = provider.get("id") if isinstance(provider, MapNode) else provider
    return isinstance(identity, Scalar) and identity.text.startswith(_MERGING)


def _without(prompt: Node) -> Node:
    if not isinstance(prompt, MapNode):
        return prompt
    return mapping(prompt, {key: item for key, item in prompt.items.items() if key != _KEY})


def _each(provider: Node, prompts: list[Node], settings: list[Node | None]) -> list[Node]:
    """The provider once for its prompts without settings, and once for each that has some."""
    mine = sorted(matched_prompts(prompts_of_provider(provider), prompts))
    if len(prompts) == 1:
        return [_merged(provider, settings[0], {})]
    bare = [number for number in mine if settings[number] is None]
    groups = [*([bare] if bare else []), *([number] for number in mine if settings[number] is not None)]
    made: list[Node] = []
    for numbers in groups:
        names = [labels_of(prompts[number])[0] for number in numbers]
        listed: list[Node] = [text_node(name, provider.at) for name in names]
        label = None if settings[numbers[0]] is None else text_node(f"{_name(provider)} {names[0]}", provider.at)
        own: dict[str, Node] = {"prompts": ListNode(listed, provider.at)}
        if label is not None:
            own["label"] = label
        made.append(_merged(provider, settings[numbers[0]], own))
    return made


def _name(provider: Node) -> str:
    said = (provider.get("label") or provider.get("id")) if isinstance(provider, MapNode) else provider
    return said.text if isinstance(said, Scalar) else ""


def _merged(provider: Node, settings: Node | None, own: Mapping[str, Node]) -> Node:
    """The provider with the settings of a prompt, which win over its own, and with other keys."""
    items: dict[str, Node] = dict(provider.items) if isinstance(provider, MapNode) else {"id": provider}
    given = items.get(_KEY)
    if isinstance(settings, MapNode):
        before = given if isinstance(given, MapNode) else MapNode({}, {}, settings.at)
        items[_KEY] = MapNode({**before.items, **settings.items}, {**before.keys, **settings.keys}, settings.at)
    return mapping(provider, {**items, **own})
