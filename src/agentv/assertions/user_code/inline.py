"""Python given inline in an eval file: `len(output) > 3`, or a body that returns its verdict."""

from __future__ import annotations

import ast
import json
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.user_code.workers.adapters import context_of

BAD_PYTHON = "bad-python"
_PLACE = "<python>"
_WRAPPER = "def assertion(output, context): ..."
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@lru_cache(maxsize=1024)
def compile_inline(code: str) -> CodeType | Failure:
    """Code that defines the function `assertion(output, context)`, or a Failure `bad-python`. Nothing is run.

    An expression is what the function returns; several statements are its body.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(textwrap.dedent(code).strip("\n")).body
            if len(body) == 1 and isinstance(body[0], ast.Expr):
                body = [ast.copy_location(ast.Return(body[0].value), body[0])]
            if not _returns(body):
                return Failure(BAD_PYTHON, "the code returns no verdict; end it with 'return …'")
            tree = ast.parse(_WRAPPER)
            tree.body[0].body = body  # type: ignore[attr-defined]  # the wrapper's one statement is a function
            return compile(tree, _PLACE, "exec")
    except SyntaxError as error:
        return Failure(BAD_PYTHON, f"not valid Python: {error.msg} (line {error.lineno})")
    except (ValueError, RecursionError, MemoryError) as error:
        return Failure(BAD_PYTHON, f"not valid Python: {str(error) or type(error).__name__}")


def called(_function: None, payload: Mapping[str, Any]) -> object:
    """In a worker: what inline code returns for an output and its context."""
    context = context_of(payload["context"])
    return inline_function(payload["code"])(context.graded_value, context)


@lru_cache(maxsize=1024)
def inline_function(code: str) -> Callable[[Json, Any], object]:
    """The function of inline code that `compile_inline` has validated."""
    compiled = compile_inline(code)
    if isinstance(compiled, Failure):
        raise TypeError(compiled.message)
    namespace: dict[str, Any] = {"__name__": "agentv_inline", "json": json}  # as in promptfoo
    exec(compiled, namespace)  # noqa: S102  # running the user's own code is what the type `python` is for
    return namespace["assertion"]  # type: ignore[no-any-return]  # the wrapper defines it


def _returns(statements: Iterable[ast.AST]) -> bool:
    """Whether a body returns something itself, not just a function inside it."""
    for node in statements:
        if isinstance(node, ast.Return):
            if node.value is not None:
                return True
        elif not isinstance(node, _SCOPES) and _returns(ast.iter_child_nodes(node)):
            return True
    return False
