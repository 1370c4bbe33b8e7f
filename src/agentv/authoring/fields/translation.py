"""Mappings of a file with their canonical keys; from there on, nothing knows how a key was spelled.

Each function reports what is wrong with the keys: unknown ones, two spellings of one, and those that are not built yet.
Values keep their positions, and diagnostics about a value name the key as authored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from agentv.authoring.fields.reading import SHOWN_KEYS, ExtraKeys, Reading
from agentv.authoring.fields.spellings import CASE, DEFAULT_TEST, OPTIONS, RUN, SUITE, TEMPLATE, TURN, Spellings
from agentv.authoring.source.files import TABLES
from agentv.authoring.source.nearest import MEANT, nearest
from agentv.authoring.source.nodes import Canonical, ListNode, MapNode, Node, Place, Scalar, is_empty, kind_of, plain
from agentv.model.values.values import Json

_FILES_OF_CASES = (".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", *TABLES)


def _with_name(root: MapNode, reading: Reading) -> tuple[MapNode, dict[str, Json]]:
    """`dataset` and `suite` name the suite, or are kept in its metadata where `name` stands too."""
    older = [key for key in ("dataset", "suite") if key in root.items]
    items, keys = dict(root.items), dict(root.keys)
    others: dict[str, Json] = {}
    for key in older:
        node, at = items.pop(key), keys.pop(key)
        if isinstance(node, Scalar) and node.text.lower().endswith(_FILES_OF_CASES):
            message = f"'{key}' names the suite, and '{node.text}' looks like a file of cases"
            reading.report.error("bad-value", node, message, hint=f"did you mean 'tests: {node.text}'?")
        elif "name" in items:
            others[key] = plain(node)
        else:
            items["name"], keys["name"] = node, at
            reading.report.older(key, "name", at)
    return MapNode(items, keys, root.at), others


def _run_value(key: str, node: Node) -> Node:
    """Older values that mean something else: `timeout_ms: 500`, `fail_on_error: true`."""
    if key == "timeout_ms" and isinstance(node, Scalar) and type(node.value) in (int, float):
        seconds = node.value / 1000
        return Scalar(seconds, repr(seconds), node.at)
    if key == "fail_on_error" and isinstance(node, Scalar) and isinstance(node.value, bool):
        return Scalar(1 if node.value else None, node.text, node.at)
    return node


def suite(node: MapNode, reading: Reading) -> tuple[Canonical, dict[str, Json]]:
    """The outermost mapping of an eval file, and what `dataset` and `suite` say beside `name`."""
    named, others = _with_name(node, reading)
    made = translated(named, SUITE, reading, "an eval file")
    made.items = {key: one for key, one in made.items.items() if key != "$schema"}
    gathered(made, "run", reading)
    _within(made, "run", run_block, reading)
    return made, others


def gathered(made: Canonical, outer: str, reading: Reading) -> None:
    """Move the values of `outer.key`, as keys in older places are translated, into the mapping `outer`."""
    moved = {key: made.items.pop(key) for key in list(made.items) if key.startswith(f"{outer}.")}
    own = made.items.get(outer)
    if not moved or not (own is None or isinstance(own, MapNode)):
        return
    at = made.keys[next(iter(moved))]
    inner = MapNode({}, {}, at) if own is None else MapNode(dict(own.items), dict(own.keys), own.at)
    for written, value in moved.items():
        key = written.partition(".")[2]
        if key in inner.items:
            message = f"'{made.spelled[written]}' is set both here and in '{outer}'; keep one of them"
            reading.report.error("two-spellings", made.keys[written], message)
        inner.items[key], inner.keys[key] = value, made.keys[written]
    made.items[outer] = inner
    made.keys.setdefault(outer, at)


def run_block(node: MapNode, reading: Reading) -> Canonical:
    """A `run:` block."""
    values = {key: _run_value(key, item) for key, item in node.items.items()}
    return translated(MapNode(values, node.keys, node.at), RUN, reading, f"'{reading.report.spelled(node, 'run')}'")


def case(node: MapNode, reading: Reading, *, replaces: bool = False) -> Canonical:
    """One entry of `tests:`, with its options and turns. `replaces`: its `evaluators` replace the suite's."""
    made = translated(node, CASE, reading, "a case")
    own = made.spelled.get("assert", "").rpartition(".")[2]
    if replaces and own == "evaluators" and getattr(made.get("skip_defaults"), "value", False) is False:
        at = made.keys["assert"]
        made.items["skip_defaults"], made.keys["skip_defaults"] = Scalar("assert", "assert", at), at
    if "options" in made.items:
        _within(made, "options", lambda one, own: translated(one, OPTIONS, own, "'options' of a case"), reading)
    return made


def turn(node: MapNode, reading: Reading) -> Canonical:
    """One entry of `turns:`."""
    return translated(node, TURN, reading, "a turn")


def default_test(node: MapNode, reading: Reading) -> Canonical:
    """`default_test:`, with its options."""
    what = f"'{reading.report.spelled(node, 'default_test')}'"
    made = translated(node, DEFAULT_TEST, reading, what)
    _within(made, "options", lambda one, own: translated(one, OPTIONS, own, f"'options' of {what}"), reading)
    return made


