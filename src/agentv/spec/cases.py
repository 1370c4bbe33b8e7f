"""One authored case, with what its suite adds, as a Case (SPEC sections 4 and 7.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from agentv.model.assertion import AssertionEntry
from agentv.model.message import Block, Message
from agentv.model.suite import Case
from agentv.model.values import EMPTY, Json, JsonObject
from agentv.spec.assertions import AssertionReader, judges, nested
from agentv.spec.decode import INVALID, shape_of
from agentv.spec.messages import read_files, read_messages, with_files
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, plain, span_of
from agentv.spec.reading import Reading
from agentv.spec.schema import AuthoredCase
from agentv.spec.spellings import CASE, Translated, translate
from agentv.spec.targets import TargetBook
from agentv.templating import Scope

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

READS_CRITERIA = frozenset({"llm-rubric", "script", "python"})
"""Types that look at a case's criteria; custom ones do too."""


@dataclass(frozen=True, slots=True)
class CaseDefaults:
    """What a suite says for all its cases, as nodes where a case's variables may still change it.

    Attributes:
        vars: `default_test.vars`, with the variables of the command line over them.
        fixed: variables that no case can change: those of the command line.
        replaces: a case's own `evaluators` replace the suite's (a file spelled `evalcases:`, seed 002).
    """

    assert_: Node | None = None
    test_assert: Node | None = None
    input: Node | None = None
    input_files: Node | None = None
    vars: JsonObject = EMPTY
    fixed: JsonObject = EMPTY
    metadata: JsonObject = EMPTY
    threshold: float | None = None
    replaces: bool = False


class CaseReader:
    """Reads the cases of one suite."""

    def __init__(
        self, defaults: CaseDefaults, assertions: AssertionReader, book: TargetBook, env: Mapping[str, str]
    ) -> None:
        self._defaults = defaults
        self._assertions = assertions
        self._book = book
        self._env = env
        self._shape = shape_of(AuthoredCase)
        self._shared: tuple[AssertionEntry, ...] | None = None
        self._judged: dict[int, bool] = {}

    def read(self, node: Node, reading: Reading, *, default_id: str | None = None) -> Case | None:
        """The case, or None when anything is wrong with it, all of which is then reported."""
        if not isinstance(node, MapNode):
            reading.report.error("bad-case", node, f"a case must be a mapping, found {kind_of(node)}")
            return None
        before = reading.report.count
        translated = translate(node, CASE, reading.report)
        authored = self._shape.decode(translated.items, translated.map, reading, "a case")
        if authored is INVALID:
            self._scan(translated, reading)
            return None
        identity = authored.id or default_id
        if not identity or not identity.strip():
            reading.report.error("missing-key", node, "a case needs 'id'")
        case = self._build(authored, identity or "", node, translated, reading)
        return case if reading.report.count == before or not reading.report.failed else None

    def _scan(self, translated: Translated, reading: Reading) -> None:
        """Read the assertions of a case that is wrong elsewhere, so that their mistakes are found in the same pass."""
        node = translated.items.get("assert")
        if node is not None:
            self._assertions.entries(node, reading.within(None))

    def _build(
        self, authored: AuthoredCase, identity: str, node: MapNode, translated: Translated, reading: Reading
    ) -> Case | None:
        defaults = self._defaults
        variables = self._variables(authored, reading)
        if reading.scope is not None:
            reading = reading.within(Scope(variables, self._env))
        criteria = self._criteria(authored, reading)
        entries = self._entries(authored, criteria, node, translated, reading)
        messages = self._input(authored, node, reading)
        expected = authored.expected_output
        reference = None if is_empty(expected) else read_messages(expected, "assistant", reading)
        target = self._book.inline(authored.target, reading) if authored.target is not None else None
        judge = self._book.inline(authored.judge, reading) if authored.judge is not None else None
        if messages is None or not entries:
            return None
        case = Case(
            id=identity,
            input=messages,
            assertions=entries,
            criteria=criteria,
            description=authored.description,
            expected_output=reference or (),
            vars=variables,
            metadata={**defaults.metadata, **authored.metadata} if authored.metadata or defaults.metadata else EMPTY,
            tags=_tags(authored.tags, reading),
            threshold=authored.threshold if authored.threshold is not None else defaults.threshold,
            repeat=authored.repeat,
            timeout_s=authored.timeout_s,
            target=target,
            judge=judge,
            span=span_of(node.at),
        )
        return replace_digest(case)

    def _variables(self, authored: AuthoredCase, reading: Reading) -> JsonObject:
        defaults = self._defaults
        if authored.vars is None:
            return defaults.vars
        if isinstance(authored.vars, Scalar) and authored.vars.value is None:
            return defaults.vars
        if not isinstance(authored.vars, MapNode):
            reading.report.error(
                "bad-value", authored.vars, f"'vars' must be a mapping, found {kind_of(authored.vars)}"
            )
            return defaults.vars
        own: dict[str, Json] = plain(authored.vars)
        return {**defaults.vars, **own, **defaults.fixed}

    def _criteria(self, authored: AuthoredCase, reading: Reading) -> str | None:
        node = authored.criteria
        if is_empty(node):
            return None
        if not isinstance(node, Scalar):
            reading.report.error("bad-value", node, f"'criteria' must be text, found {kind_of(node)}")
            return None
        return reading.render_text(node)

    def _input(self, authored: AuthoredCase, node: MapNode, reading: Reading) -> tuple[Message, ...] | None:
        given = authored.input
        if is_empty(given):
            reading.report.error("missing-input", given or node, "a case needs 'input'")
            return None
        own = read_messages(given, "user", reading)
        if own is None or authored.skip_defaults:
            return own
        defaults = self._defaults
        if defaults.input_files is not None and isinstance(given, Scalar):
            blocks: list[Block] = read_files(defaults.input_files, reading)
            own = with_files(own, blocks)
        if defaults.input is None:
            return own
        before = read_messages(defaults.input, "user", reading)
        return None if before is None else (*before, *own)

    def _entries(
        self,
        authored: AuthoredCase,
        criteria: str | None,
        node: MapNode,
        translated: Translated,
        reading: Reading,
    ) -> tuple[AssertionEntry, ...]:
        """In the order of SPEC section 7.4: `rubrics`, the case's own, `default_test`'s, the suite's."""
        found: list[AssertionEntry] = []
        count = reading.report.count
        if authored.rubrics is not None:
            entry = None
            if is_empty(authored.rubrics):
                reading.report.error("missing-value", authored.rubrics, "'rubrics' is empty")
            else:
                entry = self._assertions.judged(authored.rubrics, authored.rubrics, reading)
            found += [entry] if entry else []
        if authored.assert_ is not None:
            found += self._assertions.entries(authored.assert_, reading)
        written = translated.spelled.get("assert", "assert").rpartition(".")[2]
        replaced = self._defaults.replaces and written == "evaluators"
        if not authored.skip_defaults and not replaced:
            found += self._defaults_for(reading)
        if not found:
            return self._implied(criteria, node, authored, reading, broken=reading.report.count > count)
        self._check(tuple(found), criteria, node, translated, reading)
        return tuple(found)

    def _defaults_for(self, reading: Reading) -> tuple[AssertionEntry, ...]:
        """The suite's assertions: read once where no variable can change them."""
        if self._shared is not None:
            return self._shared
        nodes = (self._defaults.test_assert, self._defaults.assert_)
        entries = tuple(
            entry for node in nodes if node is not None for entry in self._assertions.entries(node, reading)
        )
        if reading.scope is None:
            self._shared = entries
        return entries

    def _implied(
        self, criteria: str | None, node: MapNode, authored: AuthoredCase, reading: Reading, *, broken: bool
    ) -> tuple[AssertionEntry, ...]:
        if criteria is not None and not broken:
            entry = self._assertions.judged(None, authored.criteria, reading)
            return (entry,) if entry else ()
        if not broken:
            message = "this case checks nothing: it has no assertion and no criteria"
            reading.report.error("checks-nothing", node, message, hint="add 'assert:' or 'criteria:'")
        return ()

    def _check(
        self,
        entries: tuple[AssertionEntry, ...],
        criteria: str | None,
        node: MapNode,
        translated: Translated,
        reading: Reading,
    ) -> None:
        if all(entry.settings.weight == 0 and entry.settings.required is False for entry in entries):
            message = "this case checks nothing: every assertion weighs 0 and none is required"
            reading.report.error("checks-nothing", node, message)
        if criteria is not None and not any(reads_criteria(entry) for entry in entries):
            at = translated.map.keys["criteria"]
            reading.report.warning("criteria-not-judged", at, "nothing judges these criteria: no assertion reads them")


