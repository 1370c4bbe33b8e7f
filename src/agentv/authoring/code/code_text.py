"""What code says of the files that it loads or runs: Python, JavaScript, shell scripts, Makefiles, `package.json`.

It is read from the text, and nothing is run. What the text does not show is unknown.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agentv.authoring.fields.python_source import parsed
from agentv.authoring.source.files import SCRIPTS
from agentv.model.values.lazy_pattern import lazy_pattern

Module = tuple[int, str]
"""The dots in front, 0 for none, and the name."""

PYTHON = (".py",)
CODE = PYTHON + SCRIPTS
_SHELL = (".sh", ".bash", ".zsh", ".ksh")
_SHEBANG = lazy_pattern(rb"#![^\n]*\b(?:sh|bash|zsh|dash|ksh)\b")
_MAKEFILES = frozenset({"Makefile", "makefile", "GNUmakefile"})


class Loads(Struct, frozen=True):
    """What one file loads or runs, as it is written.

    Attributes:
        modules: Python modules.
        names: what JavaScript imports.
        homes: directories that it adds to the path of modules.
        goes: directories that it changes to, or adds to the path of programs.
        words: what may be the name of code.
        sourced: files that a script reads as a part of itself, whatever their names.
        unknown: it loads or starts something that its text does not show.
    """

    modules: tuple[Module, ...] = ()
    names: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    goes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    sourced: tuple[str, ...] = ()
    unknown: bool = False


def is_script(path: str, data: bytes) -> bool:
    """Whether a file is of a kind that names other files in words."""
    name = os.path.basename(path)  # noqa: PTH119  # called for every file of every closure
    is_make = name in _MAKEFILES or name.endswith(".mk")
    return path.endswith(_SHELL) or is_make or name == "package.json" or _SHEBANG.match(data) is not None


def loads_of(path: str, data: bytes) -> Loads:
    """What a file loads or runs; nothing if it is not code."""
    if path.endswith(PYTHON):
        return _loads_of_python(data)
    if path.endswith(SCRIPTS):
        return _loads_of_javascript(data)
    return _loads_of_script(path, data.decode(errors="replace")) if is_script(path, data) else Loads()


_RUNS_FILES = lazy_pattern(
    rb"\bsubprocess\b|\bos\.(?:system|popen|exec|spawn|posix_spawn)|\bpexpect\b|\bpty\.spawn|create_subprocess"
    rb"|\brunpy\b|spec_from_file_location|Source(?:less)?FileLoader|(?<![.\w])(?:exec|eval)\((?!\s*[\"'])"
)
_PUT_TOGETHER = lazy_pattern(
    rb"\b(?:import_module|__import__|run_module)\((?!\s*[\"'][\w.]*[\"']\s*[,)])|\bimport_module\s+as\b"
    rb"|=\s*importlib\.import_module\b|\b(?:iter_modules|walk_packages)\("
)
_ELSEWHERE = lazy_pattern(r"environ|getenv|\bargv\b")
_HERE = lazy_pattern(r"__file__|\b(?:get)?cwd\b")
_IMPORTERS = frozenset({"import_module", "__import__", "run_module"})
_CHANGES = frozenset({"insert", "append", "extend"})
_GOES = frozenset({"addsitedir", "chdir"})
_DEEPEST = 5
"""Names that are followed to what is bound to them, one after the other."""

_CODE_NAME = lazy_pattern(rb"[\w./@+-]+\.(?:py|sh|bash|[cm]?[jt]sx?|rb|pl|R|jl|lua|php|mk)\b")

_Bound = Mapping[str, Sequence[ast.expr]]


def _loads_of_python(data: bytes) -> Loads:
    try:
        nodes = list(ast.walk(parsed(data.decode("utf-8-sig"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Loads(unknown=True)
    bound: dict[str, list[ast.expr]] = {}
    for node in nodes:
        for name, value in _bindings(node):
            bound.setdefault(name, []).append(value)
    added = [one for node in nodes for one in _added_to_path(node)]
    runs_files = _RUNS_FILES.search(data) is not None
    unknown = runs_files or _PUT_TOGETHER.search(data) is not None
    return Loads(
        modules=tuple(dict.fromkeys(one for node in nodes for one in _modules(node))),
        homes=tuple(dict.fromkeys(place for one in added for place in _places(list(_texts(one, bound, 0))))),
        words=_code_named(data) if runs_files else (),
        unknown=unknown or any(_is_unknown(one, bound) for one in added),
    )


def _modules(node: ast.AST) -> Iterator[Module]:
    match node:
        case ast.Import(names=names):
            yield from ((0, one.name) for one in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            around = f"{module}." if module else ""
            yield level, module or ""
            yield from ((level, around + one.name) for one in names if one.name != "*")
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            if getattr(function, "attr", getattr(function, "id", "")) in _IMPORTERS:
                yield len(name) - len(name.lstrip(".")), name.lstrip(".")


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement binds, with what they may be."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((one.id, value) for one in targets if isinstance(one, ast.Name))
        case (
            ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            | ast.For(target=ast.Name(id=name), iter=value)
            | ast.comprehension(target=ast.Name(id=name), iter=value)
        ):
            yield name, value


def _added_to_path(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement adds to Python's path, or to where it may lead."""
    match node:
        case ast.Call(func=ast.Attribute(value=place, attr=change), args=[*_, last]):
            if (change in _CHANGES and _is_path(place)) or change in _GOES:
                yield last
        case ast.Assign(targets=targets, value=value) if any(map(_is_path, targets)):
            yield value
        case ast.AugAssign(target=target, value=value) if _is_path(target):
            yield value


