"""Compiles declared classes into readers that turn nodes into instances and report every mistake with its position.

A declaration is a frozen class with annotations from `registry.fields`. Each class is compiled once. No validation
library is used, because diagnostics need positions, nearest names and the YAML text of numbers, and because this is the
hot loop of loading.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, field
from msgspec.structs import replace

from agentv.authoring.fields.code_kinds import CODE, PromptCommand, prompt_code_type
from agentv.authoring.fields.kinds import (
    FILE_MARK,
    INVALID,
    JSON,
    MARKED,
    NODE,
    NOTHING,
    PLAIN,
    TARGETS,
    TEXT,
    AsNode,
    FieldType,
    fills_code,
    looks_like_path,
    names_file,
    refuse,
    refuse_data,
    refuses_target,
    with_content,
    with_lines,
)
from agentv.authoring.fields.reading import NO_EXTRA_KEYS, SHOWN_KEYS, ExtraKeys, Reading, place_in_file
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, is_empty, kind_of, span_of
from agentv.model.suite.assertion import AssertionEntry
from agentv.registry import fields as declared
from agentv.registry.fields import Declared, Issue, is_declared, options_of

__all__ = ["INVALID", "AsNode", "OptionRule", "OptionsSchema", "kind_for", "report_issue", "shape_of"]


class OptionRule(Struct, frozen=True):
    """One spelling of an option: its field's name, and how it is read."""

    name: str
    kind: FieldType
    older: bool = False
    unread: bool = False


