"""Definitions in Python files, read from the syntax tree without running any code."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator
from functools import lru_cache

from msgspec import Struct

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import Place, Scalar, span_of
from agentv.authoring.source.report import Report
from agentv.model.values.values import Span

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_OPAQUE = frozenset({"exec", "globals", "locals"})
"""Functions that can define names which the syntax tree does not show."""


class Definitions(Struct, frozen=True):
    """The names that a module binds at its top level, including those under `if`, `try` and the like.

    Attributes:
        names: position of each name's last binding.
        functions: functions and classes in source order, with each function's required parameters.
        open: whether the module may define other names, such as those of `from x import *`.
    """

    names: dict[str, Span]
    functions: dict[str, tuple[str, ...]]
    open: bool


def read_definitions(path: str, source: str, code: str, report: Report) -> Definitions | None:
    """The names that a file defines, or None after reporting, with the given code, that it cannot be parsed."""
    try:
        return definitions(path, source)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        report.error(code, Span(path, line, column, line, column + 1), f"not Python: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        report.error(code, Span.start_of(path), f"cannot be parsed: {type(error).__name__}: {error}")
    return None


@lru_cache(maxsize=64)
def definitions(path: str, source: str) -> Definitions:
    """The names that a file defines.

    Raises:
        SyntaxError: the source is not valid Python.
        ValueError: the source contains a null byte.
        RecursionError: the source is nested too deeply.
        MemoryError: the source is nested too deeply.
    """
    tree = parsed(source)
    bound = list(bindings(tree))
    found = Definitions({}, {}, is_open(tree, {name for name, _ in bound}))
    for name, node in bound:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            column += len("def " if isinstance(node, ast.FunctionDef) else "class ")
        elif isinstance(node, ast.AsyncFunctionDef):
            column += len("async def ")
        found.names[name] = Span(path, line, column, line, column + len(name))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions[name] = required_by(node.args)
        elif isinstance(node, ast.ClassDef):
            found.functions[name] = ()
        else:
            found.functions.pop(name, None)
    return found


def sure_definition(source: str, name: str) -> tuple[int, tuple[str, ...]] | None:
    """The line of a function and its required parameters, or None if it is not certain that this function is called.

    It is certain for a top-level function without decorators: a decorator may replace the function.
    """
    found = [node for node in parsed(source).body if getattr(node, "name", None) == name]
    last = found[-1] if found else None
    if not isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef) or last.decorator_list:
        return None
    return last.lineno, required_by(last.args)


def parsed(source: str) -> ast.Module:
    """The syntax tree of a module.

    Raises:
        SyntaxError: the source is not valid Python.
        ValueError: the source contains a null byte.
        RecursionError: the source is nested too deeply.
        MemoryError: the source is nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escapes: Python reports them when the file is run
        return ast.parse(source)


def bindings(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The names that a module binds, with the nodes that bind them; the last binding of a name counts.

    Bindings under `if`, `try` and the like are included, because which of them run is not known.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from ((name, node) for name in node.names)
    for node in _top_level(tree):
        yield from ((name, node) for name in _bound_by(node))


def is_open(tree: ast.Module, names: Collection[str]) -> bool:
    """Whether a module may have names that its syntax tree does not show, such as those of `from x import *`."""
    return "*" in names or "__getattr__" in names or any(_hides_names(node) for node in ast.walk(tree))


def _top_level(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes outside the bodies of functions and classes."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, _SCOPES):
            yield from _top_level(node)


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
            yield name


def _hides_names(node: ast.AST) -> bool:
    """Whether a node may define names invisibly: `globals()[x] = f`, `sys.modules[__name__].x = f`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _OPAQUE
    return isinstance(node, ast.Attribute) and node.attr == "modules"


def required_by(given: ast.arguments) -> tuple[str, ...]:
    """Names of a function's required parameters."""
    positional = [*given.posonlyargs, *given.args]
    needed = positional[: len(positional) - len(given.defaults)]
    keywords = [one for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return tuple(one.arg for one in (*needed, *keywords))


_LISTED = 8
"""Maximum number of functions that a message lists."""


def check_function(path: str, source: str, name: str, node: Scalar, reading: Reading) -> bool:
    """Whether a file may define a function; if not, this is reported.

    Args:
        path: absolute path of the file.
        source: the file's text.
        name: the function's name; for a method, `Class.method`, of which only the class is checked.
        node: the authored `file.py:name`.
        reading: context of the suite.
    """
    try:
        defined = definitions(path, source)
    except SyntaxError as error:
        message = f"this file is not valid Python: {error.msg}"
        line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
        end = max((error.end_lineno or line, error.end_offset or 0), (line, column + 1))
        reading.report.error("bad-python-file", Span(path, line, column, *end), message, notes=_named_at(node))
        return False
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"this file cannot be parsed: {error}"
        reading.report.error("bad-python-file", Span.start_of(path), message, notes=_named_at(node))
        return False
    head = name.partition(".")[0]
    if defined.open or head in defined.names:
        return True
    listed = [one for one in defined.functions if not one.startswith("_")][:_LISTED]
    file = path.rpartition("/")[2]
    notes = (f"{file} defines {', '.join(listed)}" if listed else f"{file} defines no function",)
    hint = did_you_mean(head, listed)
    message = f"{file} has no function '{name}'"
    reading.report.error("missing-function", _name_in(node, name, reading), message, hint=hint, notes=notes)
    return False


def _named_at(node: Scalar) -> tuple[str, ...]:
    """A note on where the Python file is named."""
    span = span_of(node.at)
    return (f"'{node.text}' is used at {shown(span.file)}:{span.line}",) if span.file else ()


def _name_in(node: Scalar, name: str, reading: Reading) -> Place:
    """The position of the function's name in the authored text if it is on one line, else that of the whole text."""
    span = span_of(node.at)
    if not span.file or span.line != span.end_line:
        return node.at
    try:
        line = reading.reader.read(span.file).decode("utf-8-sig").splitlines()[span.line - 1]
    except (OSError, UnicodeDecodeError, IndexError):
        return node.at
    found = line.rfind(f":{name}", span.column - 1, span.end_column - 1)
    if found < 0:
        return node.at
    return Span(span.file, span.line, found + 2, span.line, found + 2 + len(name))
