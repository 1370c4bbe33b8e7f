"""Declarations to readers: nodes in, frozen options out, every mistake reported at its place.

The declarations are those of `registry.fields`: a frozen dataclass whose annotations say what each option may be.
They are compiled once a class. Written here rather than with a validation library because what it must give are
positions, nearest names and the YAML text of a number, and because this is the hot loop of loading.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from agentv.model.assertion import AssertionEntry, Transform
from agentv.model.values import Json
from agentv.registry import fields as declared
from agentv.registry.fields import Declared, Doc, Fault
from agentv.spec.nearest import did_you_mean
from agentv.spec.nodes import ListNode, MapNode, Node, Place, Scalar, is_empty, kind_of, plain
from agentv.spec.reading import Reading

INVALID: Final = object()
"""What a reader gives for a node that it has reported."""

Read = Callable[[Node, Reading, str], Any]
Accepts = Callable[[Node], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of value is read.

    Attributes:
        wanted: what it must be, in the words of an error message.
        accepts: whether a node looks like one; decides between the members of a union.
        verbatim: placeholders in it are not rendered when the file is loaded.
    """

    wanted: str
    accepts: Accepts
    read: Read
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One option: its field's name, and how it is read."""

    name: str
    kind: Kind
    required: bool
    older: bool = False
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """The compiled declaration of one options class. `rules` is keyed by every spelling of every option."""

    cls: type
    rules: Mapping[str, Rule]
    required: tuple[str, ...]
    takes_json: bool
    checks: bool

    @property
    def names(self) -> list[str]:
        """The canonical names of the options."""
        return [name for name, rule in self.rules.items() if not rule.older]

    def decode(
        self, pairs: Mapping[str, Node], at: MapNode, reading: Reading, what: str, *, known: Iterable[str] = ()
    ) -> Any:
        """An instance, or INVALID when anything is wrong, all of which is then reported.

        Args:
            pairs: the options by their keys.
            at: the mapping that holds them, for positions.
            reading: of the suite.
            what: whose options these are, in the words of a message.
            known: further keys that may stand there, for the hint at a misspelt one.
        """
        values: dict[str, Any] = {}
        rules = self.rules
        valid = True
        for key, node in pairs.items():
            rule = rules.get(key)
            if rule is None:
                if not key.startswith("x-"):
                    valid = False
                    reading.unknown_key(key, at, [*self.names, *known], what)
                continue
            if rule.name in values:
                valid = False
                reading.report.error(
                    "two-spellings", at.keys[key], f"'{key}' is another spelling of '{rule.name}', which is given too"
                )
                continue
            if reading.scope is not None and not rule.kind.verbatim:
                node = reading.rendered(node)  # noqa: PLW2901  # the rendered node stands for the authored one
            value = rule.kind.read(node, reading, key)
            if value is INVALID:
                valid = False
            values[rule.name] = value
        for name in self.required:
            if name not in values:
                valid = False
                reading.report.error("missing-key", at, f"{what} needs '{name}'")
        if not valid:
            return INVALID
        made = self.cls(**values)
        return made if not self.checks or self._sound(made, pairs, at, reading) else INVALID

    def _sound(self, made: Declared, pairs: Mapping[str, Node], at: MapNode, reading: Reading) -> bool:
        faults = list(made.faults())
        for fault in faults:
            report_fault(fault, self, pairs, at, reading)
        return all(fault.warning for fault in faults)


def report_fault(fault: Fault, shape: Shape | None, pairs: Mapping[str, Node], at: MapNode, reading: Reading) -> None:
    """Report what an options class finds wrong with itself, at the option that it names."""
    place: Place = at.at
    inside: Node | None = at
    for step in fault.path:
        spelled = step
        if inside is at and shape is not None:
            spelled = next((key for key in pairs if key in shape.rules and shape.rules[key].name == step), step)
            inside = pairs.get(str(spelled))
        elif isinstance(inside, MapNode):
            inside = inside.get(str(step))
        elif isinstance(inside, ListNode) and isinstance(step, int) and step < len(inside.items):
            inside = inside.items[step]
        else:
            inside = None
        if inside is None:
            break
        place = inside.at
    add = reading.report.warning if fault.warning else reading.report.error
    add(fault.code, place, fault.message, hint=fault.hint)


@dataclass(frozen=True, slots=True)
class AsNode:
    """Marks a key whose node is handed on unread: its meaning depends on more than itself."""


_SHAPES: dict[type, Shape] = {}


