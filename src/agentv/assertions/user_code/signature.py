"""Parameters of users' assertion functions: read from the syntax tree, and checked against an eval file's options."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentv.matching.spelling import nearest
from agentv.model.suite.assertion import AssertionSettings
from agentv.model.values.values import Json
from agentv.registry.fields import Issue

Accepts: TypeAlias = Callable[[Json], bool]


@dataclass(frozen=True, slots=True)
class Annotation:
    """Annotation of a parameter: its source text, and a function that checks a value."""

    shown: str
    accepts: Accepts


def read_annotation(node: ast.expr | None) -> Annotation | None:
    """Return the annotation in a syntax tree, or None if it cannot be checked without running code."""
    accepts = _accepts(node)
    if node is None or accepts is None:
        return None
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    return Annotation(text, accepts)


def _accepts(node: ast.expr | None) -> Accepts | None:
    match node:
        case ast.Constant(value=None):
            return _PLAIN["None"]
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
    """Return a name without its module: `Literal` for `typing.Literal`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _any_of(nodes: list[ast.expr]) -> Accepts | None:
    members = [_accepts(node) for node in nodes]
    known = [member for member in members if member is not None]
    if len(known) < len(members):
        return None
    return lambda value: any(accepts(value) for accepts in known)


def _list_of(nodes: list[ast.expr]) -> Accepts | None:
    inner = _accepts(nodes[0])
    if inner is None:
        return _PLAIN["list"]
    return lambda value: isinstance(value, list | tuple) and all(inner(one) for one in value)


def _mapping_of(nodes: list[ast.expr]) -> Accepts | None:
    inner = _accepts(nodes[-1])
    if inner is None:
        return _PLAIN["dict"]
    return lambda value: isinstance(value, Mapping) and all(inner(one) for one in value.values())


def _literal(nodes: list[ast.expr]) -> Accepts | None:
    if not all(isinstance(node, ast.Constant) for node in nodes):
        return None
    # True equals 1 in Python, but they are different values in YAML
    choices = {(type(node.value), node.value) for node in nodes if isinstance(node, ast.Constant)}
    return lambda value: isinstance(value, bool | int | str | None) and (type(value), value) in choices


_PLAIN: dict[str, Accepts] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "None": lambda value: value is None,
    **dict.fromkeys(("list", "List", "Sequence"), lambda value: isinstance(value, list | tuple)),
    **dict.fromkeys(("dict", "Dict", "Mapping"), lambda value: isinstance(value, Mapping)),
}
_GENERIC: dict[str, Callable[[list[ast.expr]], Accepts | None]] = {
    **dict.fromkeys(("list", "List", "Sequence"), _list_of),
    **dict.fromkeys(("dict", "Dict", "Mapping"), _mapping_of),
    "Literal": _literal,
    "Optional": lambda nodes: _any_of([*nodes, ast.Constant(None)]),
    "Union": _any_of,
    "Annotated": lambda nodes: _accepts(nodes[0]),
}


MARK = "define_assertion"
"""The decorator that makes a function an assertion."""

PROMPTFOO_NAME = "get_assert"
"""Name of the function in a promptfoo assertion file."""

PROMPTFOO_PARAMETERS = ("output", "context")
"""Names of the first two parameters, by which a promptfoo function is recognized."""

RESERVED = frozenset(AssertionSettings.__struct_fields__) | {"type", "metric"}
"""Keys of every assertion (SPEC section 7.1), which cannot be names of parameters."""

BAD_FILE = "bad-assertion-file"

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Parameter:
    """One keyword parameter of a function. `annotation` is None if any value is accepted."""

    name: str
    required: bool
    annotation: Annotation | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature of an assertion: the context, then keywords.

    Attributes:
        takes_any: whether it has `**kwargs`.
        takes_output: whether its first two parameters are the output and the context, as in promptfoo.
    """

    function: str
    parameters: tuple[Parameter, ...]
    takes_any: bool
    takes_output: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of their declaration."""
        return tuple(one.name for one in self.parameters)

    @property
    def short(self) -> str | None:
        """The parameter that a single value sets: `value`, else the only parameter, else None."""
        if "value" in self.names or (self.takes_any and not self.names):
            return "value"
        return self.names[0] if len(self.names) == 1 and not self.takes_any else None

    def validate(self, options: Mapping[str, Json]) -> Iterator[Issue]:
        """Report problems of calling the function with these options."""
        known = {one.name: one for one in self.parameters}
        for name, value in options.items():
            parameter = known.get(name)
            if parameter is None:
                if not self.takes_any:
                    yield _unknown(name, self)
            elif parameter.annotation is not None and not parameter.annotation.accepts(value):
                message = f"'{name}' must be {parameter.annotation.shown}, found {type(value).__name__} {value!r}"
                yield Issue((name,), message)
        for parameter in self.parameters:
            if parameter.required and parameter.name not in options:
                yield Issue((), f"'{parameter.name}' is missing; {self.function} requires it", "missing-key")


