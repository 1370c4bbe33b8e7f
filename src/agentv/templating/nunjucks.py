"""Templates by the rules of Nunjucks, as promptfoo renders them: JavaScript's values, conditions and filters.

The syntax is Jinja's but for a few words; a template is parsed by Jinja, and its nodes get JavaScript's meaning.

Source: nunjucks 3.2.4 (`compiler.js`, `filters.js`, `runtime.js`); the filter `load` is promptfoo's.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.nodes import Template

_TEXTS = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_PART = re.compile(
    rf"(?P<raw>\{{%-?\s*(?:raw|verbatim)\s*-?%\}}.*?\{{%-?\s*end(?:raw|verbatim)\s*-?%\}}|\{{#.*?#\}})"
    rf"|\{{\{{(?:{_TEXTS}|.)*?\}}\}}|\{{%(?:{_TEXTS}|.)*?%\}}",
    re.DOTALL,
)
_WORD = re.compile(rf"(?P<text>{_TEXTS})|===|!==|(?<=\{{%)(?P<mark>-?\s*)(?:elseif|else\s+if)\b", re.DOTALL)


def jinja_source(source: str) -> str:
    """The template in Jinja's words: `===` and `elseif` outside of texts."""
    return _PART.sub(lambda part: part[0] if part["raw"] else _WORD.sub(_respelled, part[0]), source)


def _respelled(found: re.Match[str]) -> str:
    if found["text"] is not None:
        return found[0]
    return f"{found['mark']}elif" if found["mark"] is not None else found[0][:2]


def jinja_tree(tree: Template) -> Template:
    """The nodes of a template with JavaScript's conditions, sums and loops."""
    from jinja2 import nodes
    from jinja2.visitor import NodeTransformer

    def through(name: str, node: Any, *given: Any) -> nodes.Filter:
        return nodes.Filter(node, name, list(given), [], None, None, lineno=node.lineno)

    class Meaning(NodeTransformer):
        def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # as Jinja calls it
            self.generic_visit(node)
            node.iter = through("js_pairs" if isinstance(node.target, nodes.Tuple) else "js_items", node.iter)
            return node

        def visit_If(self, node: nodes.If | nodes.CondExpr) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            node.test = through("js_true", node.test)
            return node

        visit_CondExpr = visit_If  # noqa: N815

        def visit_Not(self, node: nodes.Not) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            node.node = through("js_true", node.node)
            return node

        def visit_And(self, node: nodes.And) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            return nodes.CondExpr(through("js_true", node.left), node.right, node.left, lineno=node.lineno)

        def visit_Or(self, node: nodes.Or) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            return nodes.CondExpr(through("js_true", node.left), node.left, node.right, lineno=node.lineno)

        def visit_Add(self, node: nodes.Add) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            return through("js_sum", node.left, node.right)

        def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            (first, *others) = node.ops
            if others or first.op not in ("eq", "ne"):
                return node
            same = through("js_equal", node.expr, first.expr)
            return same if first.op == "eq" else nodes.Not(same, lineno=node.lineno)

    return Meaning().visit(tree)  # type: ignore[no-any-return]  # what it is given


def become_nunjucks(environment: Environment) -> None:
    """Give an environment that has rendered nothing yet the values and filters of Nunjucks."""
    environment.comment_start_string, environment.comment_end_string = "{#", "#}"
    environment.finalize = shown
    environment.filters |= _FILTERS
    environment.globals["null"] = None
    environment.policies["truncate.leeway"] = 0
    inherited = environment.getattr

    def member(owner: Any, name: str) -> Any:
        kinds: Mapping[str, Callable[..., Any]] | None = _METHODS.get(type(owner))
        if kinds is None:
            return inherited(owner, name)
        if isinstance(owner, dict):
            return owner[name] if name in owner else environment.undefined(obj=owner, name=name)
        if name == "length" and isinstance(owner, str | list):
            return len(owner)
        method = kinds.get(name)
        return environment.undefined(obj=owner, name=name) if method is None else _bound(method, owner)

    environment.getattr = member  # type: ignore[assignment, method-assign]  # of this one alone


