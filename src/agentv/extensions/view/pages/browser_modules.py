"""JavaScript modules of the pages, joined into one script: for a server one file of each page, for a report its script.

A module imports names with `import { a, b } from "./file.js";` and exports declarations (`export function`, `export
const`, `export class`). Nothing else is used, so that joining modules is to leave these words out: every name at the
top of a module must then be the only one of its kind, and no module may need itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from posixpath import dirname, normpath

BROWSER = Path(__file__).parent / "browser"
"""The folder of modules, with the style and the library that reads Markdown."""

_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.[^"]*)";\n', re.MULTILINE)
_DECLARED = re.compile(r"^(export )?(?:async function|function\*?|const|let|class) ([\w$]+)", re.MULTILINE)
_NAME = re.compile(r"[\w$]+")
_LEFT = re.compile(
    r"^(?:import\b|export\b(?! (?:async function|function\*?|const|let|class) [\w$])|var\b|(?:const|let) [^\w$]).*",
    re.MULTILINE,
)


class ModuleError(Exception):
    """Modules that cannot be joined: a form that is not known, a name that is not there or there twice, a cycle."""


@dataclass(frozen=True, slots=True)
class Module:
    """One file.

    Attributes:
        path: within the folder, such as `run/overview.js`.
        body: its text without the words `import … from` and `export`.
        imports: names that it takes, by the path of the module that has them.
        names: all that is declared at its top.
        exports: those of them that others may take.
    """

    path: str
    body: str
    imports: Mapping[str, frozenset[str]]
    names: frozenset[str]
    exports: frozenset[str]


def read_module(path: str, source: str) -> Module:
    """The module of that path and text.

    Raises:
        ModuleError: it imports or exports in another form, or declares a name twice.
    """
    imports: dict[str, frozenset[str]] = {}
    for found in _IMPORT.finditer(source):
        names = [name.strip() for name in found[1].split(",") if name.strip()]
        file = normpath(f"{dirname(path)}/{found[2]}").lstrip("/")
        if file in imports or not names or not all(_NAME.fullmatch(name) for name in names):
            raise ModuleError(f"{path}: one import of plain names for each file, not {found[0].strip()!r}")
        imports[file] = frozenset(names)
    rest = _IMPORT.sub("", source)
    if unknown := _LEFT.search(rest):
        raise ModuleError(f"{path}: unknown form {unknown[0].strip()!r}")
    declared = _DECLARED.findall(rest)
    names = [name for _, name in declared]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ModuleError(f"{path} declares {', '.join(sorted(twice))} twice")
    exports = frozenset(name for exported, name in declared if exported)
    return Module(path, re.sub(r"^export ", "", rest, flags=re.MULTILINE), imports, frozenset(names), exports)


def joined(entry: str, sources: Mapping[str, str]) -> str:
    """The script of a module and of all that it needs, each after those that it needs.

    Args:
        entry: path of the module.
        sources: text by path.

    Raises:
        ModuleError: see there.
    """
    ordered = list(_ordered(entry, sources, (), {}))
    owner: dict[str, str] = {}
    for module in ordered:
        for name in sorted(module.names):
            if name in owner:
                raise ModuleError(f"{name} is declared in {owner[name]} and in {module.path}")
            owner[name] = module.path
    exports = {module.path: module.exports for module in ordered}
    for module in ordered:
        for path, names in module.imports.items():
            if missing := names - exports[path]:
                raise ModuleError(f"{module.path} imports {', '.join(sorted(missing))}, which {path} does not export")
    return "\n".join(module.body.strip("\n") for module in ordered) + "\n"


def _ordered(
    entry: str, sources: Mapping[str, str], waiting: tuple[str, ...], seen: dict[str, Module]
) -> Iterator[Module]:
    if entry in waiting:
        raise ModuleError(f"modules need each other: {' → '.join((*waiting[waiting.index(entry) :], entry))}")
    if entry in seen:
        return
    if entry not in sources:
        raise ModuleError(f"{waiting[-1] if waiting else 'the page'} imports {entry}, which does not exist")
    module = read_module(entry, sources[entry])
    for path in module.imports:
        yield from _ordered(path, sources, (*waiting, entry), seen)
    seen[entry] = module
    yield module


@cache
def module_sources() -> Mapping[str, str]:
    """The text of all modules of this package, by path."""
    files = (file for file in sorted(BROWSER.rglob("*.js")) if file.parent.name != "vendor")
    return {file.relative_to(BROWSER).as_posix(): file.read_text(encoding="utf-8") for file in files}