class OptionsSchema(Struct, frozen=True):
    """The compiled declaration of one options class.

    Attributes:
        cls: the options class.
        rules: every spelling of every option → how it is read.
        required: names of the options without a default, as an ordered set.
        takes_json: whether the short form's option accepts a mapping.
        checks: whether the class has its own `validate`.
        secrets: options whose values are secrets.
        open: options whose values contain no secrets, whatever their keys.
        from_environment: option → environment variables that may set it.
    """

    cls: type
    rules: Mapping[str, OptionRule]
    required: Mapping[str, None]
    takes_json: bool
    checks: bool
    secrets: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    from_environment: Mapping[str, declared.FromEnvironment] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The canonical names of the options."""
        return [name for name, rule in self.rules.items() if not rule.older]

    def decode(  # noqa: C901  # the hot loop of loading: a function call per option is too slow
        self, pairs: Mapping[str, Node], at: MapNode, reading: Reading, what: str, *, extra: ExtraKeys = NO_EXTRA_KEYS
    ) -> Any:
        """An instance of the options class, or INVALID after reporting every mistake.

        Args:
            pairs: options by key.
            at: the mapping with the options, for positions.
            reading: context of the suite.
            what: owner of the options, for messages.
            extra: further keys that are allowed.
        """
        values: dict[str, Any] = {}
        rules, called = self.rules, extra.called
        valid, suggested = True, False
        for key, node in pairs.items():
            rule = rules.get(key)
            if rule is None or rule.name in values:
                if key == extra.passed:
                    continue
                extra = extra if suggested else replace(extra, meant=self._only_missing(pairs, extra))
                suggested = True
                valid = self._may_ignore(key, rule, at, reading, (what, extra)) and valid
                continue
            if rule.older:
                reading.report.older(key, rule.name.rstrip("_"), at.keys.get(key))
            rendered = reading.rendered(node) if reading.renders and not rule.kind.verbatim else node
            if rendered is None:
                value = INVALID
            elif not reading.vars_are_data:
                value = rule.kind.read(rendered, reading, called.get(key, key) if called else key)
            else:
                own = reading if rendered is node else reading.of_rendered_text()
                value = self._read_data(rule, rendered, own, called.get(key, key), filled=rendered is not node)
            if value is INVALID:
                valid = False
            values[rule.name] = value
        values = {**extra.given, **values} if extra.given else values
        if not values.keys() >= self.required.keys():
            valid = False
            if self._only_missing(pairs, extra) is None:
                self._report_missing(values, pairs, at, reading, what)
        if not valid:
            return INVALID
        made = self.cls(**values)
        return made if not self.checks or self._passes_validation(made, pairs, at, reading) else INVALID

    def _read_data(self, rule: OptionRule, node: Node, reading: Reading, key: str, *, filled: bool) -> Any:
        """Read an option of a case that is data, or of its suite, whose text may contain the case's variables."""
        if filled and fills_code(self.cls, rule.name):
            refuse_data(node, reading.report, f"be part of '{key}', which is code or an address")
            return INVALID
        if (
            reading.data
            and rule.name in TARGETS
            and isinstance(node, Scalar)
            and refuses_target(node, reading.providers, reading.report)
        ):
            return INVALID
        return rule.kind.read(node, reading, key)

    def _may_ignore(
        self, key: str, rule: OptionRule | None, at: MapNode, reading: Reading, words: tuple[str, ExtraKeys]
    ) -> bool:
        """Whether a key that is not read may be ignored; if not, it is reported."""
        if rule is not None:
            name = rule.name.rstrip("_")
            message = f"'{key}' is another spelling of '{name}', which is set too; keep one of them"
            reading.report.error("two-spellings", at.keys[key], message)
        elif key.startswith("x-"):
            return True
        else:
            what, extra = words
            reading.unknown_key(key, at, self.names, what, replace(extra, hinted=(*extra.hinted, *self.rules)))
        return False

    def _only_missing(self, pairs: Mapping[str, Node], extra: ExtraKeys) -> str | None:
        """The only missing required option if there is exactly one unknown key, which then means it; otherwise None."""
        given = {self.rules[key].name for key in pairs if key in self.rules}
        missing = [name for name in self.required if name not in given]
        unknown = [key for key in pairs if key not in self.rules and key != extra.passed and not key.startswith("x-")]
        return missing[0].rstrip("_") if len(missing) == 1 and len(unknown) == 1 else None

    def _report_missing(
        self, values: Mapping[str, Any], pairs: Mapping[str, Node], at: MapNode, reading: Reading, what: str
    ) -> None:
        """Report the missing required options, except those that an unknown key is a misspelling of."""
        unknown = islice((key for key in pairs if key not in self.rules), SHOWN_KEYS)
        near = (nearest(key, self.rules) for key in unknown)
        suggestion = {self.rules[key].name for key in near if key}
        for name in self.required:
            if name not in values and name not in suggestion:
                reading.report.error("missing-key", at, f"{what} needs '{name.rstrip('_')}'")

    def read(
        self, pairs: Mapping[str, Node], at: MapNode, reading: Reading, what: str, *, extra: ExtraKeys = NO_EXTRA_KEYS
    ) -> Any:
        """Decode the options; after reporting mistakes, return an instance with only the unread options.

        The unread options are then checked too, so that one pass finds every mistake.
        """
        found = self.decode(pairs, at, reading, what, extra=extra)
        return self.unread(pairs) if found is INVALID else found

    def unread(self, pairs: Mapping[str, Node]) -> Any:
        """An instance of the options class with only the options that are kept as nodes."""
        rules = self.rules
        return self.cls(**{rules[key].name: node for key, node in pairs.items() if key in rules and rules[key].unread})

    def _passes_validation(self, made: Declared, pairs: Mapping[str, Node], at: MapNode, reading: Reading) -> bool:
        issues = list(made.validate())
        if not issues:
            return True
        for issue in issues:
            report_issue(issue, self, pairs, at, reading)
        return all(_only_warns(issue, reading) for issue in issues)


def _only_warns(issue: Issue, reading: Reading) -> bool:
    return issue.warning or (issue.of_machine and not reading.strict_env)


def report_issue(
    issue: Issue, shape: OptionsSchema | None, pairs: Mapping[str, Node], at: MapNode, reading: Reading
) -> None:
    """Report an issue from an options class's `validate` at the position of the option that it names."""
    place: Place = at.at
    inside: Node | None = MapNode(dict(pairs), at.keys, at.at)
    for depth, step in enumerate(issue.path):
        found: Node | None = None
        if isinstance(inside, MapNode):
            key = str(step)
            if depth == 0 and shape is not None:
                key = next((one for one in pairs if one in shape.rules and shape.rules[one].name == step), key)
            found = inside.get(key)
            place = inside.keys.get(key, place) if issue.code == "unknown-key" or found is None else found.at
        elif isinstance(inside, ListNode) and isinstance(step, int) and step < len(inside.items):
            found = inside.items[step]
            place = found.at
        inside = found
        if inside is None:
            break
    add = reading.report.warning if _only_warns(issue, reading) else reading.report.error
    notes: tuple[str, ...] = ()
    if issue.file is not None:
        named = span_of(place)
        notes = (f"named in {shown(named.file)}:{named.line}",)
        place = place_in_file(issue.file, issue.name, issue.line, reading)
    add(issue.code, place, issue.message, hint=issue.hint, notes=notes)


