"""Find the modules that Python code loads, and where it searches for them, from its text. No code is run."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product

from msgspec import Struct, field

from agentv.authoring.code.named_files import Loads, places_in
from agentv.authoring.fields.python_source import parsed
from agentv.model.values.values import lazy_pattern

_MOST = 64
"""Maximum number of values of one expression."""

_DEEPEST = 40

_PARENT = frozenset({"dirname"})
_SAME = frozenset({"abspath", "realpath", "normpath", "normcase", "expanduser", "str", "fspath", "fsdecode", "Path"})
_SAME_METHODS = frozenset({"resolve", "absolute", "as_posix", "expanduser", "strip", "copy"})
_JOINS = frozenset({"join", "joinpath", "Path", "PurePath", "PosixPath"})
_LISTS = frozenset({"list", "tuple", "sorted", "set", "reversed", "map"})
_CURRENT_DIRECTORY = frozenset({"getcwd", "cwd"})
_NAMED = {"pardir": "..", "curdir": ".", "sep": "/"}
_PACKAGE_PATHS = frozenset({"__path__", "submodule_search_locations"})


class Values(Struct, frozen=True):
    """Possible values of an expression.

    Attributes:
        texts: the known values.
        whole: there are no others.
    """

    texts: tuple[str, ...] = ()
    whole: bool = True

    def __or__(self, other: Values) -> Values:
        texts = tuple(dict.fromkeys((*self.texts, *other.texts)))
        return Values(texts[:_MOST], self.whole and other.whole and len(texts) <= _MOST)

    def each(self, change: Callable[[str], str]) -> Values:
        """The values, each changed by a function."""
        return Values(tuple(map(change, self.texts)), self.whole)


UNKNOWN = Values((), whole=False)
NONE = Values()


class Expressions:
    """Evaluates the expressions of one file. A name has all values that are bound to it anywhere in the file.

    Args:
        tree: syntax tree of the file.
        file: absolute path of the file.
    """

    def __init__(self, tree: ast.Module, file: str) -> None:
        self._tree = tree
        self._file = file
        self._evaluating: set[str] = set()
        self._depth = 0

    def text(self, node: ast.expr) -> Values:
        """The texts or paths that an expression may evaluate to; for a list, all its items."""
        if self._depth > _DEEPEST:
            return UNKNOWN
        self._depth += 1
        try:
            return self._text(node)
        finally:
            self._depth -= 1

    def _text(self, node: ast.expr) -> Values:  # noqa: C901, PLR0911, PLR0912  # one case per kind of expression
        match node:
            case ast.Constant(value=str(value)):
                return Values((value,))
            case ast.Constant(value=None):
                return NONE
            case ast.Name(id="__file__"):
                return Values((self._file,))
            case ast.Name(id=name):
                return self._name(name)
            case ast.JoinedStr(values=parts):
                return self._all(parts, "".join)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self.text(inner)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return self._any(items)
            case ast.Starred(value=inner) | ast.NamedExpr(value=inner) | ast.GeneratorExp(elt=inner):
                return self.text(inner)
            case ast.ListComp(elt=inner) | ast.SetComp(elt=inner) | ast.Await(value=inner):
                return self.text(inner)
            case ast.IfExp(body=first, orelse=second):
                return self.text(first) | self.text(second)
            case ast.BoolOp(values=items):
                return self._any(items)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                both = (left, right)
                return self._any(both) if any(map(self._is_list, both)) else self._all(both, "".join)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._all((left, right), _joined)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._item(node)
            case ast.Call():
                return self._called(node)
        return UNKNOWN

    def prefix(self, node: ast.expr) -> str:  # noqa: PLR0911
        """The known beginning of the text that an expression evaluates to."""
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.JoinedStr(values=parts):
                return self._prefix_of(parts)
            case ast.FormattedValue(value=ast.expr() as inner):
                return self.prefix(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._prefix_of((left, right))
            case ast.BinOp(left=ast.Constant(value=str(value)), op=ast.Mod()):
                return value.partition("%")[0]
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(value)), attr="format")):
                return value.partition("{")[0]
            case ast.Name() | ast.Attribute():
                return self._only(node)
        return ""

    def _prefix_of(self, parts: Iterable[ast.expr]) -> str:
        found = ""
        for part in parts:
            found += self.prefix(part)
            if not self._only(part):
                break
        return found

    def _only(self, node: ast.expr) -> str:
        """The only text that an expression can evaluate to; "" if there may be others."""
        found = self.text(node)
        return found.texts[0] if found.whole and len(found.texts) == 1 else ""

    def _any(self, nodes: Iterable[ast.expr]) -> Values:
        found = NONE
        for node in nodes:
            found |= self.text(node)
        return found

    def _all(self, nodes: Iterable[ast.expr], combine: Callable[[tuple[str, ...]], str]) -> Values:
        parts = [self.text(node) for node in nodes]
        texts: dict[str, None] = {}
        for chosen in product(*(part.texts for part in parts)):
            texts[combine(chosen)] = None
            if len(texts) > _MOST:
                return Values(tuple(texts), whole=False)
        return Values(tuple(texts), bool(texts) and all(part.whole for part in parts))

    def _is_list(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            return self._is_list(node.left) or self._is_list(node.right)
        return isinstance(node, ast.List | ast.Tuple | ast.ListComp) or is_search_path(node)

    def _attribute(self, node: ast.Attribute) -> Values:
        if node.attr == "parent":
            return self.text(node.value).each(os.path.dirname)
        if node.attr in _NAMED:
            return Values((_NAMED[node.attr],))
        if node.attr in _PACKAGE_PATHS or is_search_path(node):
            return NONE  # imported packages are already recorded
        return UNKNOWN

    def _item(self, node: ast.Subscript) -> Values:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "parents":
            match node.slice:
                case ast.Constant(value=int(up)) if 0 <= up < _DEEPEST:
                    return self.text(node.value.value).each(lambda path: _ancestor(path, up + 1))
        if isinstance(node.slice, ast.Slice):
            return self.text(node.value)
        return NONE if is_search_path(node.value) else UNKNOWN

    def _called(self, node: ast.Call) -> Values:  # noqa: PLR0911  # one return per function
        function, given = node.func, node.args
        if isinstance(function, ast.Attribute) and function.attr in _SAME_METHODS and not given:
            return self.text(function.value)
        name = getattr(function, "attr", getattr(function, "id", ""))
        if name in _CURRENT_DIRECTORY and not given:
            return Values((".",))
        if name == "joinpath" and isinstance(function, ast.Attribute):
            return self._all((function.value, *given), _joined)
        if (
            name in _JOINS
            and given
            and not _is_text(function)
            and not any(isinstance(one, ast.Starred) for one in given)
        ):
            return self._all(given, _joined)
        if name in _PARENT and len(given) == 1:
            return self.text(given[0]).each(os.path.dirname)
        if name in _LISTS and given:
            return self.text(given[-1])
        return self.text(given[0]) if name in _SAME and len(given) == 1 else UNKNOWN

    def _name(self, name: str) -> Values:
        if name in self._evaluating:
            return NONE  # x = x / "lib"
        if name not in self._bound:
            return UNKNOWN
        self._evaluating.add(name)
        try:
            found = NONE
            for one in self._bound[name]:
                found |= UNKNOWN if one is None else self.text(one)
            return found
        finally:
            self._evaluating.discard(name)

    @cached_property
    def _bound(self) -> Mapping[str, list[ast.expr | None]]:
        found: dict[str, list[ast.expr | None]] = {}
        for name, value in _bindings(self._tree):
            found.setdefault(name, []).append(value)
        return found


def is_search_path(node: ast.expr) -> bool:
    """Whether an expression is `sys.path` or `__path__`, or a slice of it."""
    match node:
        case ast.Subscript(value=inner, slice=ast.Slice()):
            return is_search_path(inner)
        case ast.Attribute(value=ast.Name(id=name), attr="path"):
            return name.lstrip("_") in ("sys", "system")
        case ast.Attribute(attr="__path__") | ast.Name(id="__path__"):
            return True
    return False


def _is_text(function: ast.expr) -> bool:
    """Whether a function is a method of a string literal, as in `"".join`."""
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant | ast.JoinedStr)


def _joined(parts: tuple[str, ...]) -> str:
    return os.path.normpath(os.path.join(*parts))  # it joins as Python does


def _ancestor(path: str, up: int) -> str:
    for _ in range(up):
        path = os.path.dirname(path)
    return path


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:  # noqa: C901  # one case per kind of statement
    """Yield each name that is bound somewhere, with its expression, or None if that is unknown."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _pairs(target, value)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                yield name, value
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                yield name, value if isinstance(value, ast.List | ast.Tuple) else None
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                yield from _pairs(target, value if isinstance(target, ast.Name) else None)
            case ast.comprehension(target=target, iter=value):
                yield from _pairs(target, value if isinstance(target, ast.Name) else None)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name, None
            case ast.withitem(optional_vars=ast.expr() as target):
                yield from _pairs(target, None)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((one.asname or one.name.partition(".")[0], None) for one in names)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    match target:
        case ast.Name(id=name):
            yield name, value
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets) else None
            for place, one in enumerate(targets):
                yield from _pairs(one, values[place] if values else None)
        case ast.Starred(value=inner):
            yield from _pairs(inner, None)