def template(node: MapNode, reading: Reading) -> Canonical:
    """A file of assertions to include."""
    return translated(node, TEMPLATE, reading, "a template")


def _within(made: Canonical, key: str, translate: Callable[[MapNode, Reading], Canonical], reading: Reading) -> None:
    """Translate a mapping inside of another; the reader reports what is not a mapping."""
    inner = made.items.get(key)
    if isinstance(inner, MapNode):
        own = translate(inner, reading)
        made.items = {**made.items, key: own}
        reading.report.carry(inner, own)


def translated(node: MapNode, spellings: Spellings, reading: Reading, what: str | None) -> Canonical:
    """A mapping with the canonical keys of its kind.

    Args:
        node: as authored.
        spellings: of its kind.
        reading: whose report gets the diagnostics.
        what: the kind, in messages; None: another reader knows further keys, so that none is unknown.
    """
    if node.items.keys() <= spellings.canonical:
        return Canonical(node.items, node.keys, node.at)
    made = _Translation(spellings, reading)
    made.add_all(node)
    whole = Canonical(made.items, made.keys, node.at, made.spelled)
    if what is not None:
        _report_unknown(whole, spellings, reading, what)
    return whole


class _Translation:
    def __init__(self, spellings: Spellings, reading: Reading) -> None:
        self._spellings = spellings
        self._reading = reading
        self._report = reading.report
        self.items: dict[str, Node] = {}
        self.keys: dict[str, Place] = {}
        self.spelled: dict[str, str] = {}

    def add_all(self, node: MapNode) -> None:
        spellings = self._spellings
        for key, value in node.items.items():
            at = node.keys[key]
            inside = spellings.nested.get(key)
            if key in spellings.not_yet:
                self._postpone(key, at)
            elif inside is None:
                self._put(spellings.older.get(key, key), key, value, at)
            elif isinstance(value, MapNode):
                self._dissolve(key, value, inside)
            elif not is_empty(value):
                self._report.error("bad-value", value, f"'{key}' must be a mapping, found {kind_of(value)}")

    def _dissolve(self, outer: str, value: MapNode, inside: Mapping[str, str]) -> None:
        for key, item in value.items.items():
            at = value.keys[key]
            canonical = inside.get(key)
            if canonical in self._spellings.not_yet:
                self._postpone(f"{outer}.{key}", at)
            elif canonical is not None:
                self._put(canonical, f"{outer}.{key}", item, at)
            elif f"{outer}.{key}" in self._spellings.no_effect:
                self._report.warning("no-effect", at, f"'{outer}.{key}' has no effect")
            elif not key.startswith("x-"):
                self._put(f"{outer}.{key}", f"{outer}.{key}", item, at)

    def _postpone(self, written: str, at: Place) -> None:
        """Report a key that is known and not built yet."""
        tolerated = self._spellings.tolerates and not self._reading.strict_env
        add = self._report.warning if tolerated else self._report.error
        add("not-yet", at, f"'{written}' is recognized but not supported yet")

    def _put(self, canonical: str, written: str, value: Node, at: Place) -> None:
        if canonical in self.items:
            other = self.spelled[canonical]
            self._report.error("two-spellings", at, f"'{written}' and '{other}' mean the same; keep one of them")
            return
        if written != canonical and written not in self._spellings.equal:
            self._report.older(written, self._singular(canonical, value), at)
        if written != canonical:
            self._report.spell(value, written, canonical)
        self.items[canonical] = value
        self.keys[canonical] = at
        self.spelled[canonical] = written

    def _singular(self, canonical: str, value: Node) -> str:
        """The key that is better for one value: `target`, where several are `targets`."""
        if isinstance(value, ListNode):
            return canonical
        spellings = self._spellings
        return next((one for one in spellings.equal if spellings.older.get(one) == canonical), canonical)


def _report_unknown(made: Canonical, spellings: Spellings, reading: Reading, what: str) -> None:
    """Report the unknown keys of a mapping and remove them. What they may mean is not reported as missing too."""
    canonical, free = spellings.canonical, ("x-", "run.", "$schema") if spellings is SUITE else ("x-",)
    unknown = [key for key in made.items if key not in canonical and not key.startswith(free)]
    if not unknown:
        return
    known, older = spellings.known, spellings.older
    extra = ExtraKeys(hinted=tuple(known), older=spellings.superseded)
    for key in unknown:
        of_run = spellings is SUITE and key in RUN.canonical
        hint = f"it belongs under 'run': run: {{{key}: …}}" if of_run else None
        reading.unknown_key(key, made, canonical, what, extra, hint=hint)
    near = (nearest(key, known) or MEANT.get(key, key) for key in islice(unknown, SHOWN_KEYS))
    made.not_missing = frozenset(older.get(key, key) for key in near)
    if "turns" in made.not_missing:
        made.not_missing |= {"input", "assert"}  # which a case with turns may lack
    for key in unknown:
        del made.items[key]