_SHAPES: dict[type, OptionsSchema] = {}
_Marker = TypeVar("_Marker")


def shape_of(cls: type) -> OptionsSchema:
    """The compiled declaration of an options class."""
    found = _SHAPES.get(cls)
    if found is None:
        hints = hints_of(cls)
        rules: dict[str, OptionRule] = {}
        required: dict[str, None] = {}
        older: dict[str, OptionRule] = {}
        marked: dict[str, list[Any]] = {}
        for option, default in options_of(cls).items():
            markers, _ = unwrapped(hints[option])
            kind = kind_for(hints[option])
            unread = kind is NODE
            key = option.rstrip("_")  # the field of the option `assert` is `assert_`
            rules[key] = OptionRule(option, kind, unread=unread)
            marked[key] = markers
            if default is NODEFAULT:
                required[option] = None
            for marker in markers:
                if isinstance(marker, declared.Alias):
                    older |= {name: OptionRule(option, kind, older=True, unread=unread) for name in marker.names}
        short = getattr(cls, "short", None)
        takes_json = short in rules and rules[short].kind.accepts(_PROBE) and not getattr(cls, "options_first", False)
        checks = getattr(cls, "validate", Declared.validate) is not Declared.validate
        found = _SHAPES[cls] = OptionsSchema(
            cls,
            {**rules, **older},
            required,
            takes_json,
            checks,
            secrets=frozenset(key for key, _ in _marked(marked, declared.Secret)),
            open=frozenset(key for key, _ in _marked(marked, declared.NoSecrets)),
            from_environment=dict(_marked(marked, declared.FromEnvironment)),
        )
    return found


def _marked(marked: Mapping[str, Iterable[Any]], kind: type[_Marker]) -> Iterator[tuple[str, _Marker]]:
    """The options with a marker of a kind, and that marker."""
    return ((key, marker) for key, markers in marked.items() for marker in markers if isinstance(marker, kind))


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """The evaluated annotations of a class's options; those of private fields are not evaluated."""
    given = options_of(cls)
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        own = {name: hint for name, hint in vars(base).get("__annotations__", {}).items() if name in given}
        if own:
            names = vars(sys.modules[base.__module__])
            hints |= get_type_hints(SimpleNamespace(__annotations__=own), names, include_extras=True)
    return hints


_NOWHERE: Any = None
_PROBE = MapNode({}, {}, _NOWHERE)
"""An empty mapping to test whether a kind accepts mappings."""


def unwrapped(annotation: Any) -> tuple[list[Any], Any]:
    """The markers of an annotated type, and the type without them."""
    markers: list[Any] = []
    if get_origin(annotation) is Annotated:
        annotation, *markers = get_args(annotation)
    return markers, annotation


def kind_for(annotation: Any) -> FieldType:
    """The reader of values of an annotated type.

    Raises:
        TypeError: the type is not one of those that `registry.fields` supports.
    """
    markers, base = unwrapped(annotation)
    kind = _base_kind(base, markers)
    for marker in markers:
        refine = _REFINEMENTS.get(type(marker))
        if refine is not None:
            kind = refine(kind, marker)
    return kind


