"""Events of a run: the one stream that the journal, the terminal and every report read."""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentv.lazy_dataclass import dataclass
from agentv.model.run.trial import Trial, TrialResult

StopReason: TypeAlias = Literal["interrupt", "max-errors", "fail-fast", "budget", "decided"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run is about to call its first target. `trials` is how many there are to do."""

    run_id: str
    trials: int
    workers: int


@dataclass(frozen=True, slots=True)
class TrialFinished:
    """One trial ended, whatever its status.

    Attributes:
        planned: the trial as it was planned, where the result shows it without secrets.
    """

    result: TrialResult
    planned: Trial | None = None


@dataclass(frozen=True, slots=True)
class TrialKept:
    """One trial that an earlier run finished, whose result stands. Comes before the run starts."""

    result: TrialResult


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The run resumes an earlier one. Comes before it starts.

    Attributes:
        standing: trials whose results stand.
        regraded: those to come whose target was asked already: its answers are graded again.
        asked: those to come whose target will be asked.
        at_most: samples of cases may end early, so that there may be fewer to come.
    """

    standing: int
    regraded: int
    asked: int
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class RunRegrades:
    """No target is asked: answers of another run are graded. Comes before the run starts.

    Attributes:
        earlier: that run's id.
        found: trials to come whose first answer is there.
        missing: those that will be errored, since it is not.
    """

    earlier: str
    found: int
    missing: int


@dataclass(frozen=True, slots=True)
class TargetPaused:
    """The server of a target asks for a long wait; calls wait for a short one, and then it is asked again."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class TargetStopped:
    """No call of a target, or judge, can be answered: trials that need it are not run."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunInterrupted:
    """No more trials start; `running` are being waited for. `why`: more than the reason says, for people."""

    running: int
    reason: StopReason
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Nothing runs any more. `unstarted` trials were not begun; `stopped` says why, where somebody stopped it."""

    run_id: str
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
    | TargetPaused
    | TargetStopped
    | RunInterrupted
    | RunFinished
)
