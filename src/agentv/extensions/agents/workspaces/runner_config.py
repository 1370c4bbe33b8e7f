"""Files that decide how tests run, which an agent changed: a `conftest.py` can report any test as passed.

Only those count that a test runner finds on its way to a hidden or protected file: in its directory, and in those
above; and what Python loads from anywhere, such as the entry points of a distribution. Of files that configure more
than tests, only the parts about tests count.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

from agentv.extensions.agents.workspaces.baseline import changed_paths, shown_path
from agentv.extensions.agents.workspaces.snapshot import Snapshot

RUNNERS = frozenset(
    {"_pytest", "coverage", "iniconfig", "nose", "packaging", "pluggy", "pygments", "pytest", "tox"}
    | {"sitecustomize", "usercustomize"}
)
"""Modules of test runners, and those that Python loads when it starts."""

_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_SUFFIXES = (".py", ".pyc", ".so", ".pyd")


def plants_modules(before: Snapshot, now: Snapshot, restored: Collection[bytes] = ()) -> bool:
    """Whether a file that an agent added or changed has the name of such a module, wherever it lies.

    Args:
        before: the state of the workspace at the baseline.
        now: its final state.
        restored: files that are made as they were before tests run.
    """
    changed = (path for path in changed_paths(before, now) if path in now.files and path not in restored)
    return any(_module(shown_path(path)) in _SHADOWED for path in changed)


def imported(text: str) -> frozenset[str]:
    """The top-level modules that a text of Python imports."""
    return frozenset(_IMPORT.findall(text))


def is_installed(module: str) -> bool:
    """Whether a module of this name comes with Python, or is installed here."""
    if module in sys.stdlib_module_names:
        return True
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        return False
    return found is not None and str(found.origin).startswith((sys.prefix, sys.base_prefix))


def _module(path: str) -> str:
    """The module that a file would be, by its name; empty where it would be none."""
    file = PurePosixPath(path)
    if file.suffix not in _SUFFIXES:
        return ""
    name = file.name.partition(".")[0]
    return file.parent.name if name == "__init__" else name


_SHADOWED = RUNNERS | sys.stdlib_module_names


_WHOLE = re.compile(
    r"conftest\.py|\.?pytest\.(?:ini|toml)|\.mocharc(?:\.\w+)?|(?:jest|vitest|playwright|karma|babel)\.config\.\w+"
    r"|\.babelrc(?:\.\w+)?|phpunit\.xml(?:\.dist)?"
)
_LOADED_BY_PYTHON = re.compile(
    r"(?:.*/)?(?:[^/]+\.(?:dist|egg)-info/entry_points\.txt|[^/]+\.pth|__pycache__/[^/]+\.pyc)"
)
_SECTION = re.compile(
    r"^\[(?:tool\.pytest[^\]]*|pytest|tool:pytest|pytest11|nose\.plugins[^\]]*)\][^\n]*\n?(?:(?!\[)[^\n]*\n?)*",
    re.MULTILINE,
)
_VARIABLE = re.compile(r"^[ \t]*(?:export[ \t]+)?PYTEST_\w+[ \t]*=[^\n]*\n?", re.MULTILINE)
_IN_PART: Mapping[str, re.Pattern[str]] = {
    "pyproject.toml": _SECTION,
    "tox.ini": _SECTION,
    "setup.cfg": _SECTION,
    "entry_points.txt": _SECTION,
    ".env": _VARIABLE,
}
"""Name of a file that configures more than tests → its parts about tests."""

_WORD = re.compile(r"(?=([\w-]+\.\w+))?(\w+)")
_PACKAGE = "package.json"
_PACKAGE_KEYS = ("jest", "mocha", "ava", "vitest")
_PACKAGE_SCRIPTS = ("test", "pretest", "posttest")
_TEST_DIRECTORY = re.compile(r"_*(?:unit|integration)?_?tests?|spec|__tests__")


def changed_test_config(
    hidden: Mapping[str, str], guarded: Iterable[str], before: Snapshot, now: Snapshot
) -> Iterator[bytes]:
    """The paths of changed files that decide, or may decide by a part of them, how hidden and protected tests run.

    Args:
        hidden: path → text of the hidden files, which are copied over those of the agent.
        guarded: further files whose directories count, such as protected ones.
        before: the state of the workspace at the baseline.
        now: its final state.
    """
    copied = set(hidden)
    directories = {str(above) for path in (*copied, *guarded) for above in PurePosixPath(path).parents}
    if not directories:
        return
    words = {word for text in hidden.values() for found in _WORD.findall(text) for word in found}
    modules = {PurePosixPath(path).name.partition(".")[0] for path in copied if path.endswith(".py")}
    names = RUNNERS | modules | {word for text in hidden.values() for word in imported(text) if is_installed(word)}
    test_directories = {one for one in directories if any(map(_TEST_DIRECTORY.fullmatch, one.split("/")))}
    for path in sorted(changed_paths(before, now)):
        shown = shown_path(path)
        place = PurePosixPath(shown)
        if place.as_posix() in copied:
            continue
        on_the_way = str(place.parent) in directories
        configures = place.name in _IN_PART or place.name == _PACKAGE or _WHOLE.fullmatch(place.name) is not None
        if (
            _LOADED_BY_PYTHON.fullmatch(shown)
            or _takes_place(place, directories, names, before)
            or (path not in before.files and _is_module(place) and _without_suffix(place) in directories)
            or (_is_used(place, words) and not test_directories.isdisjoint(map(str, place.parents)))
            or (on_the_way and (configures or _makes_package(place, path, before)))
        ):
            yield path


def _takes_place(place: PurePosixPath, directories: set[str], names: Collection[str], before: Snapshot) -> bool:
    """Whether a file is of a new module that would be loaded for one of some names. Modules of packages are not."""
    for number, part in enumerate(place.parts):
        if part.partition(".")[0] in names and (number < len(place.parts) - 1 or _is_module(place)):
            root, above = "/".join(place.parts[: number + 1]), "/".join(place.parts[:number])
            known = (f"{root}/", root, f"{above}/__init__.py" if above else "__init__.py")
            there = any(shown_path(path).startswith(known[0]) or shown_path(path) in known for path in before.files)
            return (above or ".") in directories and not there
    return False


def _is_module(place: PurePosixPath) -> bool:
    return place.suffix in _SUFFIXES


def _without_suffix(place: PurePosixPath) -> str:
    return str(place.with_name(place.name.partition(".")[0] or place.name))


def _is_used(place: PurePosixPath, words: Collection[str]) -> bool:
    """Whether hidden tests name a file, as a module or as data."""
    return place.name in words or (_is_module(place) and place.name.partition(".")[0] in words)


def _makes_package(place: PurePosixPath, path: bytes, before: Snapshot) -> bool:
    """Whether a file makes a directory of tests, or for the first time the workspace, a package."""
    if place.name != "__init__.py":
        return False
    if place.parent == PurePosixPath():
        return path not in before.files
    return _TEST_DIRECTORY.fullmatch(place.parent.name) is not None


def is_checked_bytecode(path: bytes, head: bytes) -> bool:
    """Whether a file is compiled Python that is loaded only while it fits its source (PEP 552)."""
    return path.endswith(b".pyc") and head[4:8] != b"\1\0\0\0"


def is_in_part(path: bytes) -> bool:
    """Whether a file configures more than tests."""
    name = PurePosixPath(shown_path(path)).name
    return name in _IN_PART or name == _PACKAGE


def parts(path: bytes, text: str) -> list[str]:
    """The parts of such a file that are about tests."""
    name = PurePosixPath(shown_path(path)).name
    if name == _PACKAGE:
        document = _document(text)
        scripts = _scripts(document)
        kept = [*map(document.get, _PACKAGE_KEYS), *map(scripts.get, _PACKAGE_SCRIPTS)]
        return [json.dumps(kept)]
    return [one.strip() for one in _IN_PART[name].findall(text)]


def with_parts_of(path: bytes, text: str, earlier: str) -> str:
    """The text with the parts about tests as they were in an earlier one."""
    name = PurePosixPath(shown_path(path)).name
    if name != _PACKAGE:
        pattern = _IN_PART[name]
        kept = (pattern.sub("", text), *pattern.findall(earlier))
        return "".join(f"{one.rstrip()}\n" for one in kept if one.strip())
    document, before = _document(text), _document(earlier)
    for key in _PACKAGE_KEYS:
        document.pop(key, None)
        document |= {key: before[key]} if key in before else {}
    scripts, scripts_before = _scripts(document), _scripts(before)
    others = {name: one for name, one in scripts.items() if name not in _PACKAGE_SCRIPTS}
    document["scripts"] = others | {name: one for name, one in scripts_before.items() if name in _PACKAGE_SCRIPTS}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _scripts(document: dict[str, Any]) -> dict[str, Any]:
    scripts = document.get("scripts")
    return scripts if isinstance(scripts, dict) else {}
