"""Python modules whose functions are the tools of a server: read as a syntax tree, without running them."""

from __future__ import annotations

import ast
from inspect import cleandoc

from msgspec import Struct

from agentv.authoring.fields.python_source import parsed
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, kind_of, node_of
from agentv.extensions.agents.authoring.tool_schema import OFFERED
from agentv.model.values.values import Json, JsonObject

_STATE = "STATE"
_TYPES: JsonObject = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "dict": {"type": "object"},
}


class ToolModule(Struct, frozen=True):
    """The tools of a module as they would be written out, and the state that they begin with."""

    tools: MapNode
    state: JsonObject


def tools_in(node: Node, reading: Reading) -> ToolModule | None:
    """The tools that `tools` of a server maps or whose module it names; None where it is wrong, which is reported."""
    if isinstance(node, Scalar) and node.text.strip().endswith(".py"):
        return _module(node, reading)
    if isinstance(node, MapNode) and not is_empty(node):
        return ToolModule(node, {})
    reading.report.error("bad-value", node, f"'tools' must map tools to what they do, found {kind_of(node)}")
    return None


def _module(node: Scalar, reading: Reading) -> ToolModule | None:
    """The public functions of a module, and its literal `STATE`; None where it cannot be read, which is reported.

    A function's docstring is the tool's description; its parameters are the tool's, with the types of their
    annotations. Those with a default may be left out.
    """
    found = reading.find(node, "file")
    text = None if found is None else reading.text_of(found, node)
    if text is None:
        return None
    try:
        body = parsed(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reading.report.error("bad-python-file", node, f"'{node.text}' is not valid Python: {error}")
        return None
    functions = [one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    tools = {one.name: _tool(one, node) for one in functions if not one.name.startswith("_")}
    if not tools:
        reading.report.error("missing-value", node, f"'{node.text}' has no functions, which would be the tools")
        return None
    state: JsonObject = {}
    for one in body:
        if isinstance(one, ast.Assign) and any(
            isinstance(name, ast.Name) and name.id == _STATE for name in one.targets
        ):
            try:
                state = ast.literal_eval(one.value)
            except (ValueError, TypeError):
                reading.report.error("bad-value", node, f"'{_STATE}' of '{node.text}' must be a literal object of JSON")
                return None
    made = node_of(tools, node.at)
    assert isinstance(made, MapNode)  # noqa: S101  # as it was made
    return ToolModule(made, state)


def _tool(function: ast.FunctionDef | ast.AsyncFunctionDef, node: Scalar) -> Json:
    given = function.args
    named = [*given.posonlyargs, *given.args]
    defaults = len(given.defaults)
    required = {one.arg for one in named[: len(named) - defaults]}
    required |= {one.arg for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is None}
    shown = [one for one in (*named, *given.kwonlyargs) if one.arg not in OFFERED]
    params: Json = {
        "type": "object",
        "properties": {one.arg: _type(one.annotation) for one in shown},
        "required": [one.arg for one in shown if one.arg in required],
        "additionalProperties": False,
    }
    about = cleandoc(ast.get_docstring(function) or "")
    return {"description": about, "params": params, "function": f"{node.text.strip()}:{function.name}"}


def _type(annotation: ast.expr | None) -> Json:
    """The JSON Schema of an annotation; one that accepts all where it says nothing of JSON."""
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        inside = {"items": _type(annotation.slice)} if annotation.value.id == "list" else {}
        return {**_TYPES.get(annotation.value.id, {}), **inside}  # type: ignore[dict-item]
    return _TYPES.get(annotation.id, {}) if isinstance(annotation, ast.Name) else {}
