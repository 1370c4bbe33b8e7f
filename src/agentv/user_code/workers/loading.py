"""Users' modules in a worker: loaded by the paths of their files, under the names that their neighbours import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock, RLock
from types import ModuleType
from typing import Any

from agentv.model.values.response import Failure
from agentv.user_code.functions.guard import ForeignError, foreign_code

_locks: dict[str, RLock] = {}
_failed: dict[str, Failure] = {}
_seen: set[str] = set()
_seen_lock = Lock()


def load_function(name: str, file: str | None = None, module: str | None = None) -> Callable[..., Any]:
    """The function `name` (dotted for a method) of a file or of an importable module.

    Raises:
        ForeignError: no such file, module or function, or it raises when loaded: once, and the same for all its calls.
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
    return found  # type: ignore[no-any-return]  # foreign: only its being callable is known


def load_module(file: str | None, module: str | None) -> ModuleType:
    """The module in a file, or of a name, loaded once; a failure is kept, too."""
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
    file = Path(path)
    name = file.stem if _is_free(file.stem, path) else f"agentv_user_{file.stem}"
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


def _is_free(name: str, path: str) -> bool:
    """Whether a file may be the module of this name: no other one is."""
    known = sys.modules.get(name)
    return known is None or getattr(known, "__file__", None) == path


def newly_loaded() -> list[str]:
    """The files of modules that were loaded since the last call."""
    with _seen_lock:
        if len(_seen) == len(sys.modules):
            return []
        names = sys.modules.keys() - _seen
        _seen.update(names)
        files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
        return [file for file in files if isinstance(file, str)]
