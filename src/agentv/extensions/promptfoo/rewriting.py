"""Rewrites parts of a configuration within promptfoo's own format, before it is translated."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.source import (
    FILE,
    Source,
    identity_of,
    items_of,
    list_items,
    mapping,
    mapping_items,
    providers_key,
    text_in,
    text_node,
    value_at,
    without,
)
from agentv.extensions.promptfoo.tables import DOCUMENTS
from agentv.extensions.promptfoo.test_parts import is_option

_REF = "$ref"
_DEEPEST = 30
_MOST = 10_000
"""Maximum number of references in a configuration; nested ones count each time they are resolved."""


def resolved(root: MapNode, source: Source) -> MapNode:
    """The configuration with every `$ref` replaced. One that names nothing is kept and reported."""
    if not _has_reference(root):
        return root
    count = [0]
    found = _resolved(root, root, source, _DEEPEST, count)
    if count[0] > _MOST:
        source.error(root, f"the references stand for more than {_MOST:,} others", "write out what they name")
        return root
    return found if isinstance(found, MapNode) else root


def _has_reference(node: Node) -> bool:
    if isinstance(node, MapNode):
        return _REF in node.items or any(map(_has_reference, node.items.values()))
    return isinstance(node, ListNode) and any(map(_has_reference, node.items))


def _resolved(node: Node, root: Node, source: Source, left: int, count: list[int]) -> Node:
    if isinstance(node, ListNode):
        return ListNode([_resolved(item, root, source, left, count) for item in node.items], node.at)
    if not isinstance(node, MapNode):
        return node
    reference = node.get(_REF)
    if not isinstance(reference, Scalar) or not isinstance(reference.value, str):
        items = {key: _resolved(item, root, source, left, count) for key, item in node.items.items()}
        return MapNode(items, node.keys, node.at)
    count[0] += 1
    found = _referenced(reference, root, source) if left and count[0] <= _MOST else None
    if found is None:
        if count[0] <= _MOST:
            source.error(reference, f"the reference '{reference.text}' leads nowhere", "write its content in its place")
        return node
    target, within = found
    target = _resolved(target, within, source, left - 1, count)
    own = {key: _resolved(item, root, source, left, count) for key, item in node.items.items() if key != _REF}
    if not own or not isinstance(target, MapNode):
        return target
    return MapNode({**target.items, **own}, {**target.keys, **node.keys}, node.at)


def _referenced(reference: Scalar, root: Node, source: Source) -> tuple[Node, Node] | None:
    """The node that a reference names, and the document that contains it, or None if there is no such node."""
    file, _, pointer = reference.value.partition("#")
    document = source.document(file.removeprefix(FILE), reference) if file else root
    node: Node | None = document
    for step in pointer.strip("/").split("/") if pointer.strip("/") else []:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, MapNode):
            node = node.get(name)
        elif isinstance(node, ListNode) and name.isdigit() and int(name) < len(node.items):
            node = node.items[int(name)]
        else:
            return None
    return None if node is None or document is None else (node, document)


_PROMPTS = "prompts"


def with_listed_prompts(root: MapNode) -> MapNode:
    """The configuration with a list as `prompts`, in place of a mapping from files to labels."""
    files = root.get(_PROMPTS)
    if not isinstance(files, MapNode) or files.items.keys() & {"id", "raw", "label", "prompt", "file"}:
        return root
    entries: list[Node] = [
        mapping(label, {"id": text_node(path, files.keys[path]), "label": label}) for path, label in files.items.items()
    ]
    return mapping(root, {**root.items, _PROMPTS: ListNode(entries, files.at)})


def with_common_prompts(root: MapNode) -> MapNode:
    """The configuration with only the prompts that its providers name, if all name the same ones.

    Otherwise, the providers keep their `prompts`, which are reported later.
    """
    place = providers_key(root)
    given = root.get(place)
    providers = items_of(given)
    named = [prompts_of_provider(one) for one in providers]
    prompts = root.get(_PROMPTS)
    entries: list[Node] = [prompts] if isinstance(prompts, Scalar) else list_items(prompts)
    if given is None or not entries or all(one is None for one in named):
        return root
    found = {matched_prompts(one, entries) for one in named}
    common = next(iter(found))
    if len(found) > 1 or not common:
        return root
    kept = [without_prompts(one) for one in providers]
    left = ListNode([one for number, one in enumerate(entries) if number in common], (prompts or root).at)
    return mapping(root, {**root.items, place: ListNode(kept, given.at), _PROMPTS: left})


def prompts_of_provider(provider: Node | None) -> Node | None:
    """The `prompts` of a provider, which may be written as `{ID: {prompts: …}}`."""
    options = _options(provider)
    return None if options is None else options.get(_PROMPTS)


def _options(provider: Node | None) -> MapNode | None:
    if not isinstance(provider, MapNode):
        return None
    inner = next(iter(provider.items.values()), None)
    return inner if "id" not in provider.items and isinstance(inner, MapNode) else provider


def without_prompts(provider: Node) -> Node:
    """A provider without its `prompts`."""
    options = _options(provider)
    if options is None or not isinstance(provider, MapNode) or _PROMPTS not in options.items:
        return provider
    kept = without(options, _PROMPTS)
    return kept if options is provider else mapping(provider, dict.fromkeys(provider.items, kept))


def matched_prompts(named: Node | None, entries: list[Node]) -> frozenset[int]:
    """The indexes of the named prompts: all if `prompts` is not given, none if some name is unknown."""
    if named is None:
        return frozenset(range(len(entries)))
    found: set[int] = set()
    for one in items_of(named):
        text = text_in(one)
        own = {number for number, entry in enumerate(entries) if any(_names(text, label) for label in labels_of(entry))}
        if not own:
            return frozenset()
        found |= own
    return frozenset(found)


def labels_of(prompt: Node) -> list[str]:
    """The label and the id of a prompt; empty for a file, whose contents are not known here."""
    if isinstance(prompt, MapNode):
        named = [prompt.get(key) for key in ("label", "display", "id")]
        return [one.text for one in named if isinstance(one, Scalar)]
    return [prompt.text] if isinstance(prompt, Scalar) and not prompt.text.startswith(FILE) else []


def _names(text: str, label: str) -> bool:
    """Whether a reference matches a label: the label itself, its part before a colon, or a prefix followed by `*`."""
    if text.endswith("*") and label.startswith(text[:-1]):
        return True
    return label == text or label.startswith(f"{text}:")


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
"""Prefixes of the ids of providers that merge the settings of a prompt into their own."""

_PROGRAMS = ("echo", "exec:", "file://", "python:", "javascript:", "http:", "https:", "webhook:")

_CONFIG = "config"


def with_prompt_settings(root: MapNode) -> MapNode:
    """The configuration with settings of prompts moved to its providers, copied for each prompt with settings.

    The prompts keep them if some provider takes no settings from prompts, or is defined in another file.
    """
    place = providers_key(root)
    providers, prompts = items_of(root.get(place)), list_items(root.get("prompts"))
    settings = [value_at(one, _CONFIG) for one in prompts]
    if not any(isinstance(one, MapNode) for one in settings) or not all(map(_merges, providers)):
        return root
    if len(prompts) > 1 and not all(labels_of(one) for one in prompts):
        return root
    made = [one for provider in providers for one in _copies(provider, prompts, settings)]
    bare: list[Node] = [without(one, _CONFIG) if isinstance(one, MapNode) else one for one in prompts]
    kept: dict[str, Node] = {place: ListNode(made, root.at), "prompts": ListNode(bare, root.at)}
    return mapping(root, {**root.items, **kept})


def with_default_settings(root: MapNode) -> MapNode:
    """The configuration with settings of models moved from `defaultTest.options` to the `config` of its providers.

    promptfoo merges them into the settings of every call. They are not moved if some provider may not take them.
    """
    place = providers_key(root)
    providers, default = items_of(root.get(place)), root.get("defaultTest")
    options = value_at(default, "options")
    if not isinstance(options, MapNode) or not isinstance(default, MapNode):
        return root
    settings = {key: item for key, item in options.items.items() if not is_option(key)}
    if not settings or not all(_merges(one) or is_program(one) for one in providers):
        return root
    left = without(options, *settings)
    shared = MapNode(settings, options.keys, options.at)
    made = [_merged(one, shared, {}) if _merges(one) else one for one in providers]
    kept: dict[str, Node] = {
        place: ListNode(made, root.at),
        "defaultTest": mapping(default, {**default.items, "options": left}),
    }
    return mapping(root, {**root.items, **kept})


def is_program(provider: Node) -> bool:
    """Whether a provider is an echo, a program or an HTTP server, which takes no settings of models."""
    text = identity_of(provider)
    return text.startswith(_PROGRAMS) and not text.endswith(DOCUMENTS)


def _merges(provider: Node) -> bool:
    return identity_of(provider).startswith(_MERGING)


def _copies(provider: Node, prompts: list[Node], settings: list[Node | None]) -> list[Node]:
    """Copies of the provider: one for its prompts without settings, and one for each prompt that has settings."""
    mine = sorted(matched_prompts(prompts_of_provider(provider), prompts))
    if len(prompts) == 1:
        return [_merged(provider, settings[0], {})]
    bare = [number for number in mine if settings[number] is None]
    groups = [*([bare] if bare else []), *([number] for number in mine if settings[number] is not None)]
    made: list[Node] = []
    for numbers in groups:
        names = [labels_of(prompts[number])[0] for number in numbers]
        labels: list[Node] = [text_node(name, provider.at) for name in names]
        own: dict[str, Node] = {"prompts": ListNode(labels, provider.at)}
        if settings[numbers[0]] is not None:
            name = text_in(value_at(provider, "label")) or identity_of(provider)
            own["label"] = text_node(f"{name} {names[0]}", provider.at)
        made.append(_merged(provider, settings[numbers[0]], own))
    return made


def _merged(provider: Node, settings: Node | None, own: Mapping[str, Node]) -> Node:
    """The provider with the settings of a prompt, which override its own, and with further keys."""
    items: dict[str, Node] = dict(provider.items) if isinstance(provider, MapNode) else {"id": provider}
    given = items.get(_CONFIG)
    if isinstance(settings, MapNode):
        before = given if isinstance(given, MapNode) else MapNode({}, {}, settings.at)
        items[_CONFIG] = MapNode({**before.items, **settings.items}, {**before.keys, **settings.keys}, settings.at)
    return mapping(provider, {**items, **own})


def with_moved_transforms(root: MapNode) -> MapNode:
    """The configuration with the transform of its only provider moved to `defaultTest.options`.

    It is not moved if a test has a transform too: promptfoo applies both.
    """
    key = providers_key(root)
    given = root.get(key)
    provider = given.items[0] if isinstance(given, ListNode) and len(given.items) == 1 else given
    default = root.get("defaultTest")
    if not isinstance(provider, MapNode) or not (default is None or isinstance(default, MapNode)):
        return root
    transform = provider.get("transform")
    given_tests = [default, *items_of(root.get("tests"))]
    if transform is None or any(value_at(one, "options", "transform") is not None for one in given_tests):
        return root
    provider = without(provider, "transform")
    inner = mapping(transform, {**mapping_items(value_at(default, "options")), "transform": transform})
    outer = mapping(transform, {**mapping_items(default), "options": inner})
    return mapping(root, {**root.items, key: ListNode([provider], provider.at), "defaultTest": outer})


_KIND = "embedding"


def with_named_embedder(root: MapNode) -> MapNode:
    """The configuration with `defaultTest.options.provider.embedding` moved to the assertions that compare embeddings.

    It is not moved if some tests are in other files, whose assertions are not read here.
    """
    default, tests = root.get("defaultTest"), root.get("tests")
    given = list_items(tests)
    options, provider = value_at(default, "options"), value_at(default, "options", "provider")
    embedder = provider.get(_KIND) if isinstance(provider, MapNode) and "id" not in provider.items else None
    if embedder is None or not isinstance(options, MapNode) or not isinstance(provider, MapNode):
        return root
    seen = (tests is None or isinstance(tests, ListNode)) and all(isinstance(one, MapNode) for one in given)
    if "scenarios" in root.items or not seen:
        return root
    left = without(provider, _KIND)
    kept = without(options, "provider")
    options = mapping(options, {**kept.items, "provider": left}) if left.items else kept
    made = _with_embedder(
        mapping(default, {**default.items, "options": options}) if isinstance(default, MapNode) else root, embedder
    )
    found: list[Node] = [_with_embedder(one, embedder) for one in given]
    return mapping(root, {**root.items, "defaultTest": made, **({"tests": ListNode(found, root.at)} if given else {})})


def _with_embedder(node: Node, embedder: Node) -> Node:
    """A test or an assert-set, with the embedder in each `similar` assertion that has no provider."""
    entries = value_at(node, "assert")
    if not isinstance(node, MapNode) or not isinstance(entries, ListNode):
        return node
    return mapping(
        node, {**node.items, "assert": ListNode([_entry(one, embedder) for one in entries.items], entries.at)}
    )


def _entry(node: Node, embedder: Node) -> Node:
    if not isinstance(node, MapNode):
        return node
    name = text_in(node.get("type")).removeprefix("not-").partition(":")[0]
    if name == "similar" and "provider" not in node.items:
        return mapping(node, {**node.items, "provider": embedder})
    return _with_embedder(node, embedder)
