"""What assertions need of their case: a reference, retrieved text. Missed when the file is loaded, not in the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentv.model.assertion import AssertionEntry
from agentv.model.conversation import Turn
from agentv.model.values import JsonObject
from agentv.registry.fields import DeclaredAssertion
from agentv.spec.judging import nested
from agentv.spec.report import Report

_modest: set[type] = set()
"""Types that need nothing, so that they are seen at a glance: this is asked for every assertion of every case."""


def check_needs(
    entries: Iterable[AssertionEntry], turns: Sequence[Turn], variables: JsonObject, reference: bool, report: Report
) -> None:
    """Report what the entries of one case lack, and those of its turns; the last turn has the case's answer."""
    _check(entries, variables, bool(turns[-1].expected_output) if turns else reference, report)
    for turn in turns:
        _check(turn.assertions, variables, bool(turn.expected_output), report)


def _check(entries: Iterable[AssertionEntry], variables: JsonObject, reference: bool, report: Report) -> None:
    for entry in entries:
        assertion = entry.assertion
        if type(assertion) in _modest:
            continue
        if isinstance(assertion, DeclaredAssertion) and type(assertion).lacks is not DeclaredAssertion.lacks:
            for fault in assertion.lacks(variables, reference):
                report.error(fault.code, entry.span, fault.message, hint=fault.hint)
        elif hasattr(type(assertion), "assert_"):
            _check(nested(entry), variables, reference, report)
        else:
            _modest.add(type(assertion))
