"""Nunjucks as promptfoo renders it: Jinja's syntax with JavaScript's values, operators and scopes.

Operators have the precedence that they have in the JavaScript that Nunjucks generates. Expressions that Nunjucks would
read differently are errors. Source: nunjucks 3.2.4 (`parser.js`, `compiler.js`, `runtime.js`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from jinja2 import Environment, TemplateSyntaxError, Undefined, nodes
from jinja2.lexer import TokenStream
from jinja2.runtime import LoopContext
from jinja2.sandbox import safe_range
from jinja2.visitor import NodeTransformer

from agentv.templating import javascript
from agentv.templating.jinja import NoIncludesParser, call, functions
from agentv.templating.rendering import Environment as Variables

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CARRIAGE = "\x1c"
"""White space that replaces carriage returns while Jinja reads a template, as Jinja would turn them into line feeds."""

_LEVELS = (
    ("eq", "ne"),
    ("lt", "lteq", "gt", "gteq"),
    ("add", "sub", "tilde"),
    ("mul", "div", "mod", "floordiv"),
    ("pow",),
)
"""Operators in order of increasing precedence."""

_LOOP = ("index", "index0", "revindex", "revindex0", "first", "last", "length")

_SCOPES, _VALUE = "_agentv_scopes", "_agentv_value"
"""Variables: a list of scopes (variables set outside of loops, the template's scope, those of the loops around), and
the value that `set` assigns."""


class NunjucksParser(NoIncludesParser):
    """A parser for Nunjucks templates, which keeps carriage returns."""

    def __init__(self, environment: Environment, source: str) -> None:
        super().__init__(environment, "")
        written = environment.lexer.tokeniter(source.replace("\r", _CARRIAGE), None)
        tokens = environment.lexer.wrap(map(_respelled, written))
        restored = (
            one._replace(value=one.value.replace(_CARRIAGE, "\r")) if one.type in ("data", "string") else one
            for one in tokens
        )
        self.stream = TokenStream(restored, None, None)

    def parse_not(self) -> nodes.Expr:
        """Parse `not`, which is JavaScript's `!` and applies only to the next value."""
        if not self.stream.skip_if("name:not"):
            return self.parse_compare()
        again = self.stream.current.test("name:not")
        node = self.parse_not() if again else self._tested(self._operations(len(_LEVELS) - 1))
        if any(self.stream.current.type in level for level in _LEVELS):
            self.fail("'not' is for the value next to it: put what it is for in parentheses")
        return call("not", node)

    def parse_compare(self) -> nodes.Expr:
        """Parse a comparison and its tests."""
        return self._tested(self._operations(0))

    def _operations(self, level: int) -> nodes.Expr:
        if level == len(_LEVELS):
            return self.parse_unary()
        node, found = self._operations(level + 1), set()
        while self.stream.current.type in _LEVELS[level]:
            operator = next(self.stream).value + ("=" if self.stream.skip_if("assign") else "")  # of `===`
            node = call(operator, node, self._operations(level + 1))
            found.add(operator)
        if "//" in found and len(found) > 1:
            self.fail("put parentheses around the operation with '//'")
        return node

    def _tested(self, node: nodes.Expr) -> nodes.Expr:
        while self.stream.current.test("name:is"):
            node = self.parse_test(node)
        negated = self.stream.current.test("name:not") and self.stream.look().test("name:in")
        self.stream.skip(int(negated))
        if self.stream.skip_if("name:in"):
            node = call("in", node, self.parse_compare())
        return call("not", node) if negated else node

    def parse_filter_expr(self, node: nodes.Expr) -> nodes.Expr:
        """Parse the filters of a value, without tests."""
        return self.parse_filter(node) or node

    def parse_dict(self) -> nodes.Dict:
        """Parse an object, whose keys may be names."""
        node = super().parse_dict()
        for pair in node.items:
            pair.key = nodes.Const(pair.key.name) if isinstance(pair.key, nodes.Name) else pair.key
        return node

    def parse_primary(self, with_namespace: bool = False) -> nodes.Expr:
        """Parse a name or literal; those that only Jinja has are errors."""
        token = self.stream.current
        if token.test_any("name:True", "name:False", "name:None"):
            self.fail(f"'{token.value}' is a name in Nunjucks: write '{token.value.lower()}'")
        if token.type == "string" and self.stream.look().type == "string":
            self.fail("there is no operator between two texts")
        return super().parse_primary(with_namespace)


def _respelled(token: tuple[int, str, str]) -> tuple[int, str, str]:
    line, kind, text = token
    if kind == "string":  # an unknown escape such as `\d` is `d`
        text = _ESCAPE.sub(lambda found: found[0] if found[1] in "\\'\"nrt" else found[1], text)
    return line, kind, "elif" if (kind, text) == ("name", "elseif") else text


class _NunjucksTransformer(NodeTransformer):
    """Changes a tree to JavaScript's conditions and loops, and to Nunjucks' scopes for variables set in them."""

    def __init__(self, tree: nodes.Template) -> None:
        sets: Any = (nodes.Assign, nodes.AssignBlock)
        macros: Any = (nodes.Macro, nodes.CallBlock)
        loops = list(tree.find_all(nodes.For))
        if tree.find(macros) and any(loop.find(sets) for loop in loops):
            _refuse(tree, "a template with macros cannot set variables in loops")
        targets = [one.target for one in tree.find_all(sets)] if loops and not tree.find(macros) else []
        self.set = {one.name for one in targets if isinstance(one, nodes.Name)}

    def _scoped(self, name: str, node: nodes.Expr, *given: nodes.Expr) -> nodes.Filter:
        return call(name, node, nodes.Name(_SCOPES, "load"), *given)

    def visit_Template(self, node: nodes.Template) -> nodes.Node:  # noqa: N802  # a name that Jinja requires
        self.generic_visit(node)
        scopes = nodes.Assign(nodes.Name(_SCOPES, "store"), nodes.List([nodes.Dict([]), nodes.Dict([])]), lineno=1)
        node.body[:0] = [scopes] if self.set else []
        return node

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802
        if node.name not in self.set:
            return node
        if node.ctx != "load":
            _refuse(node, f"a loop sets '{node.name}', which is its variable")
        return self._scoped("get", node, nodes.Const(node.name))

    def visit_Assign(self, node: nodes.Assign | nodes.AssignBlock) -> nodes.Node | list[nodes.Node]:  # noqa: N802
        target = node.target
        if isinstance(target, nodes.Tuple):
            _refuse(node, "'set' can set one variable")
        if not (isinstance(target, nodes.Name) and target.name in self.set):
            return self.generic_visit(node)
        node.target = nodes.Name(_VALUE, "store", lineno=node.lineno)
        value = self._scoped("set", nodes.Name(_VALUE, "load", lineno=node.lineno), nodes.Const(target.name))
        return [self.generic_visit(node), nodes.ExprStmt(value, lineno=node.lineno)]

    visit_AssignBlock = visit_Assign  # noqa: N815

    def visit_For(self, node: nodes.For) -> nodes.Node | list[nodes.Node]:  # noqa: N802
        if node.test or node.recursive:
            _refuse(node, "a loop can have no condition and cannot be recursive")
        self.generic_visit(node)
        many = [nodes.Const(len(node.target.items))] if isinstance(node.target, nodes.Tuple) else []
        node.iter = call("pairs" if many else "items", node.iter, *many)
        steps = [self._scoped(name, nodes.Const(None, lineno=node.lineno)) for name in ("enter", "leave")]
        enter, leave = (nodes.ExprStmt(step, lineno=node.lineno) for step in steps)
        return [enter, node, leave] if self.set else node

    def visit_If(self, node: nodes.If | nodes.CondExpr) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.test = call("condition", node.test)
        if isinstance(node, nodes.CondExpr):
            node.expr2 = node.expr2 or nodes.Const("")
        return node

    visit_CondExpr = visit_If  # noqa: N815

    def visit_And(self, node: nodes.And | nodes.Or) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.left = call("condition", node.left)
        return call("value", node)

    visit_Or = visit_And  # noqa: N815

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        if node.ctx == "load":
            _refuse(node, "there is no list without brackets")
        return self.generic_visit(node)

    def visit_Slice(self, node: nodes.Slice) -> nodes.Node:  # noqa: N802
        _refuse(node, "there are no slices: use the method 'slice'")


def as_nunjucks(tree: nodes.Template) -> nodes.Template:
    """Transform a template's tree so that Jinja runs it as Nunjucks would."""
    return _NunjucksTransformer(tree).visit(tree)  # type: ignore[no-any-return]  # returns the tree


def _refuse(node: nodes.Node, message: str) -> NoReturn:
    raise TemplateSyntaxError(message, node.lineno)


@dataclass(frozen=True, slots=True)
class _Condition:
    """A value whose truth in Python is its truth in JavaScript."""

    value: Any

    def __bool__(self) -> bool:
        return javascript.true(self.value)


def _scope(scopes: list[dict[str, Any]], name: str, other: dict[str, Any]) -> dict[str, Any]:
    """The innermost scope in which a variable is defined, or the other one if none exists."""
    found = (one for one in scopes[:0:-1] if not isinstance(one.get(name, javascript.UNDEFINED), Undefined))
    return next(found, other)


def _set(value: Any, scopes: list[dict[str, Any]], name: str) -> None:
    _scope(scopes, name, scopes[-1])[name] = value
    if len(scopes) == 2:
        scopes[0][name] = value


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **javascript.OPERATORS,
    "in": javascript.contains,
    "items": javascript.items,
    "pairs": javascript.pairs,
    "not": lambda value: not javascript.true(value),
    "condition": _Condition,
    "value": lambda value: value.value if isinstance(value, _Condition) else value,
    "get": lambda value, scopes, name: _scope(scopes, name, scopes[0]).get(name, value),
    "set": _set,
    "enter": lambda _, scopes: scopes.append({}),
    "leave": lambda _, scopes: scopes.pop(),
}


def set_up_nunjucks(environment: Environment) -> None:
    """Set up a new environment with the values, filters and tests of Nunjucks."""
    environment.finalize = javascript.shown
    environment.optimized = False  # Jinja would write constants into the generated code, where NaN is invalid
    environment.filters = {**javascript.FILTERS, **functions(_FUNCTIONS)}
    environment.tests = dict(javascript.TESTS)
    environment.globals = {"null": None, "range": lambda *given: list(safe_range(*given))}
    inherited = environment.getattr

    def member(owner: Any, key: Any) -> Any:
        name = javascript.text(key)
        if isinstance(owner, LoopContext):
            return getattr(owner, name) if name in _LOOP else javascript.UNDEFINED
        if isinstance(owner, Variables | Undefined):
            return inherited(owner, name)
        found = javascript.UNDEFINED if owner is None else javascript.member(owner, name)
        return environment.undefined(obj=owner, name=name) if found is javascript.UNDEFINED else found

    environment.getattr = environment.getitem = member  # type: ignore[assignment, method-assign]  # set on this instance
