"""Custom assertion types: the files of the nearest `.agentv/assertions/` (SPEC section 8)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from agentv.assertions.custom_javascript import JavaScriptType
from agentv.assertions.custom_python import PythonType
from agentv.registry.fields import Fault
from agentv.registry.types import Discovered, OpenAssertionType

HOME = (".agentv", "assertions")
"""Where a project keeps its assertion types."""

KINDS = {
    ".py": PythonType,
    ".ts": JavaScriptType,
    ".js": JavaScriptType,
    ".mts": JavaScriptType,
    ".mjs": JavaScriptType,
}
"""Suffix → what a file with it is."""

MAY_OVERRIDE = frozenset({"word-count"})
"""Built-in types that a project's own file replaces: seed 003 names this one as a custom type."""


def discover(directory: str, root: str) -> Discovered:
    """The custom types in reach of an eval file. Reads names alone; a file is parsed when an entry names its type.

    Args:
        directory: absolute, of the eval file.
        root: absolute; the walk upwards ends there.

    Returns:
        The types by their kebab-case names, every `.agentv/assertions` looked at, and per file what is wrong:
        a warning `shadowed-assertion`, an error `ambiguous-assertion`.
    """
    from agentv.assertions.catalogue import NOT_YET, TYPES

    searched: list[str] = []
    for home in _homes(Path(directory), Path(root)):
        searched.append(str(home))
        if home.is_dir():
            return types_in(home, tuple(searched), TYPES.keys() | NOT_YET)
    return Discovered({}, tuple(searched))


def types_in(home: Path, searched: tuple[str, ...], built_in: Collection[str]) -> Discovered:
    """The types that the files of one directory are; those that cannot be are left out and reported."""
    files: dict[str, list[str]] = {}
    for file in sorted(_files(home)):
        files.setdefault(Path(file).stem.replace("_", "-"), []).append(file)
    types: dict[str, OpenAssertionType] = {}
    faults: list[tuple[str, Fault]] = []
    for name, paths in files.items():
        fault = _fault(name, paths, built_in)
        if fault is None:
            types[name] = KINDS[Path(paths[0]).suffix](name, paths[0])
        else:
            faults.append((paths[-1], fault))
    return Discovered(types, searched, tuple(faults))


def _homes(directory: Path, root: Path) -> Iterator[Path]:
    for place in (directory, *directory.parents):
        yield place.joinpath(*HOME)
        if place == root:
            return


def _files(home: Path) -> Iterator[str]:
    for entry in os.scandir(home):
        stem, suffix = os.path.splitext(entry.name)  # noqa: PTH122  # a name of scandir is text
        is_test = stem.endswith((".test", ".spec", ".d"))
        if suffix in KINDS and not is_test and not stem.startswith(("_", ".")) and entry.is_file():
            yield entry.path


def _fault(name: str, paths: list[str], built_in: Collection[str]) -> Fault | None:
    names = [Path(path).name for path in paths]
    if len(paths) > 1:
        message = f"{' and '.join(names)} are both the assertion type '{name}'; keep one of them"
        return Fault((), message, "ambiguous-assertion")
    if name in built_in and name not in MAY_OVERRIDE:
        message = f"{names[0]} is not used: '{name}' is a built-in assertion type"
        return Fault((), message, "shadowed-assertion", "rename the file", warning=True)
    return None
