"""Users' Python functions: loading them from files and modules, and calling them with the parameters they declare."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import takewhile
from pathlib import Path
from threading import Lock, RLock
from types import ModuleType
from typing import Any, TypeVar

from agentv.model.values.response import Failure
from agentv.user_code.guard import ForeignError, foreign_code

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How to pass offered values to a function. It is created once per function and used for every call.

    Attributes:
        positional: names of the offered values that are passed by position, in order.
        named: parameter → name of the offered value.
    """

    positional: tuple[str, ...]
    named: Mapping[str, str]

    @property
    def used(self) -> frozenset[str]:
        """The names of the offered values that the call uses."""
        return frozenset((*self.positional, *self.named.values()))

    def bind(self, function: Callable[..., T], offered: Mapping[str, Any]) -> Callable[[], T]:
        """Return the call of the function with these values, not yet made."""
        positional = [offered[name] for name in self.positional]
        return partial(function, *positional, **{parameter: offered[name] for parameter, name in self.named.items()})


def plan_call(function: Callable[..., Any], offered: Collection[str], single: str) -> CallPlan:
    """Return the plan to call a function with the offered values that its parameters name.

    If exactly one required parameter has another name, it gets the value named `single`. So does the first parameter
    of a function that requires none and names no offered value. A function with `**kwargs` gets all values.

    Raises:
        ForeignError: the function requires a parameter that is not offered (code `bad-signature`).
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:  # some functions written in C have no signature
        message = f"cannot inspect the parameters of {function!r}: {error}"
        raise ForeignError(Failure("bad-signature", message)) from None
    plain = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    named = {one.name: one.name for one in plain if one.name in offered}
    unknown = _unknown_parameter(plain, named, single)
    if unknown is not None:
        named[unknown] = single
    missing = [one.name for one in plain if one.default is one.empty and one.name not in named]
    if missing:
        message = f"{_name(function)} has the parameters {', '.join(missing)}; available: {', '.join(offered)}"
        raise ForeignError(Failure("bad-signature", message))
    by_position = takewhile(lambda one: one.kind is one.POSITIONAL_ONLY and one.name in named, plain)
    front = {one.name: named[one.name] for one in by_position}  # up to the first one that keeps its default
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        named = {name: name for name in offered if name not in front} | named
    elif not plain and parameters:  # only *args
        front = {single: single}
    return CallPlan(tuple(front.values()), {name: value for name, value in named.items() if name not in front})


def arguments_for(function: Callable[..., Any], offered: Mapping[str, Any], single: str) -> dict[str, Any]:
    """Return the keyword arguments for a function, by the rules of `plan_call`.

    Raises:
        ForeignError: the function requires a parameter that is not offered, or has positional-only parameters.
    """
    plan = plan_call(function, offered, single)
    if plan.positional:
        raise ForeignError(Failure("bad-signature", f"{_name(function)} has positional-only parameters"))
    return {parameter: offered[name] for parameter, name in plan.named.items()}


def _unknown_parameter(plain: Sequence[inspect.Parameter], named: Mapping[str, str], single: str) -> str | None:
    """Return the parameter with another name that gets the value `single`, or None."""
    required = [one.name for one in plain if one.default is one.empty]
    if single in named:
        return None
    if len(required) == 1 and required[0] not in named:
        return required[0]
    return plain[0].name if plain and not required and not named else None


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", function))


_locks: dict[str, RLock] = {}
_failed: dict[str, Failure] = {}
_seen: set[str] = set()
_seen_lock = Lock()


def load_function(name: str, file: str | None = None, module: str | None = None) -> Callable[..., Any]:
    """Return the function `name` (dotted for a method) of a file or of an importable module.

    Raises:
        ForeignError: there is no such file, module or function, or loading it raised. It is loaded only once; later
            calls raise the same failure.
    """
    home = load_module(file, module)
    found: Any = home
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        place = Path(file).name if file else module
        names = [one for one, value in vars(home).items() if callable(value) and not one.startswith("_")]
        known = f"; it has {', '.join(sorted(names)[:8])}" if names else ""
        raise ForeignError(Failure("cannot-load", f"{place} has no function '{name}'{known}"))
    return found  # type: ignore[no-any-return]  # user code: only known to be callable


def load_module(file: str | None, module: str | None) -> ModuleType:
    """Load a module from a file or by its name. It is loaded only once, even if it fails."""
    key = file or module or ""
    with _locks.setdefault(key, RLock()):
        if key in _failed:
            raise ForeignError(_failed[key])
        try:
            with foreign_code("cannot-load", Path(file).name if file else f"module {module}"):
                return _from_file(file) if file else import_module(module or "")
        except ForeignError as error:
            _failed[key] = error.failure
            raise


def _from_file(path: str) -> ModuleType:
    name = Path(path).stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) != path:  # another file's module
        name = f"agentv_user_{name}"
        known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def newly_loaded() -> list[str]:
    """Return the files of the modules that were loaded since the last call."""
    with _seen_lock:
        if len(_seen) == len(sys.modules):
            return []
        names = sys.modules.keys() - _seen
        _seen.update(names)
        files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
        return [file for file in files if isinstance(file, str)]
