"""Events of a run: the one stream that the journal, the terminal and every report read."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.trace import AgentActivity

StopReason: TypeAlias = Literal["interrupt", "max-errors", "fail-fast", "budget", "decided"]


class RunStarted(Struct, frozen=True):
    """The run is about to call its first target. `trials`: their number."""

    trials: int


class TrialFinished(Struct, frozen=True):
    """One trial ended, whatever its status.

    Attributes:
        planned: the trial as planned, if the result shows it without secrets.
    """

    result: TrialResult
    planned: Trial | None = None


class TrialKept(Struct, frozen=True):
    """A trial that an earlier run finished and that still counts. Sent before the run starts."""

    result: TrialResult


class RunResumed(Struct, frozen=True):
    """The run resumes an earlier one. Sent before it starts.

    Attributes:
        complete: number of trials that are complete.
        regraded: number of trials with stored answers, which are graded again.
        to_call: number of trials whose target will be called.
        at_most: samples of cases may end early, so fewer trials may run.
        interrupted: number of those to call that had begun, and begin again.
        calls, cost_usd: what they took so far: model calls, and US dollars; None: no price is known.
    """

    complete: int
    regraded: int
    to_call: int
    at_most: bool = False
    interrupted: int = 0
    calls: int = 0
    cost_usd: float | None = None


class RunRegrades(Struct, frozen=True):
    """The run grades answers of another run without calling a target. Sent before it starts.

    Attributes:
        earlier: that run's id.
        found: number of trials whose first answer is stored.
        missing: number of trials that will be errored because it is not.
    """

    earlier: str
    found: int
    missing: int


class TargetPaused(Struct, frozen=True):
    """The server of a target asks for a long wait; agentv waits for a short time and retries once."""

    name: str
    reason: str


class TargetStopped(Struct, frozen=True):
    """A target, or judge, refuses all calls: trials that need it do not run."""

    name: str
    reason: str


class AgentProgress(Struct, frozen=True):
    """What the agent of a running trial has done so far. Sent when that changes, and now and then while it does not.

    Attributes:
        key: of the trial within the run.
        activity: None: its call has ended.
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
    """A target whose server limits calls.

    Attributes:
        status: of HTTP, with which it refused the last one.
        next_s: seconds until the next call.
    """

    name: str
    status: int | None
    next_s: float


class RunProgress(Struct, frozen=True):
    """What a run is doing now. Sent once a second, and at once when a server begins to limit calls.

    Attributes:
        running: number of trials.
        elapsed_s: seconds since the run began.
        limited: targets whose next call waits for a limit.
        slowest: the case that has been running for the longest time, and what it runs with; empty: none runs.
        slowest_s: for so many seconds.
    """

    running: int
    elapsed_s: float
    limited: tuple[LimitedTarget, ...] = ()
    slowest: tuple[str, ...] = ()
    slowest_s: float = 0.0


class RunInterrupted(Struct, frozen=True):
    """No more trials start; `running` ones finish. `why`: details for the user."""

    running: int
    reason: StopReason
    why: str = ""


class RunFinished(Struct, frozen=True):
    """The run has ended. `unstarted` trials did not start; `stopped` is the reason, if something stopped it."""

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
