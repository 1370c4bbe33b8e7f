"""Where a configuration of promptfoo is: in a file of its name, or in the one that promptfoo exports."""

from __future__ import annotations

from agentv.authoring.source.nodes import MapNode, Node

NAMES = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")


def configuration_in(root: Node | None) -> Node | None:
    """The configuration that `promptfoo export eval` and `promptfoo eval -o` write beside the results."""
    held = root.get("config") if isinstance(root, MapNode) and "results" in root.items else None
    return held if isinstance(held, MapNode) and "prompts" in held.items else root
