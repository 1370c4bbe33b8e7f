"""One authored case, with what its suite adds, as a Case (SPEC sections 4 and 7.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from agentv.model.assertion import AssertionEntry
from agentv.model.message import Message
from agentv.model.suite import Case
from agentv.model.values import EMPTY, Json, JsonObject
from agentv.registry.fields import DeclaredAssertion
from agentv.spec.assertions import AssertionReader
from agentv.spec.consistency import check_entries
from agentv.spec.decode import INVALID, shape_of
from agentv.spec.defaults import CaseDefaults
from agentv.spec.fingerprints import digests_behind
from agentv.spec.judging import Judging, judges, nested
from agentv.spec.messages import read_files, read_messages, with_files
from agentv.spec.nearest import nearest
from agentv.spec.nodes import (
    ListNode,
    MapNode,
    Node,
    Scalar,
    children,
    holds_placeholder,
    is_empty,
    kind_of,
    plain,
    span_of,
)
from agentv.spec.reading import Others, Reading
from agentv.spec.report import Report
from agentv.spec.schema import AuthoredCase
from agentv.spec.spellings import CASE, MEANT, Translated, translate
from agentv.spec.target_book import TargetBook
from agentv.spec.zero_thresholds import ZeroThresholds
from agentv.templating import Scope

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

READS_CRITERIA = frozenset({"llm-rubric", "script", "python"})
"""Types that look at a case's criteria; custom ones do too."""

_CHECKS = frozenset({"assert", "criteria", "rubrics"})
"""Keys that give a case something to check."""

_GIVES_INPUT = frozenset({"turns", "mode", "inputs", "inputs_from"})
"""Keys that stand where `input` would, and are not built yet."""


