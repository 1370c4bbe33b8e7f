"""Detection of user code in this process that has replaced parts of agentv's own code.

Functions and classes are looked up by name at every call, so that one assignment would change what a grade means, or
what a run comes to. What is there when users' code is first loaded in a run has to be there when the run ends. This is
no protection from code that puts everything back, or that writes into the memory of the process: nothing in one process
is. A run that loads no user code has nothing to compare, and spends no time on it.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType

from agentv.lazy_dataclass import compiled_from

_OURS = "agentv."
_NAMED = (FunctionType, type)
_WRAPPED = (classmethod, staticmethod)
_MEMBERS = (FunctionType, property, *_WRAPPED)

Names = Mapping[str, object]
Member = tuple[str, object, CodeType | None]
"""A name, its value, and the code that it runs."""


class OwnCode:
    """The functions and classes of agentv that are loaded now."""

    def __init__(self) -> None:
        loaded = list(sys.modules.items())  # a copy: other threads import while this one looks
        self._modules = {name: module for name, module in loaded if name.startswith(_OURS)}
        self._members = [members for name, module in self._modules.items() for members in _code_of(name, module)]

    def replaced(self) -> str | None:
        """The name of a function or class that is not what it was; None: all are."""
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                return name
        for home, names, members in self._members:
            for name, value, code in members:
                if not any(
                    _is_unchanged(names.get(name), *form) for form in ((value, code), compiled_from(value)) if form
                ):
                    return f"{home}.{name}"
        return None


class CodeCheck:
    """The comparison of one process: from the first user code of a run to the end of the run."""

    def __init__(self) -> None:
        self._own: OwnCode | None = None
        self._found: str | None = None
        self._has_run = False
        self._has_user_code = False
        self._lock = _thread.allocate_lock()

    def begin(self) -> None:
        """A run begins. User code that was loaded before it, such as a plugin, counts from here."""
        self._has_run = True
        self._own = OwnCode() if self._has_user_code else None

    def expect_user_code(self) -> None:
        """User code is about to be loaded. To be called before each time; a second thread waits for the first."""
        with self._lock:
            if self._has_user_code:
                return
            if self._has_run:
                self._own = OwnCode()
            self._has_user_code = True

    def replaced(self) -> str | None:
        """The name of a function or class of agentv that was replaced during the run; None: there is none.

        Once one is found, it is the answer from then on, even if it is put back.
        """
        if self._found is None and self._own is not None:
            self._found = self._own.replaced()
        return self._found


check = CodeCheck()
"""That of this process."""


def _code_of(home: str, module: ModuleType) -> Iterator[tuple[str, Names, Sequence[Member]]]:
    names = vars(module)
    members = [(name, value, _runs(value)) for name, value in list(names.items()) if isinstance(value, _NAMED)]
    yield home, names, members
    for name, value, _ in members:
        if isinstance(value, type) and value.__module__ == home:
            inside: Names = vars(value)
            methods = [
                (key, method, _runs(method)) for key, method in list(inside.items()) if isinstance(method, _MEMBERS)
            ]
            yield f"{home}.{name}", inside, methods


def _is_unchanged(now: object, value: object, code: CodeType | None) -> bool:
    return now is value and _runs(now) is code


def _runs(value: object) -> CodeType | None:
    if isinstance(value, FunctionType):
        return value.__code__
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, _WRAPPED):
        value = value.__func__
    return value.__code__ if isinstance(value, FunctionType) else None
