"""Assertions of a case: its own, those of its suite, and its criteria (SPEC section 7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from agentv.authoring.assertions.judging import judges
from agentv.authoring.cases.context import CaseContext, CaseDefaults, WrittenCase
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nodes import MapNode, Node, holds_placeholder, is_empty
from agentv.authoring.source.report import Report, Result
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.values.values import Span
from agentv.registry.fields import DeclaredAssertion

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


COMPARED = 50
"""Entries of one type that are compared with each other; longer lists are made by programs."""


def check_entries(entries: Sequence[AssertionEntry], report: Report, *, are_alternatives: bool = False) -> None:
    """Report what is doubtful about a list, and the lists inside its sets. Runs for every case.

    Args:
        entries: of one list.
        report: gets warnings.
        are_alternatives: not all of them have to pass, so that they may exclude each other.
    """
    for entry in entries:
        if entry.settings is not DEFAULTS and entry.settings.min_score == 0:
            message = f"'{entry.name}' passes with every score: its min_score is 0"
            report.warning("always-passes", entry.span, message, hint="to show it without counting it, use weight: 0")
        inside = entry.inner
        if inside:
            mark = getattr(entry.assertion, "threshold", None)
            check_entries(inside, report, are_alternatives=isinstance(mark, float) and mark < 1)
    if len(entries) > 1 and not are_alternatives:
        _check_together(entries, report)


def _check_together(entries: Sequence[AssertionEntry], report: Report) -> None:
    by_type: dict[str, list[AssertionEntry]] = {}
    for entry in entries:
        earlier = by_type.get(entry.type)
        if earlier is None:
            by_type[entry.type] = [entry]
        elif len(earlier) < COMPARED:
            any(_compare(other, entry, report) for other in earlier)  # once is enough for an entry
            earlier.append(entry)


def _compare(first: AssertionEntry, second: AssertionEntry, report: Report) -> bool:
    """Two entries of one type: whether they are the same twice, or the one the complement of the other."""
    ours, theirs = first.settings, second.settings
    if first.assertion != second.assertion or ours.transform != theirs.transform:
        return False
    if ours.negate != theirs.negate:
        report.warning("contradiction", second.span, f"no answer passes both this and {_named(first, second)}")
        return True
    if ours.name != theirs.name:
        return False
    message = f"'{second.name}' appears {_where(first, second, 'twice', 'here and')}, so it counts twice"
    report.warning("duplicate-assertion", second.span, message)
    return True


def _named(entry: AssertionEntry, seen_from: AssertionEntry) -> str:
    return f"'{entry.name}'{_place(entry.span, seen_from.span, ' at ')}"


def _where(entry: AssertionEntry, seen_from: AssertionEntry, alone: str, beside: str) -> str:
    place = _place(entry.span, seen_from.span, " ")
    return f"{beside} at{place}" if place else alone


def _place(span: Span | None, seen_from: Span | None, before: str) -> str:
    """`line 7`, or `templates/safe.yaml:4` in another file; nothing where they stand at one place."""
    if span is None or span == seen_from:
        return ""
    if seen_from is not None and span.file == seen_from.file:
        return f"{before}line {span.line}"
    return f"{before}{shown(span.file)}:{span.line}"


def assertions_of(turns: tuple[Turn, ...]) -> tuple[AssertionEntry, ...]:
    """The assertions of all turns, in their order."""
    return tuple(entry for turn in turns for entry in turn.assertions)


def turn_facts(turns: tuple[Turn, ...]) -> list[Any]:
    """Authored content of turns, without their assertions, which are hashed with the case's."""
    return [(turn.input, turn.criteria, turn.expected_output, len(turn.assertions)) for turn in turns]


def reads_criteria(entry: AssertionEntry) -> bool:
    """Whether an entry, or one inside it, uses the case's criteria. Custom types do."""
    if judges(entry):
        return True
    return any(
        not isinstance(one.assertion, DeclaredAssertion) or one.assertion.reads_criteria for one in entry.nested()
    )


def counts_any(entries: tuple[AssertionEntry, ...]) -> bool:
    """Whether one of the assertions affects the verdict: by its weight, or as a gate."""
    return any(entry.settings.weight != 0 or entry.settings.required is not False for entry in entries)


def check_graded(
    entries: tuple[AssertionEntry, ...],
    written: MapNode,
    criteria: str | None,
    report: Report,
) -> None:
    """Report criteria that no assertion reads, and assertions that contradict each other.

    Args:
        entries: of the case.
        written: the case as authored.
        criteria: of the case.
        report: receives the diagnostics.
    """
    if criteria is not None and entries and not any(reads_criteria(entry) for entry in entries):
        at = written.keys["criteria"]
        report.warning("criteria-not-judged", at, "no assertion uses these criteria")
    check_entries(entries, report)
