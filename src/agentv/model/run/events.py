"""Events of a run: a single stream that the journal, the terminal and all reports consume."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.trace import AgentActivity

StopReason: TypeAlias = Literal["interrupt", "max-errors", "fail-fast", "budget", "decided"]


class RunStarted(Struct, frozen=True):
    """The run is about to call its first target. `trials` is the number of trials."""

    trials: int


class TrialFinished(Struct, frozen=True):
    """A trial ended, with any status.

    Attributes:
        planned: the trial as planned, if the trial in the result was redacted.
    """

    result: TrialResult
    planned: Trial | None = None


class TrialKept(Struct, frozen=True):
    """A trial that an earlier run finished and that is kept. Sent before the run starts."""

    result: TrialResult


class RunResumed(Struct, frozen=True):
    """The run resumes an earlier one. Sent before the run starts.

    Attributes:
        complete: number of trials that are complete.
        regraded: number of trials with stored answers, which are graded again.
        to_call: number of trials whose target will be called.
        at_most: whether fewer trials may run, because sampling may stop early.
        interrupted: number of trials to call that had started before, and start again.
        calls, cost_usd: model calls of these so far, and their cost in US dollars; None if no price is known.
    """

    complete: int
    regraded: int
    to_call: int
    at_most: bool = False
    interrupted: int = 0
    calls: int = 0
    cost_usd: float | None = None


class RunRegrades(Struct, frozen=True):
    """The run grades the answers of another run without calling targets. Sent before the run starts.

    Attributes:
        earlier: id of the other run.
        found: number of trials whose first answer is stored.
        missing: number of trials whose answer is not stored, which will be errored.
    """

    earlier: str
    found: int
    missing: int


class TargetPaused(Struct, frozen=True):
    """A target's server asked for a long wait; agentv waits for a short time and retries once."""

    name: str
    reason: str


class TargetStopped(Struct, frozen=True):
    """A target or judge refuses all calls, so trials that need it do not run."""

    name: str
    reason: str


class AgentProgress(Struct, frozen=True):
    """Progress of the agent in a running trial. Sent when it changes, and occasionally while it does not.

    Attributes:
        key: key of the trial within the run.
        activity: None when the call has ended.
    """

    key: str
    case: str
    target: str
    prompt_id: str | None = None
    variant: str | None = None
    sample: int = 1
    repeat: int = 1
    activity: AgentActivity | None = None


class LimitedTarget(Struct, frozen=True):
    """A target whose server is limiting calls.

    Attributes:
        status: HTTP status with which it refused the last call.
        next_s: seconds until the next call.
    """

    name: str
    status: int | None
    next_s: float


class RunProgress(Struct, frozen=True):
    """Current state of a run. Sent once a second, and immediately when a server begins to limit calls.

    Attributes:
        running: number of running trials.
        elapsed_s: seconds since the start of the run.
        limited: targets whose next call is delayed by a rate limit.
        slowest: the case that has been running the longest, with its target and the like; empty if none is running.
        slowest_s: how long it has been running, in seconds.
    """

    running: int
    elapsed_s: float
    limited: tuple[LimitedTarget, ...] = ()
    slowest: tuple[str, ...] = ()
    slowest_s: float = 0.0


class RunInterrupted(Struct, frozen=True):
    """No more trials start; `running` trials are still finishing. `why` holds details for the user."""

    running: int
    reason: StopReason
    why: str = ""


class RunFinished(Struct, frozen=True):
    """The run has ended. `unstarted` trials did not start; `stopped` is the reason if the run was stopped."""

    finished: int
    unstarted: int
    interrupted: bool
    duration_ms: float
    stopped: StopReason | None = None


Event: TypeAlias = (
    RunStarted
    | RunResumed
    | RunRegrades
    | TrialKept
    | TrialFinished
    | AgentProgress
    | RunProgress
    | TargetPaused
    | TargetStopped
    | RunInterrupted
    | RunFinished
)
