"""Possible paths and names of a Python expression, as far as its text shows; nothing is run."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import product

from msgspec import Struct

_MOST = 64
"""Values of one expression."""

_DEEPEST = 40

_PARENT = frozenset({"dirname"})
_SAME = frozenset({"abspath", "realpath", "normpath", "normcase", "expanduser", "str", "fspath", "fsdecode", "Path"})
_SAME_OF_ITSELF = frozenset({"resolve", "absolute", "as_posix", "expanduser", "strip", "copy"})
_JOINS = frozenset({"join", "joinpath", "Path", "PurePath", "PosixPath"})
_LISTS = frozenset({"list", "tuple", "sorted", "set", "reversed", "map"})
_HERE = frozenset({"getcwd", "cwd"})
_NAMED = {"pardir": "..", "curdir": ".", "sep": "/"}
_OF_PACKAGES = frozenset({"__path__", "submodule_search_locations"})


class Values(Struct, frozen=True):
    """Possible values of an expression.

    Attributes:
        texts: the known values.
        whole: there are no others.
    """

    texts: tuple[str, ...] = ()
    whole: bool = True

    def __or__(self, other: Values) -> Values:
        texts = tuple(dict.fromkeys((*self.texts, *other.texts)))
        return Values(texts[:_MOST], self.whole and other.whole and len(texts) <= _MOST)

    def each(self, change: Callable[[str], str]) -> Values:
        """Every value changed."""
        return Values(tuple(map(change, self.texts)), self.whole)


UNKNOWN = Values((), whole=False)
NONE = Values()


class Expressions:
    """Evaluates the expressions of one file. A name has all values that are bound to it anywhere in the file.

    Args:
        tree: of the file.
        file: its absolute path.
    """

    def __init__(self, tree: ast.Module, file: str) -> None:
        self._tree = tree
        self._file = file
        self._bound: dict[str, list[ast.expr | None]] | None = None
        self._items: set[str] = set()
        self._under_way: set[str] = set()
        self._depth = 0

    def text(self, node: ast.expr) -> Values:
        """The texts or paths that it may be; of a list, all that are in it."""
        if self._depth > _DEEPEST:
            return UNKNOWN
        self._depth += 1
        try:
            return self._text(node)
        finally:
            self._depth -= 1

    def _text(self, node: ast.expr) -> Values:  # noqa: C901, PLR0911, PLR0912  # one line a kind of expression
        match node:
            case ast.Constant(value=str(value)):
                return Values((value,))
            case ast.Constant(value=None):
                return NONE
            case ast.Name(id="__file__"):
                return Values((self._file,))
            case ast.Name(id=name):
                return self._name(name)
            case ast.JoinedStr(values=parts):
                return self._all(parts, "".join)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self.text(inner)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return self._any(items)
            case ast.Starred(value=inner) | ast.NamedExpr(value=inner) | ast.GeneratorExp(elt=inner):
                return self.text(inner)
            case ast.ListComp(elt=inner) | ast.SetComp(elt=inner) | ast.Await(value=inner):
                return self.text(inner)
            case ast.IfExp(body=first, orelse=second):
                return self.text(first) | self.text(second)
            case ast.BoolOp(values=items):
                return self._any(items)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return (
                    self._any((left, right)) if self._is_list(left) or self._is_list(right) else self._sum(left, right)
                )
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._all((left, right), _joined)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._item(node)
            case ast.Call():
                return self._called(node)
        return UNKNOWN

    def prefix(self, node: ast.expr) -> str:  # noqa: PLR0911  # as above
        """The text with which it begins, as far as that is written out."""
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.JoinedStr(values=parts):
                return self._prefix_of(parts)
            case ast.FormattedValue(value=ast.expr() as inner):
                return self.prefix(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._prefix_of((left, right))
            case ast.BinOp(left=ast.Constant(value=str(value)), op=ast.Mod()):
                return value.partition("%")[0]
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(value)), attr="format")):
                return value.partition("{")[0]
            case ast.Name() | ast.Attribute():
                return self._only(node)
        return ""

    def _prefix_of(self, parts: Iterable[ast.expr]) -> str:
        found = ""
        for part in parts:
            found += self.prefix(part)
            if not self._only(part):
                break
        return found

    def _only(self, node: ast.expr) -> str:
        """The one text that it is; "" where it may be another."""
        found = self.text(node)
        return found.texts[0] if found.whole and len(found.texts) == 1 else ""

    def _any(self, nodes: Iterable[ast.expr]) -> Values:
        found = NONE
        for node in nodes:
            found |= self.text(node)
        return found

    def _all(self, nodes: Iterable[ast.expr], combine: Callable[[tuple[str, ...]], str]) -> Values:
        parts = [self.text(node) for node in nodes]
        texts: dict[str, None] = {}
        for chosen in product(*(part.texts for part in parts)):
            texts[combine(chosen)] = None
            if len(texts) > _MOST:
                return Values(tuple(texts), whole=False)
        return Values(tuple(texts), bool(texts) and all(part.whole for part in parts))

    def _sum(self, left: ast.expr, right: ast.expr) -> Values:
        return self._all((left, right), "".join)

    def _is_list(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            return self._is_list(node.left) or self._is_list(node.right)
        return isinstance(node, ast.List | ast.Tuple | ast.ListComp) or is_search_path(node)

    def _attribute(self, node: ast.Attribute) -> Values:
        if node.attr == "parent":
            return self.text(node.value).each(os.path.dirname)
        if node.attr in _NAMED:
            return Values((_NAMED[node.attr],))
        if node.attr in _OF_PACKAGES or is_search_path(node):
            return NONE  # packages that are imported are known as such
        return UNKNOWN

    def _item(self, node: ast.Subscript) -> Values:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "parents":
            match node.slice:
                case ast.Constant(value=int(up)) if 0 <= up < _DEEPEST:
                    return self.text(node.value.value).each(lambda path: _climbed(path, up + 1))
        if isinstance(node.slice, ast.Slice):
            return self.text(node.value)
        return NONE if is_search_path(node.value) else UNKNOWN

    def _called(self, node: ast.Call) -> Values:  # noqa: PLR0911  # one line a function
        function, given = node.func, node.args
        if isinstance(function, ast.Attribute) and function.attr in _SAME_OF_ITSELF and not given:
            return self.text(function.value)
        name = getattr(function, "attr", getattr(function, "id", ""))
        if name in _HERE and not given:
            return Values((".",))
        if name == "joinpath" and isinstance(function, ast.Attribute):
            return self._all((function.value, *given), _joined)
        if (
            name in _JOINS
            and given
            and not _is_text(function)
            and not any(isinstance(one, ast.Starred) for one in given)
        ):
            return self._all(given, _joined)
        if name in _PARENT and len(given) == 1:
            return self.text(given[0]).each(os.path.dirname)
        if name in _LISTS and given:
            return self.text(given[-1])
        return self.text(given[0]) if name in _SAME and len(given) == 1 else UNKNOWN

    def _name(self, name: str) -> Values:
        if name in self._under_way:
            return NONE  # x = x / "lib"
        bound = self._bindings().get(name)
        if not bound:
            return UNKNOWN
        self._under_way.add(name)
        try:
            found = NONE
            for one in bound:
                found |= UNKNOWN if one is None else self.text(one)
            return found
        finally:
            self._under_way.discard(name)

    def _bindings(self) -> dict[str, list[ast.expr | None]]:
        if self._bound is None:
            self._bound = {}
            for name, value in _bindings(self._tree):
                self._bound.setdefault(name, []).append(value)
        return self._bound


def is_search_path(node: ast.expr) -> bool:
    """Whether it is `sys.path`, or a part or copy of it."""
    match node:
        case ast.Subscript(value=inner, slice=ast.Slice()):
            return is_search_path(inner)
        case ast.Attribute(value=ast.Name(id=name), attr="path"):
            return name.lstrip("_") in ("sys", "system")
        case ast.Attribute(attr="__path__") | ast.Name(id="__path__"):
            return True
    return False


def _is_text(function: ast.expr) -> bool:
    """Whether it is the method of a text, as in `"".join`."""
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant | ast.JoinedStr)


def _joined(parts: tuple[str, ...]) -> str:
    return os.path.normpath(os.path.join(*parts))  # noqa: PTH118  # it joins as Python does


def _climbed(path: str, up: int) -> str:
    for _ in range(up):
        path = os.path.dirname(path)  # noqa: PTH120  # as above
    return path


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:  # noqa: C901  # one line a statement
    """Every name that is bound somewhere, with the expression; None where it may be anything."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _pairs(target, value)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                yield name, value
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                yield name, value if isinstance(value, ast.List | ast.Tuple) else None
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                yield from _of_each(target, value)
            case ast.comprehension(target=target, iter=value):
                yield from _of_each(target, value)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name, None
            case ast.withitem(optional_vars=ast.expr() as target):
                yield from _pairs(target, None)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((one.asname or one.name.partition(".")[0], None) for one in names)


def _of_each(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a loop binds with their possible values; None for names in a tuple."""
    yield from _pairs(target, value if isinstance(target, ast.Name) else None)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    match target:
        case ast.Name(id=name):
            yield name, value
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets) else None
            for place, one in enumerate(targets):
                yield from _pairs(one, values[place] if values else None)
        case ast.Starred(value=inner):
            yield from _pairs(inner, None)
