"""The one place where any exception is caught: around code that is not ours."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from agentv.model.response import Failure

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
    except (Exception, SystemExit) as error:
        raise ForeignError(Failure(code, f"{what} {describe(error)}")) from error


def attempt(function: Callable[[A], T], argument: A, code: str, what: str) -> T | Failure:
    """The value of a foreign function of one argument, or a Failure where it raises.

    The same guard as `foreign_code` for the hot path, where a context manager for every assertion is too dear.
    """
    try:
        return function(argument)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # foreign code may raise anything
        return Failure(code, f"{what} {describe(error)}")


def describe(error: BaseException) -> str:
    """What was raised and in which line of the user's file: `raised ValueError: no (grade.py:12, in score)`."""
    said = str(error)
    shown = f"{type(error).__name__}: {said}" if said else type(error).__name__
    verb = "called sys.exit:" if isinstance(error, SystemExit) else "raised"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return f"{verb} {shown}"
    last = frames[-1]
    return f"{verb} {shown} ({Path(last.filename).name}:{last.lineno}, in {last.name})"
