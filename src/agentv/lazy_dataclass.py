"""Dataclasses whose methods are compiled at their first use.

`dataclasses.dataclass` writes each method as text and compiles it when the class is made: half a millisecond for a
frozen class, a tenth of a second for the two hundred classes that one run imports. Most of these classes are never
compared, hashed or printed, and many are never instantiated. Here the standard library finds the fields at once;
`__init__`, `__eq__`, `__repr__` and `__hash__` are compiled when each is first called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["compiled_from", "dataclass"]

_METHODS = ("__init__", "__eq__", "__repr__", "__hash__")
_RESERVED = frozenset((*_METHODS, "__setattr__", "__delattr__", "__getstate__", "__setstate__"))
_ABSENT = object()
_compiled: dict[object, tuple[FunctionType, CodeType]] = {}

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, slots: bool, frozen: bool = False) -> Any:
        """As `dataclasses.dataclass`, which makes the few classes that define such a method or inherit fields."""

        def decorate(cls: type) -> type:
            if _RESERVED & vars(cls).keys() or dataclasses.is_dataclass(cls):
                return dataclasses.dataclass(frozen=frozen, slots=slots)(cls)
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            made.__dataclass_params__.frozen = frozen
            for name in _METHODS:
                setattr(made, name, _compiled_at_first_call(made, name))
            if frozen:
                made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
                made.__getstate__, made.__setstate__ = _state, _restore
            else:
                made.__hash__ = None
            return made

        return decorate


def compiled_from(method: object) -> tuple[FunctionType, CodeType] | None:
    """The function compiled at the first call of `method`, and its code; None for any other method."""
    return _compiled.get(method)


def _compiled_at_first_call(cls: type, name: str) -> Callable[..., Any]:
    def method(*arguments: Any, **named: Any) -> Any:
        found = _compiled.get(method)
        if found is None:  # at the first call of all, whoever holds this function
            function = _init(cls) if name == "__init__" else _standard(cls, name)
            found = _compiled.setdefault(method, (function, function.__code__))  # of the first of several threads
            setattr(cls, name, found[0])
        return found[0](*arguments, **named)

    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    return method


def _init(cls: Any) -> FunctionType:
    """`__init__` of a class with slots, which it sets directly: the class may be frozen."""
    fields = dataclasses.fields(cls)
    if any(field.kw_only or not field.init for field in fields):
        return _standard(cls, "__init__")
    scope: dict[str, Any] = {"_absent": _ABSENT, "__name__": cls.__module__}
    parameters, lines = ["self"], []
    for field in fields:
        name, value = field.name, field.name
        scope[f"_set_{name}"] = vars(cls)[name].__set__
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            parameters.append(f"{name}=_absent")
            value = f"_make_{name}() if {name} is _absent else {name}"
        else:
            parameters.append(name)
        lines.append(f"    _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or ["    pass"]), scope)  # noqa: S102  # our own
    function: FunctionType = scope["__init__"]
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__annotations__ = {**{field.name: field.type for field in fields}, "return": None}
    return function


def _standard(cls: Any, name: str) -> FunctionType:
    """The method as the standard library writes it for a class of the same fields."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__annotations__": {field.name: field.type for field in fields.values()},
        **fields,
    }
    if hasattr(cls, "__post_init__"):
        namespace["__post_init__"] = cls.__post_init__
    wanted = {"init": name == "__init__", "repr": name == "__repr__", "eq": name in {"__eq__", "__hash__"}}
    frozen = cls.__dataclass_params__.frozen
    model: type = dataclasses.dataclass(frozen=frozen, slots=True, **wanted)(type(cls.__name__, (), namespace))
    methods: Mapping[str, Any] = vars(model)
    function: FunctionType = methods[name]
    return function


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
