"""Modules that Python code loads, and where it searches them, determined from its text."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from agentv.authoring.code.code_paths import UNKNOWN, Expressions, is_search_path
from agentv.authoring.code.named_files import places_in
from agentv.authoring.fields.python_source import parsed
from agentv.model.values.lazy_pattern import lazy_pattern

Module = tuple[int, str]
"""The dots in front, 0 for none, and the name."""

_STARTS = lazy_pattern(
    rb"\bsubprocess\b|\bos\.(?:system|popen|exec|spawn|posix_spawn)|create_subprocess|\bpexpect\b|\bpty\.spawn"
)
_IMPORTERS = frozenset({"import_module", "__import__", "run_module", "find_spec"})
_OF_FILES = {"run_path": 0, "spec_from_file_location": 1, "SourceFileLoader": 1, "SourcelessFileLoader": 1}
"""Function → the place of the path that it loads."""

_RUNS = frozenset({"exec", "eval"})
_READS = frozenset({"read_text", "read_bytes"})
_WALKS = frozenset({"iter_modules", "walk_packages"})
_PATH_METHODS = {"insert": 1, "append": 0, "extend": 0}
_LOADERS = _IMPORTERS | _OF_FILES.keys() | _RUNS | _WALKS
_OWN = frozenset({"__name__", "__package__"})


class Loads(Struct, frozen=True):
    """Modules and files that one file loads.

    Attributes:
        modules: imported by name.
        homes: directories that it adds to Python's path.
        walked: directories of which it may load every module.
        packages: packages whose modules it imports by computed names.
        files: paths that it runs as code.
        finds: it searches the packages that it imports for modules.
        unknown: it loads or starts something that its text does not show.
    """

    modules: tuple[Module, ...] = ()
    homes: tuple[str, ...] = ()
    walked: tuple[str, ...] = ()
    packages: tuple[Module, ...] = ()
    files: tuple[str, ...] = ()
    finds: bool = False
    unknown: bool = False


def loads_of(path: str, source: bytes) -> Loads:
    """The modules and files that a file loads; empty for one that does not parse."""
    try:
        tree = parsed(source.decode("utf-8-sig"))
        return _Reader(tree, path).loads(starts=_STARTS.search(source) is not None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Loads(unknown=True)


@dataclass(slots=True)
class _Reader:
    tree: ast.Module
    path: str
    homes: dict[str, None] = field(default_factory=dict)
    walked: dict[str, None] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)
    modules: dict[Module, None] = field(default_factory=dict)
    packages: dict[Module, None] = field(default_factory=dict)
    finds: bool = False
    unknown: bool = False
    named_later: bool = False
    others: dict[str, str] = field(default_factory=dict)
    expressions: Expressions = field(init=False)

    def loads(self, *, starts: bool) -> Loads:
        self.expressions = Expressions(self.tree, self.path)
        nodes = list(ast.walk(self.tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imports(node)
            elif isinstance(node, ast.Assign):
                self._renames(node)
        for node in nodes:
            if isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.AugAssign):
                self._assigned([node.target], node.value)
            elif isinstance(node, ast.Assign):
                self._assigned(node.targets, node.value)
        return Loads(
            modules=tuple(self.modules),
            homes=tuple(self.homes),
            walked=tuple(self.walked),
            packages=tuple(self.packages),
            files=tuple(self.files),
            finds=self.finds,
            unknown=starts or self.unknown or (self.named_later and not self.finds),
        )

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            self.modules |= {(0, one.name): None for one in node.names}
            self.others |= {one.asname: "sys" for one in node.names if one.asname and one.name == "sys"}
            return
        around = f"{node.module}." if node.module else ""
        self.modules[node.level, node.module or ""] = None
        self.modules |= {(node.level, around + one.name): None for one in node.names if one.name != "*"}
        self.others |= {one.asname: one.name for one in node.names if one.asname}
        if node.module == "sys" and any(one.name == "path" for one in node.names):
            self.others |= {one.asname or one.name: "sys.path" for one in node.names if one.name == "path"}

    def _renames(self, node: ast.Assign) -> None:
        """Take in `load = importlib.import_module` and `path = sys.path`."""
        name = getattr(node.value, "attr", getattr(node.value, "id", None))
        target = "sys.path" if self._is_search_path(node.value) else name
        if target == "sys.path" or target in _LOADERS:
            self.others |= {one.id: target for one in node.targets if isinstance(one, ast.Name)}

    def _is_search_path(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_search_path(node.value)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr == "path":
            return self.others.get(node.value.id, node.value.id) == "sys"
        return is_search_path(node) or (isinstance(node, ast.Name) and self.others.get(node.id) == "sys.path")

    def _call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", None) or self.others.get(
            getattr(node.func, "id", ""), getattr(node.func, "id", "")
        )
        if name in _PATH_METHODS and isinstance(node.func, ast.Attribute) and self._is_search_path(node.func.value):
            place = _PATH_METHODS[name]
            self._put(_argument(node, place, ()))
        elif name == "addsitedir":
            self._put(_argument(node, 0, ("sitedir",)))
        elif name == "chdir" and node.args:
            self.homes |= dict.fromkeys(self.expressions.text(node.args[0]).texts)
        elif name in _WALKS:
            self._walk(node)
        elif name in _IMPORTERS and node.args:
            self._named(node.args[0], guesses=name == "find_spec")
        elif name in _OF_FILES:
            self._take(_argument(node, _OF_FILES[name], ("path_name", "location", "path")))
        elif name in _RUNS and isinstance(node.func, ast.Name) and node.args:
            self._run(node.args[0])

    def _assigned(self, targets: list[ast.expr], value: ast.expr) -> None:
        if any(map(self._is_search_path, targets)):
            self._put(value)

    def _put(self, given: ast.expr | None) -> None:
        """Add directories of Python's path; of an unknown one, the directories that its texts may name."""
        found = UNKNOWN if given is None else self.expressions.text(given)
        self.homes |= dict.fromkeys(found.texts)
        if not found.whole:
            self.unknown = True
            self.homes |= dict.fromkeys(() if given is None else places_in(given))

    def _walk(self, node: ast.Call) -> None:
        self.finds = True
        place = _argument(node, 0, ("path",))
        found = UNKNOWN if place is None else self.expressions.text(place)
        self.walked |= dict.fromkeys(found.texts)
        self.unknown = self.unknown or not found.whole

    def _named(self, given: ast.expr, *, guesses: bool) -> None:
        """Add the modules that an expression may name."""
        found = self.expressions.text(given)
        self.modules |= {(len(one) - len(one.lstrip(".")), one.lstrip(".")): None for one in found.texts}
        if found.whole and found.texts:
            return
        package, dot, _ = self.expressions.prefix(given).rpartition(".")
        if dot:
            self.packages[len(package) - len(package.lstrip(".")) + (not package), package.lstrip(".")] = None
        elif self._begins_with_own_name(given):
            self.packages[1, ""] = None
        elif not guesses:
            self.named_later = True

    def _begins_with_own_name(self, given: ast.expr) -> bool:
        """Whether it is `f"{__name__}.{x}"`."""
        first: ast.expr = given
        while isinstance(first, ast.BinOp):
            first = first.left
        if isinstance(first, ast.JoinedStr) and first.values:
            first = first.values[0]
        if isinstance(first, ast.FormattedValue):
            first = first.value
        return isinstance(first, ast.Name) and first.id in _OWN and first is not given

    def _take(self, given: ast.expr | None) -> None:
        found = UNKNOWN if given is None else self.expressions.text(given)
        self.files |= dict.fromkeys(found.texts)
        self.unknown = self.unknown or not found.whole

    def _run(self, given: ast.expr) -> None:
        """Code that is text: written out, or in a file that is opened for it."""
        if isinstance(given, ast.Constant):
            return
        opened = list(_opened_in(given))
        for one in opened:
            self._take(one)
        self.unknown = self.unknown or not (opened or self._is_written_out(given))

    def _is_written_out(self, given: ast.expr) -> bool:
        found = self.expressions.text(given)
        return found.whole and bool(found.texts)


def _argument(node: ast.Call, place: int, names: tuple[str, ...]) -> ast.expr | None:
    if len(node.args) > place:
        return node.args[place]
    return next((one.value for one in node.keywords if one.arg in names), None)


def _opened_in(given: ast.expr) -> Iterator[ast.expr]:
    """The paths of `open(path)` and `path.read_text()` in an expression."""
    for node in ast.walk(given):
        match node:
            case ast.Call(func=ast.Name(id="open"), args=[path, *_]):
                yield path
            case ast.Call(func=ast.Attribute(value=path, attr=attribute)) if attribute in _READS:
                yield path


def relative_to(homes: tuple[str, ...], above: list[str]) -> list[str]:
    """Paths as they may be meant: relative ones count from the file's directory, or from one above it."""
    places = (os.path.normpath(os.path.join(home, one)) for one in homes for home in above)  # noqa: PTH118  # for every file
    return list(dict.fromkeys(places))
