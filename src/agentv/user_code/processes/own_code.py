"""What the modules and classes of agentv hold, compared with what they held before."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from operator import attrgetter, is_
from types import FunctionType, ModuleType

from agentv.lazy_dataclass import compiled_from

OURS = "agentv."
_HERE = __file__.rpartition("user_code")[0]
_WRAPPED = (classmethod, staticmethod)
_NO_FUNCTION = FunctionType(compile("", "nothing", "exec"), {})

_code = attrgetter("__code__")

_COMPUTED_AGAIN = frozenset(("__abstractmethods__", "__non_callable_proto_members__"))
"""Names of a class that the standard library sets again, to an equal value."""

Predicate = Callable[[str, object], bool]
"""Whether something holds of a name and its value."""


class OwnCode:
    """What the modules and classes of agentv hold that are loaded now. One thread at a time may use it."""

    def __init__(self) -> None:
        loaded = list(sys.modules.items())  # a copy: other threads import while this one looks
        self._modules = {name: [module] for name, module in loaded if name.startswith(OURS)}
        self._scopes = [
            scope for name, (module,) in self._modules.items() for scope in _scopes_of(name, module, self._is_loaded)
        ]
        self._modules_seen = 0
        self._loading: set[str] = set()

    def expect(self, name: str) -> None:
        """A module of agentv is about to be loaded."""
        self._loading.add(name)

    def add(self, name: str, module: ModuleType) -> None:
        """A module of agentv has just been loaded. One of this name that was loaded before counts, too."""
        self._scopes = [one for one in self._scopes if not one.is_of(module)]  # it may have been loaded again
        self._scopes += _scopes_of(name, module, self._is_loaded)
        self._modules.setdefault(name, []).append(module)

    def replaced(self) -> str | None:
        """The name of a module, or of what a module or class holds, that is another one; None: all are as they were."""
        return self._replaced_module() or next(filter(None, (scope.replaced() for scope in self._scopes)), None)

    def _replaced_module(self) -> str | None:
        """One that is missing is loaded again where it is needed: some tools take modules out for a while."""
        if len(sys.modules) != self._modules_seen:
            loaded = list(sys.modules.items())
            for name, module in loaded:
                if name.startswith(OURS) and name not in self._modules and name not in self._loading:
                    if not is_from_here(getattr(module, "__spec__", None)):
                        return name
                    self.add(name, module)  # another finder loaded it, such as that of pytest
            self._modules_seen = len(loaded)
        for name, known in self._modules.items():
            now = sys.modules.get(name)
            if now is not known[-1] and now is not None and not self._is_loaded(name, now):
                return name
        return None

    def _is_loaded(self, name: str, value: object) -> bool:
        """Whether a value is a module that was loaded under this name."""
        return any(one is value for one in self._modules.get(name, ()))


class _Scope:
    """What a module or a class holds.

    It is compared often while trials run. Where nothing has changed, that takes no Python code for each name.

    Args:
        home: its name.
        names: what it holds now.
        hides: whether a name that is added hides what Python would use without it, by the name and its value.
        is_loaded: whether a value is a module that was loaded under a name.
    """

    __slots__ = ("_codes", "_functions", "_hides", "_home", "_is_loaded", "_keys", "_names", "_values")

    def __init__(self, home: str, names: Mapping[str, object], hides: Predicate, is_loaded: Predicate) -> None:
        held = dict(names)
        self._home = home
        self._names = names
        self._hides = hides
        self._is_loaded = is_loaded
        self._keys = list(held)
        self._values = list(held.values())
        self._functions = [_function_of(value) for value in self._values]
        self._codes = [function.__code__ for function in self._functions]

    def is_of(self, module: ModuleType) -> bool:
        """Whether it is what a module holds."""
        return self._names is vars(module)

    def replaced(self) -> str | None:
        """The first name that holds another value, or that was added and hides something; None: there is none."""
        names, values = self._names, self._values
        if (
            len(names) == len(values)
            and all(map(is_, names.values(), values))
            and all(map(is_, map(_code, self._functions), self._codes))
        ):
            return None
        found = next((key for number, key in enumerate(self._keys) if not self._is_unchanged(number)), None)
        if found is None and len(names) > len(values):
            found = self._take_added()
        return found and f"{self._home}.{found}"

    def _is_unchanged(self, number: int) -> bool:
        key, before = self._keys[number], self._values[number]
        now = self._names.get(key)
        if now is not before:
            if self._is_loaded(f"{self._home}.{key}", now) or (key in _COMPUTED_AGAIN and _are_equal(now, before)):
                self._values[number] = now
                return True
            compiled = compiled_from(before) if isinstance(before, FunctionType) else None
            if compiled is None or now is not compiled[0]:
                return False
            self._values[number] = self._functions[number] = compiled[0]
            self._codes[number] = compiled[1]
        return self._functions[number].__code__ is self._codes[number]

    def _take_added(self) -> str | None:
        """Take in the names that were added; one of them that hides something."""
        known = set(self._keys)
        for key, value in dict(self._names).items():
            if key not in known:
                if self._hides(key, value) and not self._is_loaded(f"{self._home}.{key}", value):
                    return key
                self._keys.append(key)
                self._values.append(self._names[key])
                self._functions.append(_function_of(value))
                self._codes.append(self._functions[-1].__code__)
        return None


def _scopes_of(home: str, module: ModuleType, is_loaded: Predicate) -> Iterator[_Scope]:
    names = vars(module)
    yield _Scope(home, names, _hides_builtin, is_loaded)
    for name, value in list(names.items()):
        # a class that a function of a library made, such as a validator, claims to be of that library
        if isinstance(value, type) and (value.__module__ == home or "<locals>" in value.__qualname__):
            yield _Scope(f"{home}.{name}", vars(value), _ClassNames(value).hides, is_loaded)


def is_from_here(spec: ModuleSpec | None) -> bool:
    """Whether a module is a file of this package."""
    return spec is not None and spec.origin is not None and spec.origin.startswith(_HERE)


def _are_equal(now: object, before: object) -> bool:
    return type(now) is type(before) and now == before


def _hides_builtin(name: str, _: object) -> bool:
    return name in vars(builtins) and name != "__annotations__"  # which Python makes where it is read


class _ClassNames:
    """The names that mean something to a class without being in it: of special methods, and of its instances."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def hides(self, name: str, value: object) -> bool:
        """Whether an attribute that was added hides one. `typing.Protocol` adds an inherited `__init__`."""
        if name.startswith("__") and name.endswith("__"):
            return hasattr(type(value), "__get__") and not any(
                vars(base).get(name) is value for base in self._cls.__mro__[1:]
            )
        return hasattr(type(value), "__set__") and name in self._of_instances()

    def _of_instances(self) -> set[str]:
        methods = (_function_of(value) for base in self._cls.__mro__ for value in vars(base).values())
        return {
            *getattr(self._cls, "__dataclass_fields__", ()),
            *(one for each in methods for one in each.__code__.co_names),
        }


def _function_of(value: object) -> FunctionType:
    """The function that a value calls; for a value that is none, one that does nothing."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, _WRAPPED):
        value = value.__func__
    return value if isinstance(value, FunctionType) else _NO_FUNCTION
