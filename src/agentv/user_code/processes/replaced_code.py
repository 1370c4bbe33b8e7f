"""Detection of user code in this process that has replaced parts of agentv's own code.

Functions and classes are looked up by name at every call, so that one assignment would change what a grade means, or
what a command comes to. What is there when users' code is first loaded, or when a module of agentv is loaded after
that, has to be there when a verdict of a judge or a row is written, when the trials of a run have ended, and when
results are printed. This is no protection from code that puts everything back, or that writes into the memory of the
process: nothing in one process is. A command that loads no user code has nothing to compare, and spends no time on it.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from operator import attrgetter, is_
from types import FunctionType, ModuleType

from agentv.errors import ReplacedCodeError
from agentv.lazy_dataclass import compiled_from

_OURS = "agentv."
_NAMED = (FunctionType, type)
_WRAPPED = (classmethod, staticmethod)
_MEMBERS = (FunctionType, property, *_WRAPPED)

_NO_FUNCTION = FunctionType(compile("", "nothing", "exec"), {})

_code = attrgetter("__code__")

Member = tuple[str, object]
"""A name and its value."""


class OwnCode:
    """The functions and classes of agentv that are loaded now."""

    def __init__(self) -> None:
        loaded = list(sys.modules.items())  # a copy: other threads import while this one looks
        self._modules = {name: module for name, module in loaded if name.startswith(_OURS)}
        self._scopes = [scope for name, module in self._modules.items() for scope in _scopes_of(name, module)]

    def add(self, name: str, module: ModuleType) -> None:
        """A module of agentv has just been loaded."""
        self._scopes.extend(_scopes_of(name, module))
        self._modules = {**self._modules, name: module}  # another thread may go through the old one

    def replaced(self) -> str | None:
        """The name of a function or class that is not what it was; None: all are."""
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                return name
        return next(filter(None, (scope.replaced() for scope in self._scopes)), None)


class _Scope:
    """The functions and classes of one module, or the methods of one class.

    It is compared often while trials run. Where nothing has changed, that takes no Python code for each member.

    Args:
        home: its name.
        names: what it holds now.
        members: what it held.
    """

    __slots__ = ("_codes", "_functions", "_home", "_keys", "_names", "_values")

    def __init__(self, home: str, names: Mapping[str, object], members: Sequence[Member]) -> None:
        self._home = home
        self._names = names
        self._keys = [key for key, _ in members]
        self._values = [value for _, value in members]
        self._functions = [_function_of(value) for value in self._values]
        self._codes = [function.__code__ for function in self._functions]

    def replaced(self) -> str | None:
        """The name of the first member that is not what it was; None: all are."""
        if all(map(is_, map(self._names.get, self._keys), self._values)) and all(
            map(is_, map(_code, self._functions), self._codes)
        ):
            return None
        return next(
            (f"{self._home}.{key}" for number, key in enumerate(self._keys) if not self._is_unchanged(number)), None
        )

    def _is_unchanged(self, number: int) -> bool:
        now = self._names.get(self._keys[number])
        if now is not self._values[number]:
            compiled = compiled_from(self._values[number])
            if compiled is None or now is not compiled[0]:
                return False
            self._values[number] = self._functions[number] = compiled[0]
            self._codes[number] = compiled[1]
        return self._functions[number].__code__ is self._codes[number]


class _Finder:
    """Finds modules of agentv as Python does, and tells what was loaded before anybody can change it.

    Args:
        loaded: called with the name of a module and the module.
    """

    def __init__(self, loaded: Callable[[str, ModuleType], None]) -> None:
        self._loaded = loaded

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of agentv; None for any other module, which the next finder finds."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._loaded(name, module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class CodeCheck:
    """The comparison of one process, from its first user code to its end."""

    def __init__(self) -> None:
        self._own: OwnCode | None = None
        self._compare: Callable[[], str | None] | None = None
        self._finder: _Finder | None = None
        self._found: str | None = None
        self._begun = False
        self._has_user_code = False
        self._lock = _thread.allocate_lock()

    def begin(self) -> None:
        """This process belongs to one command. User code that was loaded before counts from here."""
        self._begun = True
        self._own = self._compare = None
        if self._has_user_code:
            self._start()

    def expect_user_code(self) -> None:
        """User code is about to be loaded. To be called before each time; a second thread waits for the first."""
        with self._lock:
            if self._has_user_code:
                return
            if self._begun:
                self._start()
            self._has_user_code = True

    def _start(self) -> None:
        self._own = OwnCode()
        self._compare = self._own.replaced  # as it is now
        if self._finder is None:
            self._finder = _Finder(self._add)
            sys.meta_path.insert(0, self._finder)

    def _add(self, name: str, module: ModuleType) -> None:
        if self._own is not None:
            self._own.add(name, module)

    def replaced(self) -> str | None:
        """The name of a function or class of agentv that was replaced; None: there is none.

        Once one is found, it is the answer from then on, even if it is put back.
        """
        if self._found is None and self._compare is not None:
            self._found = self._compare()
        return self._found

    def note(self, name: str) -> None:
        """Another process of this run found that user code replaced something there."""
        if self._begun and self._found is None:
            self._found = name

    def refuse(self) -> None:
        """Nothing, if the code of agentv is what it was.

        Raises:
            ReplacedCodeError: a function or class is another one, and may have graded.
        """
        name = self.replaced()
        if name is not None:
            raise ReplacedCodeError(name)


check = CodeCheck()
"""That of this process."""


def _scopes_of(home: str, module: ModuleType) -> Iterator[_Scope]:
    names = vars(module)
    members = [(name, value) for name, value in list(names.items()) if isinstance(value, _NAMED)]
    yield _Scope(home, names, members)
    for name, value in members:
        if isinstance(value, type) and value.__module__ == home:
            inside: Mapping[str, object] = vars(value)
            methods = [(key, method) for key, method in list(inside.items()) if isinstance(method, _MEMBERS)]
            yield _Scope(f"{home}.{name}", inside, methods)


def _function_of(value: object) -> FunctionType:
    """The function that a member calls; for a class, one that does nothing."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, _WRAPPED):
        value = value.__func__
    return value if isinstance(value, FunctionType) else _NO_FUNCTION
