"""Public API for graders in Python: `define_assertion` and `define_script_grader` (SPEC section 8).

A file that is run directly, as in `echo JSON | python min_words.py`, grades the payload on its stdin and prints the
verdict. It does so after the whole file was executed, so that the functions below the decorated one are defined and
the author's own `__main__` block runs first.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject
from agentv.user_code.guard import ForeignError, foreign_code

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__agentv_assertion__"
"""The attribute that marks a function as an assertion."""

_RUNNERS = ("agentv.sdk", "agentv.app", "agentv.cli", "pytest")
"""Modules that are loaded in processes that run suites, where a `__main__` that defines assertions is not a grader."""

_pending: list[Callable[..., Any]] = []


@overload
def define_assertion(function: F) -> F: ...
@overload
def define_assertion() -> Callable[[F], F]: ...
def define_assertion(function: F | None = None) -> F | Callable[[F], F]:
    """Mark the assertion function of a file in `.agentv/assertions/`.

    The function takes the context, and the options of an entry as keyword parameters. It returns a bool, a number, an
    AssertionScore, or a mapping of its fields; it may be `async`.

    Example:
        >>> @define_assertion
        ... def min_words(ctx, *, minimum: int = 3):
        ...     return len((ctx.output or "").split()) >= minimum
    """
    if function is None:
        return define_assertion
    setattr(function, MARK, True)
    _run_at_exit(function)
    return function


def define_script_grader(function: F) -> F:
    """Make a file a command for `type: script`: its function grades the payload on stdin.

    Run as a program, the file prints the verdict as JSON and exits with 0; errors are printed to stderr, and it
    exits with 1. Imported, it does nothing. The function takes and returns the same as with `define_assertion`.
    """
    _run_at_exit(function)
    return function


def _run_at_exit(function: Callable[..., Any]) -> None:
    """Register the function to grade when the process ends, if its file is the program being run non-interactively."""
    is_program = function.__module__ == "__main__" and hasattr(sys.modules.get("__main__"), "__file__")
    if not is_program or sys.flags.interactive or hasattr(sys, "ps1"):
        return
    if not _pending:
        atexit.register(_run_pending)
    _pending.append(function)


def _run_pending() -> None:
    has_failed = hasattr(sys, "last_value")
    if has_failed or any(name in sys.modules for name in _RUNNERS) or sys.stdin is None or sys.stdin.isatty():
        return
    text = sys.stdin.buffer.read()
    if not text.strip() and hasattr(_pending[0], MARK):
        return  # the author's own code has already read it, or nothing was sent
    try:
        verdict = json.dumps(_verdict(_pending, text), indent=2, ensure_ascii=False)
        sys.stdout.flush()
        sys.stdout.buffer.write(verdict.encode(errors="replace") + b"\n")
    except ForeignError as error:
        print(error.failure.message, file=sys.stderr, flush=True)  # noqa: T201  # a program reports errors on stderr
        os._exit(1)  # at exit, nothing else sets the exit status


def _verdict(functions: list[Callable[..., Any]], text: bytes) -> JsonObject:
    from agentv.assertions.user_code.result import from_python, verdict_of, wire_of
    from agentv.assertions.user_code.signature import PROMPTFOO_PARAMETERS
    from agentv.model.run.context import context_from_json

    if len(functions) > 1:
        names = " and ".join(function.__name__ for function in functions)
        raise ForeignError(Failure("bad-assertion-file", f"a file defines one assertion, found {names}"))
    function = functions[0]
    with foreign_code("bad-payload", "the payload on stdin"):
        payload = json.loads(text)
        if not isinstance(payload, Mapping):
            raise TypeError("it must be a JSON object")
        context = context_from_json(payload)
    with foreign_code("assertion-raised", function.__name__):
        takes_output = tuple(inspect.signature(function).parameters)[:2] == PROMPTFOO_PARAMETERS
        given = (context.graded_value, context) if takes_output else (context,)
        value = function(*given, **_keywords(function, context.config, len(given)))
        value = asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value
        verdict = verdict_of(from_python(value) if takes_output else value)
    if isinstance(verdict, Failure):
        raise ForeignError(Failure(verdict.code, f"{function.__name__} {verdict.message}"))
    return wire_of(verdict)


def _keywords(function: Callable[..., Any], config: JsonObject, filled: int) -> JsonObject:
    """Return the keys of `config` that are parameters of the function, after the first `filled` ones."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return config
    names = [one.name for one in parameters][filled:]
    return {name: config[name] for name in names if name in config}


async def _awaited(value: Any) -> object:
    return await value
