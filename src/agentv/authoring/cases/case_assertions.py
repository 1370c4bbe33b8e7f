"""Assertions of a case: its own, those of its suite, and its criteria (SPEC section 7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from agentv.authoring.assertions.consistency import assertions_of, check_graded, counts_any
from agentv.authoring.cases.context import CaseContext, WrittenCase
from agentv.authoring.cases.defaults import CaseDefaults
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Node, holds_placeholder, is_empty
from agentv.authoring.source.report import Result
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Turn

Entries = Result[tuple[AssertionEntry, ...]]

_CHECKS = frozenset({"assert", "criteria", "rubrics"})
"""Keys that give a case something to check."""

_MENDS = "add 'assert' or 'criteria'; 'show_only: true' in the suite only shows answers"


def read_shared(context: CaseContext, reading: Reading) -> Entries | None:
    """The assertions that the suite adds to each case, if no variable can change them; else None.

    Args:
        context: of the cases.
        reading: with the variables of all cases.
    """
    nodes = _nodes(context.defaults)
    reading = reading.with_rubric(context.defaults.options.rubric)
    if any(holds_placeholder(node) for node in nodes):
        return None
    own = reading.report.beside()
    found = _lists(context, nodes, structs.replace(reading, report=own, renders=False))
    if context.assertions.templates is not None and context.assertions.templates.rendered:
        return None  # a template holds placeholders: what was found says nothing about any case
    for one in own.diagnostics:
        reading.report.add(one)
    return found._replace(valid=not own.failed)


class CaseAssertions(Struct, frozen=True):
    """Reads the assertions of the cases of one suite.

    Attributes:
        shared: those that the suite adds to each case; None where they depend on the case's variables.
    """

    context: CaseContext
    shared: Entries | None

    def read(
        self,
        case: WrittenCase,
        criteria: str | None,
        turns: tuple[Turn, ...] | None,
        reading: Reading,
        *,
        shared: bool = True,
    ) -> tuple[AssertionEntry, ...]:
        """In the order of SPEC section 7.4: `rubrics`, the case's own, `default_test`'s, the suite's.

        Args:
            case: as authored.
            criteria: of the case.
            turns: its turns; None if invalid.
            reading: of the case.
            shared: the case does not change the assertions that the suite adds.
        """
        found, valid = self._given(case, reading, shared=shared)
        of_turns = assertions_of(turns) if turns else ()
        # AgentV judges a case of its `mode: conversation` with assertions alone
        unjudged = not (criteria or "").strip() or case.keys.mode is not None
        if found or (of_turns and unjudged):
            check_graded(found, case.node, criteria, reading.report)
            if not (self.context.show_only or counts_any((*found, *of_turns))):
                message = "this case checks nothing: every assertion has weight 0 and none is required"
                reading.report.error("checks-nothing", case.node, message)
        else:
            complete = valid and turns is not None and not case.not_missing & _CHECKS
            complete = complete and (self.shared is None or self.shared.valid)
            found = self._implied(case, criteria, reading) if complete else ()
        return tuple(map(_as_gate, found)) if self.context.require_all else found

    def _given(self, case: WrittenCase, reading: Reading, *, shared: bool) -> Entries:
        keys = case.keys
        parts: list[Entries] = []
        if keys.rubrics is not None:
            parts.append(self._rubrics(keys.rubrics, reading))
        if keys.assert_ is not None:
            parts.append(self.context.assertions.entries(keys.assert_, reading))
        if not keys.skip_defaults:
            parts.append(self._of_suite(reading, shared=shared))
        return _joined(parts)

    def _rubrics(self, node: Node, reading: Reading) -> Entries:
        if is_empty(node):
            reading.report.error("missing-value", node, "'rubrics' is empty")
            return Result((), valid=False)
        entry = self.context.assertions.judged(node, node, reading)
        return Result((entry,)) if entry else Result((), valid=False)

    def _of_suite(self, reading: Reading, *, shared: bool) -> Entries:
        if self.shared is not None and shared:
            return Result(self.shared.value)  # what is wrong with them is reported, and not of this case
        return _lists(self.context, _nodes(self.context.defaults), reading.of_suite())

    def _implied(self, case: WrittenCase, criteria: str | None, reading: Reading) -> tuple[AssertionEntry, ...]:
        if criteria is not None and criteria.strip():
            entry = self.context.assertions.judged(None, case.keys.criteria or case.node, reading)
            return (entry,) if entry else ()
        if not self.context.show_only:
            message = "this case checks nothing: it has no assertion and no criteria"
            reading.report.error("checks-nothing", case.node, message, hint=_MENDS)
        return ()


def _nodes(defaults: CaseDefaults) -> list[Node]:
    return [node for node in (defaults.test_assert, defaults.assert_) if node is not None]


def _lists(context: CaseContext, nodes: Sequence[Node], reading: Reading) -> Entries:
    return _joined([context.assertions.entries(node, reading) for node in nodes])


def _joined(parts: Sequence[Entries]) -> Entries:
    found: tuple[AssertionEntry, ...] = ()
    for part in parts:
        found += part.value  # nothing is copied where only one of them has entries
    return Result(found, all(part.valid for part in parts))


def _as_gate(entry: AssertionEntry) -> AssertionEntry:
    """The entry as a gate, by `require_all`, unless it is only reported or says what it must score.

    A set without a threshold of its own would take the case's, which is 0, and one whose own is 0 would let everything
    pass: such a set needs all that it holds.
    """
    inner: tuple[AssertionEntry, ...] = entry.inner
    if inner and not getattr(entry.assertion, "threshold", None):
        from dataclasses import replace  # the sets of plugins are dataclasses, too

        whole: Any = entry.assertion
        entry = structs.replace(entry, assertion=replace(whole, assert_=tuple(map(_as_gate, inner))))
    settings = entry.settings
    if settings.required or settings.weight == 0:
        return entry
    return structs.replace(entry, settings=structs.replace(settings, required=True))