def _bound(method: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    return lambda *given: method(owner, *given)


def shown(value: Any) -> Any:
    """A value as JavaScript shows it in a text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list | tuple):
        return ",".join(str(shown(one)) for one in value)
    return "[object Object]" if isinstance(value, Mapping) else value


def _number(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value.is_integer() and abs(value) < 10**21 else repr(value)


def _is_undefined(value: Any) -> bool:
    from jinja2 import Undefined

    return isinstance(value, Undefined)


def _true(value: Any) -> bool:
    return not (value is None or value is False or value in ("", 0) or _is_undefined(value))


def _equal(one: Any, other: Any) -> bool:
    """`==` of JavaScript, which converts."""
    none = [value is None or _is_undefined(value) for value in (one, other)]
    if any(none):
        return all(none)
    if isinstance(one, bool | int | float) != isinstance(other, bool | int | float):
        return _numeric(one) == _numeric(other)
    if isinstance(one, str) != isinstance(other, str):
        return str(shown(one)) == str(shown(other))
    return bool(one == other)


def _numeric(value: Any) -> float:
    if isinstance(value, bool | int | float):
        return float(value)
    text = str(shown(value)).strip()
    try:
        return float(text) if text else 0.0
    except ValueError:
        return math.nan


def _sum(one: Any, other: Any) -> Any:
    numbers = [value for value in (one, other) if isinstance(value, int | float)]
    return numbers[0] + numbers[1] if len(numbers) == 2 else f"{shown(one)}{shown(other)}"


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple | str | range) or hasattr(value, "__next__") else []


def _pairs(value: Any) -> Iterable[Any]:
    return list(value.items()) if isinstance(value, Mapping) else _items(value)


def _dump(value: Any, indent: Any = None) -> str:
    separators = (",", ":") if not indent else (",", ": ")
    return json.dumps(_plain(value), ensure_ascii=False, separators=separators, indent=indent or None)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _joined(values: Any, between: str = "", attribute: str | None = None) -> str:
    found = [one.get(attribute) if isinstance(one, Mapping) else None for one in values] if attribute else values
    return between.join(str(shown(one)) for one in _items(found))


def _rounded(value: Any, digits: int = 0, method: str = "common") -> float:
    scaled = _numeric(value) * 10**digits
    whole = math.ceil(scaled) if method == "ceil" else math.floor(scaled if method == "floor" else scaled + 0.5)
    return float(whole / 10**digits)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 0


def _itself(value: Any) -> Any:
    return value


_FILTERS: Mapping[str, Callable[..., Any]] = {
    "js_true": _true,
    "js_equal": _equal,
    "js_sum": _sum,
    "js_items": _items,
    "js_pairs": _pairs,
    "dump": _dump,
    "load": json.loads,
    "nl2br": lambda text: re.sub(r"\r\n|\n", "<br />\n", str(shown(text))),
    "join": _joined,
    "round": _rounded,
    "length": _length,
    "safe": _itself,
    "string": lambda value: str(shown(value)),
}


def _index(values: Any, wanted: Any, start: int = 0) -> int:
    for place in range(start, len(values)):
        if values[place : place + len(wanted)] == wanted if isinstance(values, str) else values[place] == wanted:
            return place
    return -1


def _slice(values: Any, start: int = 0, end: int | None = None) -> Any:
    return values[start:end]


_METHODS: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    dict: {},
    str: {
        "toUpperCase": str.upper,
        "toLowerCase": str.lower,
        "trim": str.strip,
        "includes": lambda text, part: str(part) in text,
        "startsWith": lambda text, part: text.startswith(str(part)),
        "endsWith": lambda text, part: text.endswith(str(part)),
        "split": lambda text, between: text.split(between) if between else list(text),
        "replace": lambda text, old, new: text.replace(old, new, 1),
        "replaceAll": lambda text, old, new: text.replace(old, new),
        "indexOf": _index,
        "slice": _slice,
        "toString": _itself,
    },
    list: {
        "join": lambda values, between=",": _joined(values, between),
        "includes": lambda values, one: one in values,
        "indexOf": _index,
        "slice": _slice,
    },
    int: {"toString": str, "toFixed": lambda value, digits=0: f"{value:.{digits}f}"},
    float: {"toString": _number, "toFixed": lambda value, digits=0: f"{value:.{digits}f}"},
}
"""Type → the methods that JavaScript's values of it have, and Python's do not."""
