"""Lookup of functions in Python files. Runs none of their code."""

from __future__ import annotations

import ast
from functools import lru_cache

from msgspec import Struct

from agentv.authoring.fields.python_source import bindings, is_open, parsed
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import Place, Scalar, span_of
from agentv.model.values.span import Span

_LISTED = 8
"""Functions that a message lists."""


class Defined(Struct, frozen=True):
    """The names that a file binds at its top level.

    Attributes:
        functions: those that are functions or classes, in their order.
        opaque: it may define others that cannot be seen, such as those of `from x import *`.
    """

    names: frozenset[str]
    functions: tuple[str, ...]
    opaque: bool


def check_function(path: str, source: str, name: str, node: Scalar, reading: Reading) -> bool:
    """Whether a file can have the named function; reported if it cannot.

    Args:
        path: of the file, absolute.
        source: its text.
        name: the function; dotted for a method, of which only the class is checked.
        node: the authored `file.py:name`.
        reading: of the suite.
    """
    try:
        defined = definitions(source)
    except SyntaxError as error:
        message = f"this file is not valid Python: {error.msg}"
        reading.report.error("bad-python-file", _place_of(error, path), message, notes=_named_at(node))
        return False
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"this file cannot be parsed: {error}"
        reading.report.error("bad-python-file", Span(path, 1, 1, 1, 2), message, notes=_named_at(node))
        return False
    head = name.partition(".")[0]
    if defined.opaque or head in defined.names:
        return True
    listed = [one for one in defined.functions if not one.startswith("_")][:_LISTED]
    file = path.rpartition("/")[2]
    notes = (f"{file} defines {', '.join(listed)}" if listed else f"{file} defines no function",)
    hint = did_you_mean(head, listed)
    message = f"{file} has no function '{name}'"
    reading.report.error("missing-function", _name_in(node, name, reading), message, hint=hint, notes=notes)
    return False


@lru_cache(maxsize=64)
def definitions(source: str) -> Defined:
    """Definitions of a file. Those under `if`, `try` and the like are included, because only a run can decide.

    Raises:
        SyntaxError: it is not valid Python.
        ValueError: it contains a null byte.
        RecursionError: it is nested too deeply.
        MemoryError: it is nested too deeply.
    """
    tree = parsed(source)
    bound = list(bindings(tree))
    functions = [
        name for name, node in bound if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    names = frozenset(name for name, _ in bound)
    return Defined(names, tuple(dict.fromkeys(functions)), is_open(tree, names))


def _place_of(error: SyntaxError, path: str) -> Span:
    line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
    end = max((error.end_lineno or line, error.end_offset or 0), (line, column + 1))
    return Span(path, line, column, *end)


def _named_at(node: Scalar) -> tuple[str, ...]:
    """What leads from the Python file back to the text that names it."""
    span = span_of(node.at)
    return (f"'{node.text}' is used at {shown(span.file)}:{span.line}",) if span.file else ()


def _name_in(node: Scalar, name: str, reading: Reading) -> Place:
    """Where the function's name stands inside the text that names it, if that is written on one line."""
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
