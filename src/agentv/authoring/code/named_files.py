"""Find files that code names without importing them: in shell scripts, Makefiles, `package.json` and strings."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterator

from msgspec import Struct, field

from agentv.model.values.values import lazy_pattern

SHELL = (".sh", ".bash", ".zsh", ".ksh")
_SHEBANG = lazy_pattern(rb"#![^\n]*\b(?:sh|bash|zsh|dash|ksh)\b")
_MAKEFILES = frozenset({"Makefile", "makefile", "GNUmakefile"})
_NAME = lazy_pattern(r"[\w./@+-]+")
_STARTS = lazy_pattern(
    rb"\bsubprocess\b|\bos\.(?:system|popen|exec|spawn|posix_spawn)|\brunpy\b|spec_from_file_location|\bexec\("
    rb"|create_subprocess|\bchild_process\b|\bBun\.(?:spawn|\$)|\bexeca\b|\bimport_module\((?!\s*[\"'])|\b__import__\((?!\s*[\"'])"
)
_CODE_NAME = lazy_pattern(rb"[\w./@+-]+\.(?:py|sh|bash|[cm]?[jt]sx?|rb|pl|R|jl|lua|php|mk)\b")
_ASSIGNMENT = lazy_pattern(r"\b(PYTHONPATH|NODE_PATH|PATH)\s*[:?+]?=\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|]+)")
_CHANGES_DIRECTORY = lazy_pattern(r"(?:^|[;&|(@]|\bthen\b|\bdo\b)\s*(?:cd|pushd)\s+([^\s;&|)]+)", re.MULTILINE)
_SOURCED = lazy_pattern(r"(?:^|[;&|])\s*(?:\.|source|-?s?include)\s+([^\s;&|]+)", re.MULTILINE)
_MODULES = lazy_pattern(r"\s-m\s*([A-Za-z_][\w.]*)")
_COMPUTED_PATH = lazy_pattern(r"\$\{?\w+\}?\.(?:py|sh|bash|[cm]?[jt]sx?|rb|pl)\b|(?:^|[;&|])\s*eval\s", re.MULTILINE)
_EXPANSION = lazy_pattern(r"\$\{?\w+\}?/|\$\([^)]*\)/?")


def is_script(path: str, data: bytes) -> bool:
    """Whether a file is a shell script, a Makefile or a `package.json`."""
    name = os.path.basename(path)  # called for every file of every closure
    is_make = name in _MAKEFILES or name.endswith(".mk")
    return path.endswith(SHELL) or is_make or name == "package.json" or _SHEBANG.match(data) is not None


def words_of_script(path: str, data: bytes) -> tuple[str, ...]:
    """The words of a shell script, a Makefile, or of the scripts of a `package.json`, that may name files."""
    text = data.decode(errors="replace")
    lines = _package_scripts(text) if path.endswith(".json") else text.splitlines()
    return tuple(dict.fromkeys(word for line in lines for word in _words(line)))


Module = tuple[int, str]
"""The number of leading dots, and the name."""


class Loads(Struct):
    """What one file loads or names, in order. The dictionaries are ordered sets.

    Attributes:
        modules: Python modules that it imports or runs by name.
        homes: directories that it adds to the search path for Python or Node modules.
        walked: directories from which it may load every module.
        packages: packages whose modules it imports by computed names.
        files: paths that it runs as code or includes, whatever their suffixes.
        names: JavaScript imports, as authored.
        directories: relative paths of directories from which JavaScript may load any file.
        entered: directories that it changes to, or adds to the search path for programs.
        words: words that may name code that it runs.
        scans_packages: it searches the packages that it imports for modules.
        unknown: it loads or starts files that its text does not name.
    """

    modules: dict[Module, None] = field(default_factory=dict)
    homes: dict[str, None] = field(default_factory=dict)
    walked: dict[str, None] = field(default_factory=dict)
    packages: dict[Module, None] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    directories: dict[str, None] = field(default_factory=dict)
    entered: dict[str, None] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    scans_packages: bool = False
    unknown: bool = False


def places_of_script(path: str, data: bytes) -> Loads:
    """The modules, directories and files that a shell script, a Makefile, or scripts in a `package.json` name."""
    text = data.decode(errors="replace")
    lines = "\n".join(_package_scripts(text)) if path.endswith(".json") else text
    entered = (one for found in _CHANGES_DIRECTORY.finditer(lines) if (one := _bare(found[1])) and "$" not in one)
    return Loads(
        modules={(0, found[1]): None for found in _MODULES.finditer(lines)},
        homes=dict.fromkeys(_directories(lines, ("PYTHONPATH", "NODE_PATH"))),
        files=dict.fromkeys(_bare(found[1]) for found in _SOURCED.finditer(lines)),
        entered=dict.fromkeys((*entered, *_directories(lines, ("PATH",)))),
        unknown=_COMPUTED_PATH.search(lines) is not None,
    )


def _directories(lines: str, names: tuple[str, ...]) -> list[str]:
    """The directories that are assigned to the variables, without their previous values, such as `$PATH`."""
    values = (_bare(found[2]) for found in _ASSIGNMENT.finditer(lines) if found[1] in names)
    parts = (_bare(part) for value in values for part in value.split(os.pathsep))
    return [part for part in parts if part and "$" not in part]


def _bare(word: str) -> str:
    """A word without quotes and expansions before a path, as in `"$PWD/lib"`."""
    return _EXPANSION.sub("", word.strip("\"'"))


def _package_scripts(text: str) -> list[str]:
    try:
        scripts = json.loads(text).get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return []
    return [line for line in scripts.values() if isinstance(line, str)] if isinstance(scripts, dict) else []


def _words(line: str) -> Iterator[str]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a quote that is closed on another line
        words = line.split()
    for word in words:
        yield from (found.lstrip("@").removeprefix("./") for found in _NAME.findall(_EXPANSION.sub("", word)))


def starts_programs(data: bytes) -> bool:
    """Whether Python or JavaScript code starts programs, or runs files that it does not import."""
    return _STARTS.search(data) is not None


def code_named(data: bytes) -> tuple[str, ...]:
    """Words in code that look like the name of a code file."""
    return tuple(dict.fromkeys(found.decode().removeprefix("./") for found in _CODE_NAME.findall(data)))


def places_in(node: ast.AST) -> list[str]:
    """The paths that the strings of an expression may name: each alone, all joined, and a `..` for each `parent`."""
    texts = [one for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    ordered = sorted(texts, key=lambda one: (one.lineno, one.col_offset))
    parts = [str(one.value) for one in ordered if one.value and not {"\0", "\n"} & set(str(one.value))]
    parts += [part.lstrip("/") for part in parts if part.strip("/") and part.startswith("/")]  # HERE + "/lib"
    joined = [os.path.join(*parts)] if len(parts) > 1 else []
    climbs = sum(isinstance(one, ast.Attribute) and one.attr in ("parent", "dirname") for one in ast.walk(node))
    return [*parts, *joined, *("/".join([".."] * up) for up in range(1, climbs + 1))]
