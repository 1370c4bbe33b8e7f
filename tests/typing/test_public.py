"""The public types as mypy sees them; pytest runs this module too, to check its imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_type

import agentv
from agentv import (
    AssertionContext,
    AssertionScore,
    Case,
    Evaluation,
    ExitStatus,
    Message,
    Suite,
    Summary,
    TargetResponse,
    TrialResult,
    Turn,
    define_assertion,
)


@define_assertion
def min_words(context: AssertionContext, *, minimum: int = 3) -> bool:
    return len((context.output or "").split()) >= minimum


@define_assertion()
def graded(context: AssertionContext) -> AssertionScore:
    return AssertionScore(passed=True, score=0.5, details={"criteria": context.criteria})


def answer(prompt: str) -> Mapping[str, Any]:
    return {"output": prompt, "cost_usd": 0.01}


def check_types() -> None:
    suite = Suite(name="s", tests=[Case(id="a", input="hi", assertions=["is polite", {"contains": "hi"}])])
    done = agentv.evaluate(suite, target=answer, workers=2)
    talk = Case(id="b", turns=[Turn(input="hi", assertions=["is polite"]), {"input": "bye"}], depends_on=["a"])
    assert_type(talk.turns, Sequence[Turn | Mapping[str, Any]])
    assert_type(done, Evaluation)
    assert_type(done.summary, Summary)
    assert_type(done.results, tuple[TrialResult, ...])
    assert_type(done.status, ExitStatus)
    assert_type(done.directory, Path)
    assert_type(done.results[0].input, tuple[Message, ...])
    assert_type(done.results[0].score, float | None)
    assert_type(done.results[0].turns, tuple[TargetResponse, ...])
    assert_type(done.summary.pass_rate_interval, tuple[float, float] | None)


async def check_async_types() -> None:
    assert_type(await agentv.evaluate_async("evals/"), Evaluation)


def test_the_decorated_functions_are_still_functions() -> None:
    context = AssertionContext(input=(), output="one two three")
    assert min_words(context)
    assert not min_words(context, minimum=4)
    assert graded(context).score == 0.5