class CaseReader:
    """Reads the cases of one suite.

    Attributes:
        judging: what the assertions read so far ask of judges.
        zero: whether the cases read so far would pass at a threshold of 0.
        untargeted: a case names no target of its own.
        seen: there is a case, right or wrong.
        witness: gets every case as it is written.
    """

    def __init__(
        self, defaults: CaseDefaults, assertions: AssertionReader, book: TargetBook, env: Mapping[str, str], root: str
    ) -> None:
        self.judging = Judging()
        self.zero = ZeroThresholds()
        self.untargeted = False
        self.seen = False
        self.witness: Callable[[MapNode], None] | None = None
        self._defaults = defaults
        self._assertions = assertions
        self._book = book
        self._env = env
        self._root = _encode(root)[1:-1] if root != "/" else b"\x00"
        self._shape = shape_of(AuthoredCase)
        self._others = Others(hinted=tuple(CASE.known))
        self._shared: tuple[AssertionEntry, ...] | None = None
        self._broken = False

    def begin(self, reading: Reading) -> Reading:
        """Read what holds for all cases, where no variable can change it; the reading for cases without variables."""
        reading = reading.within(Scope(self._defaults.vars, self._env))
        nodes = [node for node in (self._defaults.test_assert, self._defaults.assert_) if node is not None]
        if any(holds_placeholder(node) for node in nodes):
            return reading
        own = Report(hints=reading.report.hints)
        shared = self._lists(nodes, replace(reading, report=own, renders=False))
        if self._assertions.templates.rendered:
            return reading  # a template holds placeholders: what was found says nothing about any case
        for found in own.diagnostics:
            reading.report.add(found)
        self._shared, self._broken = shared, own.failed
        return reading

    def read(self, node: Node, reading: Reading) -> Case | None:
        """The case, or None when anything is wrong with it, all of which is then reported."""
        report = reading.report
        self.seen = True
        if not isinstance(node, MapNode):
            report.error("bad-case", node, f"a case must be a mapping, found {kind_of(node)}")
            return None
        if self.witness is not None:
            self.witness(node)
        errors, unrendered = report.errors, report.unrendered
        translated = translate(node, CASE, report)
        items = translated.items
        if "target" not in items:
            self.untargeted = True
        authored = self._shape.decode(items, translated.map, reading, "a case", others=self._others)
        meant: frozenset[str] = frozenset()
        if authored is INVALID or report.errors > errors:
            meant = self._meant(node)
        if authored is INVALID:
            authored = self._shape.unread(items)
        if is_empty(items.get("id")) and "id" not in meant:
            report.error("missing-key", items.get("id") or node, "a case needs 'id'")
        case = self._build(_Authored(authored, node, translated, meant), reading)
        return case if report.errors == errors and report.unrendered == unrendered else None

    def _meant(self, node: MapNode) -> frozenset[str]:
        """The keys that are not really missing: they were misspelt, or are given by what is not built yet."""
        unknown = [key for key in node.items if key not in self._shape.rules and key not in CASE.known]
        near = (nearest(key, CASE.known) or MEANT.get(key) for key in unknown)
        meant = {CASE.older.get(key, key) for key in near if key}
        return frozenset(meant | {"input"} if node.items.keys() & _GIVES_INPUT else meant)

    def _build(self, case: _Authored, reading: Reading) -> Case | None:
        authored, defaults = case.keys, self._defaults
        errors = reading.report.errors
        variables = self._variables(authored, reading)
        if variables is not defaults.vars:
            reading = reading.within(Scope(variables, self._env))
        if reading.report.errors > errors:
            reading = reading.rendering(False)  # what the placeholders mean is not known
        errors = reading.report.errors
        criteria = self._criteria(authored, reading)
        if reading.report.errors > errors:
            case = replace(case, meant=case.meant | {"criteria"})
        entries = self._entries(case, criteria, reading)
        messages = self._input(case, reading)
        expected = authored.expected_output
        reference = () if expected is None or is_empty(expected) else read_messages(expected, "assistant", reading)
        target = self._book.inline(authored.target, reading) if authored.target is not None else None
        judge = self._book.inline(authored.judge, reading) if authored.judge is not None else None
        if target is not None and target.judge:
            self.judging.of_cases.setdefault(target.judge, target.name)
        for entry in entries:
            self.judging.look(entry, case_names_one=judge is not None or bool(target and target.judge))
        tags = read_tags(authored.tags, reading)
        if messages is None or not entries:
            return None
        self.zero.look(authored.threshold, entries, case.translated.map, reading.report)
        threshold = authored.threshold if authored.threshold is not None else defaults.threshold
        metadata = {**defaults.metadata, **authored.metadata} if authored.metadata or defaults.metadata else EMPTY
        facts = (authored.id, messages, reference, criteria, variables, metadata, threshold, authored.repeat)
        try:
            digest = self._digest(facts, entries)
        except UnicodeEncodeError:
            message = "this case holds half of a character (a lone surrogate), which no file and no request can hold"
            reading.report.error("not-unicode", case.node, message)
            return None
        return Case(
            id=authored.id or "",
            input=messages,
            assertions=entries,
            criteria=criteria,
            description=authored.description,
            expected_output=reference or (),
            vars=variables,
            metadata=metadata,
            tags=tags,
            threshold=threshold,
            repeat=authored.repeat,
            timeout_s=authored.timeout_s,
            target=target,
            judge=judge,
            sha256=digest,
            span=span_of(case.node.at),
        )

    def _digest(self, facts: tuple[Any, ...], entries: tuple[AssertionEntry, ...]) -> str:
        """The hash of all that was authored for a case. Paths count from the repository's root, wherever that is."""
        written = _encode((facts, [fingerprint(entry) for entry in entries]))
        return hashlib.sha256(written.replace(self._root, b"")).hexdigest()

    def _variables(self, authored: AuthoredCase, reading: Reading) -> JsonObject:
        defaults = self._defaults
        if authored.vars is None:
            return defaults.vars
        if isinstance(authored.vars, Scalar) and authored.vars.value is None:
            return defaults.vars
        if not isinstance(authored.vars, MapNode):
            dashes = isinstance(authored.vars, ListNode) and any(
                isinstance(one, MapNode) for one in authored.vars.items
            )
            hint = "write 'name: value' without the dashes" if dashes else "write 'name: value'"
            message = f"'vars' must be a mapping, found {kind_of(authored.vars)}"
            reading.report.error("bad-value", authored.vars, message, hint=hint)
            return defaults.vars
        own: dict[str, Json] = plain(authored.vars)
        return {**defaults.vars, **own, **defaults.fixed}

    def _criteria(self, authored: AuthoredCase, reading: Reading) -> str | None:
        node = authored.criteria
        if node is None or is_empty(node):
            return None
        if not isinstance(node, Scalar):
            hint = "write a list of them as 'rubrics'" if isinstance(node, ListNode) else None
            reading.report.error("bad-value", node, f"'criteria' must be text, found {kind_of(node)}", hint=hint)
            return None
        rendered = reading.render_text(node)
        return node.text if rendered is None else rendered  # it is told, and the case is not kept

    def _input(self, case: _Authored, reading: Reading) -> tuple[Message, ...] | None:
        given = case.keys.input
        if given is None or is_empty(given):
            if "input" not in case.meant and not self._defaults.prompted:
                reading.report.error("missing-input", given or case.node, "a case needs 'input'")
            return None
        own = read_messages(given, "user", reading)
        if own is None:
            return None
        if reading.renders and not any(message.content for message in own):
            reading.report.error("missing-input", given, "'input' is empty once its placeholders are filled in")
            return None
        return own if case.keys.skip_defaults else self._with_defaults(own, given, reading)

    def _with_defaults(self, own: tuple[Message, ...], given: Node, reading: Reading) -> tuple[Message, ...] | None:
        defaults = self._defaults
        if defaults.input_files is not None and isinstance(given, Scalar):
            own = with_files(own, read_files(defaults.input_files, reading))
        if defaults.input is None:
            return own
        before = read_messages(defaults.input, "user", reading)
        return None if before is None else (*before, *own)

    def _entries(self, case: _Authored, criteria: str | None, reading: Reading) -> tuple[AssertionEntry, ...]:
        """In the order of SPEC section 7.4: `rubrics`, the case's own, `default_test`'s, the suite's."""
        authored = case.keys
        report = reading.report
        told = report.errors + report.unrendered
        found: tuple[AssertionEntry, ...] = ()
        if authored.rubrics is not None:
            found = self._rubrics(authored.rubrics, reading)
        if authored.assert_ is not None:
            found += self._assertions.entries(authored.assert_, reading)
        if not authored.skip_defaults and not self._replaced(case):
            found += self._defaults_for(reading)
        sound = report.errors + report.unrendered == told and not case.meant & _CHECKS and not self._broken
        if not found:
            return self._implied(case, criteria, reading) if sound else ()
        self._check(found, case, criteria, reading)
        return found

    def _rubrics(self, node: Node, reading: Reading) -> tuple[AssertionEntry, ...]:
        if is_empty(node):
            reading.report.error("missing-value", node, "'rubrics' is empty")
            return ()
        entry = self._assertions.judged(node, node, reading)
        return (entry,) if entry else ()

    def _replaced(self, case: _Authored) -> bool:
        """Seed 002: in its files, a case's own evaluators stand in place of the suite's."""
        written = case.translated.spelled.get("assert", "assert").rpartition(".")[2]
        return self._defaults.replaces and written == "evaluators"

    def _defaults_for(self, reading: Reading) -> tuple[AssertionEntry, ...]:
        if self._shared is not None:
            return self._shared
        nodes = [node for node in (self._defaults.test_assert, self._defaults.assert_) if node is not None]
        return self._lists(nodes, reading)

    def _lists(self, nodes: Sequence[Node], reading: Reading) -> tuple[AssertionEntry, ...]:
        return tuple(entry for node in nodes for entry in self._assertions.entries(node, reading))

    def _implied(self, case: _Authored, criteria: str | None, reading: Reading) -> tuple[AssertionEntry, ...]:
        if criteria is not None and criteria.strip():
            entry = self._assertions.judged(None, case.keys.criteria or case.node, reading)
            return (entry,) if entry else ()
        message = "this case checks nothing: it has no assertion and no criteria"
        reading.report.error("checks-nothing", case.node, message, hint="add 'assert' or 'criteria'")
        return ()

    def _check(
        self, entries: tuple[AssertionEntry, ...], case: _Authored, criteria: str | None, reading: Reading
    ) -> None:
        if all(entry.settings.weight == 0 and entry.settings.required is False for entry in entries):
            message = "this case checks nothing: every assertion weighs 0 and none is required"
            reading.report.error("checks-nothing", case.node, message)
        if criteria is not None and not any(reads_criteria(entry) for entry in entries):
            at = case.translated.map.keys["criteria"]
            reading.report.warning("criteria-not-judged", at, "nothing judges these criteria: no assertion reads them")
        check_entries(entries, reading.report)


