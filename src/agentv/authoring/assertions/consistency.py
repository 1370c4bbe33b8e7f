"""Checks of assertions that are each valid: whether they fit together, grade something, and are used."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentv.authoring.assertions.judging import judges
from agentv.authoring.source.files import shown, templates_in
from agentv.authoring.source.nodes import MapNode
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.values.span import Span
from agentv.registry.fields import DeclaredAssertion

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


_HOME = (".agentv", "templates")


def unused_templates(directories: Iterable[str], read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for every template below the directories that was not read.

    Only for directories: with single files, other files may include the template.

    Args:
        directories: as given.
        read: absolute paths of all files that the suites below these directories read.
    """
    for path in sorted({path for directory in directories for path in _templates_below(directory)} - set(read)):
        message = "no eval file includes this template"
        yield Diagnostic("unused-template", message, Span(path, 1, 1, 1, 2), "warning")


def _templates_below(directory: str) -> Iterator[str]:
    for folder, inside, _ in os.walk(directory):
        home = Path(folder, *_HOME)
        if _HOME[0] in inside:
            yield from templates_in(str(home.absolute())).values()
        inside[:] = [name for name in inside if not name.startswith(".") and name != "node_modules"]
