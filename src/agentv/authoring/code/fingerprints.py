"""Fingerprints of the files that options name. Their content is part of the key of an answer or grade."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from inspect import get_annotations
from pathlib import Path
from stat import S_ISREG
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.fields.decode import hints_of
from agentv.authoring.source.files import is_code, is_file
from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.suite.files import GraderFiles, SearchPaths, search_paths
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.values import lazy_pattern
from agentv.registry import fields as declared
from agentv.registry.fields import Command, Declared, DeclaredAssertion, PromptCode, is_declared, options_of

_FILE_TYPES = (
    Command,
    declared.Document,
    declared.FileGlobs,
    declared.FunctionRef,
    declared.JavaScriptSource,
    declared.LoadedJson,
    declared.LoadedSchema,
    PromptCode,
    declared.PythonSource,
    declared.Preprocessor,
    Transform,
)
"""Types of options that may name a file."""


def fingerprint(entry: AssertionEntry, seen: GraderFiles | None = None, search: SearchPaths | None = None) -> Any:
    """The content that determines an entry's grade, without its position in the file.

    Args:
        entry: an assertion.
        seen: collects the files that the grade depends on.
        search: search paths for code; None for those of `seen`, or else of this process.
    """
    search = search or (seen.search if seen is not None else None)
    assertion, settings = entry.assertion, entry.settings
    if not hasattr(assertion, "assert_"):
        own = getattr(assertion, "identity", assertion)
        behind = _digests_of(assertion, entry, seen, search) if names_files(assertion) else ()
        facts = (entry.type, own, settings, behind)
    else:
        options = {name: getattr(assertion, name) for name in options_of(assertion) if name != "assert_"}
        facts = (entry.type, options, settings, [fingerprint(child, seen, search) for child in entry.inner])  # type: ignore[assignment]
    facts = (*facts, entry.plugin) if entry.plugin else facts  # type: ignore[assignment]
    return facts if settings.transform is None else (*facts, _digests_of(settings, entry, seen, search))


def _digests_of(
    options: object, entry: AssertionEntry, seen: GraderFiles | None, search: SearchPaths | None
) -> tuple[str, ...]:
    """The digests of files that an entry's options name. Also notes its Python functions and their time limit."""
    digests = digests_behind(options, seen, search)
    if seen is not None and names_files(options):
        limit = entry.settings.timeout_s or getattr(entry.assertion, "timeout_s", None) or CODE_TIMEOUT_S
        for place in functions_behind(options):
            seen.functions[place] = max(limit, seen.functions.get(place, 0.0))
    return digests


def digests_behind(
    options: object, seen: GraderFiles | None = None, search: SearchPaths | None = None
) -> tuple[str, ...]:
    """The sha256 of every file that an instance of an options class names; usually empty."""
    if not names_files(options):
        return ()  # fast path for nearly every assertion
    found: list[str] = []
    for path in files_behind(options, search):
        digest = digest_of(path)
        if digest is not None:
            found.append(digest)
            if seen is not None:
                seen.note(path, digest)
    if seen is not None:
        seen.starts_programs = seen.starts_programs or any(True for _ in commands_of(options))
        if is_unfollowed(options, search):
            seen.unfollowed[getattr(options, "label", str)()] = None
    return tuple(found)


def files_behind(options: object, search: SearchPaths | None = None) -> Iterator[str]:
    """Yield the paths that an instance of an options class names, and what they import. They may not exist.

    Args:
        options: options of an assertion or a target.
        search: search paths for code in the environment of started programs; None for those of this process.
    """
    for one, homes in (found for value in _values(options) for found in _paths_from(value, search)):
        from agentv.authoring.code.code_imports import with_imports  # most options name no file

        yield from with_imports(one, homes)


