"""Messages between the run and the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.ports import Call


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Configuration that a worker receives when it starts.

    Attributes:
        at_once: maximum number of concurrent calls to one endpoint from this worker.
        looks: stored answers may exist, so each call is looked up on the first machine before it is made.
        no_target, no_judge: failures for calls without a stored answer, of targets, and of judges and embedders.
    """

    at_once: int
    looks: bool = False
    no_target: bool = False
    no_judge: bool = False


@dataclass(frozen=True, slots=True)
class Readiness:
    """State that a worker reports after its start.

    Attributes:
        node: the name or address of its machine.
        version: of the installed agentv.
        missing: needed files that are missing there.
        other: files with different content there.
        node_id: the cluster's id of the machine; several may run on one host.
    """

    node: str
    version: str
    missing: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    node_id: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """Job of a worker: one trial, or the comparison of several answered ones.

    Attributes:
        known: key of a call → its answer, which a lost worker had received.
        answered: for `compare`: the answer of each trial and its duration in milliseconds, or its errored result.
    """

    what: Literal["run", "answer", "compare"]
    trials: tuple[Trial, ...]
    known: Mapping[str, TargetResponse] = field(default_factory=dict)
    answered: tuple[tuple[TargetResponse, float] | TrialResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """A call was answered: to be kept before anything else."""

    call: Call
    answer: TargetResponse


@dataclass(frozen=True, slots=True)
class Wanted:
    """Asks whether a call has an answer already. The reply carries the same number."""

    number: int
    call: Call


@dataclass(frozen=True, slots=True)
class LookupReply:
    """A stored answer; without one, the reasons why no call may be made."""

    answer: TargetResponse | None
    no_target: Failure | None = None
    no_judge: Failure | None = None


@dataclass(frozen=True, slots=True)
class StoppedTarget:
    """A target that refuses all calls; `spec` is its number among the shared objects."""

    spec: int
    failure: CallFailure


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """The answer to the trial of an `answer` job."""

    answer: TargetResponse
    measured_ms: float


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a job's trials, packed."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A worker cannot make the job out of its bytes, since a module is missing there."""

    why: str


WorkerMessage: TypeAlias = Received | Wanted | StoppedTarget | TrialAnswer | Results | Unreadable
"""From a worker to us."""
