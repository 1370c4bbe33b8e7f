"""Inputs that assertions need from their case, such as a reference or retrieved text, checked at load time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.source.report import Report
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.values import JsonObject
from agentv.registry.fields import DeclaredAssertion

_modest: set[type] = set()
"""Types that need nothing, so that they are seen at a glance: this is asked for every assertion of every case."""


class Facts(Struct, frozen=True):
    """Data of a case that assertions may need; for a case with turns, of the last turn.

    Attributes:
        targets: that will be called; empty where that is not known yet.
    """

    id: str | None
    variables: JsonObject
    has_reference: bool
    has_criteria: bool
    turns: Sequence[Turn]
    targets: Sequence[TargetSpec] = ()


def need_nothing(entries: Iterable[AssertionEntry]) -> bool:
    """Whether all entries are known to need nothing from a case, as most do."""
    return _modest.issuperset([type(entry.assertion) for entry in entries])


def check_needs(entries: Iterable[AssertionEntry], facts: Facts, report: Report) -> None:
    """Report what the entries of one case lack, and those of its turns."""
    last = facts.turns[-1].expected_output if facts.turns else None
    _check(entries, facts if last is None else replace(facts, has_reference=bool(last)), report)
    for turn in facts.turns:
        own = replace(facts, has_reference=bool(turn.expected_output), has_criteria=turn.criteria is not None)
        _check(turn.assertions, own, report)


def _check(entries: Iterable[AssertionEntry], facts: Facts, report: Report) -> None:
    for entry in entries:
        assertion = entry.assertion
        if type(assertion) in _modest:
            continue
        if (
            isinstance(assertion, DeclaredAssertion)
            and type(assertion).missing_inputs is not DeclaredAssertion.missing_inputs
        ):
            for issue in assertion.missing_inputs(
                facts.variables, reference=facts.has_reference, criteria=facts.has_criteria
            ):
                notes = (f"the case '{facts.id}' has none",) if facts.id and issue.code == "missing-key" else ()
                report.error(issue.code, entry.span, issue.message, hint=issue.hint, notes=notes)
            if facts.targets and assertion.lacks_context(facts.variables):
                _report_no_context(entry, facts.targets, report)
        elif hasattr(type(assertion), "assert_"):
            _check(entry.inner, facts, report)
        else:
            _modest.add(type(assertion))


def _report_no_context(entry: AssertionEntry, targets: Iterable[TargetSpec], report: Report) -> None:
    """Report the first target whose replies contain no retrieved text."""
    mute = next((one for one in targets if not getattr(one.settings, "returns_context", True)), None)
    if mute is not None:
        message = f"'{entry.type}' needs the retrieved text, which target '{mute.name}' does not return"
        hint = "give it as 'context', as a variable 'context', or by 'context_transform' from the answer"
        report.error("missing-key", entry.span, message, hint=hint)
