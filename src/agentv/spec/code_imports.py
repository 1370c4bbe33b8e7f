"""The files that code of a repository imports, read from what it says: none of it is run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from agentv.spec.files import is_directory, is_file, repository_root, upwards
from agentv.spec.python_source import parsed

MOST_FILES = 500
"""Files of one closure; what imports more is an installation, and no check."""

_LARGEST = 1 << 20
_KEPT = 4096
_PYTHON = (".py",)
_SCRIPTS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_CODE = _PYTHON + _SCRIPTS
_TYPED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""What TypeScript calls by the name that it is compiled to."""

_INSTALLED = re.compile(r"[/\\](?:site-packages|dist-packages|node_modules)[/\\]")
_RELATIVE = re.compile(r"""\b(?:from|import|require)\s*\(?\s*(["'`])(\.{1,2}(?:/[^"'`\n]*)?)\1""")
_IMPORTERS = frozenset({"import_module", "__import__"})

_State = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _Closure:
    """The files that one imports, and the state of all that it was read from: directories change with their names."""

    files: tuple[str, ...]
    states: dict[str, _State] = field(default_factory=dict)

    def holds(self) -> bool:
        """Whether nothing of it was changed."""
        return all(_state(path) == state for path, state in self.states.items())


_known: dict[str, _Closure] = {}


def with_imports(path: str) -> tuple[str, ...]:
    """A path and, where it is code, the files of its repository that it imports, directly or through others.

    A module is looked for beside the file that names it, and in every directory above, up to the repository's root:
    from one of them Python was started. What is installed is left out, and so is what a file that does not parse says.
    """
    if not path.endswith(_CODE) or not path.startswith(os.sep):
        return (path,)
    found = _known.get(path)
    if found is None or not found.holds():
        if len(_known) >= _KEPT:
            _known.clear()
        found = _known[path] = _closure(path)
    return found.files


def module_files(directory: str, dotted: str) -> Iterator[str]:
    """The files that may be a module, and the packages around it; not all of them need be there."""
    place = directory
    for name in dotted.split("."):
        place = os.path.join(place, name)  # noqa: PTH118  # called for every import of every check
        yield f"{place}.py"
        yield os.path.join(place, "__init__.py")  # noqa: PTH118  # as above


def modules_of(source: bytes) -> tuple[tuple[int, str], ...]:
    """The modules that Python imports: dots in front, 0 for none, and the name; none where it does not parse."""
    try:
        tree = parsed(source.decode("utf-8-sig"))
        return tuple(dict.fromkeys(found for node in ast.walk(tree) for found in _named_by(node)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _closure(path: str) -> _Closure:
    root = repository_root(os.path.dirname(path)).rstrip(os.sep) + os.sep  # noqa: PTH120  # as above
    files = {path: None}
    states: dict[str, _State] = {}
    waiting = [path]
    while waiting:
        current = waiting.pop()
        states[current] = state = _state(current)
        for found in _imported(current, state, root) if state is not None else ():
            folder = _standing(os.path.dirname(found))  # noqa: PTH120  # as above
            states[folder] = _state(folder)
            if len(files) < MOST_FILES and found not in files and _is_own(found, root):
                files[found] = None
                waiting.append(found)
    return _Closure(tuple(files), states)


def _is_own(path: str, root: str) -> bool:
    return path.startswith(root) and _INSTALLED.search(path) is None and is_file(path)


def _imported(path: str, state: tuple[int, int], root: str) -> Iterator[str]:
    """The paths that may be what a file imports."""
    directory = os.path.dirname(path)  # noqa: PTH120  # as above
    if path.endswith(_SCRIPTS):
        for _, written in _said(path, *state):
            yield from _script_files(os.path.normpath(os.path.join(directory, written)))  # noqa: PTH118  # as above
    elif path.endswith(_PYTHON):
        above = list(upwards(directory, root.rstrip(os.sep)))
        for dots, name in _said(path, *state):
            for home in above[dots - 1 : dots] if dots else above:
                if dots:
                    yield os.path.join(home, "__init__.py")  # noqa: PTH118  # as above
                yield from module_files(home, name) if name else ()


def _script_files(place: str) -> Iterator[str]:
    yield place
    stem, ending = os.path.splitext(place)  # noqa: PTH122  # as above
    yield from (stem + typed for typed in _TYPED.get(ending, ()))
    for ending in (*_SCRIPTS, ".json"):
        yield place + ending
        yield os.path.join(place, f"index{ending}")  # noqa: PTH118  # as above


@lru_cache(maxsize=4096)
def _said(path: str, _changed_ns: int, size: int) -> tuple[tuple[int, str], ...]:
    """What a file imports, as it says it: the dots in front and the name of a module, or 0 and a relative path."""
    if size > _LARGEST:
        return ()
    try:
        data = Path(path).read_bytes()
    except OSError:
        return ()
    if path.endswith(_PYTHON):
        return modules_of(data)
    return tuple(dict.fromkeys((0, found[2]) for found in _RELATIVE.finditer(data.decode(errors="replace"))))


def _named_by(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The modules that a statement, or a call with a name written out, imports."""
    if isinstance(node, ast.Import):
        yield from ((0, one.name) for one in node.names)
    elif isinstance(node, ast.ImportFrom):
        around = f"{node.module}." if node.module else ""
        yield node.level, node.module or ""
        yield from ((node.level, around + one.name) for one in node.names if one.name != "*")
    elif isinstance(node, ast.Call) and node.args:
        called = getattr(node.func, "id", getattr(node.func, "attr", None))
        name = getattr(node.args[0], "value", None)
        if called in _IMPORTERS and isinstance(name, str):
            yield len(name) - len(name.lstrip(".")), name.lstrip(".")


def _state(path: str) -> _State:
    """When a file or a directory was changed, and its size; None where there is neither."""
    try:
        found = os.stat(path)  # noqa: PTH116  # as above
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size) if S_ISREG(found.st_mode) or S_ISDIR(found.st_mode) else None


def _standing(directory: str) -> str:
    """The directory, or the closest above it that is there: its time changes when what lacks is made."""
    while not is_directory(directory) and os.path.dirname(directory) != directory:  # noqa: PTH120  # as above
        directory = os.path.dirname(directory)  # noqa: PTH120  # as above
    return directory