_STARTS = lazy_pattern(
    rb"\bsubprocess\b|\bos\.(?:system|popen|exec|spawn|posix_spawn)|create_subprocess|\bpexpect\b|\bpty\.spawn"
)
_IMPORTERS = frozenset({"import_module", "__import__", "run_module", "find_spec"})
_FILE_LOADERS = {"run_path": 0, "spec_from_file_location": 1, "SourceFileLoader": 1, "SourcelessFileLoader": 1}
"""Function → index of the argument with the path that it loads."""

_RUNS = frozenset({"exec", "eval"})
_READS = frozenset({"read_text", "read_bytes"})
_WALKS = frozenset({"iter_modules", "walk_packages"})
_PATH_METHODS = {"insert": 1, "append": 0, "extend": 0}
_LOADERS = _IMPORTERS | _FILE_LOADERS.keys() | _RUNS | _WALKS
_OWN_NAMES = frozenset({"__name__", "__package__"})


def loads_of(path: str, source: bytes) -> Loads:
    """The modules and files that a Python file loads. `unknown` is set if the file cannot be parsed."""
    try:
        tree = parsed(source.decode("utf-8-sig"))
        found = Loads(unknown=_STARTS.search(source) is not None)
        _Reader(found, Expressions(tree, path)).read(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Loads(unknown=True)
    return found


class _Reader(Struct):
    """Finds what a file loads.

    Attributes:
        loads: receives what is found.
        expressions: evaluates the expressions of the file.
        aliases: alias → the module or function that it stands for, or `sys.path`.
        imports_unknown: the file imports modules by unknown names.
    """

    loads: Loads
    expressions: Expressions
    aliases: dict[str, str] = field(default_factory=dict)
    imports_unknown: bool = False

    def read(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imports(node)
            elif isinstance(node, ast.Assign):
                self._renames(node)
        for node in nodes:
            if isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.AugAssign | ast.Assign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(map(self._is_search_path, targets)):
                    self._add_search_paths(node.value)
        if self.imports_unknown and not self.loads.scans_packages:
            self.loads.unknown = True

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            self.loads.modules |= {(0, one.name): None for one in node.names}
            self.aliases |= {one.asname: "sys" for one in node.names if one.asname and one.name == "sys"}
            return
        around = f"{node.module}." if node.module else ""
        self.loads.modules[node.level, node.module or ""] = None
        self.loads.modules |= {(node.level, around + one.name): None for one in node.names if one.name != "*"}
        self.aliases |= {one.asname: one.name for one in node.names if one.asname}
        if node.module == "sys" and any(one.name == "path" for one in node.names):
            self.aliases |= {one.asname or one.name: "sys.path" for one in node.names if one.name == "path"}

    def _renames(self, node: ast.Assign) -> None:
        """Record aliases such as `load = importlib.import_module` and `path = sys.path`."""
        name = getattr(node.value, "attr", getattr(node.value, "id", None))
        target = "sys.path" if self._is_search_path(node.value) else name
        if target == "sys.path" or target in _LOADERS:
            self.aliases |= {one.id: target for one in node.targets if isinstance(one, ast.Name)}

    def _is_search_path(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_search_path(node.value)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr == "path":
            return self.aliases.get(node.value.id, node.value.id) == "sys"
        return is_search_path(node) or (isinstance(node, ast.Name) and self.aliases.get(node.id) == "sys.path")

    def _call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", None) or self.aliases.get(
            getattr(node.func, "id", ""), getattr(node.func, "id", "")
        )
        if name in _PATH_METHODS and isinstance(node.func, ast.Attribute) and self._is_search_path(node.func.value):
            place = _PATH_METHODS[name]
            self._add_search_paths(_argument(node, place, ()))
        elif name == "addsitedir":
            self._add_search_paths(_argument(node, 0, ("sitedir",)))
        elif name == "chdir" and node.args:
            self.loads.homes |= dict.fromkeys(self.expressions.text(node.args[0]).texts)
        elif name in _WALKS:
            self._walk(node)
        elif name in _IMPORTERS and node.args:
            self._add_modules(node.args[0], guesses=name == "find_spec")
        elif name in _FILE_LOADERS:
            self._add_files(_argument(node, _FILE_LOADERS[name], ("path_name", "location", "path")))
        elif name in _RUNS and isinstance(node.func, ast.Name) and node.args:
            self._run(node.args[0])

    def _add_search_paths(self, given: ast.expr | None) -> None:
        """Add directories to Python's path; if some are unknown, also those that strings in the expression name."""
        found = UNKNOWN if given is None else self.expressions.text(given)
        self.loads.homes |= dict.fromkeys(found.texts)
        if not found.whole:
            self.loads.unknown = True
            self.loads.homes |= dict.fromkeys(() if given is None else places_in(given))

    def _walk(self, node: ast.Call) -> None:
        self.loads.scans_packages = True
        place = _argument(node, 0, ("path",))
        found = UNKNOWN if place is None else self.expressions.text(place)
        self.loads.walked |= dict.fromkeys(found.texts)
        self.loads.unknown = self.loads.unknown or not found.whole

    def _add_modules(self, given: ast.expr, *, guesses: bool) -> None:
        """Add the modules that an expression may name."""
        found = self.expressions.text(given)
        self.loads.modules |= {(len(one) - len(one.lstrip(".")), one.lstrip(".")): None for one in found.texts}
        if found.whole and found.texts:
            return
        package, dot, _ = self.expressions.prefix(given).rpartition(".")
        if dot:
            self.loads.packages[len(package) - len(package.lstrip(".")) + (not package), package.lstrip(".")] = None
        elif self._begins_with_own_name(given):
            self.loads.packages[1, ""] = None
        elif not guesses:
            self.imports_unknown = True

    def _begins_with_own_name(self, given: ast.expr) -> bool:
        """Whether an expression begins with the module's own name, as in `f"{__name__}.{x}"`."""
        first: ast.expr = given
        while isinstance(first, ast.BinOp):
            first = first.left
        if isinstance(first, ast.JoinedStr) and first.values:
            first = first.values[0]
        if isinstance(first, ast.FormattedValue):
            first = first.value
        return isinstance(first, ast.Name) and first.id in _OWN_NAMES and first is not given

    def _add_files(self, given: ast.expr | None) -> None:
        found = UNKNOWN if given is None else self.expressions.text(given)
        self.loads.files |= dict.fromkeys(found.texts)
        self.loads.unknown = self.loads.unknown or not found.whole

    def _run(self, given: ast.expr) -> None:
        """Add the files whose text is passed to `exec` or `eval`."""
        if isinstance(given, ast.Constant):
            return
        opened = list(_opened_in(given))
        for one in opened:
            self._add_files(one)
        found = self.expressions.text(given)
        self.loads.unknown = self.loads.unknown or not (opened or (found.whole and found.texts))


def _argument(node: ast.Call, place: int, names: tuple[str, ...]) -> ast.expr | None:
    if len(node.args) > place:
        return node.args[place]
    return next((one.value for one in node.keywords if one.arg in names), None)


def _opened_in(given: ast.expr) -> Iterator[ast.expr]:
    """Yield the paths of `open(path)` and `path.read_text()` in an expression."""
    for node in ast.walk(given):
        match node:
            case ast.Call(func=ast.Name(id="open"), args=[path, *_]):
                yield path
            case ast.Call(func=ast.Attribute(value=path, attr=attribute)) if attribute in _READS:
                yield path


def relative_to(homes: Iterable[str], above: list[str]) -> list[str]:
    """The paths, each resolved from the file's directory and from each directory above it."""
    places = (os.path.normpath(os.path.join(home, one)) for one in homes for home in above)  # for every file
    return list(dict.fromkeys(places))
