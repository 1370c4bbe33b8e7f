"""Checks that the assertions of a case and of its turns grade something."""

from __future__ import annotations

from typing import Any

from agentv.authoring.assertions.consistency import check_entries
from agentv.authoring.assertions.judging import judges
from agentv.authoring.source.nodes import MapNode
from agentv.authoring.source.report import Report
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.registry.fields import DeclaredAssertion


def assertions_of(turns: tuple[Turn, ...]) -> tuple[AssertionEntry, ...]:
    """The assertions of all turns, in their order."""
    return tuple(entry for turn in turns for entry in turn.assertions)


def turn_facts(turns: tuple[Turn, ...]) -> list[Any]:
    """Authored content of turns, without their assertions, which are hashed with the case's."""
    return [(turn.input, turn.criteria, turn.expected_output, len(turn.assertions)) for turn in turns]


def reads_criteria(entry: AssertionEntry) -> bool:
    """Whether an entry, or one inside it, uses the case's criteria. Custom types do."""
    if not isinstance(entry.assertion, DeclaredAssertion) or entry.assertion.reads_criteria or judges(entry):
        return True
    return any(reads_criteria(child) for child in entry.inner)


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