def read_signature(source: bytes, file: str) -> Signature | Issue:
    """Return the signature of the assertion in a Python file.

    The assertion is the function decorated with `@define_assertion`, else the one named `assertion` or, as in
    promptfoo, `get_assert`, else the one named after the file.

    Args:
        source: the bytes of the file.
        file: name of the file, such as `min_words.py`.

    Returns:
        The signature, or an Issue `bad-assertion-file` with the position of the problem.
    """
    tree = _parse(source, file)
    if isinstance(tree, Issue):
        return tree
    functions, marks = list(_functions(tree.body)), _marks(tree)
    marked = [one for one in functions if _is_marked(one, marks)]
    if len(marked) > 1:
        names = " and ".join(f"'{one.name}'" for one in marked)
        return _bad(file, marked[1], f"{names} are both decorated with @{MARK}; a file defines one assertion")
    by_name = {one.name: one for one in functions}
    stem = file.removesuffix(".py")
    wanted_names = ("assertion", PROMPTFOO_NAME, stem.replace("-", "_"))
    chosen = marked[0] if marked else next((by_name[name] for name in wanted_names if name in by_name), None)
    if chosen is None:
        wanted = f"no function that is decorated with @{MARK}, or named 'assertion' or '{stem.replace('-', '_')}'"
        return Issue((), f"{file} has {wanted}", BAD_FILE)
    return _signature(chosen, file)


def _parse(source: bytes, file: str) -> ast.Module | Issue:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as for an invalid escape; Python shows them when the file is run
            return ast.parse(source)
    except SyntaxError as error:
        return Issue((), f"{file}:{error.lineno}:{error.offset}: {error.msg}", BAD_FILE)
    except (ValueError, RecursionError, MemoryError) as error:
        return Issue((), f"{file} cannot be parsed: {type(error).__name__}: {error}", BAD_FILE)


def _functions(body: Iterable[ast.stmt]) -> Iterator[_Function]:
    """Yield the functions that a module defines at its top level, including inside `if`, `try` and `with`."""
    for statement in body:
        if isinstance(statement, _Function):
            yield statement
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            for branch in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(statement, branch, ()))


def _marks(tree: ast.Module) -> frozenset[str]:
    """Return every dotted name that refers to `define_assertion` in this file, judging by its imports."""
    found = {MARK}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname for alias in node.names if alias.name == MARK and alias.asname}
            found |= {f"{alias.asname or alias.name}.{MARK}" for alias in node.names if alias.name == "authoring"}
        elif isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.partition(".")[0] == "agentv"]
            found |= {f"{alias.asname or alias.name}.{MARK}" for alias in ours}
    return frozenset(found)


def _is_marked(function: _Function, marks: frozenset[str]) -> bool:
    bare = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
    return any(ast.unparse(one) in marks for one in bare if isinstance(one, ast.Name | ast.Attribute))


def _signature(function: _Function, file: str) -> Signature | Issue:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    if not positional and given.vararg is None:
        return _bad(file, function, f"'{function.name}' must take the context as its first parameter")
    takes_output = tuple(one.arg for one in positional[:2]) == PROMPTFOO_PARAMETERS
    filled = 2 if takes_output else 1
    if len(given.posonlyargs) > filled:
        return _bad(file, function, f"'{given.posonlyargs[filled].arg}' cannot be passed by name")
    # defaults belong to the last positional parameters, so they are aligned from the right
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    pairs = [
        *zip(positional[filled:], defaults[filled:], strict=True),  # after the context
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    parameters = []
    for one, default in pairs:
        if one.arg in RESERVED:
            return _bad(file, one, f"parameter '{one.arg}' is a key of every assertion; rename it")
        annotation = one.annotation
        if annotation is not None and isinstance(default, ast.Constant) and default.value is None:
            # many people write an optional parameter as `x: int = None`
            annotation = ast.BinOp(annotation, ast.BitOr(), ast.Constant(None))
        parameters.append(Parameter(one.arg, default is None, read_annotation(annotation)))
    return Signature(function.name, tuple(parameters), given.kwarg is not None, takes_output)


def _unknown(name: str, signature: Signature) -> Issue:
    near = nearest(name, signature.names)
    takes = f"takes {', '.join(signature.names)}" if signature.names else "takes none"
    hint = f"did you mean '{near}'?" if near else "a function with **kwargs accepts any"
    return Issue((name,), f"no parameter '{name}'; {signature.function} {takes}", "unknown-key", hint)


def _bad(file: str, node: ast.AST, message: str) -> Issue:
    return Issue((), f"{file}:{getattr(node, 'lineno', 1)}:{getattr(node, 'col_offset', 0) + 1}: {message}", BAD_FILE)
