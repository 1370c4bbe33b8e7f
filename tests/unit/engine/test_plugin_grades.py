"""Grades of plugins that break the rules."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.app.wiring import SystemClock
from agentv.engine.grading import grade_entries
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.user_code.functions.threads import DaemonThreads

PASSED, FAILED = Grade.of(True, "yes"), Grade.of(False, "no")


@dataclass(frozen=True)
class Plain:
    given: Any

    def label(self):
        return ""

    def grade(self, context):
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


@dataclass(frozen=True)
class Async(Plain):
    async def grade(self, context):
        return Plain.grade(self, context)


@dataclass(frozen=True)
class Later(Async):
    def grade(self, context):
        return super().grade(context)


def graded(assertion, **settings) -> Grade:
    async def grade():
        executor = DaemonThreads()
        context = AssertionContext((), "answer", _services=SimpleNamespace(executor=executor))
        entry = AssertionEntry("nice", assertion, AssertionSettings(**settings), plugin="acme-evals 1.2 abc")
        (score,) = await grade_entries([entry], context, SystemClock())
        await executor.aclose()
        return score.grade

    return asyncio.run(grade())


@pytest.mark.parametrize("kind", [Plain, Async, Later])
def test_every_way_to_grade_is_taken(kind):
    assert graded(kind(PASSED)) == PASSED
    assert graded(kind(FAILED)) == replace(FAILED, has_own_threshold=True)
    assert graded(kind(FAILED), negate=True).passed


def test_the_no_of_a_plugin_counts_0():
    denied = Grade(0.9, False)
    assert (graded(Plain(denied)).score, graded(Plain(denied)).counted) == (0.9, 0.0)
    assert graded(Plain(denied), negate=True).counted == 1.0


@pytest.mark.parametrize("kind", [Plain, Async, Later])
@pytest.mark.parametrize(
    ("given", "code", "why"),
    [
        (True, "bad-result", "nice must return a Grade, and returned bool"),
        (None, "bad-result", "and returned NoneType"),
        (1.0, "bad-result", "and returned float"),
        (ValueError("no"), "assertion-raised", "raised ValueError: no"),
        (SystemExit(0), "assertion-raised", "called sys.exit"),
        (KeyboardInterrupt(), "assertion-raised", "KeyboardInterrupt"),
    ],
)
def test_what_breaks_the_rules_is_errored_and_never_a_pass(kind, given, code, why):
    for negate in (False, True):
        grade = graded(kind(given), negate=negate)
        assert grade.error is not None
        assert grade.error.code == code
        assert why in grade.error.message
        assert not grade.passed