def _base_kind(annotation: Any, markers: Sequence[Any]) -> FieldType:  # noqa: PLR0911  # one return per kind
    for marker in markers:
        if type(marker) in MARKED:
            return MARKED[type(marker)]
    if annotation in BY_ANNOTATION:
        return BY_ANNOTATION[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _union([kind_for(member) for member in arguments])
    if origin is Literal:
        return _literal(arguments)
    if origin is tuple:
        return _ENTRIES if arguments[0] is AssertionEntry else _sequence(kind_for(arguments[0]))
    if origin in (Mapping, dict) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _mapping(kind_for(arguments[1]))
    if isinstance(annotation, type) and is_declared(annotation):
        return _nested(annotation)
    raise TypeError(f"no option can be declared as {annotation!r}")


def _union(kinds: Sequence[FieldType]) -> FieldType:
    members = [kind for kind in kinds if kind is not NOTHING]
    wanted = " or ".join(dict.fromkeys(kind.wanted for kind in members))
    optional = NOTHING in kinds

    def read(node: Node, reading: Reading, key: str) -> Any:
        if optional and NOTHING.accepts(node) and not any(kind is JSON for kind in members):
            return None
        for kind in members:
            if kind.accepts(node):
                return kind.read(node, reading, key)
        if len(members) == 1:
            return members[0].read(node, reading, key)
        return refuse(node, reading, key, wanted, next((hint for kind in members if (hint := kind.hint(node))), None))

    def accepts(node: Node) -> bool:
        return any(kind.accepts(node) for kind in kinds)

    return FieldType(wanted, accepts, read, verbatim=any(kind.verbatim for kind in members))


def _literal(choices: Sequence[Any]) -> FieldType:
    names = [str(choice) for choice in choices]
    wanted = "one of " + ", ".join(names) if len(names) > 1 else f"'{names[0]}'"
    by_text = dict(zip(names, choices, strict=True))

    def accepts(node: Node) -> bool:
        return isinstance(node, Scalar) and node.text in by_text

    def hint(node: Node) -> str | None:
        return did_you_mean(node.text, names) if isinstance(node, Scalar) and isinstance(node.value, str) else None

    def read(node: Node, reading: Reading, key: str) -> Any:
        if isinstance(node, Scalar) and node.text in by_text:
            return by_text[node.text]
        return refuse(node, reading, key, wanted, hint(node))

    return FieldType(wanted, accepts, read, hint=hint)


_LISTED_PARTS = 10
"""Maximum number of comma-separated parts that a hint suggests as a list."""


def _list_hint(node: Node, *, of_texts: bool) -> str:
    """A hint that shows a single value as a list: `a, b` as two texts, a path as `file://`."""
    if of_texts and isinstance(node, Scalar) and looks_like_path(node.text):
        return f"to read the texts from a file, one a line, write file://{node.text.strip()}"
    parts = [part.strip() for part in node.text.split(",")] if isinstance(node, Scalar) else []
    several = len(parts) > 1 and all(parts) and len(parts) <= _LISTED_PARTS and not any("'" in part for part in parts)
    one = node.text if isinstance(node, Scalar) and isinstance(node.value, int | float) else kind_of(node)
    return f"write {parts if several else f'[{one}]'}"


def _sequence(item: FieldType) -> FieldType:
    several = " or ".join(_PLURALS.get(one, one) for one in item.wanted.split(" or "))
    wanted = "a list" if item is JSON else f"a list of {several}"
    of_texts = item.wanted == TEXT.wanted

    def read(node: Node, reading: Reading, key: str) -> Any:
        filled = with_lines(node, reading, key, inside=item.from_file) if of_texts else node
        if filled is None:
            return INVALID
        if not isinstance(filled, ListNode):
            alone = isinstance(node, Scalar) and item.accepts(node)
            return refuse(node, reading, key, wanted, _list_hint(node, of_texts=of_texts) if alone else None)
        # texts from a file never name another file
        kind = TEXT if filled is not node else item
        values = [kind.read(one, reading, f"{key}[{place}]") for place, one in enumerate(filled.items)]
        return INVALID if any(value is INVALID for value in values) else tuple(values)

    def accepts(node: Node) -> bool:
        return isinstance(node, ListNode) or (of_texts and names_file(node))

    return FieldType(wanted, accepts, read, verbatim=item.verbatim)


_PLURALS = {
    "text": "texts",
    "a mapping": "mappings",
    "a number": "numbers",
    "a whole number": "whole numbers",
    "the path of a file": "paths of files",
}


def _mapping(item: FieldType) -> FieldType:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, MapNode):
            return refuse(node, reading, key, "a mapping")
        values = {name: item.read(one, reading, f"{key}.{name}") for name, one in node.items.items()}
        return INVALID if any(value is INVALID for value in values.values()) else values

    return FieldType("a mapping", lambda node: isinstance(node, MapNode), read, verbatim=item.verbatim)


