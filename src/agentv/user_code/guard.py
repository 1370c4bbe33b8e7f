"""The guard around user code, the only place where any exception is caught."""

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
    """Foreign code raised, or tried to end the process. `failure` says what and where."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


OURS = (ForeignError, SignalError)
"""Exceptions that pass a guard: failures that are reported already, and signals, which user code does not raise."""


@contextmanager
def foreign_code(code: str, what: str) -> Iterator[None]:
    """Run foreign code in the body; whatever it raises comes out as a ForeignError, and a fork of it ends here.

    That is every BaseException but a cancellation: where the body awaits, it is the waiting that is cancelled.

    Args:
        code: the failure's slug, such as `assertion-raised`.
        what: whose code it is, to begin the message with.

    Raises:
        ForeignError: the body raised, or called `sys.exit`.
    """
    process = os.getpid()
    try:
        yield
    except OURS:
        raise
    except BaseException as error:
        if "asyncio" in sys.modules:  # else there are no tasks, and it stays unloaded
            from asyncio import CancelledError  # waits for a thread that is importing it

            if isinstance(error, CancelledError):
                raise
        raise ForeignError(Failure(code, f"{what} {describe(error)}")) from error
    finally:
        if os.getpid() != process:  # else two processes would answer
            os._exit(0)


@contextmanager
def apart_from_output() -> Iterator[None]:
    """In the body, what plugins print goes to stderr, since stdout is for programs."""
    with redirect_stdout(sys.stderr):
        yield


def attempt(function: Callable[[A], T], argument: A, code: str, what: str) -> T | Failure:
    """The value of a foreign function of one argument, or a Failure where it raises.

    The same guard as `foreign_code` for the hot path, where a context manager for every assertion is too dear.
    """
    try:
        return function(argument)
    except SignalError:
        raise
    except BaseException as error:  # noqa: BLE001  # this is the guard
        return Failure(code, f"{what} {describe(error)}")


@contextmanager
def translated(translate: Callable[[Exception], Exception | None]) -> Iterator[None]:
    """Have an exception of the body come out as another one; where `translate` gives None, as it is."""
    try:
        yield
    except Exception as error:
        other = translate(error)
        if other is None:
            raise
        raise other from error


def describe(error: BaseException) -> str:
    """What was raised, its notes, and the line of the user's file: `raised ValueError: no (grade.py:12, in score)`."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # what the one task of a task group raised
    message = str(error)
    shown = f"{type(error).__name__}: {message}" if message else type(error).__name__
    shown = "; ".join((shown, *(str(note) for note in getattr(error, "__notes__", ()))))
    verb = "called sys.exit:" if isinstance(error, SystemExit) else "raised"
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        # frames of this module blame their caller, as do those that hide themselves as pytest asks
        if code.co_filename != __file__ and "__tracebackhide__" not in frame.f_locals:
            place = f" ({Path(code.co_filename).name}:{line}, in {code.co_name})"
    return f"{verb} {shown}{place}"
