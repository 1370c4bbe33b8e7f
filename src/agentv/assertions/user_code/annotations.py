"""Annotations of users' parameters, read from the syntax tree and checked against values of an eval file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentv.model.values.values import Json

Accepts: TypeAlias = Callable[[Json], bool]


@dataclass(frozen=True, slots=True)
class Annotation:
    """Annotation of a parameter: as authored, and as a check of a value."""

    shown: str
    accepts: Accepts


def read_annotation(node: ast.expr | None) -> Annotation | None:
    """The annotation in a syntax tree; None where it says nothing that can be checked without running code."""
    accepts = _accepts(node)
    if node is None or accepts is None:
        return None
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    return Annotation(text, accepts)


def _accepts(node: ast.expr | None) -> Accepts | None:
    match node:
        case ast.Constant(value=None):
            return _is_none
        case ast.Constant(value=str(text)):
            return _accepts(_parsed(text))
        case ast.Name() | ast.Attribute():
            return _PLAIN.get(_last_name(node))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([left, right])
        case ast.Subscript(value=head, slice=inside):
            generic = _GENERIC.get(_last_name(head))
            return generic(inside.elts if isinstance(inside, ast.Tuple) else [inside]) if generic else None
    return None


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _last_name(node: ast.expr) -> str:
    """The name without the module it is taken from: `Literal` of `typing.Literal`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_none(value: Json) -> bool:
    return value is None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: Json) -> bool:
    return isinstance(value, list | tuple)


def _of(cls: type) -> Accepts:
    return lambda value: isinstance(value, cls)


def _any_of(nodes: list[ast.expr]) -> Accepts | None:
    members = [_accepts(node) for node in nodes]
    known = [member for member in members if member is not None]
    if len(known) < len(members):
        return None
    return lambda value: any(accepts(value) for accepts in known)


def _optional(nodes: list[ast.expr]) -> Accepts | None:
    return _any_of([*nodes, ast.Constant(None)])


def _list_of(nodes: list[ast.expr]) -> Accepts | None:
    inner = _accepts(nodes[0])
    if inner is None:
        return _is_list
    return lambda value: isinstance(value, list | tuple) and all(inner(one) for one in value)


def _mapping_of(nodes: list[ast.expr]) -> Accepts | None:
    inner = _accepts(nodes[-1])
    if inner is None:
        return _of(Mapping)
    return lambda value: isinstance(value, Mapping) and all(inner(one) for one in value.values())


def _literal(nodes: list[ast.expr]) -> Accepts | None:
    if not all(isinstance(node, ast.Constant) for node in nodes):
        return None
    # true is equal to 1 in Python, and another thing in YAML
    choices = {(type(node.value), node.value) for node in nodes if isinstance(node, ast.Constant)}
    return lambda value: isinstance(value, bool | int | str | None) and (type(value), value) in choices


def _first(nodes: list[ast.expr]) -> Accepts | None:
    return _accepts(nodes[0])


_PLAIN: dict[str, Accepts] = {
    "str": _of(str),
    "bool": _of(bool),
    "int": _is_whole,
    "float": _is_number,
    "None": _is_none,
    **dict.fromkeys(("list", "List", "Sequence"), _is_list),
    **dict.fromkeys(("dict", "Dict", "Mapping"), _of(Mapping)),
}
_GENERIC: dict[str, Callable[[list[ast.expr]], Accepts | None]] = {
    **dict.fromkeys(("list", "List", "Sequence"), _list_of),
    **dict.fromkeys(("dict", "Dict", "Mapping"), _mapping_of),
    "Literal": _literal,
    "Optional": _optional,
    "Union": _any_of,
    "Annotated": _first,
}