def _nested(cls: type) -> FieldType:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, MapNode):
            return refuse(node, reading, key, "a mapping")
        # the outer mapping was rendered as a whole, and text is rendered only once
        return shape_of(cls).decode(
            node.items, node, reading.rendering(False), f"'{reading.report.spelled(node, key)}'"
        )

    return FieldType("a mapping", lambda node: isinstance(node, MapNode), read)


def _read_entries(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, ListNode):
        return refuse(node, reading, key, "a list of assertions")
    reading = reading.part()
    entries = reading.entries(node, reading).value
    return INVALID if reading.report.failed else entries


def _bounded(kind: FieldType, between: declared.Between) -> FieldType:
    low, high = between.low, between.high
    if low is None:
        wanted = f"{kind.wanted} of {high:g} or less"
    else:
        wanted = f"{kind.wanted} of {low:g} or more" if high is None else f"{kind.wanted} from {low:g} to {high:g}"

    def read(node: Node, reading: Reading, key: str) -> Any:
        if not kind.accepts(node):
            return refuse(node, reading, key, wanted, kind.hint(node))
        value = kind.read(node, reading, key)
        if type(value) in (int, float) and ((low is not None and value < low) or (high is not None and value > high)):
            share = (low, high) == (0, 1) and 5 <= value <= 100  # values below 5 are probably not percentages
            return refuse(node, reading, key, wanted, f"{value:g}% is {value / 100:g}" if share else None)
        return value

    return FieldType(wanted, kind.accepts, read, kind.verbatim, kind.hint)


def _nonempty(kind: FieldType, _marker: declared.Nonempty) -> FieldType:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if is_empty(node):
            wanted = kind.wanted.removeprefix("a list of ")
            blank = "contains only white space" if isinstance(node, Scalar) and node.value else "is empty"
            reading.report.error("missing-value", node, f"'{key}' {blank}; it needs {wanted}")
            return INVALID
        return kind.read(node, reading, key)

    return FieldType(kind.wanted, kind.accepts, read, kind.verbatim)


def _from_file(kind: FieldType, _marker: declared.FromFile) -> FieldType:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if type(node) is Scalar and type(node.value) is str:
            stripped = node.value.strip()
            if stripped and not stripped.startswith(FILE_MARK):
                return node.value  # fast path: nearly all texts of cases
        filled = with_content(node, reading, key)
        return INVALID if filled is None else kind.read(filled, reading, key)

    return FieldType(kind.wanted, kind.accepts, read, kind.verbatim, kind.hint, from_file=True)


def _renamed(kind: FieldType, older: declared.ValueAlias) -> FieldType:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if isinstance(node, Scalar) and node.text in older.values:
            canonical = older.values[node.text]
            reading.report.older(node.text, canonical, node.at)
            node = Scalar(canonical, canonical, node.at)
        return kind.read(node, reading, key)

    return FieldType(kind.wanted, kind.accepts, read, kind.verbatim, kind.hint)


def _unrendered(kind: FieldType, _marker: object) -> FieldType:
    return FieldType(kind.wanted, kind.accepts, kind.read, verbatim=True)


def _prompt_command(node: MapNode, reading: Reading, key: str) -> Any:
    return shape_of(PromptCommand).decode(node.items, node, reading.rendering(False), f"'{key}'")


BY_ANNOTATION: dict[Any, FieldType] = {**PLAIN, **CODE, declared.PromptCode: prompt_code_type(_prompt_command)}
"""Type of an annotation → how it is read."""

_ENTRIES = FieldType("a list of assertions", lambda node: isinstance(node, ListNode), _read_entries, verbatim=True)
_REFINEMENTS: dict[type, Callable[[FieldType, Any], FieldType]] = {
    declared.Between: _bounded,
    declared.FromFile: _from_file,
    declared.Nonempty: _nonempty,
    declared.ValueAlias: _renamed,
    declared.CallTimeTemplate: _unrendered,
    declared.Verbatim: _unrendered,
}
