"""Turn an authored case and its suite's defaults into `Case` objects (SPEC sections 4 and 7.4)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import chain, product
from math import prod

from agentv.authoring.cases.case_assertions import Entries
from agentv.authoring.cases.case_builder import CaseBuilder
from agentv.authoring.cases.context import CaseContext, CaseNotes, WrittenCase
from agentv.authoring.fields import translation
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.nodes import (
    Canonical,
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    is_empty,
    kind_of,
    node_of,
    plain,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.model.suite.suite import Case
from agentv.model.values.values import JsonObject, lazy_pattern

_SCHEMA = shape_of(AuthoredCase)
_TURN_KEYS = frozenset({"aggregation", "on_turn_failure", "window_size"})


class CaseReader:
    """Reads the cases of one suite.

    Args:
        context: shared by all cases.
        notes: receives what each case needs from its suite, and which cases are invalid.
        shared: the assertions that the suite adds to each case; None if they depend on the case.
    """

    def __init__(self, context: CaseContext, notes: CaseNotes, shared: Entries | None) -> None:
        self.notes = notes
        self.context = context
        self.builder = CaseBuilder(context, notes, shared)

    @property
    def prompted(self) -> bool:
        """Whether the suite has an input for cases without one."""
        return self.context.defaults.prompted or self.context.defaults.input is not None

    def read(self, node: Node, reading: Reading, *, alone: bool = True, written: bool = True) -> tuple[Case, ...]:
        """Read the cases of an entry: one, or one for each prompt and each combination of its list values.

        Return () if anything is invalid, which is reported.

        Args:
            node: the entry.
            reading: the suite's `Reading`.
            alone: the entry has its own input; False for a row of variables, which uses the suite's `input`.
            written: the entry is in a file; False if it was generated from another key.
        """
        self.notes.seen = True
        if not isinstance(node, MapNode):
            reading.report.error("bad-case", node, f"a case must be a mapping, found {kind_of(node)}")
            self.notes.lost = True
            return ()
        if written and self.context.request.on_case is not None:
            self.context.request.on_case(node)
        defaults, reading = self.context.defaults, reading.part()
        case = translation.case(node, reading, replaces=defaults.replaces)
        expand = case.items.get("expand")
        expands = expand.value is True if isinstance(expand, Scalar) and expand.value is not None else defaults.expand
        if not expands:
            return self._read(case, reading, alone=alone)
        valid = reading.report.valid
        found = [
            self._read(one, reading.part() if valid else reading, end, alone=alone)
            for end, one in combinations(case, defaults.vars, defaults.fixed, reading.report)
        ]
        return tuple(chain.from_iterable(found)) if all(found) else ()

    def _read(self, node: Canonical, reading: Reading, id_suffix: str = "", *, alone: bool) -> tuple[Case, ...]:
        """Read the cases of an entry with canonical keys. Errors are reported."""
        report, identity = reading.report, node.get("id")
        keys: AuthoredCase = _SCHEMA.read(node.items, node, reading, "a case")
        if is_empty(identity) and "id" not in node.not_missing:
            report.error("missing-key", identity or node, "a case needs 'id'")
        case = WrittenCase(keys, node, node.not_missing, alone, id_suffix)
        for key in _TURN_KEYS & node.items.keys():
            applies = case.has_turns if key == "window_size" else case.scripted
            if getattr(keys, key) is not None and not applies and "turns" not in node.not_missing:
                report.error("bad-value", node.keys[key], f"'{key}' needs 'turns'")
        if "target" not in node.items:
            self.notes.untargeted = True
        cases = self.builder.build(case, reading)
        if report.valid:
            return cases
        if not isinstance(identity, Scalar) or is_empty(identity):
            self.notes.lost = True
            return ()
        place, spans = span_of(node.at), self.notes.invalid.setdefault(identity.text, [])
        # an invalid record is read twice, to locate its errors
        if all(place.line_of_file != one.line_of_file for one in spans):
            spans.append(place)
        return ()


MOST = 10_000
"""Maximum number of cases that one entry expands to."""

_READABLE = lazy_pattern(r"[\w.:@/+-](?:[\w .:@/+-]{0,38}[\w.:@/+-])?")
"""A value that ids show unchanged. Other values are shown as hashes, so that ids are short and easy to type."""


def combinations(
    node: Canonical, inherited: JsonObject, fixed: Mapping[str, object], report: Report
) -> Iterator[tuple[str, Canonical]]:
    """Yield the entries that an entry expands to, each with the suffix of its id, such as `[locale=de,tone=warm]`.

    Variables are sorted by name, so that an id does not change if variables are reordered or list items are added.

    Args:
        node: the entry, with `expand: true`.
        inherited: variables of `default_test`, whose lists expand too.
        fixed: variables of the command line, which take precedence and are never lists.
        report: receives errors about an empty list, equal items, and too many combinations.
    """
    written = node.items.get("vars")
    if isinstance(written, ListNode) or (isinstance(written, Scalar) and written.value is not None):
        yield "", node  # not a mapping, which the reader of 'vars' reports
        return
    own = written if isinstance(written, MapNode) else MapNode({}, {}, node.at)
    given = {name: node_of(value, node.at) for name, value in inherited.items()} | own.items
    lists = {name: one for name, one in sorted(given.items()) if isinstance(one, ListNode) and name not in fixed}
    if not lists:
        yield "", node
        return
    valid = True
    for name, one in lists.items():
        if not one.items:
            valid = False
            report.error("missing-value", one, f"'{name}' is an empty list, so 'expand' produces no case")
        seen: set[str] = set()
        for item in one.items:
            shown = label(item)
            if shown in seen:
                valid = False
                report.error(
                    "duplicate-id", item, f"'{name}' contains '{shown}' twice, so two cases would have the same id"
                )
            seen.add(shown)
    number = prod(len(one.items) for one in lists.values())
    if number > MOST:
        at = node.keys.get("expand", node.at)
        valid = False
        report.error("too-large", at, f"'expand' produces {number:,} cases from this one; the maximum is {MOST:,}")
    if not valid:
        return
    for chosen in product(*(one.items for one in lists.values())):
        values = dict(zip(lists, chosen, strict=True))
        end = ",".join(f"{name}={label(value)}" for name, value in values.items())
        yield f"[{end}]", _with(node, own, values, f"[{end}]")


def label(node: Node) -> str:
    """The label of a value in an id: its text if it is short and plain, else a hash of it."""
    if isinstance(node, Scalar) and node.value is not None and _READABLE.fullmatch(node.text):
        return node.text
    written = json.dumps(plain(node), sort_keys=True)
    return f"#{hashlib.sha256(written.encode()).hexdigest()[:8]}"


def _with(node: Canonical, own: MapNode, values: Mapping[str, Node], end: str) -> Canonical:
    """The entry with one value for each list, and with `end` appended to its id."""
    places: dict[str, Place] = {**dict.fromkeys(values, node.at), **own.keys}
    items: dict[str, Node] = {**node.items, "vars": MapNode({**own.items, **values}, places, own.at)}
    identity = items.get("id")
    if isinstance(identity, Scalar) and identity.value is not None:
        items["id"] = Scalar(f"{identity.text}{end}", f"{identity.text}{end}", identity.at)
    made = Canonical(items, {"vars": node.at, **node.keys}, node.at, node.spelled)
    made.not_missing = node.not_missing
    return made
