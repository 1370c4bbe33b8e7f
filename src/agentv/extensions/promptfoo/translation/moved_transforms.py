"""Transforms of a provider's answers, where all answers are that provider's: an option of every test."""

from __future__ import annotations

from agentv.authoring.source.nodes import ListNode, MapNode, Node
from agentv.extensions.promptfoo.translation.source import items_of, mapping


def with_moved_transforms(root: MapNode) -> MapNode:
    """The configuration with the transform of its one provider under `defaultTest.options`.

    One that a test replaces stays: promptfoo applies both.
    """
    key = "providers" if "providers" in root.items else "targets"
    given = root.get(key)
    provider = given.items[0] if isinstance(given, ListNode) and len(given.items) == 1 else given
    default = root.get("defaultTest")
    if not isinstance(provider, MapNode) or not (default is None or isinstance(default, MapNode)):
        return root
    found = _moved(provider)
    if found is None or _has_transforms(root):
        return root
    provider, transform = found
    options = default.get("options") if default is not None else None
    inner = mapping(transform, {**(options.items if isinstance(options, MapNode) else {}), "transform": transform})
    outer = mapping(transform, {**(default.items if default is not None else {}), "options": inner})
    return mapping(root, {**root.items, key: ListNode([provider], provider.at), "defaultTest": outer})


def _has_transforms(root: MapNode) -> bool:
    """Whether tests have transforms, or stand in files, where they cannot be seen."""
    tests = root.get("tests")
    listed = items_of(tests)
    options = [root.get("defaultTest"), *listed]
    inner = [one.get("options") for one in options if isinstance(one, MapNode)]
    return any(isinstance(one, MapNode) and "transform" in one.items for one in inner)


def _moved(provider: MapNode) -> tuple[MapNode, Node] | None:
    """The provider without its transform, and the transform."""
    own = provider.get("transform")
    if own is None:
        return None
    return mapping(provider, {key: item for key, item in provider.items.items() if key != "transform"}), own