@dataclass(frozen=True, slots=True)
class _Authored:
    """A case as it is written.

    Attributes:
        keys: by their canonical names; only those that are handed on unread where another one is wrong.
        meant: keys whose absence is not to be reported.
    """

    keys: AuthoredCase
    node: MapNode
    translated: Translated
    meant: frozenset[str]


def reads_criteria(entry: AssertionEntry) -> bool:
    """Whether an entry, or one inside it, looks at the case's criteria."""
    if entry.type in READS_CRITERIA or not isinstance(entry.assertion, DeclaredAssertion) or judges(entry):
        return True
    return any(reads_criteria(child) for child in nested(entry))


def read_tags(node: Node | None, reading: Reading) -> tuple[str, ...]:
    """Labels: a word, a list of words, or a mapping, whose entries become `key:value`."""
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    if isinstance(node, Scalar):
        return (node.text,)
    if isinstance(node, ListNode) and all(isinstance(item, Scalar) and item.value is not None for item in node.items):
        return tuple(item.text for item in node.items if isinstance(item, Scalar))
    if isinstance(node, MapNode) and all(isinstance(item, Scalar) for item in node.items.values()):
        return tuple(f"{key}:{item.text}" for key, item in node.items.items() if isinstance(item, Scalar))
    wrong = next((item for item in children(node) if not isinstance(item, Scalar) or item.value is None), node)
    message = f"'tags' must be a list of words, or a mapping of words, found {kind_of(wrong)}"
    reading.report.error("bad-value", wrong, message)
    return ()


def fingerprint(entry: AssertionEntry) -> Any:
    """What determines an entry's grade, without its place in the file."""
    assertion = entry.assertion
    if not hasattr(type(assertion), "assert_"):
        return (entry.type, assertion, entry.settings, digests_behind(assertion))
    options = {
        one.name: getattr(assertion, one.name)
        for one in fields(assertion)  # type: ignore[arg-type]  # what holds entries is a declared dataclass
        if one.name != "assert_"
    }
    return (entry.type, options, entry.settings, [fingerprint(child) for child in nested(entry)])
