"""Settings of promptfoo's providers that say which tools a model may call, in Amazon's and in Google's form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.source import mapping, text_node

_CHOICES: Mapping[str, str] = {"any": "required", "auto": "auto", "none": "none", "required": "required"}
"""What models may choose, by Amazon's and Google's words → by ours."""


def with_tools(settings: Mapping[str, Node]) -> dict[str, Node]:
    """The settings with `tools` and `tool_choice` by our names; a form that is not known stays as it is."""
    made = dict(settings)
    form = made.get("toolConfig")
    if isinstance(form, MapNode) and form.items.keys() <= {"tools", "toolChoice", "functionCallingConfig"}:
        del made["toolConfig"]
        made = {**form.items, **made}
    for key in ("toolChoice", "functionCallingConfig"):
        choice = _choice(made[key]) if key in made else None
        if choice is not None:
            del made[key]
            made["tool_choice"] = choice
    tools = made.get("tools")
    if isinstance(tools, ListNode):
        made["tools"] = ListNode([one for item in tools.items for one in _tools(item)], tools.at)
    return made


def _choice(node: Node) -> Node | None:
    """`auto`, `{auto: {}}`, `{tool: {name: …}}` or `{mode: AUTO}` as ours; None where it says something else."""
    if isinstance(node, MapNode) and node.items.keys() == {"mode"}:
        node = node.items["mode"]
    if isinstance(node, MapNode) and len(node.items) == 1:
        (key, inner), *_ = node.items.items()
        name = inner.get("name") if isinstance(inner, MapNode) else None
        if key == "tool" and isinstance(name, Scalar):
            return name
        node = text_node(key, node.at)
    found = _CHOICES.get(node.text.lower()) if isinstance(node, Scalar) else None
    return None if found is None else text_node(found, node.at)


def _tools(node: Node) -> Iterator[Node]:
    """The functions that one entry declares; an entry of another form stays."""
    if not isinstance(node, MapNode):
        yield node
        return
    declared = node.get("functionDeclarations") or node.get("function_declarations")
    spec = node.get("toolSpec")
    if isinstance(declared, ListNode) and len(node.items) == 1:
        for item in declared.items:
            yield _function(item, node) if isinstance(item, MapNode) else item
    elif isinstance(spec, MapNode) and len(node.items) == 1:
        schema = spec.get("inputSchema")
        given = {key: item for key, item in spec.items.items() if key != "inputSchema"}
        inner = schema.get("json") if isinstance(schema, MapNode) else None
        yield _function(mapping(spec, given if inner is None else {**given, "parameters": inner}), node)
    else:
        yield node


def _function(declared: MapNode, node: Node) -> Node:
    parameters = declared.get("parameters")
    written = {**declared.items, **({} if parameters is None else {"parameters": _lower_types(parameters)})}
    return mapping(node, {"type": text_node("function", node.at), "function": mapping(declared, written)})


def _lower_types(node: Node) -> Node:
    """A JSON Schema with the names of types as JSON Schema spells them; Google writes `OBJECT`."""
    if isinstance(node, ListNode):
        return ListNode([_lower_types(item) for item in node.items], node.at)
    if not isinstance(node, MapNode):
        return node
    kind = node.get("type")
    made = {key: _lower_types(item) for key, item in node.items.items()}
    if isinstance(kind, Scalar) and kind.text.isupper():
        made["type"] = text_node(kind.text.lower(), kind.at)
    return mapping(node, made)