def reads_criteria(entry: AssertionEntry) -> bool:
    """Whether an entry, or one inside it, looks at the case's criteria."""
    if entry.type in READS_CRITERIA or not hasattr(entry.assertion, "needs_judge") or judges(entry):
        return True
    return any(reads_criteria(child) for child in nested(entry))


def _tags(node: Node | None, reading: Reading) -> tuple[str, ...]:
    if node is None:
        return ()
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return (node.value,)
    if isinstance(node, ListNode) and all(isinstance(item, Scalar) and item.value is not None for item in node.items):
        return tuple(item.text for item in node.items if isinstance(item, Scalar))
    if isinstance(node, MapNode):
        return tuple(f"{key}:{plain(item)}" for key, item in node.items.items())
    reading.report.error("bad-value", node, f"'tags' must be a list of words or a mapping, found {kind_of(node)}")
    return ()


def replace_digest(case: Case) -> Case:
    """The case with the hash of all that was authored for it."""
    facts = (
        case.id,
        [message.as_json() for message in case.input],
        [message.as_json() for message in case.expected_output],
        case.criteria,
        dict(case.vars),
        dict(case.metadata),
        case.threshold,
        case.repeat,
        [fingerprint(entry) for entry in case.assertions],
    )
    return replace(case, sha256=hashlib.sha256(_encode(facts)).hexdigest())


def fingerprint(entry: AssertionEntry) -> Any:
    """What determines an entry's grade, without its place in the file."""
    inner = nested(entry)
    if not inner:
        return (entry.type, entry.assertion, entry.settings)
    options = {
        one.name: getattr(entry.assertion, one.name)
        for one in fields(entry.assertion)  # type: ignore[arg-type]  # what holds entries is a declared dataclass
        if one.name != "assert_"
    }
    return (entry.type, options, entry.settings, [fingerprint(child) for child in inner])