def _is_path(node: ast.expr) -> bool:
    """Whether it may be `sys.path`, or a part of it."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _is_path(node.value)
    return getattr(node, "attr", getattr(node, "id", "")) in {"path", "__path__"}


def _texts(node: ast.AST, bound: _Bound, depth: int) -> Iterator[str]:
    """The texts of an expression in their order, with those of the names in it."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value and not {"\0", "\n"} & set(node.value):
            yield node.value
    elif isinstance(node, ast.Name):
        for one in bound.get(node.id, ()) if depth < _DEEPEST else ():
            yield from _texts(one, bound, depth + 1)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child, bound, depth)


def _places(texts: list[str]) -> Iterator[str]:
    """The directories that the texts of an expression may name, alone and together."""
    bare = [text.lstrip("/") for text in texts if text.strip("/")]  # HERE + "/lib"
    yield from (*texts, *bare)
    if len(bare) > 1:
        yield os.path.join(*bare)  # noqa: PTH118  # texts


def _is_unknown(added: ast.expr, bound: _Bound) -> bool:
    """Whether a place depends on what the text does not show."""
    names = (node.id for node in ast.walk(added) if isinstance(node, ast.Name))
    written = "\n".join(map(ast.unparse, (added, *(one for name in names for one in bound.get(name, ())))))
    shown = _HERE.search(written) is not None or any(_texts(added, bound, 0))
    return _ELSEWHERE.search(written) is not None or not shown


def _code_named(data: bytes) -> tuple[str, ...]:
    """Texts in code that look like the name of a code file."""
    found = (name.decode().removeprefix("./") for name in _CODE_NAME.findall(data))
    return tuple(dict.fromkeys(one for name in found for one in (name, name.lstrip("/"))))


_NAMED = lazy_pattern(
    rb"""(?:\b(?:from|import|require|require\.resolve|import\.meta\.resolve)\s*\(?|\bnew\s+(?:Worker|URL)\s*\()\s*"""
    rb"""(["'`])([^"'`\n$]+)\1"""
)
_STARTS = lazy_pattern(rb"\bchild_process\b|\bBun\.(?:spawn|\$)|\bDeno\.Command\b|\bexeca\b")
_COMPUTED = lazy_pattern(
    rb"""(?<![.\w])(?:import|require)\s*\(\s*(?:(?!\s|["'`/)]|\.\.\.)|`[^`]*\$|(["'])[^"'\n]*\1\s*\+)"""
    rb"""|=\s*(?:module\.)?require\s*(?:[;\n,)]|$)|\bmodule\.require\s*\(\s*[^"'`\s]|\bcreateRequire\("""
    rb"""|\bnew\s+Function\s*\(|\bvm\.\w+\(|(?<![.\w])eval\("""
)


def _loads_of_javascript(data: bytes) -> Loads:
    names = dict.fromkeys(found[2].decode(errors="replace") for found in _NAMED.finditer(data))
    starts = _STARTS.search(data) is not None
    words = _code_named(data) if starts else ()
    return Loads(names=tuple(names), words=words, unknown=starts or _COMPUTED.search(data) is not None)


_NAME = lazy_pattern(r"[\w./@+-]+")
_SET = lazy_pattern(r"\b(PYTHONPATH|NODE_PATH|PATH)\s*[:?+]?=\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|]+)")
_CHANGED = lazy_pattern(r"(?:^|[;&|(@]|\bthen\b|\bdo\b)\s*(?:cd|pushd)\s+([^\s;&|)]+)", re.MULTILINE)
_SOURCED = lazy_pattern(r"(?:^|[;&|])\s*(?:\.|source|-?s?include)\s+([^\s;&|]+)", re.MULTILINE)
_MODULES = lazy_pattern(r"\s-m\s*([A-Za-z_][\w.]*)")
_UNTOLD = lazy_pattern(r"\$\{?\w+\}?\.(?:py|sh|bash|[cm]?[jt]sx?|rb|pl)\b|(?:^|[;&|])\s*eval\s", re.MULTILINE)
_EXPANSION = lazy_pattern(r"\$\{?\w+\}?/|\$\([^)]*\)/?")


def _loads_of_script(path: str, text: str) -> Loads:
    """What a shell script, a Makefile, or the scripts of a `package.json` name."""
    lines = _package_scripts(text) if path.endswith(".json") else text.splitlines()
    text = "\n".join(lines)
    changed = (place for found in _CHANGED.finditer(text) if (place := _bare(found[1])) and "$" not in place)
    return Loads(
        modules=tuple(dict.fromkeys((0, found[1]) for found in _MODULES.finditer(text))),
        homes=_directories(text, ("PYTHONPATH", "NODE_PATH")),
        goes=tuple(dict.fromkeys((*changed, *_directories(text, ("PATH",))))),
        words=tuple(dict.fromkeys(word for line in lines for word in _words(line))),
        sourced=tuple(dict.fromkeys(_bare(found[1]) for found in _SOURCED.finditer(text))),
        unknown=_UNTOLD.search(text) is not None,
    )


def _directories(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """What is set as one of the variables, without what the shell had before."""
    values = (_bare(found[2]) for found in _SET.finditer(text) if found[1] in names)
    parts = (_bare(part) for value in values for part in value.split(os.pathsep))
    return tuple(dict.fromkeys(part for part in parts if part and "$" not in part))


def _bare(word: str) -> str:
    """A word without quotes and without what a shell puts in front, as in `"$PWD/lib"`."""
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
    except ValueError:  # a quote that is closed in another line
        words = line.split()
    for word in words:
        yield from (found.lstrip("@").removeprefix("./") for found in _NAME.findall(_EXPANSION.sub("", word)))