def shape_of(cls: type) -> Shape:
    """The compiled declaration of an options class."""
    found = _SHAPES.get(cls)
    if found is None:
        found = _SHAPES[cls] = _compiled(cls)
    return found


def _compiled(cls: type) -> Shape:
    hints = get_type_hints(cls, include_extras=True)
    rules: dict[str, Rule] = {}
    required = []
    older: dict[str, Rule] = {}
    for field in fields(cls):
        if not field.init or field.name.startswith("_"):
            continue
        markers = _markers(hints[field.name])
        needed = field.default is MISSING and field.default_factory is MISSING
        kind = kind_for(hints[field.name])
        secret = any(isinstance(marker, declared.Secret) for marker in markers)
        key = field.name.rstrip("_")  # `assert_` is how Python spells the option `assert`
        rules[key] = Rule(field.name, kind, needed, secret=secret)
        if needed:
            required.append(field.name)
        for marker in markers:
            if isinstance(marker, declared.Older):
                older |= {name: Rule(field.name, kind, needed, older=True, secret=secret) for name in marker.names}
    short = getattr(cls, "short", None)
    takes_json = short in rules and rules[short].kind.accepts(_PROBE)
    checks = getattr(cls, "faults", Declared.faults) is not Declared.faults
    return Shape(cls, {**rules, **older}, tuple(required), takes_json, checks)


_NOWHERE: Any = None
_PROBE = MapNode({}, {}, _NOWHERE)
"""A mapping that shows whether a kind accepts mappings."""


def _markers(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        base, *markers = get_args(annotation)
        return [*markers, *_markers(base)]
    return []


def kind_for(annotation: Any) -> Kind:
    """How values of an annotated type are read.

    Raises:
        TypeError: the type is not in the closed set of `registry.fields`.
    """
    markers = _markers(annotation)
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    kind = _base_kind(annotation, markers)
    for marker in markers:
        refine = _REFINEMENTS.get(type(marker))
        if refine is not None:
            kind = refine(kind, marker)
    return kind


def _base_kind(annotation: Any, markers: Sequence[Any]) -> Kind:  # noqa: PLR0911  # one return a kind
    for marker in markers:
        if type(marker) in _MARKED:
            return _MARKED[type(marker)]
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _union([kind_for(member) for member in arguments])
    if origin is Literal:
        return _literal(arguments)
    if origin is tuple:
        return _ENTRIES if arguments[0] is AssertionEntry else _sequence(kind_for(arguments[0]))
    if origin in (Mapping, dict) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _mapping(kind_for(arguments[1]))
    if is_dataclass(annotation) and isinstance(annotation, type):
        return _nested(annotation)
    raise TypeError(f"no option can be declared as {annotation!r}")


def _refuse(node: Node, reading: Reading, key: str, wanted: str, hint: str | None = None) -> Any:
    reading.report.error("bad-value", node, f"'{key}' must be {wanted}, found {kind_of(node)}", hint=hint)
    return INVALID


def _value_is(*types: type) -> Accepts:
    return lambda node: isinstance(node, Scalar) and type(node.value) in types


def _read_scalar(wanted: str, accepts: Accepts, convert: Callable[[Scalar], Any]) -> Kind:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if accepts(node) and isinstance(node, Scalar):
            return convert(node)
        quotable = isinstance(node, Scalar) and node.value is not None and wanted == "text"
        return _refuse(node, reading, key, wanted, f'write "{node.text}"' if quotable else None)  # type: ignore[union-attr]

    return Kind(wanted, accepts, read)


def _is_text(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is not None


def _read_text(node: Node, reading: Reading, key: str) -> Any:
    if isinstance(node, Scalar) and node.value is not None:
        return node.value if type(node.value) is str else node.text
    return _refuse(node, reading, key, "text")


def _is_number(node: Node) -> bool:
    return isinstance(node, Scalar) and type(node.value) in (int, float) and math.isfinite(node.value)


def _anything(_node: Node) -> bool:
    return True


def _union(kinds: Sequence[Kind]) -> Kind:
    members = [kind for kind in kinds if kind is not _NOTHING]
    wanted = " or ".join(dict.fromkeys(kind.wanted for kind in members))
    optional = _NOTHING in kinds

    def read(node: Node, reading: Reading, key: str) -> Any:
        if optional and _NOTHING.accepts(node) and not any(kind is _JSON for kind in members):
            return None
        for kind in members:
            if kind.accepts(node):
                return kind.read(node, reading, key)
        return members[0].read(node, reading, key) if len(members) == 1 else _refuse(node, reading, key, wanted)

    def accepts(node: Node) -> bool:
        return any(kind.accepts(node) for kind in kinds)

    return Kind(wanted, accepts, read, verbatim=any(kind.verbatim for kind in members))


def _literal(choices: Sequence[Any]) -> Kind:
    names = [str(choice) for choice in choices]
    wanted = "one of " + ", ".join(names)
    by_text = dict(zip(names, choices, strict=True))

    def read(node: Node, reading: Reading, key: str) -> Any:
        if isinstance(node, Scalar) and node.text in by_text:
            return by_text[node.text]
        hint = did_you_mean(node.text, names) if isinstance(node, Scalar) and isinstance(node.value, str) else None
        return _refuse(node, reading, key, wanted, hint)

    return Kind(wanted, _value_is(str, int, bool), read)


def _sequence(item: Kind) -> Kind:
    wanted = f"a list of {item.wanted}" if item is not _JSON else "a list"

    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, ListNode):
            return _refuse(node, reading, key, wanted)
        values = [item.read(one, reading, key) for one in node.items]
        return INVALID if any(value is INVALID for value in values) else tuple(values)

    return Kind(wanted, lambda node: isinstance(node, ListNode), read, verbatim=item.verbatim)


def _mapping(item: Kind) -> Kind:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, MapNode):
            return _refuse(node, reading, key, "a mapping")
        values = {name: item.read(one, reading, f"{key}.{name}") for name, one in node.items.items()}
        return INVALID if any(value is INVALID for value in values.values()) else values

    return Kind("a mapping", lambda node: isinstance(node, MapNode), read, verbatim=item.verbatim)


