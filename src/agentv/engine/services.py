"""Services that a trial offers to its assertions: judges, embeddings, scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentv.engine.calls.call_throttle import CallThrottle
from agentv.engine.calls.recorded_call import Unanswered
from agentv.engine.grading import Check, grade_entries
from agentv.engine.transform import value_of
from agentv.model.run.context import AssertionContext
from agentv.model.run.trial import Score, Trial
from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.suite.suite import Suite, TargetSpec, embeds
from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.ports import AnswerLookup, Clock, Embedder, Executor, JavaScriptHost, Judge, Target

if TYPE_CHECKING:
    from agentv.engine.executor import TrialExecutor


def _no_check(suite: Suite) -> Check | None:  # noqa: ARG001  # nobody looked at its files
    return None


def _no_embedder(spec: TargetSpec) -> Embedder:
    raise LookupError(f"'{spec.name}' does not compute embeddings")


@dataclass(frozen=True, slots=True)
class RunContext:
    """All that the engine reaches: ports, joined by `app/wiring`.

    Attributes:
        connect: the connected target of a spec; the same one at every call.
        judge: the judge that asks a spec's target, in the environment of a suite.
        javascript: the JavaScript runtime in the environment of a suite.
        throttle: through which `connect` and `judge` ask; it keeps time, tries again, and knows who is stopped.
        unanswered: what a target's call comes to that has no answer yet, where none is to be asked; None: it is asked.
        embedder: what embeds texts through a spec's target; the same one at every call.
        elsewhere: what runs the trials on other machines; None: they run in this process.
        check: says of a suite's entries whether they may grade still; None: all of them may.
    """

    connect: Callable[[TargetSpec], Target]
    judge: Callable[[TargetSpec, Suite], Judge]
    executor: Executor
    javascript: Callable[[Suite], JavaScriptHost]
    store: AnswerLookup
    clock: Clock
    throttle: CallThrottle = field(default_factory=CallThrottle)
    embedder: Callable[[TargetSpec], Embedder] = _no_embedder
    unanswered: Unanswered | None = None
    elsewhere: TrialExecutor | None = None
    check: Callable[[Suite], Check | None] = _no_check


@dataclass(frozen=True, slots=True)
class TrialServices:
    """The Services of one trial."""

    world: RunContext
    trial: Trial

    @property
    def executor(self) -> Executor:
        """Threads and an event loop for user code."""
        return self.world.executor

    @property
    def javascript(self) -> JavaScriptHost:
        """The JavaScript runtime of the trial's suite."""
        return self.world.javascript(self.trial.suite)

    def judge(self, name: str | None) -> Judge:
        """The judge of that name, or the trial's own; the command line's wins over both.

        Raises:
            LookupError: there is none, which loading should have found.
        """
        spec = self.trial.judge_called(name)
        if spec is None:
            raise LookupError("no judge is set")
        return self.world.judge(spec, self.trial.suite)

    def embedder(self, name: str | None) -> Embedder:
        """The embedder of that name, or the first of the trial's target and its judge that embeds.

        Raises:
            LookupError: there is none, which loading should have found.
        """
        trial = self.trial
        candidates = (trial.suite.judges.get(name),) if name else (trial.target, trial.judge)
        for spec in candidates:
            if spec is not None and embeds(spec):
                return self.world.embedder(spec)
        raise LookupError("no target that computes embeddings is set")

    async def grade(self, entries: Sequence[AssertionEntry], context: AssertionContext) -> tuple[Score, ...]:
        """Grade a list, one entry after the other."""
        return await grade_entries(entries, context, self.world.clock, self.world.check(self.trial.suite))

    async def evaluate(self, transform: Transform, context: AssertionContext) -> Json | Failure:
        """The value that an expression over the answer has; `transform-failed` where it has none."""
        value: Json | Failure = await value_of(transform, context)
        return value
