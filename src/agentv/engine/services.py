"""Services that a trial offers to its assertions: judges, embeddings, scripts."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentv.engine.grading import grade_entries
from agentv.engine.run_context import RunContext
from agentv.engine.transform import value_of
from agentv.model.run.context import AssertionContext, Judge
from agentv.model.run.trial import Score, Trial
from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.suite.suite import embeds
from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.ports import Embedder, Executor, JavaScriptHost


class TrialServices(Struct, frozen=True):
    """The Services of one trial."""

    run_context: RunContext
    trial: Trial

    @property
    def executor(self) -> Executor:
        """Threads and an event loop for user code."""
        return self.run_context.executor

    @property
    def javascript(self) -> JavaScriptHost:
        """The JavaScript runtime of the trial's suite."""
        return self.run_context.javascript(self.trial.suite)

    def judge(self, name: str | None) -> Judge:
        """The judge of that name, or the trial's own; the command line's wins over both.

        Raises:
            LookupError: there is none, which loading should have found.
        """
        spec = self.trial.judge_called(name)
        if spec is None:
            raise LookupError("no judge is set")
        return self.run_context.judge(spec, self.trial.suite)

    def embedder(self, name: str | None) -> Embedder:
        """The embedder of that name, or the first of the trial's target and its judge that embeds.

        Raises:
            LookupError: there is none, which loading should have found.
        """
        trial = self.trial
        candidates = (trial.suite.judges.get(name),) if name else (trial.target, trial.judge)
        for spec in candidates:
            if spec is not None and embeds(spec):
                return self.run_context.embedder(spec)
        raise LookupError("no target that computes embeddings is set")

    async def grade(self, entries: Sequence[AssertionEntry], context: AssertionContext) -> tuple[Score, ...]:
        """Grade a list, one entry after the other."""
        return await grade_entries(entries, context, self.run_context.clock, self.run_context.check(self.trial.suite))

    async def evaluate(self, transform: Transform, context: AssertionContext) -> Json | Failure:
        """The value that an expression over the answer has; `transform-failed` where it has none."""
        value: Json | Failure = await value_of(transform, context)
        return value
