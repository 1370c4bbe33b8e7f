"""The guard around user code, the only place that catches every exception."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TypeVar

from agentv.model.values.response import Failure
from agentv.user_code.command_process import SignalError

A = TypeVar("A")
T = TypeVar("T")


class ForeignError(Exception):
    """User code raised, or tried to exit the process. `failure` describes what happened and where."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


UNCONVERTED = (ForeignError, SignalError)
"""Exceptions that pass through a guard: failures that another guard has converted, and signals."""


@contextmanager
def foreign_code(code: str, what: str) -> Iterator[None]:
    """Convert exceptions of user code in the body to ForeignError, and end a process that the body forked.

    Every BaseException is converted, except a cancellation, because it may be the current task that is cancelled.

    Args:
        code: the failure's slug, such as `assertion-raised`.
        what: owner of the code, with which the message begins.

    Raises:
        ForeignError: the body raised, or called `sys.exit`.
    """
    process = os.getpid()
    try:
        yield
    except UNCONVERTED:
        raise
    except BaseException as error:
        if "asyncio" in sys.modules:  # without asyncio there are no tasks, so do not import it
            from asyncio import CancelledError  # not via sys.modules, as another thread may be importing it

            if isinstance(error, CancelledError):
                raise
        raise ForeignError(Failure(code, f"{what} {describe(error)}")) from error
    finally:
        if os.getpid() != process:  # otherwise two processes would continue the run
            os._exit(0)


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """In the body, redirect the output of plugins to stderr, because stdout is for results only."""
    with redirect_stdout(sys.stderr):
        yield


def attempt(function: Callable[[A], T], argument: A, code: str, what: str) -> T | Failure:
    """Return the value of a user's function of one argument, or a Failure if it raises.

    This is the same guard as `foreign_code`, for hot paths where a context manager is too slow.
    """
    try:
        return function(argument)
    except SignalError:
        raise
    except BaseException as error:  # noqa: BLE001  # this is the guard
        return Failure(code, f"{what} {describe(error)}")


@contextmanager
def translated(translate: Callable[[Exception], Exception | None]) -> Iterator[None]:
    """Replace an exception of the body with the one that `translate` returns, if any."""
    try:
        yield
    except Exception as error:
        other = translate(error)
        if other is None:
            raise
        raise other from error


def describe(error: BaseException) -> str:
    """Describe an exception with its notes and the user's line: `raised ValueError: no (grade.py:12, in score)`."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # raised by the only failed task of a task group
    message = str(error)
    shown = f"{type(error).__name__}: {message}" if message else type(error).__name__
    shown = "; ".join((shown, *(str(note) for note in getattr(error, "__notes__", ()))))
    verb = "called sys.exit:" if isinstance(error, SystemExit) else "raised"
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        # skip frames of this module, and those that set `__tracebackhide__` as for pytest
        if code.co_filename != __file__ and "__tracebackhide__" not in frame.f_locals:
            place = f" ({Path(code.co_filename).name}:{line}, in {code.co_name})"
    return f"{verb} {shown}{place}"
