"""Calls of functions that return tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct


class CodeError(Exception):
    """Code failed; the message says why."""


class CodeCall(Struct, frozen=True):
    """A call of a function of a file.

    Attributes:
        path: of the file.
        name: of the function; empty for the default export of a JavaScript file.
        given: its arguments, plain data.
        directory: of the configuration, where it runs.
    """

    path: Path
    name: str
    given: tuple[Any, ...]
    directory: Path


CallCode: TypeAlias = Callable[[CodeCall], Any]
"""Calls a function and returns plain data; raises CodeError."""
