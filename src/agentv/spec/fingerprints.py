"""The files behind options: what they hold is part of what determines an answer or a grade, so keys know it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from agentv.model.assertion import AssertionEntry, Transform
from agentv.registry.fields import Command, Document, FunctionRef, JavaScriptSource, Loaded, PromptCode, PythonSource
from agentv.spec.code_imports import with_imports
from agentv.spec.command_files import paths_of_command
from agentv.spec.decode import hints_of

_BEARERS = (Command, Document, FunctionRef, JavaScriptSource, Loaded, PromptCode, PythonSource, Transform)


def fingerprint(entry: AssertionEntry) -> Any:
    """What determines an entry's grade, without its place in the file."""
    assertion = entry.assertion
    if not hasattr(type(assertion), "assert_"):
        own = getattr(assertion, "identity", assertion)
        return (entry.type, own, entry.settings, digests_behind(assertion))
    options = {
        one.name: getattr(assertion, one.name)
        for one in fields(assertion)  # type: ignore[arg-type]  # what holds entries is a declared dataclass
        if one.name != "assert_"
    }
    return (entry.type, options, entry.settings, [fingerprint(child) for child in entry.inner])


def digests_behind(options: object) -> tuple[str, ...]:
    """The sha256 of every file that an instance of an options class names; empty for nearly all of them."""
    return tuple(digest for path in files_behind(options) if (digest := _digest(path)) is not None)


def files_behind(options: object) -> Iterator[str]:
    """The paths that an instance of an options class names, and what they import; not all of them need be files."""
    named = (path for name in _bearing(type(options)) for path in _paths(getattr(options, name)))
    return (path for one in named for path in with_imports(one))


_known: dict[type, tuple[str, ...]] = {}


def _bearing(cls: type) -> tuple[str, ...]:
    """The fields of a class that may name files."""
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = _looked_up(cls)
    return found


def _looked_up(cls: type) -> tuple[str, ...]:
    own = ("path",) if hasattr(cls, "path") else ()  # a custom assertion's, of the file that its code is in
    if not is_dataclass(cls):
        return own
    written = {one.name: one.type for one in fields(cls) if one.name != "path"}
    with suppress(NameError):  # of a name for type checkers alone
        written |= hints_of(cls)  # an annotation may be an alias, whose name says nothing
    return own + tuple(name for name, annotation in written.items() if name != "path" and _may_bear(annotation))


def _may_bear(annotation: object) -> bool:
    """Whether a field's annotation names a kind that holds a file."""
    return any(bearer.__name__ in str(annotation) for bearer in _BEARERS)


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, JavaScriptSource):
        yield from _paths(value.path)
    elif isinstance(value, PythonSource):
        yield from _paths(value.function)
    elif isinstance(value, PromptCode):
        for code in (value.function, value.script, value.command):
            yield from _paths(code)
    elif isinstance(value, Transform):
        yield from _paths(value.file)
    elif isinstance(value, Command):
        yield from paths_of_command(value)
    elif isinstance(value, Document | FunctionRef | Loaded) and value.path is not None:
        yield value.path


def _digest(path: str) -> str | None:
    try:
        state = Path(path).stat()
        regular = S_ISREG(state.st_mode)  # a device has no end
        return _digest_of(path, state.st_mtime_ns, state.st_size) if regular else None
    except (OSError, ValueError):
        return None  # no file, or a directory


@lru_cache(maxsize=4096)
def _digest_of(path: str, _changed_ns: int, _size: int) -> str:
    with open(path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
        return hashlib.file_digest(file, "sha256").hexdigest()