def _nested(cls: type) -> Kind:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, MapNode):
            return _refuse(node, reading, key, "a mapping")
        return shape_of(cls).decode(node.items, node, reading, f"'{key}'")

    return Kind("a mapping", lambda node: isinstance(node, MapNode), read)


def _read_json(node: Node, _reading: Reading, _key: str) -> Any:
    return plain(node)


def _read_path(*, directory: bool) -> Read:
    what = "directory" if directory else "file"

    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return _refuse(node, reading, key, f"the path of a {what}")
        found = reading.find(node, what)
        if found is None:
            return INVALID
        if Path(found).is_dir() is not directory:
            return _refuse(node, reading, key, f"the path of a {what}")
        return found

    return read


_PATH_LIKE = re.compile(r"(?:\.{0,2}/)?(?:[^\s{}<>|*?\"']+/)*[^\s{}<>|*?\"'/]+\.[A-Za-z0-9]{1,8}")


def looks_like_path(text: str) -> bool:
    """Whether a text that may be given inline or by a path is a path: one word with a suffix, or `file://`."""
    return text.startswith("file://") or (_PATH_LIKE.fullmatch(text.strip()) is not None)


def _read_document(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return _refuse(node, reading, key, "text, or the path of a file")
    if not looks_like_path(node.value):
        return declared.Document(node.value)
    found = reading.find(node, "file")
    text = reading.text_of(found, node) if found else None
    return INVALID if text is None else declared.Document(text, found)


def _read_loaded(node: Node, reading: Reading, _key: str) -> Any:
    if not (isinstance(node, Scalar) and isinstance(node.value, str) and looks_like_path(node.value)):
        return declared.Loaded(plain(node))
    found = reading.find(node, "file")
    text = reading.text_of(found, node) if found else None
    if text is None or found is None:
        return INVALID
    if found.endswith((".yaml", ".yml")):
        from agentv.spec.yaml import read_yaml

        content = read_yaml(found, text.encode(), reading.report)
        return INVALID if content is None else declared.Loaded(plain(content), found)
    try:
        return declared.Loaded(json.loads(text), found)
    except ValueError as error:
        reading.report.error("bad-json", node, f"'{node.text}' is not JSON: {error}")
        return INVALID


_FUNCTION = re.compile(r"(?P<place>.+):(?P<name>[A-Za-z_][\w.]*)", re.DOTALL)


def _read_function(node: Node, reading: Reading, key: str) -> Any:
    wanted = "a function, written file.py:name or package.module:name"
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return _refuse(node, reading, key, wanted)
    match = _FUNCTION.fullmatch(node.value.removeprefix("file://").strip())
    if match is None:
        return _refuse(node, reading, key, wanted)
    place, name = match["place"], match["name"]
    if not place.endswith(".py"):
        return declared.FunctionRef(name, module=place)
    found = reading.find(Scalar(place, place, node.at), "file")
    if found is None:
        return INVALID
    reading.text_of(found, node)  # so that the run remembers what it was
    return declared.FunctionRef(name, path=found)


def _read_command(node: Node, reading: Reading, key: str) -> Any:
    cwd = reading.places.suite
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return declared.Command(shell=node.value, cwd=cwd)
    if isinstance(node, ListNode) and node.items and all(_is_text(item) for item in node.items):
        return declared.Command(argv=tuple(item.text for item in node.items if isinstance(item, Scalar)), cwd=cwd)
    return _refuse(node, reading, key, "a command: a list of words, or a line for the shell")


def _read_transform(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return _refuse(node, reading, key, "an expression over 'output', a path ($.a.b) or file.py:function")
    text = node.value.strip()
    if re.fullmatch(r"(?:file://)?[^\s(){}|]+\.py:[A-Za-z_][\w.]*", text):
        function = _read_function(node, reading, key)
        return INVALID if function is INVALID else Transform("function", function.name, function.path)
    if text.startswith("$"):
        return Transform("path", text)
    return Transform("jinja", text.removeprefix("{{").removesuffix("}}").strip())


def _read_entries(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, ListNode):
        return _refuse(node, reading, key, "a list of assertions")
    before = reading.report.count
    entries = reading.entries(node, reading)
    return entries if entries or reading.report.count == before else INVALID


def _bounded(kind: Kind, between: declared.Between) -> Kind:
    low, high = between.low, between.high
    bounds = f"from {low:g} to {high:g}" if low is not None and high is not None else ""
    bounds = bounds or (f"{low:g} or more" if low is not None else f"{high:g} or less" if high is not None else "")
    wanted = f"{kind.wanted} {bounds}"

    def read(node: Node, reading: Reading, key: str) -> Any:
        value = kind.read(node, reading, key)
        if type(value) not in (int, float):
            return value
        if (low is not None and value < low) or (high is not None and value > high):
            return _refuse(node, reading, key, wanted)
        return value

    return Kind(wanted, kind.accepts, read, kind.verbatim)


def _nonempty(kind: Kind, _marker: declared.Nonempty) -> Kind:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if is_empty(node):
            reading.report.error("missing-value", node, f"'{key}' is empty; it must hold {kind.wanted}")
            return INVALID
        return kind.read(node, reading, key)

    return Kind(kind.wanted, kind.accepts, read, kind.verbatim)


def _unrendered(kind: Kind, _marker: object) -> Kind:
    return Kind(kind.wanted, kind.accepts, kind.read, verbatim=True)


_TEXT = Kind("text", _is_text, _read_text)
_NOTHING = _read_scalar("nothing", _value_is(NoneType), lambda _node: None)
_JSON = Kind("any value", _anything, _read_json)
_ENTRIES = Kind("a list of assertions", lambda node: isinstance(node, ListNode), _read_entries, verbatim=True)
_WORDS = _value_is(str)
_PLAIN: dict[Any, Kind] = {
    bool: _read_scalar("true or false", _value_is(bool), lambda node: node.value),
    int: _read_scalar("a whole number", _value_is(int), lambda node: node.value),
    float: _read_scalar("a number", _is_number, lambda node: float(node.value)),
    str: _read_scalar("text", _WORDS, lambda node: node.value),
    NoneType: _NOTHING,
    Json: _JSON,
    declared.Document: Kind("text, or the path of a file", _WORDS, _read_document, verbatim=True),
    declared.Loaded: Kind("a value, or the path of a file", _anything, _read_loaded),
    declared.FunctionRef: Kind("a function", _WORDS, _read_function),
    declared.Command: Kind("a command", lambda node: isinstance(node, Scalar | ListNode), _read_command),
    Transform: Kind("an expression", _WORDS, _read_transform, verbatim=True),
}
FILE = Kind("the path of a file", _WORDS, _read_path(directory=False))
_MARKED: dict[type, Kind] = {
    declared.AsWritten: _TEXT,
    declared.ExistingFile: FILE,
    AsNode: Kind("a value", _anything, lambda node, _reading, _key: node, verbatim=True),
    declared.ExistingDirectory: Kind("the path of a directory", _WORDS, _read_path(directory=True)),
}
_REFINEMENTS: dict[type, Callable[[Kind, Any], Kind]] = {
    declared.Between: _bounded,
    declared.Nonempty: _nonempty,
    declared.CallTimeTemplate: _unrendered,
}
_DOCUMENTED = Doc  # the docs and the schema read it; readers pass over it