def code_behind(options: object, search: SearchPaths | None = None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the code that is opened when the options are used, but no files that were read when they were loaded.

    Each item is a path that the options name, and the closure of its imports with the path itself first.
    """
    from agentv.authoring.code.code_imports import with_imports

    for value in _values(options):
        if not isinstance(value, declared.Document | declared.LoadedJson):
            yield from ((path, with_imports(path, homes)) for path, homes in _paths_from(value, search))


def pytest_settings_behind(options: object) -> Iterator[str]:
    """Yield the paths of settings and hooks of a pytest that a command starts. They may not exist."""
    from agentv.authoring.code.command_files import tests_of_command

    for command in commands_of(options):
        yield from (path for path in tests_of_command(command) if path.endswith(("/conftest.py", "/pytest.ini")))


def commands_of(options: object) -> Iterator[Command]:
    """Yield the commands that are started when the options are used."""
    for value in _values(options):
        command = value.command if isinstance(value, PromptCode) else value
        if isinstance(command, Command):
            yield command


def functions_behind(options: object) -> Iterator[tuple[str | None, str | None]]:
    """Yield the (file, module) of Python code that is imported into this process when the options are used."""
    for value in _values(options):
        function = value.function if isinstance(value, declared.PythonSource | PromptCode) else value
        if isinstance(function, declared.FunctionRef):
            yield function.path, function.module
        elif isinstance(value, Transform) and value.kind == "function" and value.file is not None:
            yield value.file, None
        elif isinstance(value, str) and value.endswith(".py"):
            yield value, None


def is_unfollowed(options: object, search: SearchPaths | None = None) -> bool:
    """Whether a started program or loaded code has unknown files, whose changes are not detected.

    False if the author lists the files in `fingerprint`.
    """
    opened = [value for value in _values(options) if not isinstance(value, declared.Document | declared.LoadedJson)]
    if not opened or getattr(options, "fingerprint", None) is not None:
        return False
    from agentv.authoring.code.code_imports import loads_unknown
    from agentv.authoring.code.command_files import is_opaque, searches_unknown

    around = search or search_paths(os.environ)
    if any(is_opaque(command, around) or searches_unknown(command) for command in commands_of(options)):
        return True
    return any(loads_unknown(path, homes) for value in opened for path, homes in _paths_from(value, search))


def may_name_files(cls: type) -> bool:
    """Whether the instances of an options class may name files."""
    return bool(_file_fields(cls))


def names_files(options: object) -> bool:
    """Whether an instance of an options class has a value that may name files."""
    names = _file_fields(type(options))
    return bool(names) and any(getattr(options, name) is not None for name in names)


def _paths_from(value: Any, search: SearchPaths | None) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield the paths of a value, each with its module directories; None for those of this process."""
    from agentv.authoring.code.command_files import homes_of_command, paths_of_command, tests_of_command

    command = value.command if isinstance(value, PromptCode) else value
    if not isinstance(command, Command):
        return ((path, None) for path in _paths(value))
    around = search or search_paths(os.environ)
    homes = homes_of_command(command, around)
    found = (*paths_of_command(command, around), *tests_of_command(command))
    others = _paths(replace(value, command=None)) if isinstance(value, PromptCode) else ()
    return ((path, homes) for path in (*others, *found))


def _values(options: object) -> Iterator[Any]:
    """Yield the values of the fields that may name files. A command gets the options' `cwd`."""
    for name in _file_fields(type(options)):
        value = getattr(options, name)
        if isinstance(value, tuple):
            yield from (one.command for one in value if isinstance(one, declared.Preprocessor))
            continue
        cwd = getattr(options, "cwd", None) if isinstance(value, Command) else None
        yield replace(value, cwd=cwd) if isinstance(cwd, str) and cwd else value


_known: dict[type, tuple[str, ...]] = {}


def _file_fields(cls: type) -> tuple[str, ...]:
    """The fields of a class that may name files."""
    found = _known.get(cls)
    if found is not None:
        return found
    own = ("path",) if hasattr(cls, "path") and not issubclass(cls, DeclaredAssertion) else ()  # a custom type's code
    if issubclass(cls, Struct) and not issubclass(cls, Declared):  # the settings that every assertion takes
        written = cls.__annotations__
    elif is_declared(cls):
        annotations = {name: hint for base in reversed(cls.__mro__) for name, hint in get_annotations(base).items()}
        written = {name: annotations[name] for name in options_of(cls)}
        with suppress(NameError):  # a name that is imported only for type checkers
            written |= hints_of(cls)  # type: ignore[arg-type]  # an annotation may be an alias
    else:
        written = {}
    file_types = [file_type.__name__ for file_type in _FILE_TYPES]
    for name, annotation in written.items():
        if name != "path" and any(file_type in str(annotation) for file_type in file_types):
            own = (*own, name)
    found = _known[cls] = own
    return found


def _paths(value: Any) -> Iterator[str]:
    from agentv.authoring.source.files import files_of_globs

    if isinstance(value, str):
        yield value
    elif isinstance(value, declared.JavaScriptSource):
        yield from _paths(value.path)
    elif isinstance(value, declared.PythonSource):
        yield from _paths(value.function)
    elif isinstance(value, PromptCode):
        for code in (value.function, value.script):
            yield from _paths(code)
    elif isinstance(value, Transform):
        yield from _paths(value.file)
    elif isinstance(value, declared.FileGlobs):
        yield from files_of_globs(value)
    elif isinstance(value, declared.Document | declared.FunctionRef | declared.LoadedJson):
        yield from (value.path,) if value.path is not None else _module_files(value)


def _module_files(value: object) -> Iterator[str]:
    """Yield the files of an importable module, unless it is installed."""
    from agentv.authoring.code.code_imports import files_of_module, is_installed

    if isinstance(value, declared.FunctionRef) and value.module:
        yield from (path for path in files_of_module(value.module) if not is_installed(path))


def digest_of(path: str) -> str | None:
    """The sha256 of a file, in hex; None if it is not a regular file."""
    try:
        state = Path(path).stat()
        if not S_ISREG(state.st_mode):  # a device has no end
            return None
        # includes the change time of the inode, since the modification time can be set
        return _digest_of(path, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_size)
    except (OSError, ValueError):
        return None  # no such file, or an invalid path


@lru_cache(maxsize=4096)
def _digest_of(path: str, *_state: int) -> str:
    with open(path, "rb") as file:  # a Path would add nothing
        return hashlib.file_digest(file, "sha256").hexdigest()


_PYTHON_WRITES = lazy_pattern(
    rb"""(?<!\w)["'](?:[rbt]?[wax][bt]?\+?|[rbt]{1,2}\+[bt]?)["']|\.write_(?:text|bytes)\(|\bos\.(?:open|replace|rename|link)\b"""
    rb"""|\bshutil\b|\bsqlite3\b|\bshelve\b|\bdbm\b|FileHandler|\bfilename\s*=|\.to_(?:csv|json|parquet|pickle|excel)\("""
    rb"""|\.save\w*\(|\bsubprocess\b|\bos\.system\b"""
)
_SCRIPT_WRITES = lazy_pattern(rb"\b(?:write|append|copy|rename|createWrite)\w*\(|\bchild_process\b|\bBun\.")
_SHELL_WRITES = lazy_pattern(rb">|\b(?:tee|mv|cp|touch|dd|install|sed\s+-\w*i)\b")
_LARGEST = 1 << 20


def written_by(command: Command, search: SearchPaths) -> Iterator[str]:
    """Yield the data files that a command names and whose content its code may change. Code is never among them."""
    from agentv.authoring.code.code_imports import with_imports
    from agentv.authoring.code.command_files import homes_of_command, paths_of_command

    named = [path for path in paths_of_command(command, search) if is_file(path)]
    homes = homes_of_command(command, search)
    code = {path for root in named if is_code(root) for path in with_imports(root, homes)}
    if any(map(_may_write, code)):
        yield from (path for path in named if path not in code and not is_code(path))


def _may_write(path: str) -> bool:
    try:
        state = os.stat(path)  # for every file of every script
    except OSError:
        return False
    return _writes(path, state.st_mtime_ns, state.st_ctime_ns, state.st_size)


@lru_cache(maxsize=1024)
def _writes(path: str, _written_ns: int, _changed_ns: int, size: int) -> bool:
    if size > _LARGEST:
        return False
    try:
        data = Path(path).read_bytes()
    except OSError:
        return False
    if path.endswith(".py"):
        return _PYTHON_WRITES.search(data) is not None
    return (_SCRIPT_WRITES if path.endswith(("js", "ts", "jsx", "tsx")) else _SHELL_WRITES).search(data) is not None
