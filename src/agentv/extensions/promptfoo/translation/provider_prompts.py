"""`prompts` of promptfoo's providers: which of the prompts each provider gets."""

from __future__ import annotations

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.source import FILE, items_of, mapping, text_node

_KEY = "prompts"


def with_listed_prompts(root: MapNode) -> MapNode:
    """The configuration with `prompts` as a list, which may be a mapping from files to labels."""
    said = root.get(_KEY)
    if not isinstance(said, MapNode) or said.items.keys() & {"id", "raw", "label", "prompt", "file"}:
        return root
    listed: list[Node] = [
        mapping(label, {"id": text_node(path, said.keys[path]), "label": label}) for path, label in said.items.items()
    ]
    return mapping(root, {**root.items, _KEY: ListNode(listed, said.at)})


def with_common_prompts(root: MapNode) -> MapNode:
    """The configuration with the prompts that every provider gets, where all get the same ones.

    Otherwise the providers keep their `prompts`, which are reported later.
    """
    place = "providers" if "providers" in root.items else "targets"
    given = root.get(place)
    providers = items_of(given)
    said = [prompts_of_provider(one) for one in providers]
    prompts = root.get(_KEY)
    listed = ListNode([prompts], prompts.at) if isinstance(prompts, Scalar) else prompts
    entries = listed.items if isinstance(listed, ListNode) else []
    if given is None or not entries or all(one is None for one in said):
        return root
    found = {matched_prompts(one, entries) for one in said}
    common = next(iter(found))
    if len(found) > 1 or not common:
        return root
    kept = [without_prompts(one) for one in providers]
    left = ListNode([one for number, one in enumerate(entries) if number in common], (prompts or root).at)
    return mapping(root, {**root.items, place: ListNode(kept, given.at), _KEY: left})


def prompts_of_provider(provider: Node | None) -> Node | None:
    """The `prompts` of a provider, which may stand below its id."""
    options = _options(provider)
    return None if options is None else options.get(_KEY)


def _options(provider: Node | None) -> MapNode | None:
    if not isinstance(provider, MapNode):
        return None
    inner = next(iter(provider.items.values()), None)
    return inner if "id" not in provider.items and isinstance(inner, MapNode) else provider


def without_prompts(provider: Node) -> Node:
    """A provider without its `prompts`."""
    options = _options(provider)
    if options is None or not isinstance(provider, MapNode) or _KEY not in options.items:
        return provider
    kept = mapping(options, {key: item for key, item in options.items.items() if key != _KEY})
    return kept if options is provider else mapping(provider, dict.fromkeys(provider.items, kept))


def matched_prompts(said: Node | None, entries: list[Node]) -> frozenset[int]:
    """The numbers of the prompts that are named; all without `prompts`, none where a name is not known."""
    if said is None:
        return frozenset(range(len(entries)))
    found: set[int] = set()
    for one in items_of(said):
        text = one.text if isinstance(one, Scalar) else ""
        own = {number for number, entry in enumerate(entries) if any(_names(text, name) for name in labels_of(entry))}
        if not own:
            return frozenset()
        found |= own
    return frozenset(found)


def labels_of(prompt: Node) -> list[str]:
    """The id and the label of a prompt. Those of a file are its path and contents, and are not known here."""
    if isinstance(prompt, MapNode):
        named = [prompt.get(key) for key in ("label", "display", "id")]
        return [one.text for one in named if isinstance(one, Scalar)]
    return [prompt.text] if isinstance(prompt, Scalar) and not prompt.text.startswith(FILE) else []


def _names(text: str, label: str) -> bool:
    """Whether a reference means a label: the label itself, its part before a colon, or its beginning before a `*`."""
    if text.endswith("*") and label.startswith(text[:-1]):
        return True
    return label == text or label.startswith(f"{text}:")
