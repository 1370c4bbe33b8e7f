"""Calls of tools as answers: promptfoo gives them to assertions as the output, and checks them by the schemas."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, plain
from agentv.extensions.promptfoo.translation.providers.provider_tables import CHAT_COMPLETIONS
from agentv.extensions.promptfoo.translation.providers.settings import from_file
from agentv.extensions.promptfoo.translation.source import Source, items_of, mapping, providers_key, text_node

_CALLS = """(() => {
  try {
    const calls = Array.isArray(output) ? output : output.tool_calls;
    return calls.map((call) => ({ name: call.function.name, arguments: JSON.parse(call.function.arguments) }));
  } catch {
    return 'not calls of tools';
  }
})()"""

_CALL = """(() => {
  try {
    const call = output.function_call ?? output;
    return [{ name: call.name, arguments: JSON.parse(call.arguments) }];
  } catch {
    return 'not a call of a function';
  }
})()"""

_CHECKS: Mapping[str, tuple[str, str]] = {
    "is-valid-openai-function-call": ("functions", _CALL),
    "is-valid-openai-tools-call": ("tools", _CALLS),
}
"""Type of assertion → where a provider declares what may be called, and what makes the calls of the output."""


def with_calls_as_output(made: dict[str, Node]) -> dict[str, Node]:
    """The target; where its model has tools, its calls are the answer, as in promptfoo."""
    said, extra = made.get("provider"), made.get("extra")
    calls = "tools" in made or (isinstance(extra, MapNode) and "functions" in extra.items)
    chat = isinstance(said, Scalar) and said.text.partition(":")[0] in CHAT_COMPLETIONS and "api" not in made
    return {**made, "tool_calls_as_output": Scalar(True, "true", said.at)} if calls and chat and said else made


def declared_calls(root: MapNode, source: Source) -> Mapping[str, Node]:
    """What all providers that declare something declare as `tools` and as `functions`, where they agree."""
    given = root.get(providers_key(root))
    listed = items_of(given)
    configs = [one.get("config") for one in listed if isinstance(one, MapNode)]
    made: dict[str, Node] = {}
    for key in ("tools", "functions"):
        own = [one.get(key) for one in configs if isinstance(one, MapNode)]
        found = [from_file(one, source) for one in own if one is not None]
        if found and all(plain(one) == plain(found[0]) for one in found):
            made[key] = found[0]
    return made


def checked_calls(kind: Scalar, node: MapNode, source: Source) -> dict[str, Node] | None:
    """The keys of an assertion that checks the calls by a JSON Schema; None where that is not possible."""
    key, transform = _CHECKS.get(kind.text, ("", ""))
    declared = source.declared_calls.get(key)
    functions = [_function(one, key) for one in declared.items] if isinstance(declared, ListNode) else []
    schemas = [_schema(one, node.at) for one in functions if one is not None]
    if not schemas or len(schemas) < len(functions) or "transform" in node.items:
        return None
    item = mapping(node, {"anyOf": ListNode(schemas, node.at)})
    least = Scalar(1, "1", node.at)
    schema: dict[str, Node] = {"type": text_node("array", node.at), "minItems": least, "items": item}
    code = text_node(f"javascript:\n{transform}\n", node.at)
    return {"type": text_node("is-json", kind.at), "transform": code, "value": mapping(node, schema)}


def _function(node: Node, key: str) -> MapNode | None:
    """What one entry declares; None for a tool of another kind, such as a server of tools."""
    inner = node.get("function") if isinstance(node, MapNode) and key == "tools" else node
    return inner if isinstance(inner, MapNode) and {"name", "parameters"} <= inner.items.keys() else None


def _schema(function: MapNode, at: Place) -> Node:
    names: list[Node] = [text_node(name, at) for name in ("name", "arguments")]
    parameters: dict[str, Node] = {
        "name": mapping(function, {"const": function.items["name"]}),
        "arguments": function.items["parameters"],
    }
    return mapping(
        function,
        {
            "type": text_node("object", at),
            "required": ListNode(names, at),
            "properties": mapping(function, parameters),
        },
    )
