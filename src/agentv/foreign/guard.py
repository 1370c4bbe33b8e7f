"""The one place where any exception is caught: around code that is not ours."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

from agentv.model.response import Failure

RAISED = (Exception, SystemExit, KeyboardInterrupt)
"""What foreign code may raise. A real Ctrl-C is a signal to the loop while it runs, and no exception in here."""

A = TypeVar("A")
T = TypeVar("T")


class ForeignError(Exception):
    """Foreign code raised, or tried to end the process. `failure` says what and where."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@contextmanager
def foreign_code(code: str, what: str) -> Iterator[None]:
    """Run foreign code in the body; whatever it raises comes out as a ForeignError.

    Args:
        code: the failure's slug, such as `assertion-raised`.
        what: whose code it is, to begin the message with.

    Raises:
        ForeignError: the body raised, or called `sys.exit`.
    """
    try:
        yield
    except ForeignError:
        raise
    except RAISED as error:
        raise ForeignError(Failure(code, f"{what} {describe(error)}")) from error


@contextmanager
def unable_to_exit() -> Iterator[None]:
    """Code in this process cannot end it by `os._exit`, which would leave any exit status and no results behind.

    It raises SystemExit instead, which the guard turns into a failure. A forked child ends as it wants to.
    """
    leave, process = os._exit, os.getpid()  # the name that users' code calls

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:
            leave(status)
        raise SystemExit(status)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave


def attempt(function: Callable[[A], T], argument: A, code: str, what: str) -> T | Failure:
    """The value of a foreign function of one argument, or a Failure where it raises.

    The same guard as `foreign_code` for the hot path, where a context manager for every assertion is too dear.
    """
    try:
        return function(argument)
    except RAISED as error:
        return Failure(code, f"{what} {describe(error)}")


def describe(error: BaseException) -> str:
    """What was raised and in which line of the user's file: `raised ValueError: no (grade.py:12, in score)`."""
    said = str(error)
    shown = f"{type(error).__name__}: {said}" if said else type(error).__name__
    verb = "called sys.exit:" if isinstance(error, SystemExit) else "raised"
    # where `os._exit` is refused, the frame that tells is that of the caller
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename != __file__]
    if not frames:
        return f"{verb} {shown}"
    last = frames[-1]
    return f"{verb} {shown} ({Path(last.filename).name}:{last.lineno}, in {last.name})"
