"""Users' Python functions: found by file and name, called with what they ask for."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from agentv.foreign.guard import ForeignError, foreign_code
from agentv.model.response import Failure

_importing = RLock()


@lru_cache(maxsize=256)
def load_module(path: str) -> ModuleType:
    """The module in a file, loaded by its path, once; its directory is importable from then on.

    Raises:
        ForeignError: the file cannot be loaded; the failure's code is `cannot-load`.
    """
    file = Path(path)
    with _importing, foreign_code("cannot-load", f"{file.name}"):
        directory = str(file.parent)
        if directory not in sys.path:
            sys.path.insert(0, directory)
        name = f"agentv_user_{hashlib.sha256(path.encode()).hexdigest()[:8]}_{file.stem}"
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python file")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def load_function(name: str, *, path: str | None = None, module: str | None = None) -> Callable[..., Any]:
    """The function `name` (dotted for a method) of a file or of an importable module.

    Raises:
        ForeignError: no such file, module or function, or it raises when loaded.
    """
    if path is not None:
        home = load_module(path)
    else:
        with foreign_code("cannot-load", f"module {module}"):
            home = import_module(module or "")
    found: Any = home
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        place = Path(path).name if path else module
        names = [one for one, value in vars(home).items() if callable(value) and not one.startswith("_")]
        known = f"; it has {', '.join(sorted(names)[:8])}" if names else ""
        raise ForeignError(Failure("cannot-load", f"{place} has no function '{name}'{known}"))
    return found  # type: ignore[no-any-return]  # foreign: only its being callable is known


def arguments_for(function: Callable[..., Any], offered: Mapping[str, Any], lone: str) -> dict[str, Any]:
    """The keyword arguments that a function asks for by name, out of what is offered.

    A single parameter of another name gets `offered[lone]`. One with `**kwargs` gets everything.

    Raises:
        ForeignError: it requires a parameter that is not offered.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return dict(offered)
    named = [one for one in parameters if one.kind is not one.VAR_POSITIONAL]
    required = [one for one in named if one.default is one.empty]
    if len(required) <= 1 and named and named[0].name not in offered:
        first = (required or named)[0].name
        known = {one.name: offered[one.name] for one in named if one.name in offered}
        return {first: offered[lone], **known}
    missing = [one.name for one in required if one.name not in offered]
    if missing:
        shown = getattr(function, "__name__", str(function))
        message = f"{shown} asks for {', '.join(missing)}; it may ask for {', '.join(offered)}"
        raise ForeignError(Failure("bad-signature", message))
    return {one.name: offered[one.name] for one in named if one.name in offered}
