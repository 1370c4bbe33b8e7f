"""Hand-made suites, and helpers that run them in the engine."""

from collections.abc import Iterable
from typing import Any

from agentv.engine.run import Run, RunOptions
from agentv.model.run.events import TrialFinished
from agentv.model.run.grade import Grade
from agentv.model.run.trial import TrialResult
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message
from doubles.nested_grading import FixedGrade, entry

GOOD, BAD = Grade.of(True, "good"), Grade.of(False, "bad")


def case(identity: str, *checks: Any, **given: Any) -> Case:
    """Return a case with the prompt `ID?` and these assertions or fixed grades; one passing grade by default."""
    entries = tuple(entry(FixedGrade(one) if isinstance(one, Grade) else one) for one in checks or (GOOD,))
    return Case(identity, (Message("user", f"{identity}?"),), entries, sha256=identity, **given)


def suite(*cases: Case, targets: Iterable[str] = ("t",), **given: Any) -> Suite:
    return Suite("suite", cases, targets=tuple(TargetSpec(name, "x", None) for name in targets), **given)


async def events_of(trials: Any, number: int, run_context: Any, *options: Any, **more: Any) -> list[Any]:
    """Return the events of a whole run with these options."""
    run = Run("run", trials, number, run_context=run_context, options=RunOptions(*options, **more))
    return [event async for event in run.events()]


def results_of(events: Iterable[Any]) -> list[TrialResult]:
    return [event.result for event in events if isinstance(event, TrialFinished)]
