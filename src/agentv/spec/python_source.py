"""What a Python file of the user's defines, read from its syntax tree: none of its code is run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentv.model.span import Span
from agentv.spec.report import Report


@dataclass(frozen=True, slots=True)
class Definitions:
    """The names of a module, and where they are defined.

    Attributes:
        functions: those that are functions, and what each requires to be called.
        open: it imports names that cannot be known without running it.
    """

    names: dict[str, Span]
    functions: dict[str, tuple[str, ...]]
    open: bool


def read_definitions(path: str, source: str, code: str, report: Report) -> Definitions | None:
    """The names that a file defines; None where it is not Python, which is reported under the code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape: its author hears of it when the file is run
            tree = ast.parse(source)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        report.error(code, Span(path, line, column, line, column + 1), f"not Python: {error.msg}")
        return None
    except (ValueError, RecursionError, MemoryError) as error:
        report.error(code, Span(path, 1, 1, 1, 2), f"cannot be parsed: {type(error).__name__}: {error}")
        return None
    found = Definitions({}, {}, any(_is_open(one) for one in ast.walk(tree)))
    for name, node in _defined(tree.body):
        found.names[name] = _span(path, node, name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions[name] = _required(node.args)
        else:
            found.functions.pop(name, None)
    return found


def _is_open(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def _defined(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names with their definitions, in the branches of the top level too; the last one of a name counts."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name.partition(".")[0], statement
        else:
            for part in ast.walk(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else ():
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield part.id, statement
            for branch in ("body", "orelse", "finalbody", "handlers"):
                for inner in getattr(statement, branch, ()):
                    yield from _defined(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _span(path: str, node: ast.AST, name: str) -> Span:
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        column += len("def " if isinstance(node, ast.FunctionDef) else "class ")
    elif isinstance(node, ast.AsyncFunctionDef):
        column += len("async def ")
    return Span(path, line, column, line, column + len(name))


def _required(given: ast.arguments) -> tuple[str, ...]:
    positional = [*given.posonlyargs, *given.args]
    needed = positional[: len(positional) - len(given.defaults)]
    keywords = [one for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return tuple(one.arg for one in (*needed, *keywords))
