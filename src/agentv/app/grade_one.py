"""`agentv assert`: one assertion, alone, on one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.app.wiring import LazyJavaScript, SystemClock
from agentv.assertions.user_code.result import Settled, wire_of
from agentv.authoring.loading.load import load_assertion
from agentv.authoring.source.masking import environment_secrets, secrets_in
from agentv.engine.grading import grade_entries
from agentv.engine.transform import value_of
from agentv.errors import LoadError
from agentv.model.redaction import Redactor
from agentv.model.run.context import AssertionContext, Judge, context_from_json
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score
from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.ports import Clock, Embedder, Executor, JavaScriptHost
from agentv.user_code.processes import kill_all
from agentv.user_code.threads import DaemonThreads

_OPTIONS = """options are set under 'config' in the file of --file: {"output": "…", "config": {"value": "…"}}"""


@dataclass(frozen=True, slots=True)
class LoneServices:
    """The services of an assertion without a run: no judge is there to ask."""

    executor: Executor
    javascript: JavaScriptHost
    clock: Clock

    def judge(self, name: str | None) -> Judge:
        """None.

        Raises:
            LookupError: always.
        """
        raise LookupError(f"'agentv assert' has no judge{f' {name!r}' if name else ''}; use 'agentv eval'")

    def embedder(self, name: str | None) -> Embedder:
        """None.

        Raises:
            LookupError: always.
        """
        raise LookupError(f"'agentv assert' has no embedder{f' {name!r}' if name else ''}; use 'agentv eval'")

    async def grade(self, entries: Sequence[AssertionEntry], context: AssertionContext) -> tuple[Score, ...]:
        """Grade a nested list."""
        return await grade_entries(entries, context, self.clock)

    async def evaluate(self, transform: Transform, context: AssertionContext) -> Json | Failure:
        """The value of an expression over the answer."""
        value: Json | Failure = await value_of(transform, context)
        return value


def grade_one(name: str, options: Mapping[str, Json], context: AssertionContext, directory: Path) -> Grade:
    """The grade that the assertion type `name`, as seen from a directory, gives one answer; without secrets.

    Raises:
        LoadError: there is no such type, or the options are wrong.
    """
    entry, diagnostics = load_assertion(name, options, str(directory), registries(), dict(context.env))
    redactor = Redactor({*environment_secrets(context.env), *secrets_in(options)})
    if entry is None:
        hinted = (structs.replace(one, hint=_OPTIONS) if one.code == "missing-key" else one for one in diagnostics)
        raise LoadError(tuple(map(redactor.redact_diagnostic, hinted)))
    return redactor.redact_grade(asyncio.run(_graded(entry, context)))


def verdict_json(grade: Grade) -> dict[str, Json]:
    """Output of `agentv assert` for a grade: `pass`, then the same keys as when the file is run directly."""
    settled = Settled(grade.passed, grade.score, grade.checks, grade.reason, grade.details)
    return {"pass": grade.passed, **wire_of(settled)}


async def _graded(entry: AssertionEntry, context: AssertionContext) -> Grade:
    threads, javascript, clock = DaemonThreads(), LazyJavaScript(), SystemClock()
    services: Any = LoneServices(threads, javascript, clock)
    try:
        (score,) = await grade_entries([entry], replace(context, _services=services), clock)
    finally:
        await javascript.close()
        await threads.aclose()
        kill_all()
    return score.grade


__all__ = ["context_from_json", "grade_one", "verdict_json"]
