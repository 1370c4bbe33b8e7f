"""Everything that the engine reaches during a run: targets, judges, the journal, the clock."""

from __future__ import annotations

from typing import Protocol

from agentv.engine.calls.call_throttle import CallThrottle
from agentv.engine.calls.recorded_call import Unanswered
from agentv.engine.grading import GraderCheck
from agentv.model.run.context import Judge
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.ports import AnswerLookup, Clock, Embedder, Executor, JavaScriptHost, Target
from agentv.work_ports import TrialWorks, WorkArchive


class RunContext(Protocol):
    """Services of a run for the engine. `app/wiring` implements it."""

    @property
    def executor(self) -> Executor:
        """Threads and an event loop for user code."""

    @property
    def store(self) -> AnswerLookup:
        """The store in which answers are looked up and saved."""

    @property
    def clock(self) -> Clock:
        """The time."""

    @property
    def throttle(self) -> CallThrottle:
        """The throttle of all calls: it limits, times and retries them, and knows the stopped targets."""

    @property
    def unanswered(self) -> Unanswered | None:
        """Failure of a target's call without a recorded answer; None: the target is called."""

    @property
    def kept_works(self) -> WorkArchive | None:
        """The work of agents in the run that is graded again; None: there is no such run."""

    @property
    def works(self) -> TrialWorks:
        """What trials have besides their calls; loaded when the first trial needs it."""

    def target(self, spec: TargetSpec) -> Target:
        """The connected target of a spec; the same one at every call."""

    def judge(self, spec: TargetSpec, suite: Suite) -> Judge:
        """The judge that calls a spec's target, in the environment of a suite."""

    def embedder(self, spec: TargetSpec) -> Embedder:
        """The embedder of a spec's target; always the same one.

        Raises:
            LookupError: the target cannot embed, which loading should have reported.
        """

    def javascript(self, suite: Suite) -> JavaScriptHost:
        """The JavaScript runtime in the environment of a suite."""

    def check(self, suite: Suite) -> GraderCheck | None:
        """The check whether the entries of a suite may still grade; None: all of them may."""
